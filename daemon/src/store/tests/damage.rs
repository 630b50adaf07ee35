//! Starts on a store that was damaged from outside, and what a crash after them leaves.

use std::path::PathBuf;

use minder_proto::record::Watcher;

use super::*;

/// The last segment of the journal that anything was written to, with the place of a note in it.
fn segment_with(home: &Home, text: &str) -> (PathBuf, Vec<u8>, usize) {
    let entries = std::fs::read_dir(home.journal()).unwrap().map(|e| e.unwrap().path());
    let mut found = entries.filter_map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(text.len()).position(|w| w == text.as_bytes())?;
        Some((path, bytes, at))
    });
    found.next().expect("it is in the journal")
}

fn say(rig: &Rig, id: SessionId, text: &str) -> u64 {
    let note = Body::Note { what: "said".into(), text: text.to_owned() };
    rig.write(move |txn| txn.append(Party::Session(id), note)).unwrap()
}

fn texts(rig: &Rig, id: SessionId) -> Vec<String> {
    let dir = snapshot::timeline_dir(&Home::at(rig.dir.path()), id).unwrap();
    let events = timeline::last(&dir, 100).unwrap().into_iter();
    let texts = events.filter_map(|e| match e.body {
        Body::Note { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn remember(rig: &Rig, key: &'static str) {
    rig.write(move |txn| {
        txn.remember(key.to_owned(), 1, Value::Null);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_start_with_a_damaged_journal_loses_nothing_and_neither_do_those_after_it() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    for text in ["one", "two", "three"] {
        say(&rig, id, text);
    }
    rig.crash();
    say(&rig, id, "four");
    let (path, mut bytes, at) = segment_with(&home, "\"two\"");
    bytes[at + 1] ^= 0x20;
    std::fs::write(&path, bytes).unwrap();
    rig.crash();
    assert!(home.quarantine().join("journal.why").is_file());
    assert_eq!(texts(&rig, id), ["one", "two", "three", "four"]);
    // What this daemon is told, the next one finds, though this one never comes to a checkpoint.
    say(&rig, id, "five");
    let timeline = home.session(id).join(timeline::ACTIVE);
    let text = std::fs::read_to_string(&timeline).unwrap();
    std::fs::write(&timeline, &text[..=text[..text.len() - 1].rfind('\n').unwrap()]).unwrap();
    rig.crash();
    assert_eq!(texts(&rig, id), ["one", "two", "three", "four", "five"]);
    let aside = std::fs::read_dir(home.quarantine()).unwrap().count();
    assert_eq!(aside, 2, "once, with its reason");
}

/// What a start leaves of `labels/` and `bindings/`.
fn pointers(home: &Home) -> Vec<String> {
    let mut found: Vec<String> = recover::tests::tree(home.root()).into_keys().collect();
    found.retain(|name| name.starts_with("labels/") || name.starts_with("bindings/"));
    found
}

#[test]
fn a_session_that_is_set_aside_or_taken_away_leaves_no_label_and_no_conversation() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let [cut, taken, stays] = ["cut", "taken", "stays"].map(|label| {
        let mut record = record(label);
        record.bindings.push(minder_proto::record::Binding {
            harness: "claude".into(),
            id: format!("conversation {label}"),
            since: Stamp::now(),
            until: None,
            why: "startup".into(),
            transcript: None,
        });
        let id = record.id;
        rig.write(move |txn| txn.create(record)).unwrap();
        id
    });
    rig.store.stop();
    rig.crash();
    // A line is told that lies where the file does not reach any more, and a folder goes while nobody serves.
    say(&rig, cut, "here");
    std::fs::write(home.session(cut).join(timeline::ACTIVE), "").unwrap();
    std::fs::remove_dir_all(home.session(taken)).unwrap();
    std::fs::remove_file(home.label("stays")).unwrap();
    rig.crash();
    let expected = vec![
        format!("bindings/claude/{}", minder_proto::layout::file_name("conversation stays")),
        "labels/stays".to_owned(),
    ];
    assert_eq!(pointers(&home), expected);
    rig.crash();
    assert_eq!(pointers(&home), expected);
    rig.declare(stays, Declared::Done).unwrap();
    rig.create("cut");
    rig.create("taken");
}

#[test]
fn a_folder_that_was_taken_away_does_not_come_back_by_a_change_or_a_replay() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let (id, other) = (rig.create("api"), rig.create("web"));
    std::fs::remove_dir_all(home.session(id)).unwrap();
    let watcher = Watcher {
        watcher: other,
        sources: Vec::new(),
        states: minder_proto::state::StateSet::of(&[Declared::Review]),
        since: Stamp::now(),
        unknown: serde_json::Map::new(),
    };
    let change = rig.write(move |txn| txn.set_watchers(id, vec![watcher]));
    assert_eq!(change.unwrap_err().kind, Kind::Gone);
    assert!(!home.session(id).exists());
    rig.crash();
    assert!(!home.session(id).exists(), "nor from the journal, which has all of it");
    assert!(snapshot::tombstone(&home, id).is_some());
    assert_eq!(pointers(&home), ["labels/web"]);
}

#[test]
fn a_timeline_that_was_taken_away_is_begun_anew_with_a_note() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    rig.declare(id, Declared::Working).unwrap();
    for restart in [false, true] {
        if restart {
            rig.store.stop();
            rig.crash();
        }
        std::fs::remove_file(home.session(id).join(timeline::ACTIVE)).unwrap();
        rig.declare(id, if restart { Declared::Done } else { Declared::Review }).unwrap();
    }
    assert_eq!(rig.seqs(id), [5, 6], "numbers that were given are not given again");
    let first = &timeline::last(&home.session(id), 10).unwrap()[0];
    assert!(matches!(&first.body, Body::Note { what, .. } if what == "torn"));
}

#[test]
fn lists_that_were_changed_from_outside_take_the_next_line_whole() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let close = |rig: &Rig, label: &str| {
        let id = rig.create(label);
        rig.write(move |txn| {
            let line = ClosedLine {
                id,
                label: String::new(),
                title: String::new(),
                state: Declared::Idle,
                note: None,
                by: Author::Operator,
                at: Stamp::now(),
                process: None,
            };
            txn.close(line)
        })
        .unwrap();
        id
    };
    remember(&rig, "one");
    let first = close(&rig, "first");
    for change in [&b"half a li"[..], b"", b"\n"] {
        for file in [home.keys(), home.closed()] {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes.extend_from_slice(change);
            if change.is_empty() {
                bytes.truncate(bytes.len() - 5);
            }
            std::fs::write(&file, bytes).unwrap();
        }
        let key: &'static str = if change.is_empty() { "three" } else { "two" };
        remember(&rig, key);
        let second = close(&rig, "second");
        for _ in 0..2 {
            let known = rig.runtime.block_on(rig.store.read(move |s| s.remembered(key).is_some())).unwrap();
            assert!(known && snapshot::tombstone(&home, second).is_some(), "{change:?}");
            rig.crash();
        }
    }
    assert!(snapshot::tombstone(&home, first).is_some());
}

#[test]
fn no_temporary_file_stays_anywhere() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    disk::make_dir(&home.root().join("bindings/claude")).unwrap();
    disk::make_dir(&home.trash().join(id.to_string())).unwrap();
    let folders = [
        home.root().to_owned(),
        home.session(id),
        home.sessions(),
        home.trash(),
        home.trash().join(id.to_string()),
        home.operator(),
        home.root().join("labels"),
        home.root().join("bindings"),
        home.root().join("bindings/claude"),
        home.followers(),
        home.spool(),
        home.quarantine(),
    ];
    for folder in &folders {
        std::fs::write(folder.join(".tmp-file"), "{").unwrap();
    }
    let (old, fresh) = (home.session(id).join("cursors.new"), home.followers().join("ci.new"));
    for file in [&old, &fresh] {
        std::fs::write(file, "{").unwrap();
    }
    let age = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 60 * 60);
    std::fs::File::options().write(true).open(&old).unwrap().set_modified(age).unwrap();
    rig.crash();
    let left: Vec<_> = folders.iter().filter(|folder| folder.join(".tmp-file").exists()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!((old.exists(), fresh.exists()), (false, true), "one may be being written right now");
}

#[test]
fn a_folder_that_is_open_to_others_is_closed_with_what_lies_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    let (folder, record) = (home.session(id), home.session(id).join("session.json"));
    let permit = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(&folder, 0o755);
    permit(&record, 0o644);
    rig.crash();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&record)), (0o700, 0o600));
}

