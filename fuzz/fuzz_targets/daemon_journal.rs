//! Throws bytes at `daemon::journal`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::journal(bytes));
