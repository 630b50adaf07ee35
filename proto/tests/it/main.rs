//! Whatever stands in the files and on the command line: no inlet of the contract fails on it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod inlets;

use minder_tests::{garbage, heap};

#[global_allocator]
static COUNTED: heap::Counting = heap::Counting;

#[test]
fn every_inlet_has_its_fuzz_target() {
    garbage::check("proto", inlets::ALL);
}

#[test]
fn no_bytes_bring_an_inlet_down() {
    for inlet in inlets::ALL {
        garbage::throw("proto", *inlet, 400);
    }
}
