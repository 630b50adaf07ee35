//! Throws bytes at `client::settings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::settings(bytes));
