//! Throws bytes at `daemon::operations`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::operations(bytes));
