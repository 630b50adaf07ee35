//! Throws bytes at `daemon::call`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::call(bytes));
