//! The hosts of primaries in memory, and the part of a commit that is theirs: each file of a host is rewritten where it
//! changed, its ledger is appended to. What a host decides is decided in `host`; here is what it keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use minder_proto::error::{Fault, Kind};
use minder_proto::host::bounds::{LEDGER_KEEP, LEDGER_MAX};
use minder_proto::host::episode::Episode;
use minder_proto::host::ledger::{Event, Line};
use minder_proto::host::record::HostRecord;
use minder_proto::host::row::{self, Queue};
use minder_proto::host::upkeep::Producers;
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::whole;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::disk::{DiskError, at};
use super::files::Found;
use super::op::Op;
use super::recover::quarantine_file;
use super::state::State;
use super::txn::Txn;
use super::undo::Undo;

/// The host of one primary, as its files have it. Cloned in a mutation: each file is shared until it is changed.
#[derive(Clone, Debug)]
pub struct Host {
    /// `host.json`.
    pub record: Arc<HostRecord>,
    /// `queue.json`.
    pub queue: Arc<Queue>,
    /// `episode.json`.
    pub episode: Arc<Episode>,
    /// `producers.json`.
    pub producers: Arc<Producers>,
    ledger: Arc<Ledger>,
}

impl Host {
    /// `host.json`, to be changed.
    pub fn record_mut(&mut self) -> &mut HostRecord {
        Arc::make_mut(&mut self.record)
    }

    /// `queue.json` and the numbers of its rows, to be changed.
    pub fn queue_mut(&mut self) -> (&mut Queue, &mut u64) {
        (Arc::make_mut(&mut self.queue), &mut Arc::make_mut(&mut self.record).next.row)
    }

    /// `queue.json` and `episode.json`, to be changed together.
    pub fn desk_mut(&mut self) -> (&mut Queue, &mut Episode) {
        (Arc::make_mut(&mut self.queue), Arc::make_mut(&mut self.episode))
    }

    /// `producers.json`, to be changed.
    pub fn producers_mut(&mut self) -> &mut Producers {
        Arc::make_mut(&mut self.producers)
    }

    /// `episode.json`, to be changed.
    pub fn episode_mut(&mut self) -> &mut Episode {
        Arc::make_mut(&mut self.episode)
    }
}

/// `log.jsonl`: its lines, how long it is, and how often its beginning was dropped.
#[derive(Clone, Debug, Default)]
struct Ledger {
    lines: Vec<Arc<str>>,
    len: u64,
    dropped: u64,
}

/// Hosts that a mutation changed, as they were before it; none of one that it made.
#[derive(Default)]
pub(super) struct Drafts {
    before: BTreeMap<SessionId, Option<Arc<Host>>>,
    /// Where the ledgers end that are appended to, as the file system says, and whether a foreign hand was there.
    ends: BTreeMap<SessionId, (u64, bool)>,
}

impl Drafts {
    /// Whose hosts were changed.
    pub fn parties(&self) -> impl Iterator<Item = Party> {
        self.before.keys().map(|id| Party::Session(*id))
    }

    /// What is to be written.
    pub fn finish(self, state: &State, ops: &mut Vec<Op>) {
        for (id, before) in self.before {
            let Some(host) = state.hosts.get(&id) else { continue };
            let before = before.as_deref();
            let file = |name: &str| format!("hosts/{id}/{name}");
            changed(ops, file("host.json"), before.map(|b| &b.record), &host.record);
            changed(ops, file("queue.json"), before.map(|b| &b.queue), &host.queue);
            changed(ops, file("episode.json"), before.map(|b| &b.episode), &host.episode);
            changed(ops, file("producers.json"), before.map(|b| &b.producers), &host.producers);
            let (old, new) = (before.map(|b| &b.ledger), &host.ledger);
            let text = |lines: &[Arc<str>]| lines.concat().into_bytes();
            match old {
                Some(old) if old.dropped != new.dropped => {
                    ops.push(Op::Replace { file: file("log.jsonl"), bytes: text(&new.lines) });
                }
                old if old.map_or(0, |o| o.lines.len()) < new.lines.len() => {
                    let (offset, foreign) = self.ends.get(&id).copied().unwrap_or_default();
                    // Half a line of somebody else's does not swallow ours.
                    let mut bytes = if foreign { b"\n".to_vec() } else { Vec::new() };
                    bytes.extend(text(&new.lines[old.map_or(0, |o| o.lines.len())..]));
                    ops.push(Op::Append { file: file("log.jsonl"), segment: 0, offset, bytes });
                }
                _ => {}
            }
        }
    }
}

