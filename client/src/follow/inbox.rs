//! The caller's own messages: which of them it was not told of yet. They are found by the ledger of its queue; its
//! log is opened only for the one that is told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use minder_proto::event::{Body, Line, Receipt};
use minder_proto::id::SessionId;
use minder_proto::queue::Queue;
use minder_proto::record::QueueLine;
use minder_proto::timeline;

use super::news::Letter;

/// The caller's queue, as far as it was read.
#[derive(Debug)]
pub struct Inbox {
    dir: PathBuf,
    queue: Queue,
    file: Option<(u64, u64)>,
    offset: u64,
}

impl Inbox {
    /// The inbox in this folder.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, queue: Queue::default(), file: None, offset: 0 }
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads what the ledger says since, and finds the oldest message after line `told` that waits.
    pub fn due(&mut self, told: u64) -> io::Result<Option<Letter>> {
        self.read()?;
        let Some(entry) = self.queue.iter().find(|e| e.seq > told) else { return Ok(None) };
        let event = match timeline::find(&self.dir, entry.seq) {
            Ok(event) => event,
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // The ledger may be a moment ahead of the log; the bell rings when both are there.
        let Some(event) = event else { return Ok(None) };
        let Body::Message(message) = event.body else { return Ok(None) };
        let (seq, at) = (entry.seq, event.at);
        let about = message.about.map(|a| a.session);
        Ok(Some(Letter { seq, id: message.id, from: message.from, about, at }))
    }

    fn read(&mut self) -> io::Result<()> {
        let file = match File::open(self.dir.join("queue.jsonl")) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let meta = file.metadata()?;
        let is = (meta.dev(), meta.ino());
        if self.file != Some(is) || meta.len() < self.offset {
            // Rewritten: it says what waits, and nothing more.
            (self.queue, self.offset, self.file) = (Queue::default(), 0, Some(is));
        }
        let mut bytes = vec![0; meta.len().saturating_sub(self.offset) as usize];
        file.read_exact_at(&mut bytes, self.offset)?;
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        for line in ledger(&bytes[..end]) {
            self.queue.apply(&line);
        }
        self.offset += end as u64;
        Ok(())
    }
}

fn ledger(bytes: &[u8]) -> impl Iterator<Item = QueueLine> {
    bytes.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok())
}

/// For each session that notices in this folder's log are about: the newest of its lines that a notice has shown.
pub fn shown(dir: &Path) -> io::Result<HashMap<SessionId, u64>> {
    let mut seen = HashSet::new();
    match minder_proto::whole::read(&dir.join("queue.jsonl")) {
        Ok(bytes) => seen.extend(ledger(&bytes).filter(|l| was_read(l.r)).map(|l| l.id)),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mut notices = BTreeMap::new();
    let read = timeline::read_after(dir, None, |item| {
        if let Line::Event(event) = item.line {
            match event.body {
                Body::Message(message) => {
                    if let Some(about) = message.about {
                        notices.insert(message.id, (about.session, about.seq));
                    }
                }
                // The ledger forgets what is settled; the log does not.
                Body::Receipt { id, receipt, .. } if was_read(receipt) => {
                    seen.insert(id);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    });
    match read {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(e) => return Err(e),
    }
    let mut newest = HashMap::new();
    for (id, (session, seq)) in notices {
        if seen.contains(&id) {
            let line = newest.entry(session).or_insert(0);
            *line = seq.max(*line);
        }
    }
    Ok(newest)
}

fn was_read(receipt: Receipt) -> bool {
    matches!(receipt, Receipt::Seen | Receipt::Answered)
}
