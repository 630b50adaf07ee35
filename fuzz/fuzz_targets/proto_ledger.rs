//! Throws bytes at `proto::ledger`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| minder_fuzz::proto::ledger(bytes));