/// A file that was shared and still is, was not changed.
fn changed<T: Serialize + PartialEq>(ops: &mut Vec<Op>, file: String, old: Option<&Arc<T>>, new: &Arc<T>) {
    if old.is_some_and(|old| Arc::ptr_eq(old, new) || **old == **new) {
        return;
    }
    let mut bytes = serde_json::to_vec(&**new).expect("what a host keeps is plain data");
    bytes.push(b'\n');
    ops.push(Op::Replace { file, bytes });
}

impl State {
    /// The host of a primary, whether it is on or off.
    pub fn host(&self, id: SessionId) -> Option<&Host> {
        self.hosts.get(&id).map(Arc::as_ref)
    }

    /// The primaries of all hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (SessionId, &Host)> {
        self.hosts.iter().map(|(id, host)| (*id, host.as_ref()))
    }
}

impl Txn<'_> {
    /// Makes the host of a primary; one that is there stays as it is.
    pub fn make_host(&mut self, id: SessionId, record: HostRecord) -> Result<(), Fault> {
        self.session(id)?;
        if self.state.hosts.contains_key(&id) {
            return Ok(());
        }
        let host = Host {
            record: Arc::new(record),
            queue: Arc::default(),
            episode: Arc::default(),
            producers: Arc::default(),
            ledger: Arc::default(),
        };
        self.hosts.before.entry(id).or_insert(None);
        self.undo.push(Undo::Host(id, None));
        self.state.hosts.insert(id, Arc::new(host));
        Ok(())
    }

    /// Changes a host.
    pub fn edit_host<T>(&mut self, id: SessionId, change: impl FnOnce(&mut Host) -> T) -> Result<T, Fault> {
        let slot = self.state.hosts.get_mut(&id);
        let slot = slot.ok_or_else(|| Fault::new(Kind::NotFound, format!("{} has no host", id.short())))?;
        self.hosts.before.entry(id).or_insert_with(|| Some(Arc::clone(slot)));
        self.undo.push(Undo::Host(id, Some(Arc::clone(slot))));
        Ok(change(Arc::make_mut(slot)))
    }

    /// Adds a line to a host's ledger.
    pub fn note_host(&mut self, id: SessionId, event: Event) -> Result<(), Fault> {
        let mut line = serde_json::to_string(&Line { at: self.now(), event }).expect("a line is plain data");
        line.push('\n');
        let file = format!("hosts/{id}/log.jsonl");
        let io = |e: DiskError| Fault::new(Kind::ReadOnly, e.to_string());
        let mut found = None;
        if let (Some(host), false) = (self.state.hosts.get(&id), self.hosts.ends.contains_key(&id)) {
            let known = host.ledger.len;
            let end = if let Found::Len(len) = self.files.look(&file).map_err(io)? { len } else { 0 };
            let foreign = end != known && end > 0;
            if end != known {
                self.files.settle(&file).map_err(io)?;
            }
            self.hosts.ends.insert(id, (end, foreign));
            found = Some(end + u64::from(foreign));
        }
        self.edit_host(id, |host| {
            let ledger = Arc::make_mut(&mut host.ledger);
            ledger.len = found.unwrap_or(ledger.len) + line.len() as u64;
            ledger.lines.push(line.into());
            if ledger.lines.len() > LEDGER_MAX {
                ledger.lines.drain(..ledger.lines.len() - LEDGER_KEEP);
                ledger.len = ledger.lines.iter().map(|line| line.len() as u64).sum();
                ledger.dropped += 1;
            }
        })
    }

    /// Takes the host of a session that is closed out of what is served. Its files go with the session's trash.
    pub(super) fn leave_host(&mut self, id: SessionId) {
        if let Some(host) = self.state.hosts.remove(&id) {
            self.undo.push(Undo::Host(id, Some(host)));
            self.state.left_hosts.insert(id);
        }
    }
}

