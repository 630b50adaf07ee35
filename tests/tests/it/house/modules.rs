//! How the sources are cut: small modules that say what they are for, none forgotten, one integration binary per
//! crate.

use std::collections::BTreeSet;

use super::rust::Code;
use super::tree::{CRATES, File, files, places_of, root, rust_files};

/// No module has more lines.
const MOST: usize = 800;
/// Nine of ten have fewer.
const FEW: usize = 400;

#[test]
fn modules_are_small() {
    let mut sizes: Vec<(usize, String)> =
        rust_files().into_iter().map(|f| (f.text.lines().count(), f.path)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let huge: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > MOST).collect();
    assert!(huge.is_empty(), "over {MOST} lines: {huge:?}");
    let large: Vec<_> = sizes.iter().take_while(|(lines, _)| *lines >= FEW).collect();
    let share = large.len() * 100 / sizes.len();
    assert!(share < 10, "{share} % of the modules have {FEW} lines or more: {large:?}");
}

#[test]
fn a_module_begins_by_saying_what_it_is_for() {
    let silent: Vec<_> =
        rust_files().into_iter().filter(|f| !f.text.starts_with("//! ")).map(|f| f.path).collect();
    assert!(silent.is_empty(), "no `//!` on the first line: {silent:?}");
}

#[test]
fn module_names_say_what_a_thing_is() {
    let vague = ["utils", "util", "helpers", "helper", "manager", "common", "misc"];
    let named = |f: &File| f.path.split(['/', '.']).any(|part| vague.contains(&part));
    let found: Vec<_> = rust_files().into_iter().filter(named).map(|f| f.path).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// A file that no `mod` names is compiled by nobody, and its tests never run.
#[test]
fn every_source_is_compiled() {
    let sources = rust_files();
    let is_root = |path: &str| {
        let of_target = ["src/lib.rs", "src/main.rs", "tests/it/main.rs", "build.rs"];
        path.starts_with("fuzz/")
            || CRATES.iter().any(|c| {
                let rest = path.strip_prefix(&format!("{c}/"));
                rest.is_some_and(|r| {
                    of_target.contains(&r) || is_target(r, "src/bin/") || is_target(r, "benches/")
                })
            })
    };
    let mut reached: BTreeSet<String> =
        sources.iter().map(|f| f.path.clone()).filter(|p| is_root(p)).collect();
    let mut open: Vec<String> = reached.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let file = sources.iter().find(|f| f.path == path).expect("it was found there");
        for name in Code::new(&file.text).modules() {
            for place in places_of(&path, &name) {
                if sources.iter().any(|f| f.path == place) && reached.insert(place.clone()) {
                    open.push(place);
                }
            }
        }
    }
    let forgotten: Vec<_> = sources.iter().map(|f| &f.path).filter(|p| !reached.contains(*p)).collect();
    assert!(forgotten.is_empty(), "named by no `mod`: {forgotten:?}");
}

/// True for the file that a target in `folder` begins with: `name.rs` or `name/main.rs`.
fn is_target(path: &str, folder: &str) -> bool {
    let parts: Option<Vec<&str>> = path.strip_prefix(folder).map(|rest| rest.split('/').collect());
    parts.is_some_and(|parts| parts.len() == 1 || parts[1..] == ["main.rs"])
}

/// Each further binary links everything again, and `cargo test` runs them one after the other.
#[test]
fn a_crate_has_one_integration_binary() {
    for name in CRATES {
        let folder = root().join(name).join("tests");
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let binaries: Vec<_> = names
            .filter(|n| n.ends_with(".rs") || folder.join(n).join("main.rs").exists())
            .filter(|n| n != "it")
            .collect();
        assert!(binaries.is_empty(), "{name}/tests has more than `it`: {binaries:?}");
    }
}

#[test]
fn tests_wait_for_events_and_not_for_the_clock() {
    let of_tests = |f: &File| f.path.contains("/tests/") || f.path.starts_with("tests/");
    let mut found = Vec::new();
    // A measurement is of the clock, and rests between two figures.
    for file in rust_files().into_iter().filter(|file| !file.path.starts_with("tests/benches/")) {
        let all = Code::new(&file.text);
        let program = Code::of_program(&file.text);
        let in_program: BTreeSet<usize> = if of_tests(&file) {
            BTreeSet::new()
        } else {
            program.lines_with(&SLEEPS).map(|l| l.0).collect()
        };
        let sleeps = all.lines_with(&SLEEPS).filter(|(n, _)| !in_program.contains(n));
        found.extend(sleeps.map(|(n, line)| format!("{}:{n}: {line}", file.path)));
    }
    assert!(found.is_empty(), "a test that sleeps is slow or wrong, mostly both:\n{}", found.join("\n"));
}

/// A bound in seconds of the clock is met by a machine that has nothing else to do.
#[test]
fn no_test_is_about_how_fast_the_machine_is() {
    let of_tests = |f: &File| f.path.contains("/tests/") || f.path.starts_with("tests/");
    let brief = ["< Duration::from_millis(", "<= Duration::from_millis(", "elapsed().as_secs() <"];
    let mut found = Vec::new();
    for file in rust_files().into_iter().filter(of_tests) {
        for (n, line) in Code::new(&file.text).lines_with(&["assert"]) {
            let seconds = line.split_once("< Duration::from_secs(").and_then(|(_, rest)| {
                rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().ok()
            });
            if brief.iter().any(|b| line.contains(b)) || seconds.is_some_and(|s| s < 30) {
                found.push(format!("{}:{n}: {line}", file.path));
            }
        }
    }
    assert!(
        found.is_empty(),
        "count, compare, or allow so much that only a hang is longer:\n{}",
        found.join("\n")
    );
}

/// How a Rust program sleeps.
const SLEEPS: [&str; 3] = ["sleep(", "sleep_until(", "park_timeout("];

/// What was built is not left half built.
#[test]
fn nothing_is_left_to_do() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
    ];
    let ours = |f: &File| !f.path.starts_with("LICENSE") && !f.path.contains("/data/");
    let mut found = Vec::new();
    for file in files().into_iter().filter(ours) {
        let lines = file.text.lines().enumerate().filter(|(_, l)| marks.iter().any(|m| l.contains(m)));
        found.extend(lines.map(|(n, line)| format!("{}:{}: {}", file.path, n + 1, line.trim())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
