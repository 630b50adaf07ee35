//! What the texts say: nothing that is not built, nothing of the machine that they were written on.

use super::tree::{File, files};

/// Commands that the design knows and that do not work yet. A text for users does not name them.
const NOT_BUILT: [&str; 9] = [
    "minder launch",
    "minder turn",
    "minder host",
    "minder doctor",
    "minder relaunch",
    "minder attach",
    "relaunch",
    "ls -w",
    "service install",
];

#[test]
fn texts_promise_nothing_that_is_not_built() {
    let for_users = |f: &File| {
        let markdown = f.path == "README.md" || f.path == "CHANGELOG.md" || f.path.starts_with("docs/");
        // What programs say stands in their sources.
        let source =
            ["client/src/", "daemon/src/", "proto/src/"].iter().any(|folder| f.path.starts_with(folder));
        markdown || source
    };
    let mut found = Vec::new();
    for file in files().into_iter().filter(for_users) {
        let lines = file.text.lines().enumerate();
        let lines = lines.filter(|(_, line)| NOT_BUILT.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|(n, line)| format!("{}:{}: {}", file.path, n + 1, line.trim())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_place_outside_the_repository_is_named() {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/tmp/", "wt"),
        concat!("/ro", "ot/"),
        concat!(".lib", "rary/"),
        concat!("shared/", "design"),
        concat!("../", "shared"),
    ];
    let mut found = Vec::new();
    for file in files() {
        let lines = file.text.lines().enumerate();
        let lines = lines.filter(|(_, line)| places.iter().any(|place| line.contains(place)));
        found.extend(lines.map(|(n, line)| format!("{}:{}: {}", file.path, n + 1, line.trim())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// `ARCHITECTURE.md` names the tests that hold its invariants.
#[test]
fn every_invariant_has_its_test() {
    let text = std::fs::read_to_string(super::tree::root().join("ARCHITECTURE.md")).unwrap();
    let (_, invariants) = text.split_once("## Invariants").unwrap();
    let sources: Vec<File> = super::tree::rust_files();
    let is_test = |name: &str| {
        let function = format!("fn {name}(");
        sources.iter().any(|file| file.text.contains(&function))
    };
    let mut numbers = 0;
    let mut unheld = Vec::new();
    let flowing = invariants.split_whitespace().collect::<Vec<_>>().join(" ");
    for item in flowing.split("Held by ").skip(1) {
        numbers += 1;
        let (list, _) = item.split_once('.').unwrap_or((item, ""));
        let names: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "held by nothing: {item}");
        unheld.extend(names.into_iter().filter(|name| !is_test(name)).map(str::to_owned));
    }
    let last = invariants.lines().filter_map(|l| l.split_once(". ")?.0.parse::<usize>().ok()).max();
    assert_eq!(Some(numbers), last, "an invariant without a test");
    assert!(unheld.is_empty(), "no such test: {unheld:?}");
}

/// A page that is moved takes its links along.
#[test]
fn links_between_pages_lead_somewhere() {
    let all = files();
    let mut dead = Vec::new();
    let mut seen = 0;
    for file in all.iter().filter(|f| f.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in links(&file.text) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            seen += 1;
            let path = target.split('#').next().unwrap_or_default();
            let place = super::tree::root().join(folder).join(path);
            if !place.exists() {
                dead.push(format!("{}: {target}", file.path));
            }
        }
    }
    assert!(seen > 0, "no link was found at all");
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<&str> {
    let parts = text.split("](").skip(1);
    parts.filter_map(|rest| Some(rest.split_once(')')?.0)).filter(|target| !target.contains(' ')).collect()
}