/// Reads every host; what cannot be read is set aside, and the host goes on in the safe direction.
pub(super) fn load(home: &Home, state: &mut State, notes: &mut Vec<String>) -> Result<(), DiskError> {
    let folder = home.hosts();
    let entries = match std::fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(at(&folder))?,
    };
    for entry in entries {
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse::<SessionId>().ok()) else {
            continue;
        };
        if state.session(id).is_none() {
            if state.corrupt(id).is_none() {
                state.left_hosts.insert(id);
            }
            continue;
        }
        let dir = entry.path();
        // Without its record a host is off; what else it keeps is there when it is on again.
        let record = read::<HostRecord>(home, &dir, "host.json", notes)?;
        let record = record.unwrap_or_else(|| HostRecord::new(None));
        let (queue, lost) = queue(home, &dir, notes)?;
        let episode = read::<Episode>(home, &dir, "episode.json", notes)?.unwrap_or_else(|| Episode {
            // A generation that was shown is not given again.
            generation: queue.rows.iter().map(|row| row.shown_gen).max().unwrap_or_default(),
            ..Episode::default()
        });
        let mut host = Host {
            record: Arc::new(record),
            queue: Arc::new(queue),
            episode: Arc::new(episode),
            producers: Arc::new(read::<Producers>(home, &dir, "producers.json", notes)?.unwrap_or_default()),
            ledger: Arc::new(ledger(&dir.join("log.jsonl"))?),
        };
        let least = host.queue.rows.iter().map(|row| row.seq + 1).max().unwrap_or(1);
        if host.record.next.row < least {
            host.record_mut().next.row = least;
        }
        if lost {
            state.lost_queues.push(id);
        }
        state.hosts.insert(id, Arc::new(host));
    }
    Ok(())
}

/// A file of a host; none where there is none, or it was set aside.
fn read<T: DeserializeOwned>(
    home: &Home,
    dir: &Path,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Option<T>, DiskError> {
    let Some(bytes) = bytes(home, dir, name, notes)? else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(e) => set_aside(home, dir, name, &e.to_string(), notes).map(|()| None),
    }
}

fn bytes(home: &Home, dir: &Path, name: &str, notes: &mut Vec<String>) -> Result<Option<Vec<u8>>, DiskError> {
    let file = dir.join(name);
    match whole::read(&file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            set_aside(home, dir, name, &e.to_string(), notes).map(|()| None)
        }
        Err(e) => Err(at(&file)(e)),
    }
}

fn set_aside(
    home: &Home,
    dir: &Path,
    name: &str,
    why: &str,
    notes: &mut Vec<String>,
) -> Result<(), DiskError> {
    let file = dir.join(name);
    let id = dir.file_name().unwrap_or_default().to_string_lossy();
    let why = format!("{}: {why}", file.display());
    quarantine_file(home.root(), &file, &format!("{id}.{name}"), &why)?;
    notes.push(format!("{why}; moved to quarantine/"));
    Ok(())
}

/// The queue, and whether one was lost. Rows that cannot be read stand among its broken ones.
fn queue(home: &Home, dir: &Path, notes: &mut Vec<String>) -> Result<(Queue, bool), DiskError> {
    let Some(bytes) = bytes(home, dir, "queue.json", notes)? else {
        return Ok((Queue::default(), !dir.join("queue.json").exists() && dir.join("log.jsonl").exists()));
    };
    match row::read(&bytes) {
        Ok(queue) => Ok((queue, false)),
        Err(e) => {
            set_aside(home, dir, "queue.json", &e.to_string(), notes)?;
            Ok((Queue::default(), true))
        }
    }
}

fn ledger(file: &Path) -> Result<Ledger, DiskError> {
    let mut ledger = Ledger::default();
    match whole::read(file) {
        Ok(bytes) => {
            ledger.len = bytes.len() as u64;
            // A line that cannot be read is passed over by whoever shows it.
            let torn = bytes.last().is_some_and(|last| *last != b'\n');
            // Half a line is a foreign hand's: what is known ends before it, and the next line begins anew.
            ledger.len -= u64::from(torn);
            let text = String::from_utf8_lossy(&bytes);
            ledger.lines = text.split_inclusive('\n').map(Arc::from).collect();
        }
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) => {}
        Err(e) => return Err(at(file)(e)),
    }
    Ok(ledger)
}
