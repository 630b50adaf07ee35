//! A store of any size, written straight to its files through the types of the contract: ten thousand sessions with a
//! million lines take seconds, where a daemon that commits each would take hours.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;

use minder_proto::STORE_FORMAT;
use minder_proto::event::{Author, Body, Event, Transition};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::{ClosedLine, SessionRecord};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::timeline::ACTIVE;
use serde_json::json;

/// The id of session `n`.
pub fn id(n: usize) -> SessionId {
    let mut bytes = [0x5a; 16];
    // Spread over the first bytes, so that short ids differ as those of random ids do.
    let mixed = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&(n as u64).to_be_bytes());
    SessionId::from_bytes(bytes)
}

/// The label of session `n`.
pub fn label(n: usize) -> String {
    format!("s{n}")
}

/// Writes a store with `sessions` open sessions, `s0`, `s1`, …, of `lines` lines each, all working and with nothing in
/// their queues, and `closed` that lie in the trash.
pub fn write(home: &Home, sessions: usize, lines: u64, closed: usize) -> io::Result<()> {
    assert!(lines >= 1, "the first line is the arrival");
    let mut folder = DirBuilder::new();
    folder.mode(0o700).recursive(true);
    let labels = home.root().join("labels");
    for dir in [home.root().to_owned(), home.sessions(), home.trash(), labels] {
        folder.create(dir)?;
    }
    std::fs::write(home.format(), format!("{STORE_FORMAT}\n"))?;
    let now = Stamp::now();
    let mut text = Vec::new();
    for n in 0..sessions {
        let dir = home.session(id(n));
        folder.create(&dir)?;
        timeline(n, lines, now, &mut text);
        std::fs::write(dir.join(ACTIVE), &text)?;
        std::fs::write(dir.join("session.json"), serde_json::to_vec(&record(n, lines, now))?)?;
        std::fs::write(home.label(&label(n)), format!("{}\n", id(n)))?;
    }
    let mut tombstones = Vec::new();
    for n in sessions..sessions + closed {
        let dir = home.trashed(id(n));
        folder.create(&dir)?;
        timeline(n, lines, now, &mut text);
        let end = Event { seq: lines + 1, at: now, body: Body::Closed { note: None, by: Author::Operator } };
        line(&end, &mut text);
        std::fs::write(dir.join(ACTIVE), &text)?;
        std::fs::write(dir.join("session.json"), serde_json::to_vec(&record(n, lines, now))?)?;
        let tombstone: ClosedLine = serde_json::from_value(json!({
            "id": id(n), "label": label(n), "title": label(n), "state": "working", "by": "operator", "at": now,
        }))?;
        serde_json::to_writer(&mut tombstones, &tombstone)?;
        tombstones.push(b'\n');
    }
    if closed > 0 {
        std::fs::write(home.closed(), tombstones)?;
    }
    Ok(())
}

fn line(event: &Event, into: &mut Vec<u8>) {
    serde_json::to_writer(&mut *into, event).expect("an event is plain data");
    into.push(b'\n');
}

fn timeline(n: usize, lines: u64, at: Stamp, into: &mut Vec<u8>) {
    into.clear();
    let arrival = Body::Created {
        label: label(n),
        title: label(n),
        harness: Some("claude".to_owned()),
        parent: None,
        state: State::Idle,
    };
    line(&Event { seq: 1, at, body: arrival }, into);
    for seq in 2..=lines {
        let (from, to) =
            if seq.is_multiple_of(2) { (State::Idle, State::Working) } else { (State::Working, State::Idle) };
        let body = Body::State(Transition {
            from,
            to,
            note: Some(format!("step {seq} of a task that has a note of usual length")),
            by: Author::Agent,
            cause: None,
            turn: None,
            turn_end: false,
            text: None,
            proof: None,
        });
        line(&Event { seq, at, body }, into);
    }
}

fn record(n: usize, lines: u64, at: Stamp) -> SessionRecord {
    let state = if lines.is_multiple_of(2) { State::Working } else { State::Idle };
    // What is left out is as a record has it where nothing happened yet.
    let record = json!({
        "id": id(n), "label": label(n), "label_given": true, "title": label(n), "title_from": "label",
        "harness": "claude", "dir": "/srv/project", "channel": {"kind": "mailbox"}, "created": at, "state": state,
        "state_at": at, "state_by": "agent", "last_seq": lines, "state_seq": lines,
    });
    serde_json::from_value(record).expect("it is a record")
}
