//! Throws bytes at `client::hook`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::client::hook(bytes));
