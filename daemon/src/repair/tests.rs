//! Repairs of stores that were damaged by hand, with what they say and what a check says of it.

use expect_test::{Expect, expect};
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;

use super::*;
use crate::check::tests::Sample;

const TIMELINE: &str = "sessions/API/timeline.jsonl";
const RECORD: &str = "sessions/API/session.json";
const QUEUE: &str = "sessions/API/queue.jsonl";

fn repaired(sample: &Sample) -> String {
    let now: Stamp = "2026-11-30T12:00:00.000Z".parse().unwrap();
    let report = repair(&Home::at(sample.root()), now).unwrap();
    sample.named(&report.to_lines())
}

/// What a repair says after some damage; after it a check finds none, and a second repair does nothing.
fn told(damage: impl FnOnce(&Sample), expected: &Expect) -> Sample {
    let sample = Sample::stopped();
    damage(&sample);
    expected.assert_eq(&repaired(&sample));
    let checked = sample.checked();
    assert!(checked.ends_with("exit 0\n"), "{checked}");
    assert_eq!(repaired(&sample), "STORE: nothing to repair\n");
    sample
}

#[test]
fn a_whole_store_is_left_as_it_is() {
    told(
        |_| {},
        &expect![[r#"
        STORE: nothing to repair
    "#]],
    );
}

#[test]
fn a_record_comes_from_its_timeline() {
    told(
        |s| s.write(RECORD, "{garbage"),
        &expect![[r#"
        sessions/API/session.json: made anew from the timeline; its folder and program are not known
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| std::fs::remove_file(s.path(RECORD)).unwrap(),
        &expect![[r#"
        sessions/API/session.json: made anew from the timeline; its folder and program are not known
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.edit(RECORD, |t| t.replace("\"state\": \"done\"", "\"state\": \"review\"")),
        &expect![[r#"
            sessions/API/session.json: state as the timeline says
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn a_timeline_keeps_every_line_that_can_be_read() {
    told(
        |s| s.lines(TIMELINE, |l| l[3] = "garbage".into()),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
        sessions/API/timeline.jsonl: 1 line that cannot be read left out; a note for line 3, missing
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.edit(TIMELINE, |t| t[..t.len() - 30].to_owned()),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
        sessions/API/timeline.jsonl: 1 line that cannot be read left out; a note for what is missing at the end
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.edit(TIMELINE, |t| t[..t.len() - 1].to_owned()),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
        sessions/API/timeline.jsonl: written anew
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.lines(TIMELINE, |l| drop(l.remove(5))),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it; 1 message whose text is lost left out
        sessions/API/timeline.jsonl: a note for line 5, missing
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.lines(TIMELINE, |l| l.swap(2, 3)),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
        sessions/API/timeline.jsonl: lines put in the order of their numbers
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.lines(TIMELINE, |l| l.push(l[4].clone())),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
        sessions/API/timeline.jsonl: lines put in the order of their numbers; 1 line with a number given before left out
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| std::fs::remove_file(s.path(TIMELINE)).unwrap(),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it; 4 messages whose text is lost left out
        sessions/API/timeline.jsonl: a note for what is missing at the end
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.edit(TIMELINE, |t| t.replacen("\"from\":\"idle\"", "\"from\":\"review\"", 1)),
        &expect![[r#"
            sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
            sessions/API/timeline.jsonl: line 3: from idle and not from review
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn a_ledger_comes_from_its_timeline_and_from_what_is_left() {
    told(
        |s| std::fs::remove_file(s.path(QUEUE)).unwrap(),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it; 4 messages only the timeline knew
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.edit(QUEUE, |t| t.replacen('{', "garbage{", 1)),
        &expect![[r#"
        sessions/API/queue.jsonl: written anew from the timeline and what could be read of it; 1 message only the timeline knew
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.lines(TIMELINE, |l| l.retain(|line| !line.contains("\"receipt\":\"seen\""))),
        &expect![[r#"
            sessions/API/queue.jsonl: written anew from the timeline and what could be read of it
            sessions/API/timeline.jsonl: a note for line 9, missing
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn a_session_of_which_nothing_can_be_read_is_set_aside() {
    told(
        |s| {
            s.write(RECORD, "{garbage");
            s.write(TIMELINE, "garbage\n");
        },
        &expect![[r#"
            bindings/claude/conversation-3: removed: no record calls for it
            labels/api: removed: no record calls for it
            sessions/API: moved to quarantine/: neither its record nor a line of its timeline can be read
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn what_belongs_to_no_session_alone() {
    told(
        |s| {
            std::fs::remove_file(s.path("labels/api")).unwrap();
            s.write("labels/nobody", "garbage\n");
            s.write("closed.jsonl", "garbage\n");
            s.edit("keys.jsonl", |t| t + "garbage\n");
            s.write(
                "feed.jsonl",
                "garbage\n{\"n\":1,\"s\":\"API\",\"q\":1}\n{\"n\":9,\"s\":\"API\",\"q\":2}\n",
            );
            s.write("spool/REQUEST.json", "garbage");
            s.write("followers/deploy.json", "garbage");
            s.write("sessions/API/cursors.json", "garbage");
            s.write("format", "minder");
        },
        &expect![[r#"
            closed.jsonl: written anew: 1 line left out, 1 added
            feed.jsonl: moved to quarantine/: damaged; every follower looks at everything once
            followers/deploy.json: its positions are lost; the next wait says so
            format: written anew
            keys.jsonl: written anew: 1 line left out, 0 added
            labels/api: written as the record says
            labels/nobody: removed: no record calls for it
            sessions/API/cursors.json: its positions are lost; the next wait says so
            spool/REQUEST.json: moved to quarantine/: not a request that can be read
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn watchers_are_those_that_can_be_read_or_the_parent() {
    told(
        |s| s.write("sessions/WEB/watchers.json", "[{"),
        &expect![[r#"
        sessions/WEB/watchers.json: written anew from what can be read of it, or the record
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| s.write("sessions/API/watchers.json", "[{"),
        &expect![[r#"
        sessions/API/watchers.json: removed: nobody watches it now
        STORE: nothing is damaged any more
    "#]],
    );
    told(
        |s| {
            s.write("sessions/API/watchers.json", "[{\"watcher\":\"WEB\",\"sources\":[\"manual\"],\"states\":\"all\",\"since\":\"2026-11-30T12:00:00Z\"},7]");
        },
        &expect![[r#"
            sessions/API/watchers.json: written anew from what can be read of it, or the record
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn what_is_open_to_others_or_no_file_at_all() {
    use std::os::unix::fs::PermissionsExt;
    told(
        |s| {
            let mode = |name: &str, mode| {
                std::fs::set_permissions(s.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
            };
            mode("sessions/API", 0o755);
            mode(RECORD, 0o644);
            mode("trash/OLD/session.json", 0o640);
            std::fs::remove_file(s.path(QUEUE)).unwrap();
            std::fs::create_dir(s.path(QUEUE)).unwrap();
            mode(QUEUE, 0o700);
            std::fs::remove_dir(s.path("labels/../run")).unwrap();
            s.write("run", "a file");
        },
        &expect![[r#"
            run: not a folder; moved to quarantine/
            sessions/API: was open to others; narrowed to 0700
            sessions/API/queue.jsonl: moved to quarantine/: it cannot be read as a file
            sessions/API/queue.jsonl: written anew from the timeline and what could be read of it; 4 messages only the timeline knew
            trash/OLD/session.json: permissions corrected
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn the_trash_and_what_is_open() {
    told(
        |s| s.lines("trash/OLD/timeline.jsonl", |l| drop(l.pop())),
        &expect![[r#"
            trash/OLD/queue.jsonl: written anew from the timeline and what could be read of it
            trash/OLD/timeline.jsonl: the line `closed` added
            STORE: nothing is damaged any more
        "#]],
    );
    told(
        |s| {
            s.lines(TIMELINE, |l| {
                l.push(format!(
                    "{{\"seq\":{},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"closed\",\"by\":\"operator\"}}",
                    l.len()
                ));
            });
        },
        &expect![[r#"
            bindings/claude/conversation-3: removed: no record calls for it
            closed.jsonl: written anew: 0 lines left out, 1 added
            labels/api: removed: no record calls for it
            sessions/API: closed, and now in the trash
            STORE: nothing is damaged any more
        "#]],
    );
    told(
        |s| check::tests::copy(&s.path("sessions/API"), &s.path("trash/API")),
        &expect![[r#"
        trash/API: moved to quarantine/: the session is open, too
        STORE: nothing is damaged any more
    "#]],
    );
}

#[test]
fn a_label_and_a_conversation_are_one_sessions() {
    told(
        |s| {
            // The younger one gives way, and both may have been made in one millisecond.
            s.edit("sessions/WEB/session.json", |t| {
                t.replace("\"label\": \"site\"", "\"label\": \"api\"")
                    .replace("\"created\": \"2", "\"created\": \"3")
            });
        },
        &expect![[r#"
            labels/api-2: written as the record says
            labels/site: removed: no record calls for it
            sessions/WEB/session.json: label api-2 and not api, which another has
            STORE: nothing is damaged any more
        "#]],
    );
}

#[test]
fn what_was_written_anew_is_kept_and_says_why() {
    let sample = Sample::stopped();
    sample.write(RECORD, "{garbage");
    sample.edit(QUEUE, |t| t + "garbage\n");
    let ledger = std::fs::read(sample.path(QUEUE)).unwrap();
    repaired(&sample);
    let kept = |name: &str| std::fs::read(sample.path(&format!("quarantine/{name}"))).unwrap();
    assert_eq!(kept("API.session.json"), b"{garbage");
    assert_eq!(kept("API.queue.jsonl"), ledger);
    assert!(kept("API.queue.jsonl.why").starts_with(b"written anew"));
    // What it says is what it was: every line of the ledger that can be read still counts.
    let queue = minder_proto::queue::fold(&std::fs::read(sample.path(QUEUE)).unwrap()).0;
    assert_eq!(queue, minder_proto::queue::fold(&ledger).0);
}

#[test]
fn a_crashed_store_is_repaired_as_a_start_would_replay_it() {
    let sample = Sample::crashed();
    sample.write(RECORD, "{garbage");
    sample.edit(TIMELINE, |t| t[..t.len() - 9].to_owned());
    assert_eq!(repaired(&sample), "STORE: nothing to repair\n", "the journal has all of it");
    assert!(sample.checked().ends_with("exit 0\n"));
}
