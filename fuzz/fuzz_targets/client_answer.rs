//! Throws bytes at `client::answer`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::answer(bytes));
