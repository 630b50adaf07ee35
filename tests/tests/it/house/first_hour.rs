//! What a newcomer reads first is true: what is needed, what a command costs, what the units say.

use super::tree::{files, root};

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_first_page_says_what_is_needed_and_what_tests_install() {
    let manifest = text("Cargo.toml");
    let version = manifest.lines().find_map(|l| l.strip_prefix("rust-version = \"")).unwrap();
    let version = version.trim_end_matches('"');
    let readme = text("README.md");
    assert!(readme.contains(&format!("Rust {version} or newer, a C compiler, make")), "Rust {version}");
    let setup = text("tests/setup.sh");
    let (_, size) = setup.split_once("npm packages of tests/node (about ").unwrap();
    let (size, _) = size.split_once(')').unwrap();
    assert!(readme.contains(&format!("about {size} of npm packages")), "{size}");
    assert!(text("Makefile").contains(&format!("{size} of npm packages")), "{size}");
}

/// The units are read by whoever installs them: they name no command that there is not, and nothing that the daemon
/// does not do.
#[test]
fn units_promise_nothing_that_is_not_built() {
    let units: Vec<_> = files()
        .into_iter()
        .filter(|f| f.path.starts_with("systemd/") || f.path.starts_with("launchd/"))
        .collect();
    assert!(units.len() >= 3, "the units are not where they are looked for");
    for unit in &units {
        for (n, line) in unit.text.lines().enumerate() {
            let untrue =
                ["service install", "outlive", "harnesses are its"].iter().find(|word| line.contains(*word));
            assert!(untrue.is_none(), "{}:{}: {line}", unit.path, n + 1);
        }
    }
    let readme = text("docs/server.md");
    for unit in units.iter().filter(|unit| unit.text.contains("/usr/bin/env")) {
        assert!(unit.text.contains("docs/server.md"), "{}: the manual step", unit.path);
        assert!(readme.contains(&unit.path), "{}", unit.path);
    }
}
