//! Throws bytes at `proto::selector`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::selector(bytes));
