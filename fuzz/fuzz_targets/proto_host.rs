//! Throws bytes at `proto::host`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::host(bytes));
