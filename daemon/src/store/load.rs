//! Reading the store's files into memory at start: records, watchers and queues, not timelines. What cannot be
//! read is moved aside and named; it hides nothing else.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::queue;
use minder_proto::record::{ClosedLine, KeyLine, SessionRecord, Watcher};
use minder_proto::stamp::Stamp;
use minder_proto::{timeline, whole};

use super::disk::{DiskError, at};
use super::hosts;
use super::recover::quarantine_file;
use super::state::{Inbox, Remembered, Session, State};

/// How long an idempotency key is kept.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How long a rewrite keeps a key: there are as many of hooks as there are events, and the copy of one that a hook left
/// is taken at once.
pub fn kept(key: &str) -> Duration {
    if key.starts_with(HOOK_KEY) { Duration::from_secs(600) } else { KEYS_KEPT }
}

/// How the key of a hook's event begins.
pub const HOOK_KEY: &str = "hook/";

/// Loads everything; `notes` receives a line for each thing that was wrong.
pub fn load(home: &Home, notes: &mut Vec<String>) -> Result<State, DiskError> {
    let mut state = State::default();
    let sessions = home.sessions();
    for entry in std::fs::read_dir(&sessions).map_err(at(&sessions))? {
        let entry = entry.map_err(at(&sessions))?;
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse::<SessionId>().ok()) else {
            notes.push(format!("{}: not a session's folder; left alone", entry.path().display()));
            continue;
        };
        match session(home, id, notes)? {
            Ok(session) => index(&mut state, id, session, notes),
            Err(why) => {
                notes.push(format!("session {id}: {why}"));
                state.corrupt.insert(id, why);
            }
        }
    }
    let (queue, queue_len) = ledger(&home.operator().join("queue.jsonl"), notes)?;
    state.operator = Arc::new(Inbox { queue, tail: None, queue_len });
    keys(home, &mut state, notes)?;
    state.closed_len = length(&home.closed())?;
    left_running(home, &mut state)?;
    hosts::load(home, &mut state, notes)?;
    Ok(state)
}

fn index(state: &mut State, id: SessionId, session: Session, notes: &mut Vec<String>) {
    let record = &session.record;
    if let Some(other) = state.labels.insert(record.label.clone(), id) {
        notes.push(format!("label {:?} belongs to {other} and {id}", record.label));
    }
    for binding in record.bindings.iter().filter(|b| b.until.is_none()) {
        state.bindings.insert((binding.harness.clone(), binding.id.clone()), id);
    }
    if let Some(process) = &record.process {
        state.processes.entry((process.pid, process.start)).or_default().push(id);
    }
    state.sessions.insert(id, Arc::new(session));
}

/// The processes that closed sessions left running. A later one of the same number is another one to `is`.
fn left_running(home: &Home, state: &mut State) -> Result<(), DiskError> {
    let path = home.closed();
    let read = whole::lines(&path, |line| {
        if let Ok(ClosedLine { process: Some(process), .. }) = serde_json::from_slice(line) {
            state.left.insert((process.pid, process.start), process);
        }
    });
    match read {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(&path)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
impl State {
    /// A state that holds these records, for tests of what decides on one.
    pub(crate) fn of(records: impl IntoIterator<Item = SessionRecord>) -> Self {
        let mut state = Self::default();
        for record in records {
            let session = Session { record, watchers: Vec::new(), inbox: Inbox::default() };
            index(&mut state, session.record.id, session, &mut Vec::new());
        }
        state
    }
}

type Loaded = Result<Session, String>;

fn session(home: &Home, id: SessionId, notes: &mut Vec<String>) -> Result<Loaded, DiskError> {
    let dir = home.session(id);
    let file = dir.join("session.json");
    let bytes = match whole::read(&file) {
        Ok(bytes) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(format!("{}: not there", file.display())));
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(e.to_string()),
        Err(e) => return Ok(Err(format!("{}: {e}", file.display()))),
    };
    let record = bytes.and_then(|b| serde_json::from_slice::<SessionRecord>(&b).map_err(|e| e.to_string()));
    let record = match record {
        Ok(record) => record,
        Err(e) => {
            let why = format!("{}: {e}", file.display());
            quarantine_file(home.root(), &file, &format!("{id}.session.json"), &why)?;
            return Ok(Err(format!("{why}; moved to quarantine/")));
        }
    };
    if record.id != id {
        return Ok(Err(format!("{}: says it is {}", file.display(), record.id)));
    }
    // Whatever is wrong with one session's files keeps no other from being served.
    let loaded = (|| {
        let active = dir.join(timeline::ACTIVE);
        match whole::is_regular(&active) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(&active)(e)),
            _ => {}
        }
        let watchers = watchers(home, id, notes)?;
        let (queue, queue_len) = ledger(&dir.join("queue.jsonl"), notes)?;
        Ok(Session { record, watchers, inbox: Inbox { queue, tail: None, queue_len } })
    })();
    Ok(loaded.map_err(|e: DiskError| e.to_string()))
}

fn watchers(home: &Home, id: SessionId, notes: &mut Vec<String>) -> Result<Vec<Watcher>, DiskError> {
    let file = home.session(id).join("watchers.json");
    let read = match whole::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| e.to_string()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(e.to_string()),
        Err(e) => return Err(at(&file)(e)),
    };
    read.or_else(|e| {
        let why = format!("{}: {e}", file.display());
        quarantine_file(home.root(), &file, &format!("{id}.watchers.json"), &why)?;
        notes.push(format!("{why}; moved to quarantine/, nobody watches this session now"));
        Ok(Vec::new())
    })
}

fn ledger(file: &Path, notes: &mut Vec<String>) -> Result<(queue::Queue, u64), DiskError> {
    match queue::fold_file(file) {
        Ok((queue, bad)) => {
            if bad > 0 {
                notes.push(format!("{}: {bad} lines cannot be read and were passed over", file.display()));
            }
            Ok((queue, length(file)?))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok((queue::Queue::default(), 0)),
        Err(e) => Err(at(file)(e)),
    }
}

fn keys(home: &Home, state: &mut State, notes: &mut Vec<String>) -> Result<(), DiskError> {
    let file = home.keys();
    state.keys_len = length(&file)?;
    let oldest = Stamp::now().minus(KEYS_KEPT);
    let mut bad = 0;
    let read = whole::lines(&file, |line| {
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<KeyLine>(line) {
            Ok(line) if line.at >= oldest => {
                state.keys.insert(line.key, Remembered { at: line.at, sum: line.sum, result: line.result });
            }
            Ok(_) => {}
            Err(_) => bad += 1,
        }
    });
    match read {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(&file)(e)),
        _ => {}
    }
    if bad > 0 {
        notes.push(format!("{}: {bad} lines cannot be read and were passed over", file.display()));
    }
    Ok(())
}

fn length(file: &Path) -> Result<u64, DiskError> {
    match std::fs::metadata(file) {
        Ok(meta) => Ok(meta.len()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(at(file)(e)),
    }
}