#[test]
fn what_a_start_cuts_is_kept_beside_its_reason() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    say(&rig, id, "one");
    let timeline = home.session(id).join(timeline::ACTIVE);
    let whole = std::fs::read(&timeline).unwrap();
    let foreign = b"{\"seq\":3,\"kind\":\"note\"}\n";
    std::fs::write(&timeline, [&whole[..], foreign].concat()).unwrap();
    rig.crash();
    assert_eq!(std::fs::read(&timeline).unwrap(), whole);
    let kept = home.quarantine().join(format!("{id}.timeline.jsonl.cut"));
    assert_eq!(std::fs::read(&kept).unwrap(), foreign);
    assert!(kept.with_extension("cut.why").is_file());
    // In the place of what was committed, too, and once though the start is made again.
    let half = [&whole[..whole.len() - 5], &foreign[..]].concat();
    std::fs::write(&timeline, half).unwrap();
    rig.crash();
    assert_eq!(std::fs::read(&timeline).unwrap(), whole);
    let second = home.quarantine().join(format!("{id}.timeline.jsonl.cut.2"));
    assert!(std::fs::read(second).unwrap().ends_with(foreign));
}

/// One byte of the newest journal is damaged, and lines stand behind it that somebody was told of.
#[test]
fn damage_in_the_last_segment_cuts_nothing_that_was_told() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let id = rig.create("api");
    for text in ["one", "two", "three"] {
        say(&rig, id, text);
    }
    rig.runtime.block_on(rig.store.read(|_| ())).unwrap();
    let (path, mut bytes, at) = segment_with(&home, "\"two\"");
    bytes[at + 1] ^= 0x20;
    rig.store.vanish();
    std::fs::write(&path, &bytes).unwrap();
    rig.crash();
    assert_eq!(texts(&rig, id), ["one", "two", "three"]);
    assert!(home.quarantine().join("journal.why").is_file());
    assert_eq!(say(&rig, id, "four"), 5, "no number is given again");
}

