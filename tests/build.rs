//! Says at compile time which real harnesses are installed (`tests/setup.sh`), whether root runs the tests, and which disks can be had, so that
//! the test runner lists a test that needs what is missing as ignored, by name and with the reason, and never as passed.
#![allow(clippy::print_stdout)] // How a build script talks to cargo.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(claude)");
    // The whole folder: what comes into it may be older than the last build, but the folder then is not.
    println!("cargo::rerun-if-changed=node");
    if Path::new("node/node_modules/.bin/claude").exists() {
        println!("cargo::rustc-cfg=claude");
    }
    println!("cargo::rustc-check-cfg=cfg(codex)");
    if Path::new("node/node_modules/.bin/codex").exists() {
        println!("cargo::rustc-cfg=codex");
    }
    println!("cargo::rustc-check-cfg=cfg(opencode)");
    if Path::new("node/node_modules/.bin/opencode").exists() {
        println!("cargo::rustc-cfg=opencode");
    }
    println!("cargo::rustc-check-cfg=cfg(pi)");
    if Path::new("node/node_modules/.bin/pi").exists() {
        println!("cargo::rustc-cfg=pi");
    }
    println!("cargo::rustc-check-cfg=cfg(root)");
    // The owner of this process's folder in /proc is who it runs as.
    if std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0) {
        println!("cargo::rustc-cfg=root");
    }
    // Disks of a test's own: images over loop devices, and folders that a program serves.
    println!("cargo::rustc-check-cfg=cfg(loops)");
    println!("cargo::rustc-check-cfg=cfg(fuse)");
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    let has = |places: &[&str]| {
        places.iter().all(|place| {
            println!("cargo::rerun-if-changed={place}");
            Path::new(place).exists()
        })
    };
    if root && has(&["/dev/loop-control", "/usr/sbin/mkfs.ext4", "/usr/sbin/mkfs.xfs"]) {
        println!("cargo::rustc-cfg=loops");
    }
    if root && has(&["/dev/fuse", "/usr/bin/bindfs"]) {
        println!("cargo::rustc-cfg=fuse");
    }
}
