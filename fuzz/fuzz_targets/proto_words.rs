//! Throws bytes at `proto::words`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::words(bytes));
