//! Throws bytes at `client::receipt`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::receipt(bytes));
