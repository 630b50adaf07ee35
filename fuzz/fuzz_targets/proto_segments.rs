//! Throws bytes at `proto::segments`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::segments(bytes));
