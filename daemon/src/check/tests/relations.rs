//! Damage between the folders of a store, and in the files that are no session's.

use std::os::unix::fs::{PermissionsExt, symlink};

use expect_test::expect;
use minder_proto::error::exit;

use super::*;
use crate::check::CheckError;

#[test]
fn no_store_and_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| check(&Home::at(dir.path().join(name))).unwrap_err();
    assert_eq!(at("nothing").exit(), exit::GONE);
    assert_eq!(at("").exit(), exit::GONE, "an empty folder");
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(at("file").exit(), exit::GONE);
    let error = at(&"x".repeat(300));
    assert!(matches!(error, CheckError::Disk(_)), "{error}");
    assert_eq!(error.exit(), exit::IO);
    let sample = Sample::stopped();
    sample.write("format", "minder-store 2\n");
    let error = check(&Home::at(sample.root())).unwrap_err();
    assert_eq!(error.exit(), exit::VERSION);
    assert!(error.to_string().contains("minder-store 2"), "{error}");
}

#[test]
fn the_format() {
    expect![[r"
        format: not there
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path("format")).unwrap()));
    expect![[r#"
        format: it says "minder-store\u{1b}[2J", not "minder-store 1"
        exit 65
    "#]]
    .assert_eq(&after(|s| s.write("format", "minder-store\x1b[2J\n")));
}

#[test]
fn modes() {
    let set = |s: &Sample, path: &str, mode| {
        std::fs::set_permissions(s.path(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    expect![[r"
        .: open to others: mode 0755, not 0700
        labels/api: closed to its owner: mode 0400, not 0600
        sessions/API: open to others: mode 0710, not 0700
        sessions/API/session.json: open to others: mode 0644, not 0600
        exit 65
    "]]
    .assert_eq(&after(|s| {
        set(s, "", 0o755);
        set(s, "sessions/API", 0o710);
        set(s, "sessions/API/session.json", 0o644);
        set(s, "labels/api", 0o400);
    }));
}

#[test]
fn labels() {
    expect![[r#"
        labels/api: not there, and session API has the label "api"
        exit 65
    "#]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path("labels/api")).unwrap()));
    expect![[r"
        labels/api: it names no session
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("labels/api", "nonsense\n")));
    expect![[r"
        labels/api: it names session OLD, which is not open
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("labels/api", "OLD\n")));
    expect![[r"
        labels/api: it names session WEB, which has no such label
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("labels/api", "WEB\n")));
    expect![[r"
        labels/other: it names session API, which has no such label
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("labels/other", "API\n")));
    expect![[r"
        labels/api: more than one session has this label: WEB, API
        labels/site: it names session WEB, which has no such label
        exit 65
    "]]
    .assert_eq(
        &after(|s| s.edit("sessions/WEB/session.json", |t| t.replace("\"site\"", "\"api\"")))
            .replace("API, WEB", "WEB, API"),
    );
    // A session whose record cannot be read may have it.
    expect![[r"
        sessions/API/session.json: cannot be read: EOF while parsing an object at line 1 column 1
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("sessions/API/session.json", "{")));
}

#[test]
fn bindings() {
    let file = "bindings/claude/conversation-3";
    expect![[r#"
        bindings/claude/conversation-3: not there, and session API has the conversation "conversation-3"
        exit 65
    "#]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path(file)).unwrap()));
    expect![[r"
        bindings/claude/conversation-3: it names session WEB, which has no such conversation
        exit 65
    "]]
    .assert_eq(&after(|s| s.write(file, "WEB\n")));
    expect![[r"
        bindings/claude/conversation-2: it names session OLD, which is not open
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("bindings/claude/conversation-2", "OLD\n")));
}

#[test]
fn what_was_closed() {
    expect![[r"
        closed.jsonl: line 2 cannot be read: invalid type: integer `1`, expected a formatted UUID string
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit("closed.jsonl", |t| t + "{\"id\":1}\n")));
    expect![[r"
        closed.jsonl: line 2: session API is open
        exit 65
    "]]
    .assert_eq(&after(|s| {
        let (old, api) = (s.id("OLD"), s.id("API"));
        s.edit("closed.jsonl", |t| t.clone() + &t.replace(&old, &api));
    }));
    expect![[r"
        trash/OLD: closed.jsonl has no line for it
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path("closed.jsonl")).unwrap()));
    expect![[r"
        trash/OLD: its timeline does not end with `closed`
        exit 65
    "]]
    .assert_eq(&after(|s| {
        s.lines("trash/OLD/timeline.jsonl", |l| drop(l.pop()));
    }));
    expect![[r"
        trash/WEB: its timeline does not end with `closed`
        trash/WEB: the session is open, too
        exit 65
    "]]
    .assert_eq(&after(|s| copy(&s.path("sessions/WEB"), &s.path("trash/WEB"))));
}

#[test]
fn keys() {
    expect![[r"
        keys.jsonl: 6 bytes without a newline at the end
        keys.jsonl: line 2 cannot be read: missing field `key`
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit("keys.jsonl", |t| format!("{t}{{}}\n{{\"key\""))));
}

#[test]
fn the_spool() {
    expect![[r"
        spool/REQUEST.json: cannot be read: invalid type: integer `1`, expected a string at line 1 column 11
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("spool/REQUEST.json", "{\"method\":1}")));
    expect![[r"
        note: spool/by-hand.json: not a file of the store
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.write("spool/by-hand.json", "{}")));
}

#[test]
fn the_feed() {
    expect![[r"
        feed.jsonl: line 4: n is 5, after 3
        exit 65
    "]]
    .assert_eq(&after(|s| s.lines("feed.jsonl", |l| drop(l.remove(4)))));
    expect![[r"
        feed.jsonl: line 29 cannot be read: expected value
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit("feed.jsonl", |t| t + "garbage\n")));
    expect![[r"
        note: feed.jsonl: 5 bytes without a newline at the end; the next line begins a fresh one
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.edit("feed.jsonl", |t| t + "{\"n\":")));
}

#[test]
fn the_journal() {
    let damage = |change: fn(&mut Vec<u8>)| {
        let sample = Sample::crashed();
        // The segment that the next start begins names the end of this one.
        let store = Writer::open(&sample.root());
        store.create("later", None, None);
        let first = sample.path("journal/0000000001.wal");
        let mut bytes = std::fs::read(&first).unwrap();
        change(&mut bytes);
        std::fs::write(first, bytes).unwrap();
        sample.checked()
    };
    expect![[r"
        journal/0000000001.wal: readable to byte 36 of 19347
        exit 65
    "]]
    .assert_eq(&damage(|bytes| bytes[60] ^= 1));
    expect![[r"
        journal/0000000001.wal: no header
        exit 65
    "]]
    .assert_eq(&damage(|bytes| bytes[3] ^= 1));
    expect![[r"
        note: journal/notes.txt: not a file of the store
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.write("journal/notes.txt", "x")));
}

#[test]
fn a_file_that_the_journal_finds_too_short() {
    let sample = Sample::crashed();
    // A checkpoint has made the journal forget how the file began.
    let writer = Writer::open(&sample.root());
    writer.store.stop();
    let writer = Writer::open(&sample.root());
    let api = sample.id("API").parse().unwrap();
    writer.declare(api, State::Idle, "");
    sample.edit("sessions/API/timeline.jsonl", |t| t[..99].to_owned());
    expect![[r"
        sessions/API/timeline.jsonl: 99 bytes, where 1963 were written; a start moves the session to quarantine/
        exit 65
    "]].assert_eq(&sample.checked());
    let sample = Sample::crashed();
    sample.edit("keys.jsonl", |t| t + "\n\n");
    expect![[r"
        note: keys.jsonl: bytes past its last commit; a start cuts them
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&sample.checked());
}

#[test]
fn what_was_set_aside_and_what_does_not_belong_here_is_noted() {
    expect![[r"
        note: labels/.tmp-api: left half written; nothing reads it
        note: notes.txt: not a file of the store
        note: operator/link: a symbolic link
        note: quarantine/API.watchers.json: set aside: watchers.json: expected `]`
        note: quarantine/something: set aside: nothing says why
        note: sessions/API/shopping-list: not a file of the store
        note: sessions/other: not a file of the store
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| {
        s.write("quarantine/API.watchers.json", "[1,2");
        s.write("quarantine/API.watchers.json.why", "watchers.json: expected `]`\n");
        s.write("quarantine/something", "");
        s.write("sessions/API/shopping-list", "");
        s.write("labels/.tmp-api", "");
        s.write("notes.txt", "");
        std::fs::create_dir(s.path("sessions/other")).unwrap();
        std::fs::set_permissions(s.path("sessions/other"), PermissionsExt::from_mode(0o700)).unwrap();
        symlink("/", s.path("operator/link")).unwrap();
        symlink("/nowhere", s.path("run/socket")).unwrap();
    }));
}

#[test]
fn what_programs_read() {
    let sample = Sample::stopped();
    sample.write("labels/api", "nonsense\n");
    sample.write("quarantine/else", "");
    let report = check(&Home::at(sample.root())).unwrap();
    let json = report.to_json().replace(&*sample.root().to_string_lossy(), "STORE");
    expect![[r#"
        {"store":"STORE","clean":false,"sessions":2,"lines":28,"damage":[{"path":"labels/api","what":"it names no session"}],"unreadable":[],"notes":[{"path":"quarantine/else","what":"set aside: nothing says why"}]}
    "#]].assert_eq(&json);
}
