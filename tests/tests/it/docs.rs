//! What the pages say of settings and of the socket is what the code knows.

use minder_proto::config::{self, Config};
use minder_proto::turn::policy::{self, Asked};

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

/// The settings of a text, `adopt.mode`, in order.
fn settings(text: &str) -> Vec<String> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('['), line.split_once(" = ")) {
            (Some(name), _) => section = name.trim_end_matches(']'),
            (None, Some((key, _))) if !line.starts_with('#') => {
                let key = key.split('.').next().unwrap();
                keys.push(format!("{section}.{key}"));
            }
            _ => {}
        }
    }
    keys
}

/// The page with what it shows behind `#`: defaults that no file needs to hold.
fn spelled_out() -> String {
    let shown = shown();
    let line = |line: &str| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(|c: char| c.is_ascii_lowercase()) => setting.to_owned(),
        _ => line.to_owned(),
    };
    shown.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn loaded(text: &str) -> Result<Config, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    config::load(file.path(), |_| None).map_err(|e| e.to_string())
}

/// Every setting that there is: an unknown one is answered with the list.
fn known() -> Vec<String> {
    let expected = |text: &str| -> Vec<String> {
        let error = loaded(text).unwrap_err();
        let (_, list) = error.split_once("expected ").unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let sections = expected("zzz = 1");
    assert!(sections.len() > 10, "{sections:?}");
    let keys = |section: &String| {
        let keys = expected(&format!("[{section}]\nzzz = 1"));
        keys.into_iter().map(move |key| format!("{section}.{key}")).collect::<Vec<_>>()
    };
    sections.iter().flat_map(keys).collect()
}

#[test]
fn the_page_shows_every_setting_with_its_default() {
    // A value that differs, and a key that is not known, both fail here.
    assert_eq!(loaded(&shown()).unwrap(), Config::default());
    let keys = settings(&spelled_out());
    // A setting may be a table of further ones.
    let shows = |key: &String| keys.iter().any(|k| k == key || k.starts_with(&format!("{key}.")));
    let missing: Vec<_> = known().into_iter().filter(|key| !shows(key)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let unset: Vec<_> = keys.iter().filter(|key| !config::KEYS.contains(&key.as_str())).collect();
    // Those that have no variable, or one of another kind.
    let without = [
        "store.durability",
        "turn.timeout",
        "turn.stall",
        "turn.cancel_grace",
        "turn.wall_backstop",
        "turn.limits",
    ];
    assert_eq!(unset, without);
    for key in without {
        assert!(shown().contains(key) || page("configuration.md").contains(&format!("`{key}`")), "{key}");
    }
}

/// What the page shows as a default that the program has is that default.
#[test]
fn the_page_shows_the_windows_of_a_turn_as_they_are() {
    let told = loaded(&spelled_out()).unwrap().turn;
    for adapter in ["codex", "claude", "command"] {
        let of =
            |file: &config::Turn| policy::resolve(adapter, Asked::default(), None, |_| None, file).policy;
        assert_eq!(of(&told), of(&config::Turn::default()), "{adapter}");
    }
}

/// Every setting of the page is explained by the line above it.
#[test]
fn every_setting_is_explained() {
    let text = spelled_out();
    let lines: Vec<&str> = text.lines().collect();
    let silent = lines.windows(2).filter(|pair| pair[1].contains(" = ") && !pair[1].starts_with('#'));
    let silent: Vec<_> = silent.filter(|pair| !pair[0].starts_with('#')).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

/// A variable that a program reads or names is on the page, or on that of what it is for.
#[test]
fn every_variable_is_on_a_page() {
    let pages = ["configuration.md", "harnesses.md", "turns.md"].map(page).join("\n");
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
