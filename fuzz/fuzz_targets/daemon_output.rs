//! Throws bytes at `daemon::output`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::output(bytes));
