//! What stands on what: the crates of the workspace, and how much of other people's code the programs are made of.

use std::collections::BTreeSet;
use std::process::Command;

use minder_proto::trial::{FAULTS, KILL_POINTS, LAUNCH_POINTS, MEND_POINTS, TURN_POINTS, TYPE_POINTS};

use super::tree::{root, rust_files};

/// Crates in the lock file, those of tests included. More are a decision and change this number.
const LOCKED: usize = 260;
/// Crates of others that the two programs are made of.
const SHIPPED: usize = 150;

/// Ours.
const WORKSPACE: [&str; 4] = ["minder-proto", "minder", "minderd", "minder-tests"];

/// What one of our crates needs when it is built alone for this machine, itself included, one a line.
fn tree(name: &str, format: &str) -> String {
    let options = ["tree", "--offline", "--locked", "--edges=normal", "--prefix=none", "--package", name];
    let out =
        Command::new(env!("CARGO")).args(options).args(["--format", format]).current_dir(root()).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The names of what it needs, itself left out.
fn needs(name: &str) -> BTreeSet<String> {
    let lines = tree(name, "{p}");
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names.filter(|n| *n != name).map(str::to_owned).collect()
}

#[test]
fn the_contract_stands_alone_and_the_programs_on_it_alone() {
    let ours = |name: &str| needs(name).into_iter().filter(|n| WORKSPACE.contains(&n.as_str())).collect();
    let (nothing, contract): ([&str; 0], _) = ([], ["minder-proto"]);
    let ours: [Vec<String>; 3] = ["minder-proto", "minder", "minderd"].map(ours);
    assert_eq!(ours[0], nothing);
    assert_eq!(ours[1], contract);
    assert_eq!(ours[2], contract);
}

#[test]
fn neither_contract_nor_client_has_an_asynchronous_runtime() {
    let asynchronous = ["tokio", "hyper", "jsonrpsee", "tower", "futures-core", "futures-util", "mio"];
    let client = needs("minder");
    let found: Vec<_> = asynchronous.iter().filter(|n| client.contains(**n)).collect();
    assert!(found.is_empty(), "the client needs {found:?}");
    // Nor does the contract know a command line, a terminal, or a system call beyond reading a file.
    let more = ["clap", "anstream", "owo-colors", "tracing", "nix", "rustix"];
    let contract = needs("minder-proto");
    let found: Vec<_> = asynchronous.iter().chain(&more).filter(|n| contract.contains(**n)).collect();
    assert!(found.is_empty(), "the contract needs {found:?}");
}

/// A release that could be killed from outside, or made to fail, would be no release.
#[test]
fn kill_points_are_asked_for_by_name_only() {
    let text = std::fs::read_to_string(root().join("daemon/Cargo.toml")).unwrap();
    assert!(text.contains("kill-points = []"));
    assert!(text.contains("seeded-faults = [\"minder-proto/seeded-faults\"]"));
    let text = std::fs::read_to_string(root().join("proto/Cargo.toml")).unwrap();
    assert!(text.contains("seeded-faults = []"));
    for program in ["minderd", "minder"] {
        let tree = tree(program, "{p} [{f}]");
        for ours in tree.lines().filter(|line| line.starts_with("minder")) {
            assert_eq!(ours.split('[').nth(1), Some("]"), "{ours}");
        }
    }
}

/// Each is one place in the programs: a step without its kill point, or a fault that nothing makes, would be looked for
/// in vain.
#[test]
fn every_kill_point_and_every_seeded_fault_is_somewhere() {
    let programs =
        rust_files().into_iter().filter(|f| f.path.contains("/src/") && !f.path.starts_with("tests/"));
    let text: String = programs.map(|f| f.text).collect();
    for point in KILL_POINTS {
        assert_eq!(text.matches(&format!("reach(\"{point}\")")).count(), 1, "{point}");
    }
    // A repair sets files aside in two places.
    let others: [&[&str]; 4] = [&MEND_POINTS, &LAUNCH_POINTS, &TURN_POINTS, &TYPE_POINTS];
    for point in others.concat() {
        assert!(text.contains(&format!("reach(\"{point}\")")), "{point}");
    }
    for fault in FAULTS {
        assert!(text.contains(&format!("trial::fault(\"{}\")", fault.name)), "{}", fault.name);
    }
}

#[test]
fn the_number_of_crates_is_bounded() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let locked = lock.matches("[[package]]").count();
    assert!(locked <= LOCKED, "{locked} crates are locked, {LOCKED} are allowed");
    let mut shipped = needs("minder");
    shipped.append(&mut needs("minderd"));
    let shipped = shipped.len();
    assert!(shipped <= SHIPPED, "the programs are made of {shipped} crates, {SHIPPED} are allowed");
}
