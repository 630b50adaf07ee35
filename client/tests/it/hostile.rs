//! K5: text of agents does nothing to a terminal, one event stays one line, and JSON loses nothing.

use serde_json::json;

use crate::world::store::{Session, at};
use crate::world::{World, terminal};

/// Everything that moves a cursor, sets a clipboard, hides or reorders text, or breaks a line.
const EVIL: &str = "a\u{1b}[31m\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{90}q\r\nb\tc\u{2028}\u{2029}\u{202e}\u{2066}\u{200b}\u{feff}\0\u{7f}é日本🙂";

fn evil() -> (World, String) {
    let world = World::new();
    let home = world.home();
    let lead = Session::new(&home, "lead", &json!({"title": EVIL}));
    let mut api = Session::new(
        &home,
        "api",
        &json!({"title": format!("t {EVIL}"), "note": format!("n {EVIL}"), "state": "asking", "harness": EVIL,
            "dir": format!("/w/{EVIL}"), "process": {"pid": 7, "start": 1, "boot": "b", "tty": EVIL},
            "bindings": [{"harness": EVIL, "id": EVIL, "since": at(), "why": EVIL, "transcript": EVIL}]}),
    );
    api.line(
        &json!({"kind": "state", "from": "idle", "to": "asking", "by": "hook", "note": EVIL, "text": EVIL,
        "proof": EVIL}),
    );
    api.line(&json!({"kind": "record", "what": EVIL, "from": EVIL, "to": EVIL}));
    api.line(&json!({"kind": "note", "what": EVIL, "text": EVIL}));
    api.line(&json!({"kind": "binding", "harness": EVIL, "harness_id": EVIL, "why": EVIL}));
    let id = api.message(&lead.id.to_string(), EVIL);
    api.ledger(&json!({"at": at(), "id": id, "seq": 6, "r": "held", "reason": EVIL, "attempt": 1}));
    api.write(
        "watchers.json",
        &json!([{"watcher": lead.id, "sources": ["manual"], "states": "all", "since": at()}]),
    );
    api.bind("conv");
    Session::operator(&home).message(&api.id.to_string(), EVIL);
    (world, id.to_string())
}

/// Commands that show text of agents.
fn showing(id: &str) -> Vec<Vec<String>> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut all: Vec<_> = [
        "ls",
        "ls api",
        "show api",
        "show lead",
        "queue api",
        "queue @operator",
        "--as api inbox",
        "inbox",
        "watch list",
        "watch list --of api",
        "show nobody",
    ]
    .iter()
    .map(|line| words(line))
    .collect();
    all.push(Vec::new());
    all.push(vec!["queue".to_owned(), id.to_owned()]);
    all.push(vec!["show".to_owned(), EVIL.replace('\0', "")]);
    all
}

#[test]
fn k5_hostile_text() {
    let (world, id) = evil();
    for words in showing(&id) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for columns in [24, 80, 200] {
            let mut command = world.command(&words);
            command.env("NO_COLOR", "1");
            let (_, bytes) = terminal::run(&mut command, columns);
            let shown = String::from_utf8(bytes).unwrap();
            assert!(!shown.is_empty());
            for c in shown.chars() {
                assert!(c == '\n' || c == '\t' || !acts(c), "{words:?} at {columns}: {c:?} in {shown:?}");
            }
        }
        let piped = world.run(&words);
        assert!(
            !format!("{}{}", piped.out, piped.err).chars().any(|c| c != '\n' && c != '\t' && acts(c)),
            "{piped:?}"
        );
    }
}

/// True for what a terminal acts on.
fn acts(c: char) -> bool {
    c.is_control() || "\u{200b}\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}".contains(c)
}

#[test]
fn k5_one_event_one_line_and_columns_at_whole_characters() {
    let (world, _) = evil();
    for columns in 1..100 {
        let mut command = world.command(&["ls"]);
        let (code, bytes) = terminal::run(command.env("NO_COLOR", "1"), columns);
        let shown = String::from_utf8(bytes).expect("cut at whole characters");
        assert_eq!(code, 0);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines.len(),
            5,
            "{columns}: a head, a line for each session, the counts, the mail: {shown}"
        );
        for line in &lines[..3] {
            assert!(minder_proto::text::width(line) <= usize::from(columns), "{columns}: {line}");
        }
    }
    // With colours there are only those that set a colour or take it back.
    let (_, bytes) = terminal::run(&mut world.command(&["ls"]), 100);
    let shown = String::from_utf8(bytes).unwrap();
    assert!(shown.contains("\u{1b}["), "{shown:?}");
    for (at, _) in shown.match_indices('\u{1b}') {
        let rest = &shown[at + 1..];
        let end = rest.find('m').unwrap();
        assert!(
            rest.starts_with('[') && rest[1..end].bytes().all(|b| b.is_ascii_digit() || b == b';'),
            "{rest:?}"
        );
    }
}

#[test]
fn k5_json_is_valid_and_loses_nothing() {
    let (world, id) = evil();
    let ls = world.run(&["ls", "api", "--json"]).json();
    assert_eq!(ls["sessions"][0]["note"], format!("n {EVIL}"));
    assert_eq!(ls["sessions"][0]["title"], format!("t {EVIL}"));
    let show = world.run(&["show", "api", "--json"]).json();
    assert_eq!(show["record"]["dir"], format!("/w/{EVIL}"));
    assert_eq!(show["answer"]["text"], EVIL);
    let queue = world.run(&["queue", "api", "--json"]).json();
    assert_eq!(queue["messages"][0]["text"], EVIL);
    assert_eq!(queue["messages"][0]["reason"], EVIL);
    assert_eq!(world.run(&["queue", &id, "--json"]).json()["text"], EVIL);
    let inbox = world.run(&["--as", "api", "inbox", "--json"]).json();
    assert_eq!(inbox["messages"][0]["body"], EVIL);
    for words in showing(&id) {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--json"]).collect();
        let ran = world.run(&words);
        let text = if ran.code == 0 { &ran.out } else { &ran.err };
        assert_eq!(text.lines().count(), 1, "{words:?}: {ran:?}");
        serde_json::from_str::<serde_json::Value>(text).unwrap();
    }
}