/// What may have the name of a file: a folder, a link to itself, a socket that stands for a pipe.
fn put_odd(path: &std::path::Path, what: &str) {
    let _ = std::fs::remove_file(path);
    match what {
        "folder" => std::fs::create_dir(path).unwrap(),
        "link" => std::os::unix::fs::symlink(path, path).unwrap(),
        _ => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
    }
}

#[test]
fn one_odd_entry_keeps_no_other_session_from_being_served() {
    for what in ["folder", "link", "pipe"] {
        for name in ["session.json", "queue.jsonl", "timeline.jsonl", "watchers.json", ".tmp-session.json"] {
            for replayed in [false, true] {
                let mut rig = Rig::new();
                let home = Home::at(rig.dir.path());
                let (id, other) = (rig.create("api"), rig.create("web"));
                say(&rig, id, "one");
                rig.write(move |txn| txn.post(Party::Session(id), message("hello"))).unwrap();
                if !replayed {
                    rig.store.stop();
                }
                rig.store.vanish();
                put_odd(&home.session(id).join(name), what);
                rig.crash();
                let at = format!("{name} is a {what}, replayed: {replayed}");
                say(&rig, other, "two");
                assert_eq!(texts(&rig, other), ["two"], "{at}");
                let known = rig.runtime.block_on(rig.store.read(move |s| s.corrupt(id).is_some())).unwrap();
                let aside = home.quarantine().join(id.to_string()).exists();
                // What is replaced as a whole has its place again.
                let again = replayed && what != "folder" && name == "session.json";
                let harmless = name.starts_with('.') || name == "watchers.json" || again;
                assert!(known || aside || harmless, "{at}");
            }
        }
    }
}

#[test]
fn what_is_no_folder_of_a_session_is_a_session_that_cannot_be_read() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let other = rig.create("web");
    let id = SessionId::random();
    std::fs::write(home.session(id), "plain").unwrap();
    for file in [home.keys(), home.closed(), home.operator().join("queue.jsonl")] {
        put_odd(&file, "folder");
    }
    rig.crash();
    say(&rig, other, "two");
    assert!(rig.runtime.block_on(rig.store.read(move |s| s.corrupt(id).is_some())).unwrap());
    assert!(home.quarantine().join("keys.jsonl.why").is_file());
}

/// A list lost foreign bytes that were never durable: what was committed behind them keeps its place.
#[test]
fn keys_that_were_committed_behind_lost_bytes_are_known() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    remember(&rig, "one");
    rig.store.stop();
    rig.crash();
    let len = home.keys().metadata().unwrap().len();
    let foreign = [std::fs::read(home.keys()).unwrap(), b"half a line of somebody else".to_vec()].concat();
    std::fs::write(home.keys(), foreign).unwrap();
    remember(&rig, "two");
    rig.runtime.block_on(rig.store.read(|_| ())).unwrap();
    rig.store.vanish();
    std::fs::File::options().write(true).open(home.keys()).unwrap().set_len(len).unwrap();
    for _ in 0..2 {
        rig.crash();
        for key in ["one", "two"] {
            assert!(rig.runtime.block_on(rig.store.read(move |s| s.remembered(key).is_some())).unwrap());
        }
    }
    let text = std::fs::read_to_string(home.keys()).unwrap();
    assert_eq!(text.lines().filter(|l| !l.is_empty()).count(), 2, "{text}");
}

/// What was committed and cannot be applied any more: the session goes aside, as at a start, and no file gets holes.
#[test]
fn a_session_whose_file_cannot_take_what_was_committed_is_set_aside() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    let (id, other) = (rig.create("api"), rig.create("web"));
    let timeline = home.session(id).join(timeline::ACTIVE);
    let cut = timeline.clone();
    // A foreign hand cuts the file after it was measured.
    rig.write(move |txn| {
        txn.append(Party::Session(id), Body::Note { what: "said".into(), text: "one".into() })?;
        std::fs::File::options().write(true).open(&cut).unwrap().set_len(5).unwrap();
        Ok(())
    })
    .unwrap();
    let other_said = say(&rig, other, "two");
    assert_eq!(other_said, 2);
    let aside = home.quarantine().join(id.to_string());
    assert_eq!(std::fs::read(aside.join(timeline::ACTIVE)).unwrap().len(), 5, "not padded");
    assert!(aside.with_extension("why").is_file());
    assert!(rig.runtime.block_on(rig.store.read(move |s| s.session(id).is_none())).unwrap());
    rig.crash();
    assert!(!home.session(id).exists());
    assert_eq!(texts(&rig, other), ["two"]);
}
