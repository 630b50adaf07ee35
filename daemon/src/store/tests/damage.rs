//! Starts on a store that was damaged from outside, and what a crash after them leaves.

use std::path::PathBuf;

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
    std::fs::write(&timeline, &text[..text[..text.len() - 1].rfind('\n').unwrap() + 1]).unwrap();
    rig.crash();
    assert_eq!(texts(&rig, id), ["one", "two", "three", "four", "five"]);
    let aside = std::fs::read_dir(home.quarantine()).unwrap().count();
    assert_eq!(aside, 2, "once, with its reason");
}
