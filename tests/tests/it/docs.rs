//! What the pages say of settings and of the socket is what the code knows.

use minder_proto::config::{self, Config};

use crate::house::{program_texts, root};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The configuration that the page shows as a whole.
fn shown() -> String {
    let page = page("configuration.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_page_shows_every_setting_with_its_default() {
    let shown = shown();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &shown).unwrap();
    // A value that differs, and a key that is not known, both fail here.
    assert_eq!(config::load(file.path(), |_| None).unwrap(), Config::default());
    let mut section = "";
    let mut keys = Vec::new();
    for line in shown.lines() {
        match (line.strip_prefix('['), line.split_once(" = ")) {
            (Some(name), _) => section = name.trim_end_matches(']'),
            (None, Some((key, _))) if !line.starts_with('#') => keys.push(format!("{section}.{key}")),
            _ => {}
        }
    }
    let missing: Vec<_> = config::KEYS.iter().filter(|key| !keys.iter().any(|k| k == *key)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    // The one that has no variable.
    keys.retain(|key| !config::KEYS.contains(&key.as_str()));
    assert_eq!(keys, ["store.durability"]);
}

/// Every setting of the page is explained by the line above it.
#[test]
fn every_setting_is_explained() {
    let shown = shown();
    let lines: Vec<&str> = shown.lines().collect();
    let silent = lines.windows(2).filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#'));
    let silent: Vec<_> = silent.filter(|pair| !pair[0].starts_with('#')).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

/// A variable that a program reads or names is on the page, or on that of what it is for.
#[test]
fn every_variable_is_on_a_page() {
    let pages = ["configuration.md", "harnesses.md"].map(page).join("\n");
    // Set by minder for its own programs, and for tests.
    let internal = ["MINDER_TURN", "MINDER_KILL_POINT", "MINDER_KILL_LINGER", "MINDER_SIZES", "MINDER_FAULT"];
    let mut missing = std::collections::BTreeSet::new();
    for file in program_texts() {
        let text = &file.text;
        for (at, _) in text.match_indices("MINDER_") {
            let end =
                text[at..].find(|c: char| c != '_' && !c.is_ascii_uppercase()).unwrap_or(text.len() - at);
            let name = &text[at..at + end];
            let key = name["MINDER_".len()..].to_ascii_lowercase();
            let is_setting = name.ends_with('_') || config::KEYS.iter().any(|k| k.replace('.', "_") == key);
            if !is_setting && !internal.contains(&name) && !pages.contains(&format!("`{name}")) {
                missing.insert(name.to_owned());
            }
        }
    }
    assert!(missing.is_empty(), "on no page: {missing:?}");
}

/// The example with `curl` is run as a transcript; here, that there is one.
#[test]
fn the_page_about_the_daemon_calls_it_with_curl() {
    assert!(page("server.md").contains("$ curl -sS --unix-socket"));
}
