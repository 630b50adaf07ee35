//! Stores that are whole: stopped, or killed at any point of what was committed.

use expect_test::expect;
use minder_proto::layout::Home;

use super::*;

const CLEAN: &str = "STORE: 2 sessions, 28 lines; nothing is damaged\nexit 0\n";

#[test]
fn a_store_that_was_stopped_or_killed_is_clean() {
    assert_eq!(Sample::stopped().checked(), CLEAN);
    assert_eq!(Sample::crashed().checked(), CLEAN);
}

#[test]
fn a_store_killed_before_it_applied_what_was_committed_is_clean() {
    // What the files held after each part of the history, beside the journal of the whole of it.
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let writer = Writer::open(&live);
    let mut parts = Vec::new();
    fill(&writer, || {
        let part = dir.path().join(format!("part-{}", parts.len()));
        copy(&live, &part);
        parts.push(part);
    });
    assert!(parts.len() > 7);
    for part in parts {
        std::fs::remove_dir_all(part.join("journal")).unwrap();
        copy(&live.join("journal"), &part.join("journal"));
        let before = crate::store::replay_tests::tree(&part);
        let report = check(&Home::at(&part)).unwrap();
        // A part of the history has none of what other programs than the daemon wrote after it.
        assert!(report.findings.is_empty(), "{}: {}", part.display(), report.to_lines());
        assert_eq!((report.sessions, report.lines), (2, 28));
        assert_eq!(crate::store::replay_tests::tree(&part), before, "a check changes nothing");
    }
}

#[test]
fn what_a_kill_leaves_half_done_is_no_damage() {
    let sample = Sample::crashed();
    // An append that was cut off, and a file that was written and not renamed.
    sample.edit("sessions/API/timeline.jsonl", |text| text[..text.len() - 9].to_owned());
    sample.edit("sessions/API/queue.jsonl", |text| text[..text.len() - 1].to_owned());
    sample.write("sessions/API/.tmp-session.json", "{\"id\":");
    sample.write("spool/.0199c2d4-90c3-7f0e-8a17-c2b67be21c09.new", "{");
    expect![[r"
        note: sessions/API/.tmp-session.json: left half written; nothing reads it
        note: spool/.0199c2d4-90c3-7f0e-8a17-c2b67be21c09.new: left half written; nothing reads it
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&sample.checked());
}

#[test]
fn a_torn_end_that_the_next_write_closed_is_no_damage() {
    let sample = Sample::stopped();
    sample.edit("sessions/API/timeline.jsonl", |text| text[..text.len() - 9].to_owned());
    let writer = Writer::open(&sample.root());
    writer.declare(sample.id("API").parse().unwrap(), State::Idle, "");
    writer.store.stop();
    assert_eq!(sample.checked(), "STORE: 2 sessions, 31 lines; nothing is damaged\nexit 0\n");
}

#[test]
fn sealed_segments_are_read_through() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let writer = Writer::open(&root);
    let api = writer.create("api", None, None);
    let body = "x".repeat(200 * 1024);
    for _ in 0..45 {
        writer.post(Party::Session(api), &body);
    }
    let timeline = Home::at(&root).session(api);
    assert!(minder_proto::timeline::sealed(&timeline).unwrap().len() >= 2);
    for stop in [false, true] {
        if stop {
            writer.store.stop();
        }
        let report = check(&Home::at(&root)).unwrap();
        assert!(report.findings.is_empty(), "{}", report.to_lines());
        assert_eq!(report.lines, 46);
    }
    // Where old segments were dropped, the history begins with the first that is kept.
    let segments = minder_proto::timeline::sealed(&timeline).unwrap();
    std::fs::rename(&segments[0].1, timeline.join(minder_proto::timeline::sealed_name(2))).unwrap();
    std::fs::remove_file(&segments[1].1).unwrap();
    let text = check(&Home::at(&root)).unwrap().to_lines().replace(&api.to_string(), "API");
    let begun: Vec<&str> = text.lines().filter(|l| !l.contains("queue.jsonl")).collect();
    expect![[r"
        sessions/API/timeline.000000000002.jsonl: its name says that it begins with seq 2, and it begins with seq 1
        sessions/API/timeline.jsonl: line 1: seq 44 follows seq 22
    "]]
    .assert_eq(&(begun.join("\n") + "\n"));
    std::fs::remove_file(timeline.join(minder_proto::timeline::sealed_name(2))).unwrap();
    let text = check(&Home::at(&root)).unwrap().to_lines();
    assert!(text.contains("it begins with seq 44, and no note says why"), "{text}");
}
