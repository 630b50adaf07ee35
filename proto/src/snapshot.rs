//! The store as its files show it, for readers that need no daemon. Nothing here locks or writes.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::event::{ANSWER_NOTE, Author, Body, Event, Line, Message, Receipt};
use crate::id::{MessageId, Party, SessionId};
use crate::layout::Home;
use crate::queue::{self, Queue};
use crate::record::{ClosedLine, QueueLine, SessionRecord, Watcher};
use crate::{timeline, whole};

/// Why a session's record cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("no session {0}")]
    NotFound(SessionId),
    /// It is there and cannot be read as a record.
    #[error("{}: {why}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
}

/// Reads one file as JSON.
fn json<T: serde::de::DeserializeOwned>(path: PathBuf) -> Result<Option<T>, ReadError> {
    let bytes = match whole::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => {
            return Err(ReadError::Corrupt { path, why: e.to_string() });
        }
        Err(error) => return Err(ReadError::Io { path, error }),
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(e) => Err(ReadError::Corrupt { path, why: e.to_string() }),
    }
}

/// One open session's record. A session whose record alone is not there, as after it was moved to the quarantine, is one
/// that cannot be read, and not one that is gone.
pub fn record(home: &Home, id: SessionId) -> Result<SessionRecord, ReadError> {
    let dir = home.session(id);
    let path = dir.join("session.json");
    let record: Option<SessionRecord> = json(path.clone())?;
    record.ok_or_else(|| {
        // At a birth the record comes first.
        if dir.join(timeline::ACTIVE).is_file() {
            ReadError::Corrupt { path, why: "not there".to_owned() }
        } else {
            ReadError::NotFound(id)
        }
    })
}

/// Ids of all open sessions, by folder name. An absent store has none.
pub fn ids(home: &Home) -> io::Result<Vec<SessionId>> {
    let entries = match std::fs::read_dir(home.sessions()) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut ids = Vec::new();
    for entry in entries {
        if let Some(id) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// All open sessions' records, and what could not be read; a bad one hides nothing else.
pub fn records(home: &Home) -> io::Result<(Vec<SessionRecord>, Vec<ReadError>)> {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for id in ids(home)? {
        match record(home, id) {
            Ok(record) => good.push(record),
            Err(ReadError::NotFound(_)) => {} // closed meanwhile
            Err(e) => bad.push(e),
        }
    }
    good.sort_by_key(|r| (r.created, r.id));
    Ok((good, bad))
}

/// Who watches a session.
pub fn watchers(home: &Home, id: SessionId) -> Result<Vec<Watcher>, ReadError> {
    Ok(json(home.session(id).join("watchers.json"))?.unwrap_or_default())
}

/// The folder of a recipient: a session's, or the person's.
pub fn party_dir(home: &Home, party: Party) -> PathBuf {
    match party {
        Party::Session(id) => home.session(id),
        Party::Operator | Party::Minder => home.operator(),
    }
}

/// What waits for a recipient.
pub fn queue(dir: &Path) -> io::Result<Queue> {
    match queue::fold_file(&dir.join("queue.jsonl")) {
        Ok((queue, _)) => Ok(queue),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Queue::default()),
        Err(e) => Err(e),
    }
}

/// The message at a line of a timeline.
pub fn message(dir: &Path, seq: u64) -> io::Result<Option<Message>> {
    Ok(timeline::find(dir, seq)?.and_then(|e| match e.body {
        Body::Message(message) => Some(*message),
        _ => None,
    }))
}

/// The message of a queue's entry: at the place that its ledger names, else found by its line's number.
pub fn message_of(dir: &Path, entry: &queue::Entry) -> io::Result<Option<Message>> {
    if let Some(brief) = &entry.brief
        && let Some(event) = timeline::at(dir, brief.segment, brief.offset)?
        && let Body::Message(message) = event.body
        && message.id == entry.id
    {
        return Ok(Some(*message));
    }
    message(dir, entry.seq)
}

/// Messages, each with every change of its receipt that is known, oldest first.
pub type Histories = Vec<(MessageId, Vec<QueueLine>)>;

/// The messages whose ids end so, as the timeline tells of them: a ledger that was rewritten has forgotten what is settled.
pub fn histories(dir: &Path, end: &str) -> Histories {
    let mut found = Histories::new();
    // A folder without a timeline has no message.
    let _ = timeline::read_after(dir, None, |item| {
        let Line::Event(event) = item.line else {
            return ControlFlow::Continue(());
        };
        let line = |id, r, reason| QueueLine {
            at: event.at,
            id,
            seq: event.seq,
            r,
            reason,
            attempt: 0,
            channel: None,
            brief: None,
        };
        match event.body {
            Body::Message(m) if m.id.ends_with(end) => {
                found.push((m.id, vec![line(m.id, Receipt::Queued, None)]));
            }
            Body::Receipt { id, receipt, reason } => {
                if let Some((_, history)) = found.iter_mut().find(|(known, _)| *known == id) {
                    history.push(line(id, receipt, reason));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

/// The tombstone of a closed session, newest first.
pub fn tombstone(home: &Home, id: SessionId) -> Option<ClosedLine> {
    closed(home, |line| line.id == id).pop()
}

/// The lines of `closed.jsonl` that are wanted, oldest first. The list is never rewritten, so that it is read line by
/// line.
fn closed(home: &Home, wanted: impl Fn(&ClosedLine) -> bool) -> Vec<ClosedLine> {
    let mut found = Vec::new();
    let _ = whole::lines(&home.closed(), |line| {
        found.extend(serde_json::from_slice(line).ok().filter(&wanted));
    });
    found
}

/// Tombstones of closed sessions that had a label, a full id or an id prefix, newest first.
pub fn tombstones_named(home: &Home, name: &str) -> Vec<ClosedLine> {
    let mut found =
        closed(home, |l| l.label == name || (name.len() >= 6 && l.id.to_string().starts_with(name)));
    found.reverse();
    found
}

/// The folder in which a session's timeline lies now: open, or closed and in the trash.
pub fn timeline_dir(home: &Home, id: SessionId) -> Option<PathBuf> {
    let open = home.session(id);
    if open.is_dir() {
        return Some(open);
    }
    let closed = home.trashed(id);
    closed.is_dir().then_some(closed)
}

/// The newest state line of a timeline, if it has one.
pub fn last_state(dir: &Path) -> io::Result<Option<Event>> {
    let mut found = None;
    timeline::read_back(dir, |item| match item.line {
        Line::Event(event) if matches!(event.body, Body::State(_)) => {
            found = Some(*event);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(found)
}

/// The last answer of the turn in which the state of line `seq` was declared, if that turn is over.
pub fn answer_after(dir: &Path, seq: u64) -> io::Result<Option<String>> {
    let mut found = None;
    timeline::read_back(dir, |item| {
        match item.line {
            Line::Event(event) if event.seq <= seq => return ControlFlow::Break(()),
            Line::Event(event) => match event.body {
                // What comes after another state is the answer to something else.
                Body::State(_) => found = None,
                Body::Note { what, text } if what == ANSWER_NOTE => found = Some(text),
                _ => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The words for who declared a state.
pub fn author_words(author: Author) -> &'static str {
    match author {
        Author::Agent => "declared by the session",
        Author::Hook => "said by a hook",
        Author::Runner => "said by the turn runner",
        Author::Operator => "declared by the person",
        Author::Minder => "said by minder",
    }
}
