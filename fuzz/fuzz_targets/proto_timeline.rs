//! Throws bytes at `proto::timeline`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::timeline(bytes));
