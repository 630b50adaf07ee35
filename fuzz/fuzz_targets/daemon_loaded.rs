//! Throws bytes at `daemon::loaded`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::loaded(bytes));
