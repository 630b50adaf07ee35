//! Throws bytes at `proto::lists`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::lists(bytes));
