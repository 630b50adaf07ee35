//! The direction of dependencies inside the daemon. A folder may use what stands below it; its face (`mod.rs`) says
//! what it does use, in a paragraph that begins with `Uses:`, and that is kept equal to what it uses.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{program_code, rust_files};

/// The folders and files of `daemon/src`, from the ground up. A name may use those of the lines above its own, and of
/// its own line only itself.
const GROUND_UP: [&[&str]; 11] = [
    &["exit", "faults", "folder", "descriptors", "args", "readable", "oversize"],
    &["lock", "logfile", "readiness", "service", "shim"],
    &["log", "store"],
    &["session", "check"],
    &["watch", "identity", "repair"],
    &["process", "turn"],
    &["delivery"],
    &["host"],
    &["hook", "launch"],
    &["spool"],
    &["server"],
];

fn rank(name: &str) -> Option<usize> {
    GROUND_UP.iter().position(|names| names.contains(&name))
}

/// What each folder or file of the daemon uses of the others, with one place where it does.
fn uses() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut uses: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, code) in program_code() {
        let Some(inside) = path.strip_prefix("daemon/src/") else { continue };
        let name = inside.split(['/', '.']).next().expect("a split gives something").to_owned();
        if ["main", "lib"].contains(&name.as_str()) {
            continue;
        }
        let of_name = uses.entry(name.clone()).or_default();
        for (line, used) in code.crate_paths() {
            if used != name {
                of_name.entry(used).or_insert_with(|| format!("{path}:{line}"));
            }
        }
    }
    uses
}

#[test]
fn in_the_daemon_dependencies_run_downward() {
    let uses = uses();
    let named: BTreeSet<&str> = GROUND_UP.iter().flat_map(|names| names.iter().copied()).collect();
    let there: BTreeSet<&str> = uses.keys().map(String::as_str).collect();
    assert_eq!(named, there, "the list of layers and daemon/src differ");
    let mut found = Vec::new();
    for (name, used) in &uses {
        for (used, place) in used {
            // A name that is no folder is an item of the crate's root.
            if let Some(below) = rank(used)
                && Some(below) >= rank(name)
            {
                found.push(format!("{place}: {name} uses {used}, which stands above or beside it"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_folders_face_says_what_it_uses() {
    let uses = uses();
    let mut wrong = Vec::new();
    let mut faces = 0;
    for file in rust_files() {
        let Some(inside) = file.path.strip_prefix("daemon/src/") else { continue };
        // The top folder uses all that is below it, and its face need not list it.
        let Some((name, "mod.rs")) = inside.split_once('/').filter(|(name, _)| *name != "server") else {
            continue;
        };
        faces += 1;
        let real: BTreeSet<&str> =
            uses[name].keys().map(String::as_str).filter(|u| rank(u).is_some()).collect();
        let said = file.text.lines().find_map(|line| line.strip_prefix("//! Uses: ")).unwrap_or_default();
        let said = said.split_once('.').map_or(said, |(list, _)| list);
        // The contract is every folder's.
        let said: BTreeSet<&str> =
            said.split('`').skip(1).step_by(2).filter(|name| *name != "proto").collect();
        if said != real {
            let right: Vec<String> = real.iter().map(|name| format!("`{name}`")).collect();
            wrong.push(format!("{}: `//! Uses: {}` would be right", file.path, right.join(", ")));
        }
    }
    assert!(faces >= 4);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
