//! Throws bytes at `daemon::hook`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::hook(bytes));
