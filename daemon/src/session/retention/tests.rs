//! What goes by its age, at times that the tests give.

use minder_proto::config::Config;
use minder_proto::event::Receipt;
use minder_proto::record::Cursor;

use super::*;
use crate::check::tests::{Writer, private};
use crate::session::{Changes, lifetime, set};

fn days(n: u32) -> Stamp {
    Stamp::now().plus(DAY * n)
}

fn tidy_at(writer: &Writer, now: Stamp) -> Tidied {
    writer.wait(tidy(&writer.store, now))
}

/// A store with a session that has two sealed segments, and a line after them.
fn long(dir: &Path) -> (Writer, SessionId) {
    let writer = Writer::open(dir);
    let id = writer.create("api", None, None);
    let body = "x".repeat(200 * 1024);
    for _ in 0..45 {
        let message = writer.post(Party::Session(id), &body);
        writer.receipt(Party::Session(id), message, Receipt::Seen);
    }
    assert_eq!(timeline::sealed(&writer.store.home().session(id)).unwrap().len(), 2);
    (writer, id)
}

fn begins(writer: &Writer, id: SessionId) -> u64 {
    timeline::last(&writer.store.home().session(id), usize::MAX).unwrap()[0].seq
}

fn checked(writer: &Writer) {
    let report = crate::check::check(writer.store.home()).unwrap();
    assert!(report.findings.is_empty(), "{}", report.to_lines());
}

#[test]
fn a_closed_session_leaves_the_trash_after_its_time_and_its_tombstone_stays() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let writer = Writer::open(&root);
    let (old, open) = (writer.create("old", None, None), writer.create("open", None, None));
    writer.close(old);
    let keep = Config::default().store.trash_days;
    assert_eq!(tidy_at(&writer, days(keep - 1)), Tidied::default());
    assert!(writer.store.home().trashed(old).is_dir());
    assert_eq!(tidy_at(&writer, days(keep)), Tidied { trashed: 1, segments: 0 });
    // A daemon that dies here finds it gone, whatever of its journal it replays.
    let writer = writer.crash(&root);
    assert!(!writer.store.home().trashed(old).exists());
    assert!(minder_proto::snapshot::tombstone(writer.store.home(), old).is_some());
    assert!(writer.store.home().session(open).is_dir());
    checked(&writer);
    assert_eq!(tidy_at(&writer, days(keep)), Tidied::default());
}

#[test]
fn old_history_is_dropped_with_a_note_that_says_where_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let (writer, id) = long(&root);
    let keep = Config::default().store.keep_days;
    assert_eq!(tidy_at(&writer, days(keep - 1)), Tidied::default());
    assert_eq!(begins(&writer, id), 1);
    assert_eq!(tidy_at(&writer, days(keep)), Tidied { trashed: 0, segments: 2 });
    for writer in [writer, Writer::open(&root)] {
        let events = timeline::last(&writer.store.home().session(id), usize::MAX).unwrap();
        let first = events[0].seq;
        assert!(first > 1);
        let said = format!("history begins with line {first}; what was before is older than {keep} days");
        let note = Body::Note { what: "gap".to_owned(), text: said };
        assert_eq!(events.last().unwrap().body, note);
        checked(&writer);
        assert_eq!(tidy_at(&writer, days(keep)), Tidied::default());
        writer.store.vanish();
    }
}

#[test]
fn c12_who_lives_outlives_what_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let writer = Writer::open(&root);
    let id = writer.create("api", None, Some("c-1"));
    writer.declare(id, Declared::Idle, "");
    let far = days(10_000);
    assert_eq!(tidy_at(&writer, far), Tidied::default());
    assert_eq!(writer.wait(lifetime::close_what_is_over(&writer.store, far)), 0);
    let writer = writer.crash(&root);
    let sent = writer.post(Party::Session(id), "are you there?");
    let queue = minder_proto::snapshot::queue(&writer.store.home().session(id)).unwrap();
    assert_eq!(queue.iter().map(|e| e.id).collect::<Vec<_>>(), [sent]);
    checked(&writer);
}

#[test]
fn a_session_that_waits_runs_or_is_followed_keeps_its_history() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, id) = long(&dir.path().join("store"));
    let home = writer.store.home().clone();
    let far = days(1_000);
    for state in [Declared::Review, Declared::Working, Declared::Asking] {
        writer.declare(id, state, "");
        assert_eq!(tidy_at(&writer, far), Tidied::default(), "{state}");
    }
    writer.declare(id, Declared::Idle, "");
    let waits = writer.post(Party::Session(id), "waits");
    assert_eq!(tidy_at(&writer, far), Tidied::default());
    writer.receipt(Party::Session(id), waits, Receipt::Seen);
    // Somebody has to be told of it, and the text is in its timeline.
    let boss = writer.create("boss", None, None);
    writer.write(move |txn| set(txn, id, Changes { parent: Some(boss), ..Changes::default() }));
    writer.declare(id, Declared::Review, "look");
    writer.declare(id, Declared::Idle, "");
    assert_eq!(tidy_at(&writer, far), Tidied::default());
    let told: Vec<_> =
        minder_proto::snapshot::queue(&home.session(boss)).unwrap().iter().map(|e| e.id).collect();
    assert!(!told.is_empty());
    told.into_iter().for_each(|m| writer.receipt(Party::Session(boss), m, Receipt::Seen));
    // A follower that has read the first segment and no more keeps the second.
    let sealed = timeline::sealed(&home.session(id)).unwrap();
    let second = sealed[1].0;
    let cursor = Cursor { seq: second - 1, offset: 0, segment: 1 };
    let cursors = Cursors { version: 1, follows: [(id, cursor)].into(), told: 0 };
    let file = home.followers().join("ci.json");
    private(&file, &serde_json::to_vec(&cursors).unwrap());
    assert_eq!(tidy_at(&writer, far), Tidied { trashed: 0, segments: 1 });
    assert_eq!(begins(&writer, id), second);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(tidy_at(&writer, far), Tidied { trashed: 0, segments: 1 });
}

#[test]
fn where_it_cannot_be_said_who_follows_no_history_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, _) = long(&dir.path().join("store"));
    let follower = writer.create("follower", None, None);
    let cursors = writer.store.home().session(follower).join("cursors.json");
    std::fs::write(&cursors, "{\"follows\":{").unwrap();
    let keep = Config::default().store.keep_days;
    assert_eq!(tidy_at(&writer, days(keep)), Tidied::default());
    std::fs::remove_file(&cursors).unwrap();
    assert_eq!(tidy_at(&writer, days(keep)), Tidied { trashed: 0, segments: 2 });
}
