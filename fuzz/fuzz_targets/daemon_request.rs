//! Throws bytes at `daemon::request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::request(bytes));
