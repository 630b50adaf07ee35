//! Throws bytes at `daemon::status`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::status(bytes));
