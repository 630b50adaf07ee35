//! Says at compile time which real harnesses are installed (`tests/setup.sh`), so that the test runner lists
//! a test that needs a missing one as ignored, by name and with the reason, and never as passed.
#![allow(clippy::print_stdout)] // How a build script talks to cargo.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(claude)");
    // The whole folder: what comes into it may be older than the last build, but the folder then is not.
    println!("cargo::rerun-if-changed=node");
    if Path::new("node/node_modules/.bin/claude").exists() {
        println!("cargo::rustc-cfg=claude");
    }
}
