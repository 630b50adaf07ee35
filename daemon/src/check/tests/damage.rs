//! Each kind of damage in the folder of one recipient, with the line that a check says of it.

use expect_test::expect;

use super::*;

const TIMELINE: &str = "sessions/API/timeline.jsonl";
const RECORD: &str = "sessions/API/session.json";
const QUEUE: &str = "sessions/API/queue.jsonl";

/// The lines of the sample's timeline, for whoever reads these tests.
#[test]
fn the_sample_is_as_the_tests_below_think() {
    let sample = Sample::stopped();
    let kinds: Vec<String> = std::fs::read_to_string(sample.path(TIMELINE))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].as_str().unwrap().into())
        .collect();
    expect!["created binding state message message message message message receipt receipt message receipt binding state"].assert_eq(&kinds.join(" "));
}

#[test]
fn lines_that_cannot_be_read() {
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 253 of segment 1, not at byte 360; 5 more have moved
        sessions/API/timeline.jsonl: line 3 cannot be read
        exit 65
    "]].assert_eq(&after(|s| s.lines(TIMELINE, |l| l[3] = "garbage".into())));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 364 of segment 1, not at byte 360; 5 more have moved
        sessions/API/timeline.jsonl: line 3 cannot be read
        exit 65
    "]].assert_eq(&after(|s| s.lines(TIMELINE, |l| l.insert(3, "\0\0\0".into()))));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE is not in the timeline, where it should be seq 4
        sessions/API/queue.jsonl: message QUEUED begins at byte 261 of segment 1, not at byte 608; 4 more have moved
        sessions/API/timeline.jsonl: lines 3 to 4 cannot be read
        exit 65
    "]].assert_eq(&after(|s| {
        s.lines(TIMELINE, |l| {
            l[3] = "garbage".into();
            l[4] = "{\"seq\":".into();
        });
    }));
    expect![[r"
        sessions/API/timeline.jsonl: line 15 cannot be read
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(TIMELINE, |t| t + "garbage\n")));
}

#[test]
fn bytes_without_a_newline() {
    expect![[r"
        sessions/API/timeline.jsonl: 7 bytes without a newline at the end
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(TIMELINE, |t| t + "{\"seq\":")));
    expect![[r"
        sessions/API/session.json: last_seq is 14, and the timeline ends with seq 13
        sessions/API/session.json: state is done, and the timeline says working
        sessions/API/session.json: state_seq is 14, and the state is that of seq 3
        sessions/API/timeline.jsonl: 99 bytes without a newline at the end
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(TIMELINE, |t| t[..t.len() - 1].to_owned())));
    expect![[r"
        sessions/API/queue.jsonl: 1 byte without a newline at the end
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(QUEUE, |t| t + "{")));
}

