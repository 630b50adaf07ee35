//! Throws bytes at `client::feed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::feed(bytes));
