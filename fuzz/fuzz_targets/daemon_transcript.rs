//! Throws bytes at `daemon::transcript`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::daemon::transcript(bytes));
