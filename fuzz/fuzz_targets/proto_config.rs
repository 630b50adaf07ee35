//! Throws bytes at `proto::config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::config(bytes));
