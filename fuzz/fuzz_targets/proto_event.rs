//! Throws bytes at `proto::event`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::event(bytes));
