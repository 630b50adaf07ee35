//! Throws bytes at `daemon::spool`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::spool(bytes));
