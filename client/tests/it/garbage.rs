//! Whatever others leave in the files or send: no inlet of the client fails on it.

use minder_tests::{garbage, heap};

use crate::inlets;

#[global_allocator]
static COUNTED: heap::Counting = heap::Counting;

#[test]
fn every_inlet_has_its_fuzz_target() {
    garbage::check("client", inlets::ALL);
}

#[test]
fn no_bytes_bring_an_inlet_down() {
    for inlet in inlets::ALL {
        garbage::throw("client", *inlet, 200);
    }
}
