//! What the texts say: nothing that is not built, nothing of the machine that they were written on.

use super::tree::{File, files, program_texts};

/// Commands that the design knows and that do not work yet. A text for users does not name them.
const NOT_BUILT: [&str; 14] = [
    "host park",
    "host report",
    "host outcomes",
    "host lease",
    "host mirror",
    "host may",
    "minder away",
    "minder back",
    "minder quiet",
    "--engine",
    "ls -w",
    "service install",
    "daemon reload",
    "daemon metrics",
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

/// Words that follow the name in sentences.
const SENTENCES: &str = "about and as at chose derived did has hears id is itself knows may nor reads says sends sent \
    started starts takes to took watches will wrote";

/// What is typed after `minder` in a text is a command: the reference, which is what the programs print, has them all.
#[test]
fn every_command_that_a_text_names_is_one() {
    let all = files();
    let reference = &all.iter().find(|f| f.path == "docs/cli.md").unwrap().text;
    let commands: Vec<&str> = reference.lines().filter_map(|line| line.strip_prefix("## minder ")).collect();
    assert!(commands.len() > 25, "the reference is not where it is looked for");
    let mut wrong = Vec::new();
    let mut seen = 0;
    let pages = all.iter().filter(|f| f.path.ends_with(".md"));
    for file in pages.chain(&program_texts()) {
        for (n, line) in file.text.lines().enumerate() {
            for words in named(line) {
                seen += 1;
                if !is_command(&commands, &words) {
                    wrong.push(format!("{}:{}: minder {}", file.path, n + 1, words.join(" ")));
                }
            }
        }
    }
    assert!(seen > 300, "{seen}");
    assert!(wrong.is_empty(), "no such command:\n{}", wrong.join("\n"));
}

/// The one or two words after each `minder ` of a line, sentences left out; `minder a|b` names two commands.
fn named(line: &str) -> Vec<Vec<&str>> {
    let letters = |text: &str| text.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(text.len());
    let mut found = Vec::new();
    for (at, _) in line.match_indices("minder ") {
        // `reminder `, a path, the end of another name.
        if line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.".contains(c)) {
            continue;
        }
        let mut rest = &line[at + "minder ".len()..];
        let mut before = Vec::new();
        loop {
            let (word, after) = rest.split_at(letters(rest));
            if word.is_empty() || word.starts_with('-') {
                break;
            }
            match after.strip_prefix(' ') {
                // Two words name a command at most.
                Some(next) if before.is_empty() && !SENTENCES.split_whitespace().any(|w| w == word) => {
                    (before, rest) = (vec![word], next);
                    continue;
                }
                _ => found.push([&before[..], &[word]].concat()),
            }
            let Some(other) = after.strip_prefix('|') else { break };
            rest = other;
        }
        if found.last().is_none_or(|last| before.first() != last.first()) {
            found.extend((!before.is_empty()).then_some(before));
        }
    }
    found.retain(|words| !SENTENCES.split_whitespace().any(|w| w == words[0]));
    found
}

/// Commands that are nothing without one of their own.
fn is_command(commands: &[&str], words: &[&str]) -> bool {
    let words = if words[0] == "session" { &words[1..] } else { words };
    let Some(first) = words.first() else { return true };
    let below: Vec<&str> = commands.iter().filter_map(|c| c.strip_prefix(first)?.strip_prefix(' ')).collect();
    // These take an argument as well, which may look like a word.
    let takes_more = ["inbox", "watch", "hook", "help"].contains(first) || below.is_empty();
    commands.contains(first) && words.get(1).is_none_or(|second| takes_more || below.contains(second))
}

#[test]
fn commands_are_found_in_lines() {
    let of = |line| named(line).into_iter().map(|w| w.join(" ")).collect::<Vec<_>>();
    assert_eq!(of("try `minder daemon start|stop`, or minder ls."), ["daemon start", "daemon stop", "ls"]);
    assert_eq!(of("minder send api -"), ["send api"]);
    assert_eq!(of("minder state review --note"), ["state review"]);
    assert_eq!(of("what minder is, a reminder to me, minder --as a ls, `minder`"), [] as [&str; 0]);
    assert_eq!(of("minder store"), ["store"]);
    let commands = ["ls", "daemon", "daemon start", "inbox", "inbox take"];
    let is = |line| is_command(&commands, &of(line)[0].split(' ').collect::<Vec<_>>());
    assert!(
        is("minder ls everything")
            && is("minder daemon start")
            && is("minder inbox api")
            && is("minder session ls")
    );
    assert!(!is("minder doctor") && !is("minder daemon reload") && !is("minder session config"));
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
