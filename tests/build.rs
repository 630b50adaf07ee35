//! Says at compile time which real harnesses are installed (`tests/setup.sh`), so that the test runner lists
//! a test that needs a missing one as ignored, by name and with the reason, and never as passed.
#![allow(clippy::print_stdout)] // How a build script talks to cargo.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(claude)");
    let claude = "node/node_modules/.bin/claude";
    println!("cargo::rerun-if-changed={claude}");
    if Path::new(claude).exists() {
        println!("cargo::rustc-cfg=claude");
    }
}
