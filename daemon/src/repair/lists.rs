//! Files of lines and of positions that are written anew from what can be read of them.

use std::collections::BTreeSet;

use minder_proto::event::Author;
use minder_proto::host::ledger::Line;
use minder_proto::host::record::HostRecord;
use minder_proto::host::row;
use minder_proto::id::SessionId;
use minder_proto::record::{ClosedLine, KeyLine, SessionRecord, WatchSource, Watcher};
use minder_proto::stamp::Stamp;
use minder_proto::state::StateSet;
use serde::de::DeserializeOwned;

/// The lines that can be read and that are wanted, as they stand there.
fn kept<T: DeserializeOwned>(bytes: &[u8], wanted: impl Fn(&T) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        if serde_json::from_slice(line).is_ok_and(|value| wanted(&value)) {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
    }
    out
}

/// `keys.jsonl`.
pub fn keys(bytes: &[u8]) -> Vec<u8> {
    kept(bytes, |_: &KeyLine| true)
}

/// The ledger of a host.
pub fn of_host(bytes: &[u8]) -> Vec<u8> {
    kept(bytes, |_: &Line| true)
}

/// The record of a host whose next row stands among those of its queue, with one that does not.
pub fn numbers(record: &[u8], queue: &[u8]) -> Option<Vec<u8>> {
    let mut record: HostRecord = serde_json::from_slice(record).ok()?;
    let newest = row::read(queue).ok()?.rows.iter().map(|row| row.seq).max()?;
    if record.next.row > newest {
        return None;
    }
    record.next.row = newest + 1;
    let mut bytes = serde_json::to_vec(&record).expect("a record is plain data");
    bytes.push(b'\n');
    Some(bytes)
}

/// `closed.jsonl`: no line about a session that is open, and one about each in the trash.
pub fn closed(
    bytes: &[u8],
    open: &BTreeSet<SessionId>,
    trashed: &[(SessionId, Option<SessionRecord>)],
    now: Stamp,
) -> Vec<u8> {
    let mut out = kept(bytes, |line: &ClosedLine| !open.contains(&line.id));
    let told: BTreeSet<SessionId> = out
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice::<ClosedLine>(line).ok())
        .map(|line| line.id)
        .collect();
    for (id, record) in trashed.iter().filter(|(id, _)| !told.contains(id)) {
        let Some(record) = record else { continue };
        let line = ClosedLine {
            id: *id,
            label: record.label.clone(),
            title: record.title.clone(),
            state: record.state,
            note: None,
            by: Author::Minder,
            at: now,
            process: record.process.clone().filter(|p| p.ended.is_none()),
        };
        serde_json::to_writer(&mut out, &line).expect("a tombstone is plain data");
        out.push(b'\n');
    }
    out
}

/// `watchers.json`: the entries that can be read, each watcher once, and nobody watches himself. Where none can be, the
/// parent, whose watch follows from the record.
pub fn watchers(bytes: &[u8], id: SessionId, parent: Option<SessionId>, now: Stamp) -> Vec<Watcher> {
    let entries: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let read = entries.into_iter().filter_map(|value| serde_json::from_value::<Watcher>(value).ok());
    let mut watchers: Vec<Watcher> = read.filter(|w| w.watcher != id && seen.insert(w.watcher)).collect();
    if let Some(parent) = parent.filter(|p| watchers.is_empty() && *p != id) {
        watchers.push(Watcher {
            watcher: parent,
            sources: vec![WatchSource::Parent],
            states: StateSet::WATCH,
            since: now,
            unknown: serde_json::Map::new(),
        });
    }
    watchers
}

/// Positions that are lost, in the form in which a follower keeps that it knows.
pub fn lost_cursors(now: Stamp) -> Vec<u8> {
    let lost = serde_json::json!({ "version": 1, "follows": {}, "told": 0, "lost": now });
    let mut bytes = serde_json::to_vec(&lost).expect("plain data");
    bytes.push(b'\n');
    bytes
}
