//! Throws bytes at `proto::record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::record(bytes));