#[test]
fn numbers_that_do_not_rise_by_one() {
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 245 of segment 1, not at byte 360; 5 more have moved
        sessions/API/timeline.jsonl: line 3: seq 4 follows seq 2
        exit 65
    "]].assert_eq(&after(|s| s.lines(TIMELINE, |l| drop(l.remove(3)))));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 115 of segment 3, not at byte 360 of segment 1; 5 more have moved
        sessions/API/timeline.jsonl: it begins with seq 3, and no note says why
        exit 65
    "]].assert_eq(&after(|s| s.lines(TIMELINE, |l| drop(l.drain(1..3)))));
    expect![[r"
        sessions/API/timeline.jsonl: line 2: seq 3 follows seq 1
        sessions/API/timeline.jsonl: line 3: seq 2 follows seq 3
        exit 65
    "]]
    .assert_eq(&after(|s| s.lines(TIMELINE, |l| l.swap(2, 3))));
    expect![[r"
        sessions/API/timeline.jsonl: message NOTICE stands there more than once: seq 4, 4
        sessions/API/timeline.jsonl: line 15: seq 4 follows seq 14
        exit 65
    "]]
    .assert_eq(&after(|s| s.lines(TIMELINE, |l| l.push(l[4].clone()))));
    expect![[r"
        note: sessions/API/cursors.json: told is 1, where seq 0 is the last
        sessions/API/queue.jsonl: message NOTICE is not in the timeline, where it should be seq 4
        sessions/API/queue.jsonl: message QUEUED is not in the timeline, where it should be seq 5
        sessions/API/queue.jsonl: message HELD is not in the timeline, where it should be seq 6
        sessions/API/queue.jsonl: message HANDED is not in the timeline, where it should be seq 7
        sessions/API/queue.jsonl: message SEEN is not in the timeline, where it should be seq 8
        sessions/API/queue.jsonl: message DEAD is not in the timeline, where it should be seq 11
        sessions/API/session.json: last_seq is 14, and the timeline ends with seq 0
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(TIMELINE, |_| String::new())));
    expect![[r"
        note: sessions/API/cursors.json: told is 1, where seq 0 is the last
        sessions/API/session.json: last_seq is 14, and the timeline ends with seq 0
        sessions/API/timeline.jsonl: not there
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path(TIMELINE)).unwrap()));
}

#[test]
fn a_note_that_owns_up_to_missing_lines_is_enough() {
    let note = |seq: u64| {
        let event = minder_proto::event::Event { seq, at: Stamp::now(), body: note("torn") };
        serde_json::to_string(&event).unwrap()
    };
    // A declaration is gone, and what it left in the record is not compared.
    let text = after(|s| s.lines(TIMELINE, |l| *l.last_mut().unwrap() = note(l.len() as u64)));
    assert_eq!(text, "STORE: 2 sessions, 28 lines; nothing is damaged\nexit 0\n");
    let text =
        after(|s| s.lines(TIMELINE, |l| *l.last_mut().unwrap() = format!("gar\n{}", note(l.len() as u64))));
    assert_eq!(text, "STORE: 2 sessions, 29 lines; nothing is damaged\nexit 0\n");
}

#[test]
fn a_sealed_segment() {
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 360 of segment 2, not at byte 360 of segment 1; 5 more have moved
        sessions/API/timeline.000000000002.jsonl: its name says that it begins with seq 2, and it begins with seq 1
        exit 65
    "]].assert_eq(&after(|s| {
        std::fs::rename(s.path(TIMELINE), s.path("sessions/API/timeline.000000000002.jsonl")).unwrap();
    }));
    expect![[r"
        sessions/API/timeline.000000000001.jsonl: a sealed segment without a line
        exit 65
    "]]
    .assert_eq(&after(|s| s.write("sessions/API/timeline.000000000001.jsonl", "")));
}

#[test]
fn states_that_do_not_follow() {
    let review = |t: String| t.replacen("\"from\":\"idle\"", "\"from\":\"review\"", 1);
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 362 of segment 1, not at byte 360; 5 more have moved
        sessions/API/timeline.jsonl: line 3: from review, and the state before it is idle
        exit 65
    "]].assert_eq(&after(|s| s.edit(TIMELINE, review)));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 361 of segment 1, not at byte 360; 5 more have moved
        exit 65
    "]].assert_eq(&after(|s| s.edit(TIMELINE, |t| t.replacen("\"created\"", "\"hologram\"", 1))));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 379 of segment 1, not at byte 360; 5 more have moved
        sessions/API/timeline.jsonl: line 1 is not the arrival
        exit 65
    "]].assert_eq(&after(|s| {
        s.edit(TIMELINE, |t| {
            t.replacen(
                "\"kind\":\"created\",\"label\"",
                "\"kind\":\"note\",\"what\":\"x\",\"text\":\"x\",\"label\"",
                1,
            )
        });
    }));
    expect![[r"
        sessions/API/session.json: state is done, and the timeline says idle
        sessions/API/session.json: state_seq is 14, and the state is that of seq 15
        sessions/API/timeline.jsonl: line 15: a second arrival
        exit 65
    "]]
    .assert_eq(&after(|s| {
        s.lines(TIMELINE, |l| {
            let last = l.len();
            l.push(l[1].replacen("\"seq\":1", &format!("\"seq\":{last}"), 1));
        });
    }));
}

#[test]
fn a_closed_timeline_that_is_not_in_the_trash() {
    expect![[r"
        sessions/API: its timeline is closed, and it is not in the trash
        sessions/API/timeline.jsonl: line 16: it stands after the line `closed`
        exit 65
    "]]
    .assert_eq(&after(|s| {
        s.lines(TIMELINE, |l| {
            for kind in ["closed\",\"by\":\"operator", "note\",\"what\":\"x\",\"text\":\"x"] {
                l.push(format!(
                    "{{\"seq\":{},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"{kind}\"}}",
                    l.len()
                ));
            }
        });
    }));
}

#[test]
fn a_record() {
    expect![[r"
        sessions/API/session.json: cannot be read: EOF while parsing a string at line 2 column 38
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(RECORD, |t| t[..40].to_owned())));
    expect![[r"
        sessions/API/session.json: cannot be read: unknown variant `finished`, expected one of `queued`, `working`, `idle`, `parked`, `asking`, `review`, `done`, `close-pending`, `error` at line 15 column 21
        exit 65
    "]].assert_eq(&after(|s| s.edit(RECORD, |t| t.replacen("\"done\"", "\"finished\"", 1))));
    expect![[r"
        sessions/API/session.json: not there
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path(RECORD)).unwrap()));
    expect![[r"
        sessions/API/session.json: it says it is session WEB
        exit 65
    "]]
    .assert_eq(&after(|s| {
        std::fs::copy(s.path("sessions/WEB/session.json"), s.path(RECORD)).unwrap();
    }));
    expect![[r"
        sessions/API/session.json: a folder, where a file should be
        note: sessions/API/session.json: not a file of the store
        exit 65
    "]]
    .assert_eq(&after(|s| {
        std::fs::remove_file(s.path(RECORD)).unwrap();
        std::fs::create_dir(s.path(RECORD)).unwrap();
        std::fs::set_permissions(s.path(RECORD), std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
    }));
}

#[test]
fn a_record_that_says_other_than_its_timeline() {
    let field = |name: &'static str, value: serde_json::Value| {
        after(move |s| {
            s.edit(RECORD, |t| {
                let mut record: serde_json::Value = serde_json::from_str(&t).unwrap();
                record[name] = value;
                record.to_string()
            });
        })
    };
    expect![[r"
        sessions/API/session.json: state is parked, and the timeline says done
        exit 65
    "]]
    .assert_eq(&field("state", "parked".into()));
    expect![[r"
        sessions/API/session.json: state_seq is 2, and the state is that of seq 14
        exit 65
    "]]
    .assert_eq(&field("state_seq", 2.into()));
    expect![[r"
        sessions/API/session.json: note is not that of seq 14
        exit 65
    "]]
    .assert_eq(&field("note", "said by nobody".into()));
    expect![[r"
        sessions/API/session.json: last_seq is 99, and the timeline ends with seq 14
        exit 65
    "]]
    .assert_eq(&field("last_seq", 99.into()));
}

#[test]
fn a_ledger() {
    expect![[r"
        sessions/API/queue.jsonl: line 1 cannot be read: expected value
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(QUEUE, |t| format!("garbage\n{t}"))));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE, seq 4 of the timeline, waits and is not here
        sessions/API/queue.jsonl: line 1 cannot be read: unknown variant `lost`, expected one of `queued`, `held`, `handed`, `seen`, `answered`, `dead`, `returned`
        exit 65
    "]].assert_eq(&after(|s| s.edit(QUEUE, |t| t.replacen("\"queued\"", "\"lost\"", 1))));
    expect![[r"
        sessions/API/queue.jsonl: line 15: message NOTICE is queued for a second time
        exit 65
    "]]
    .assert_eq(&after(|s| s.lines(QUEUE, |l| l.push(l[1].clone()))));
    // What is settled stays settled.
    expect![[r"
        sessions/API/queue.jsonl: line 15: message SEEN is handed, after it was answered
        exit 65
    "]]
    .assert_eq(&after(|s| {
        s.lines(QUEUE, |l| {
            let seen = l.iter().position(|l| l.contains("\"seen\"")).unwrap();
            l.push(l[seen].replacen("\"seen\"", "\"handed\"", 1));
        });
    }));
}

#[test]
fn a_ledger_that_says_other_than_its_timeline() {
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE, seq 4 of the timeline, waits and is not here
        sessions/API/queue.jsonl: message QUEUED, seq 5 of the timeline, waits and is not here
        sessions/API/queue.jsonl: message HELD, seq 6 of the timeline, waits and is not here
        sessions/API/queue.jsonl: message HANDED, seq 7 of the timeline, waits and is not here
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path(QUEUE)).unwrap()));
    // The line is elsewhere.
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE begins at byte 360 of segment 1, not at byte 1360
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(QUEUE, |t| t.replacen("\"offset\":", "\"offset\":1", 1))));
    expect![[r"
        sessions/API/queue.jsonl: message NOTICE has seq 94, and is seq 4 of the timeline
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(QUEUE, |t| t.replacen("\"seq\":", "\"seq\":9", 1))));
    // It settled in one of them only.
    let is = |l: &str, id: &str, what: &str| l.contains(id) && l.contains(&format!("\"{what}\""));
    expect![[r"
        sessions/API/queue.jsonl: message DEAD is queued here, and settled in the timeline
        exit 65
    "]]
    .assert_eq(&after(|s| {
        let id = s.id("DEAD");
        s.lines(QUEUE, |l| l.retain(|l| !is(l, &id, "dead")));
    }));
    expect![[r"
        sessions/API/queue.jsonl: message DEAD is dead here, and the timeline has no receipt of it
        exit 65
    "]].assert_eq(&after(|s| {
        let id = s.id("DEAD");
        s.lines(TIMELINE, |l| {
            let at = l.iter().position(|l| is(l, &id, "dead")).unwrap();
            l[at] = format!("{{\"seq\":{at},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"note\",\"what\":\"x\",\"text\":\"x\"}}");
        });
    }));
    // Its message was never accepted.
    expect![[r"
        sessions/API/queue.jsonl: message QUEUED, seq 5 of the timeline, waits and is not here
        sessions/API/queue.jsonl: message YOURS is not in the timeline, where it should be seq 5
        exit 65
    "]]
    .assert_eq(&after(|s| {
        let (id, at) = (s.id("QUEUED"), s.id("YOURS"));
        s.edit(QUEUE, |t| t.replace(&id, &at));
    }));
    expect![[r"
        operator/queue.jsonl: message YOURS, seq 1 of the timeline, waits and is not here
        exit 65
    "]]
    .assert_eq(&after(|s| std::fs::remove_file(s.path("operator/queue.jsonl")).unwrap()));
}

#[test]
fn one_message_twice() {
    expect![[r"
        sessions/API/queue.jsonl: message SEEN has seq 8, and is seq 11 of the timeline
        sessions/API/queue.jsonl: message DEAD is not in the timeline, where it should be seq 11
        sessions/API/timeline.jsonl: message SEEN stands there more than once: seq 8, 11
        exit 65
    "]]
    .assert_eq(&after(|s| {
        let (one, other) = (s.id("SEEN"), s.id("DEAD"));
        s.edit(TIMELINE, |t| t.replace(&other, &one));
    }));
}

#[test]
fn a_receipt_of_nothing() {
    expect![[r"
        sessions/API/timeline.jsonl: line 15: seen for message YOURS, which does not wait
        exit 65
    "]].assert_eq(&after(|s| {
        let id = s.id("YOURS");
        s.lines(TIMELINE, |l| {
            l.push(format!(
                "{{\"seq\":{},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"receipt\",\"id\":\"{id}\",\"receipt\":\"seen\"}}",
                l.len()
            ));
        });
    }));
}

#[test]
fn watchers() {
    let file = "sessions/API/watchers.json";
    expect![[r"
        sessions/API/watchers.json: cannot be read: EOF while parsing an object at line 3 column 3
        exit 65
    "]]
    .assert_eq(&after(|s| s.edit(file, |t| t[..9].to_owned())));
    expect![[r"
        sessions/API/watchers.json: session WEB has more than one entry
        exit 65
    "]]
    .assert_eq(&after(|s| {
        s.edit(file, |t| {
            let mut all: Vec<serde_json::Value> = serde_json::from_str(&t).unwrap();
            all.push(all[0].clone());
            serde_json::to_string(&all).unwrap()
        });
    }));
    expect![[r"
        sessions/API/watchers.json: the session watches itself
        exit 65
    "]]
    .assert_eq(&after(|s| {
        let (web, api) = (s.id("WEB"), s.id("API"));
        s.edit(file, |t| t.replace(&web, &api));
    }));
    expect![[r"
        note: sessions/API/watchers.json: the watcher OLD is not open; the next notice drops it
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| {
        let (web, old) = (s.id("WEB"), s.id("OLD"));
        s.edit(file, |t| t.replace(&web, &old));
    }));
}

#[test]
fn cursors() {
    let file = "sessions/API/cursors.json";
    expect![[r"
        sessions/API/cursors.json: cannot be read: EOF while parsing an object at line 1 column 1
        exit 65
    "]]
    .assert_eq(&after(|s| s.write(file, "{")));
    expect![[r"
        note: sessions/API/cursors.json: it has read session WEB up to seq 99, where 8 is the last
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.edit(file, |t| t.replace("\"seq\":1", "\"seq\":99"))));
    expect![[r"
        note: sessions/API/cursors.json: it has read session WEB up to byte 99999 of segment 1, which has 1428
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.edit(file, |t| t.replace("\"offset\":0", "\"offset\":99999"))));
    expect![[r"
        note: sessions/API/cursors.json: told is 99, where seq 14 is the last
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.edit(file, |t| t.replace("\"told\":1", "\"told\":99"))));
    expect![[r"
        note: followers/deploy.json: it has read session WEB up to seq 99, where 8 is the last
        STORE: 2 sessions, 28 lines; nothing is damaged
        exit 0
    "]]
    .assert_eq(&after(|s| s.edit("followers/deploy.json", |t| t.replace("\"seq\":1", "\"seq\":99"))));
}
