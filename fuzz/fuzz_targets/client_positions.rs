//! Throws bytes at `client::positions`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::positions(bytes));
