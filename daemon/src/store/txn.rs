//! One mutation under way: reads the state as it is, changes it, and turns the changes into the operations of one
//! commit. If it is refused, or its group cannot be flushed, every change is taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minder_proto::config::Config;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Body, Event, Message, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{
    Brief, ClosedLine, KeyLine, Process, QueueLine, RunningTurn, SessionRecord, Watcher,
};
use minder_proto::stamp::Stamp;
use minder_proto::timeline::{self, Tail};
use minder_proto::trial;
use serde_json::Value;

use super::files::{Files, Found};
use super::hosts::Drafts;
use super::op::Op;
use super::sizes;
use super::state::{Inbox, Remembered, Session, State};
use super::undo::{Undo, roll_back};

/// Messages whose recipient is remembered.
const RECENT: usize = 20_000;

/// A line that this mutation appends.
#[derive(Clone, Debug)]
pub struct Appended {
    /// Whose timeline.
    pub party: Party,
    /// The line.
    pub event: Event,
    /// The turn that ran in the session when a state line was appended: the rest of the mutation may end it.
    pub turn: Option<RunningTurn>,
}

/// Adds to somebody else's commit: pure functions from a change and the state to more changes, so that what
/// belongs together becomes durable together.
pub trait Contributor: Send {
    /// Called once for each line that a mutation appended (not for lines that contributors added).
    fn contribute(&self, txn: &mut Txn<'_>, line: &Appended);
}

#[derive(Default)]
struct Pending {
    seal: Option<u64>,
    segment: u64,
    offset: u64,
    bytes: Vec<u8>,
    queue_offset: u64,
    queue_bytes: Vec<u8>,
}

/// A mutation under way.
pub struct Txn<'a> {
    pub(super) state: &'a mut State,
    pub(super) files: &'a mut Files,
    config: &'a Config,
    now: Stamp,
    pub(super) undo: Vec<Undo>,
    pending: BTreeMap<Party, Pending>,
    dirty_records: BTreeSet<SessionId>,
    dirty_watchers: BTreeSet<SessionId>,
    pointers: BTreeMap<String, Option<SessionId>>,
    keys: Vec<u8>,
    closed: Vec<u8>,
    retired: Vec<SessionId>,
    /// Files, and folders of the trash, that go.
    erased: Vec<String>,
    appended: Vec<Appended>,
    bound: Vec<(SessionId, Option<Process>)>,
    lost: Vec<SessionId>,
    /// How long the files of keys and of tombstones are, where this mutation appends to them.
    lists: [Option<u64>; 2],
    /// Hosts as they were before this mutation.
    pub(super) hosts: Drafts,
    actor: Option<SessionId>,
}

pub(super) struct Done {
    pub ops: Vec<Op>,
    pub undo: Vec<Undo>,
    pub appended: Vec<Appended>,
    pub bound: Vec<(SessionId, Option<Process>)>,
    pub lost: Vec<SessionId>,
    pub parties: BTreeSet<Party>,
}

impl<'a> Txn<'a> {
    pub(super) fn new(state: &'a mut State, files: &'a mut Files, config: &'a Config, now: Stamp) -> Self {
        Self {
            state,
            files,
            config,
            now,
            undo: Vec::new(),
            pending: BTreeMap::new(),
            dirty_records: BTreeSet::new(),
            dirty_watchers: BTreeSet::new(),
            pointers: BTreeMap::new(),
            keys: Vec::new(),
            closed: Vec::new(),
            retired: Vec::new(),
            erased: Vec::new(),
            appended: Vec::new(),
            bound: Vec::new(),
            lost: Vec::new(),
            lists: [None; 2],
            hosts: Drafts::default(),
            actor: None,
        }
    }

    /// The time of this commit.
    pub fn now(&self) -> Stamp {
        self.now
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        self.config
    }

    /// Says which session brings this mutation about.
    pub fn acts(&mut self, actor: Option<SessionId>) {
        self.actor = actor;
    }

    /// The session that brings this mutation about, where one was named.
    pub fn actor(&self) -> Option<SessionId> {
        self.actor
    }

    /// The state as this mutation sees it.
    pub fn state(&self) -> &State {
        self.state
    }

    /// An open session, or why there is none.
    pub fn session(&self, id: SessionId) -> Result<&Session, Fault> {
        if let Some(why) = self.state.corrupt(id) {
            return Err(Fault::new(
                Kind::InvalidState,
                format!("session {} cannot be read: {why}", id.short()),
            ));
        }
        self.state
            .session(id)
            .ok_or_else(|| Fault::new(Kind::Gone, format!("session {} is gone", id.short())).about(id))
    }

    /// A recipient's inbox, or why there is none.
    pub fn inbox(&self, party: Party) -> Result<&Inbox, Fault> {
        match party {
            Party::Session(id) => Ok(&self.session(id)?.inbox),
            Party::Operator => Ok(&self.state.operator),
            Party::Minder => Err(Fault::new(Kind::InvalidParams, "minder itself receives nothing")),
        }
    }

    /// Registers a session: its record and its `created` line.
    pub fn create(&mut self, record: SessionRecord) -> Result<u64, Fault> {
        let id = record.id;
        if self.state.by_label(&record.label).is_some() {
            return Err(Fault::new(Kind::Conflict, format!("label {:?} is taken", record.label)));
        }
        let created = Body::Created {
            label: record.label.clone(),
            title: record.title.clone(),
            harness: record.harness.clone(),
            parent: record.parent,
            state: record.state,
        };
        let inbox =
            Inbox { tail: Some(Tail { seq: 0, segment: 1, len: 0, torn: false }), ..Inbox::default() };
        self.set_label(record.label.clone(), Some(id));
        for binding in record.bindings.iter().filter(|b| b.until.is_none()) {
            self.set_binding((binding.harness.clone(), binding.id.clone()), Some(id));
        }
        if record.process.is_some() {
            self.bind_process(id, None, record.process.as_ref());
        }
        let bindings = record.bindings.clone();
        self.undo.push(Undo::Session(id, None));
        self.state.sessions.insert(id, Arc::new(Session { record, watchers: Vec::new(), inbox }));
        self.dirty_records.insert(id);
        let mut seq = self.append(Party::Session(id), created)?;
        for binding in bindings {
            seq = self.append(
                Party::Session(id),
                Body::Binding { harness: binding.harness, harness_id: binding.id, why: binding.why },
            )?;
        }
        Ok(seq)
    }

    /// Changes a record. The indexes and one-line files of its label and bindings follow.
    pub fn edit<T>(
        &mut self,
        id: SessionId,
        change: impl FnOnce(&mut SessionRecord) -> T,
    ) -> Result<T, Fault> {
        let before = self.session(id)?.record.clone();
        let result = change(&mut self.session_mut(id)?.record);
        let after = self.session(id)?.record.clone();
        if after == before {
            return Ok(result);
        }
        // A folder that a foreign hand took away must not come back with a record in it and nothing else.
        self.touch(Party::Session(id))?;
        self.dirty_records.insert(id);
        if after.label != before.label {
            self.set_label(before.label.clone(), None);
            self.set_label(after.label.clone(), Some(id));
        }
        let live = |r: &SessionRecord| -> BTreeSet<(String, String)> {
            r.bindings
                .iter()
                .filter(|b| b.until.is_none())
                .map(|b| (b.harness.clone(), b.id.clone()))
                .collect()
        };
        let (old, new) = (live(&before), live(&after));
        for key in old.difference(&new) {
            self.unbind(key.clone(), id);
        }
        for key in new.difference(&old) {
            self.set_binding(key.clone(), Some(id));
        }
        if after.process != before.process {
            self.bind_process(id, before.process.as_ref(), after.process.as_ref());
        }
        Ok(result)
    }

    /// Replaces who watches a session.
    pub fn set_watchers(&mut self, id: SessionId, watchers: Vec<Watcher>) -> Result<(), Fault> {
        if self.session(id)?.watchers != watchers {
            self.touch(Party::Session(id))?;
            self.session_mut(id)?.watchers = watchers;
            self.dirty_watchers.insert(id);
        }
        Ok(())
    }

    /// Appends a line to a timeline and gives its `seq`.
    pub fn append(&mut self, party: Party, body: Body) -> Result<u64, Fault> {
        self.touch(party)?;
        let at = self.now;
        let tail = self.tail_mut(party);
        tail.seq += 1;
        let event = Event { seq: tail.seq, at, body };
        let mut line = serde_json::to_vec(&event).expect("an event is plain data");
        line.push(b'\n');
        tail.len += line.len() as u64;
        let seq = event.seq;
        self.pending.get_mut(&party).expect("touched above").bytes.extend_from_slice(&line);
        let state = matches!(event.body, Body::State(_));
        let id = party.session().filter(|_| state);
        let turn = id.and_then(|id| self.state.session(id)?.record.turn.clone());
        self.appended.push(Appended { party, event, turn });
        Ok(seq)
    }

    /// Accepts a message: its line in the recipient's timeline, its queue entry, the receipt `queued`.
    /// The message's `id` is given here, so that ids are in the order of acceptance.
    pub fn post(&mut self, to: Party, mut message: Message) -> Result<(MessageId, u64), Fault> {
        let most = self.config.queue.max_messages;
        let queue = match to {
            Party::Session(id) => &self.session(id)?.inbox.queue,
            _ => &self.state.operator.queue,
        };
        // Notices are not refused: a supervisor that is behind must still get every move.
        if message.about.is_none() && message.from != Party::Minder && queue.is_full(most) {
            return Err(Fault::new(Kind::Full, format!("the queue is full: {most} messages wait"))
                .hint("minder queue shows why they wait"));
        }
        let id = MessageId::now();
        message.id = id;
        self.touch(to)?;
        let tail = *self.tail_mut(to);
        let brief = Brief {
            class: message.class,
            from: message.from,
            about: message.about.as_ref().filter(|a| a.notice.is_watch()).map(|a| a.session),
            segment: tail.segment,
            offset: tail.len,
            expires: message.expires,
            hops: message.hops,
        };
        let seq = self.append(to, Body::Message(Box::new(message)))?;
        if self.state.recent.len() >= RECENT {
            // Forgets the older half at once; what is not settled is found in its queue anyway.
            let mut ids: Vec<MessageId> = self.state.recent.keys().copied().collect();
            ids.sort_unstable();
            let middle = ids[ids.len() / 2];
            self.state.recent.retain(|id, _| *id > middle);
        }
        self.state.recent.insert(id, to);
        self.undo.push(Undo::Recent(id));
        self.ledger(
            to,
            QueueLine {
                at: self.now,
                id,
                seq,
                r: Receipt::Queued,
                reason: None,
                attempt: 0,
                channel: None,
                brief: Some(brief),
            },
        )?;
        Ok((id, seq))
    }

    /// Writes how far a message got: a ledger line, and a timeline line where a reader of the history needs it.
    pub fn receipt(
        &mut self,
        party: Party,
        id: MessageId,
        receipt: Receipt,
        reason: Option<String>,
        attempt: u32,
        channel: Option<&str>,
    ) -> Result<(), Fault> {
        let entry = self.state.inbox(party).and_then(|i| i.queue.get(id));
        let seq = match entry {
            Some(entry) => entry.seq,
            None => {
                return Err(Fault::new(Kind::Gone, format!("message {} is not in the queue", id.short())));
            }
        };
        if receipt.is_settled() {
            self.append(party, Body::Receipt { id, receipt, reason: reason.clone() })?;
        }
        let line = QueueLine {
            at: self.now,
            id,
            seq,
            r: receipt,
            reason,
            attempt,
            channel: channel.map(str::to_owned),
            brief: None,
        };
        self.ledger(party, line)
    }

    /// Records that a settled message was answered, with where the answer is.
    pub fn answered(&mut self, party: Party, id: MessageId, seq: u64, reason: String) -> Result<(), Fault> {
        self.late((party, id, seq), Receipt::Answered, reason)
    }

    /// Records that a message which was seen will have no answer, whose sender waited for one.
    pub fn returned(&mut self, party: Party, id: MessageId, seq: u64, reason: &str) -> Result<(), Fault> {
        self.late((party, id, seq), Receipt::Returned, reason.to_owned())
    }

    fn late(&mut self, of: (Party, MessageId, u64), r: Receipt, why: String) -> Result<(), Fault> {
        let (party, id, seq) = of;
        let (at, reason) = (self.now, Some(why));
        self.append(party, Body::Receipt { id, receipt: r, reason: reason.clone() })?;
        self.ledger(party, QueueLine { at, id, seq, r, reason, attempt: 0, channel: None, brief: None })
    }

    /// Remembers what an idempotency key gave.
    pub fn remember(&mut self, key: String, sum: u32, result: Value) {
        let line = KeyLine { key, at: self.now, sum, result };
        let mut bytes = serde_json::to_vec(&line).expect("a key line is plain data");
        bytes.push(b'\n');
        if !trial::fault("key-left-out") {
            self.keys.extend_from_slice(&bytes);
        }
        let new = Remembered { at: line.at, sum: line.sum, result: line.result };
        let old = self.state.keys.insert(line.key.clone(), new);
        self.undo.push(Undo::Key(line.key, old));
    }

    /// The last line, the tombstone, the end of the indexes, and the folder to the trash.
    pub fn close(&mut self, line: ClosedLine) -> Result<u64, Fault> {
        let id = line.id;
        let session = self.session(id)?;
        let (label, bindings) = (session.record.label.clone(), session.record.bindings.clone());
        let process = session.record.process.clone();
        let seq = self.append(Party::Session(id), Body::Closed { note: line.note.clone(), by: line.by })?;
        self.set_label(label, None);
        for b in bindings.into_iter().filter(|b| b.until.is_none()) {
            self.unbind((b.harness, b.id), id);
        }
        if process.is_some() {
            self.bind_process(id, process.as_ref(), None);
        }
        if let Some(left) = &line.process {
            // Not taken back if this fails: the session is then found before this is asked.
            self.state.left.insert((left.pid, left.start), left.clone());
        }
        let mut bytes = serde_json::to_vec(&line).expect("a tombstone is plain data");
        bytes.push(b'\n');
        self.closed.extend_from_slice(&bytes);
        self.leave_host(id);
        self.retired.push(id);
        Ok(seq)
    }

    /// Takes the folder of a closed session out of the trash for good.
    pub fn erase(&mut self, id: SessionId) -> Result<(), Fault> {
        if self.state.session(id).is_some() {
            return Err(Fault::new(Kind::InvalidState, format!("session {} is open", id.short())));
        }
        self.erased.push(format!("trash/{id}"));
        self.erased.extend(self.state.left_hosts.remove(&id).then(|| format!("hosts/{id}")));
        Ok(())
    }

    /// Drops sealed segments of a timeline, by their first lines.
    pub fn drop_segments(&mut self, id: SessionId, firsts: &[u64]) -> Result<(), Fault> {
        self.touch(Party::Session(id))?;
        let names = firsts.iter().map(|first| timeline::sealed_name(*first));
        self.erased.extend(names.map(|name| format!("sessions/{id}/{name}")));
        Ok(())
    }

    /// True if nothing was changed so far.
    pub fn is_unchanged(&self) -> bool {
        self.undo.is_empty()
    }

    /// The lines appended so far.
    pub fn appended(&self) -> &[Appended] {
        &self.appended
    }

    fn ledger(&mut self, party: Party, line: QueueLine) -> Result<(), Fault> {
        self.touch(party)?;
        let mut bytes = serde_json::to_vec(&line).expect("a ledger line is plain data");
        bytes.push(b'\n');
        self.pending.get_mut(&party).expect("touched above").queue_bytes.extend_from_slice(&bytes);
        let inbox = self.inbox_mut(party);
        inbox.queue.apply(&line);
        inbox.queue_len += bytes.len() as u64;
        Ok(())
    }

    fn session_mut(&mut self, id: SessionId) -> Result<&mut Session, Fault> {
        self.session(id)?;
        let slot = self.state.sessions.get_mut(&id).expect("checked above");
        self.undo.push(Undo::Session(id, Some(Arc::clone(slot))));
        Ok(Arc::make_mut(slot))
    }

    fn inbox_mut(&mut self, party: Party) -> &mut Inbox {
        match party {
            Party::Session(id) => {
                let slot = self.state.sessions.get_mut(&id).expect("touched parties are open");
                &mut Arc::make_mut(slot).inbox
            }
            Party::Operator | Party::Minder => Arc::make_mut(&mut self.state.operator),
        }
    }

    fn tail_mut(&mut self, party: Party) -> &mut Tail {
        self.inbox_mut(party).tail.as_mut().expect("a touched party's tail is known")
    }

    fn set_label(&mut self, label: String, to: Option<SessionId>) {
        let old = match to {
            Some(id) => self.state.labels.insert(label.clone(), id),
            None => self.state.labels.remove(&label),
        };
        self.pointers.insert(format!("labels/{}", minder_proto::layout::file_name(&label)), to);
        self.undo.push(Undo::Label(label, old));
    }

    /// Ends a binding, unless another session has taken the conversation over in the meantime.
    fn unbind(&mut self, key: (String, String), id: SessionId) {
        if self.state.bindings.get(&key) == Some(&id) {
            self.set_binding(key, None);
        }
    }

    fn set_binding(&mut self, key: (String, String), to: Option<SessionId>) {
        let old = match to {
            Some(id) => self.state.bindings.insert(key.clone(), id),
            None => self.state.bindings.remove(&key),
        };
        let (harness, id) = &key;
        let file = |t| minder_proto::layout::file_name(t);
        self.pointers.insert(format!("bindings/{}/{}", file(harness), file(id)), to);
        self.undo.push(Undo::Binding(key, old));
    }

    /// Moves a session in the index of processes, and notes it for the observers.
    fn bind_process(&mut self, id: SessionId, old: Option<&Process>, new: Option<&Process>) {
        let key = |p: &Process| (p.pid, p.start);
        if old.map(key) != new.map(key) {
            if let Some(key) = old.map(key) {
                self.index_process(key, |ids| ids.retain(|other| *other != id));
            }
            if let Some(key) = new.map(key) {
                self.index_process(key, |ids| ids.push(id));
            }
        }
        self.bound.push((id, new.cloned()));
    }

    fn index_process(&mut self, key: (i32, u64), change: impl FnOnce(&mut Vec<SessionId>)) {
        let ids = self.state.processes.entry(key).or_default();
        self.undo.push(Undo::Process(key, ids.clone()));
        change(ids);
        if ids.is_empty() {
            self.state.processes.remove(&key);
        }
    }

    /// Makes sure, once a mutation, that a recipient's files are what the store thinks they are. A foreign hand
    /// may have cut or lengthened them, or taken the folder away.
    fn touch(&mut self, party: Party) -> Result<(), Fault> {
        if self.pending.contains_key(&party) {
            return Ok(());
        }
        let dir = match party {
            Party::Session(id) => {
                let session = Arc::clone(&self.state.sessions[&self.session(id)?.record.id]);
                self.undo.push(Undo::Session(id, Some(session)));
                format!("sessions/{id}")
            }
            Party::Operator | Party::Minder => {
                self.undo.push(Undo::Operator(Arc::clone(&self.state.operator)));
                "operator".to_owned()
            }
        };
        let (file, ledger) = (format!("{dir}/{}", timeline::ACTIVE), format!("{dir}/queue.jsonl"));
        let io = |e: super::disk::DiskError| Fault::new(Kind::ReadOnly, e.to_string());
        let mut pending = Pending::default();
        let known = self.inbox_mut(party).tail;
        let fresh = known.is_some_and(|t| t.seq == 0 && t.len == 0);
        if !fresh {
            let found = self.files.look(&file).map_err(io)?;
            let Some(len) = (match found {
                Found::Len(len) => Some(len),
                Found::Absent => Some(0),
                Found::NoFolder if party == Party::Operator => Some(0),
                Found::NoFolder => None,
            }) else {
                if let Party::Session(id) = party {
                    self.lost.push(id);
                    return Err(Fault::new(
                        Kind::Gone,
                        format!("the folder of session {} is gone", id.short()),
                    )
                    .about(id));
                }
                return Err(Fault::new(Kind::InvalidState, "the person's timeline is gone"));
            };
            if known.is_none_or(|tail| tail.len != len) {
                self.files.settle(&file).map_err(io)?;
            }
            let tail = match known {
                Some(tail) if tail.len == len => tail,
                _ => self.reread(&file, known)?,
            };
            self.inbox_mut(party).tail = Some(tail);
        }
        let tail = *self.tail_mut(party);
        if tail.len >= sizes::timeline_segment() && !tail.torn {
            pending.seal = Some(tail.segment);
            *self.tail_mut(party) = Tail { segment: tail.seq + 1, len: 0, ..tail };
        }
        let tail = *self.tail_mut(party);
        (pending.segment, pending.offset) = (tail.segment, tail.len);
        let queue_len = match self.files.look(&ledger).map_err(io)? {
            Found::Len(len) => len,
            Found::Absent | Found::NoFolder => 0,
        };
        if known.is_none() || queue_len != self.inbox_mut(party).queue_len {
            self.files.settle(&ledger).map_err(io)?;
        }
        // A foreign hand's half line must not swallow ours.
        if queue_len != self.inbox_mut(party).queue_len && queue_len > 0 {
            pending.queue_bytes.push(b'\n');
        }
        pending.queue_offset = queue_len;
        self.inbox_mut(party).queue_len = queue_len + pending.queue_bytes.len() as u64;
        let repaired = tail.torn || known.is_some_and(|k| k.len != tail.len && pending.seal.is_none());
        self.pending.insert(party, pending);
        if repaired {
            self.close_torn_tail(party, tail.torn)?;
        }
        Ok(())
    }

    /// Reads a timeline's end anew. Numbers that were given are not given again.
    fn reread(&mut self, file: &str, known: Option<Tail>) -> Result<Tail, Fault> {
        let path = self.files.path(file);
        let dir = path.parent().expect("a timeline lies in a folder");
        let mut tail = match timeline::tail(dir) {
            Ok(tail) => tail,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Tail { seq: 0, segment: 1, len: 0, torn: false }
            }
            Err(e) => return Err(Fault::new(Kind::ReadOnly, format!("{}: {e}", path.display()))),
        };
        let recorded = dir
            .file_name()
            .and_then(|n| n.to_str())
            .and_then(|n| n.parse().ok())
            .and_then(|id| self.state.session(id))
            .map_or(0, |s| s.record.last_seq);
        let least = known.map_or(recorded, |k| k.seq.max(recorded));
        if tail.seq < least {
            // Whole lines are gone: the reader is told by the same note as of half a line.
            tail.torn = true;
            tail.seq = least;
        }
        if tail.len == 0 {
            tail.segment = tail.seq + 1;
        }
        Ok(tail)
    }

    fn close_torn_tail(&mut self, party: Party, torn: bool) -> Result<(), Fault> {
        let tail = *self.tail_mut(party);
        if tail.len > 0 {
            self.pending.get_mut(&party).expect("inserted by the caller").bytes.push(b'\n');
            let tail = self.tail_mut(party);
            tail.len += 1;
            tail.torn = false;
        }
        self.tail_mut(party).torn = false;
        let (what, text) = if torn {
            ("torn", "a line before this one was damaged from outside")
        } else {
            ("repaired", "this file was changed from outside")
        };
        self.append(party, Body::Note { what: what.to_owned(), text: text.to_owned() }).map(|_| ())
    }

    /// Looks how long the lists are that this mutation appends to: a foreign hand may have cut or lengthened them.
    pub(super) fn measure(&mut self) -> Result<(), Fault> {
        let used = [
            ("keys.jsonl", !self.keys.is_empty(), self.state.keys_len),
            ("closed.jsonl", !self.closed.is_empty(), self.state.closed_len),
        ];
        for (slot, (file, used, known)) in self.lists.iter_mut().zip(used) {
            if used {
                let found = self.files.look(file).map_err(|e| Fault::new(Kind::ReadOnly, e.to_string()))?;
                let len = if let Found::Len(len) = found { len } else { 0 };
                if len != known {
                    self.files.settle(file).map_err(|e| Fault::new(Kind::ReadOnly, e.to_string()))?;
                }
                *slot = Some(len);
            }
        }
        Ok(())
    }

    /// Everything done so far is taken back.
    pub(super) fn roll_back(self) -> Vec<SessionId> {
        let Self { state, undo, lost, .. } = self;
        roll_back(state, undo);
        lost
    }

    /// The operations of this commit, in the order in which a reader may see them.
    pub(super) fn finish(self) -> Done {
        let Self {
            state,
            mut undo,
            pending,
            dirty_records,
            dirty_watchers,
            pointers,
            keys,
            closed,
            retired,
            erased,
            appended,
            bound,
            lost,
            lists,
            hosts,
            ..
        } = self;
        let mut ops = Vec::new();
        let mut parties: BTreeSet<Party> = pending.keys().copied().collect();
        parties.extend(
            dirty_records.iter().chain(&dirty_watchers).chain(&retired).map(|id| Party::Session(*id)),
        );
        let dir_of = |party: Party| match party {
            Party::Session(id) => format!("sessions/{id}"),
            Party::Operator | Party::Minder => "operator".to_owned(),
        };
        for (party, p) in &pending {
            if let Some(first) = p.seal {
                ops.push(Op::Seal { dir: dir_of(*party), first });
            }
        }
        for id in dirty_records {
            let Some(slot) = state.sessions.get_mut(&id) else { continue };
            let session = Arc::make_mut(slot);
            session.record.last_seq = session.inbox.tail.map_or(session.record.last_seq, |t| t.seq);
            let mut bytes = serde_json::to_vec_pretty(&session.record).expect("a record is plain data");
            bytes.push(b'\n');
            ops.push(Op::Replace { file: format!("sessions/{id}/session.json"), bytes });
        }
        for id in dirty_watchers {
            let Some(session) = state.session(id) else { continue };
            let file = format!("sessions/{id}/watchers.json");
            if session.watchers.is_empty() {
                ops.push(Op::Remove { file });
            } else {
                let mut bytes =
                    serde_json::to_vec_pretty(&session.watchers).expect("watchers are plain data");
                bytes.push(b'\n');
                ops.push(Op::Replace { file, bytes });
            }
        }
        for (party, p) in pending {
            let dir = dir_of(party);
            if !p.bytes.is_empty() {
                let file = format!("{dir}/{}", timeline::ACTIVE);
                ops.push(Op::Append { file, segment: p.segment, offset: p.offset, bytes: p.bytes });
            }
            if !p.queue_bytes.is_empty() {
                let file = format!("{dir}/queue.jsonl");
                ops.push(Op::Append { file, segment: 0, offset: p.queue_offset, bytes: p.queue_bytes });
            }
        }
        for (file, to) in pointers {
            ops.push(match to {
                Some(id) => Op::Replace { file, bytes: format!("{id}\n").into_bytes() },
                None => Op::Remove { file },
            });
        }
        undo.push(Undo::Lengths { keys: state.keys_len, closed: state.closed_len });
        let [keys_at, closed_at] = lists;
        for (file, bytes, found, len) in [
            ("keys.jsonl", keys, keys_at, &mut state.keys_len),
            ("closed.jsonl", closed, closed_at, &mut state.closed_len),
        ] {
            if !bytes.is_empty() {
                let (offset, bytes) = after(found.unwrap_or(*len), *len, bytes);
                *len = offset + bytes.len() as u64;
                ops.push(Op::Append { file: file.to_owned(), segment: 0, offset, bytes });
            }
        }
        parties.extend(hosts.parties());
        hosts.finish(state, &mut ops);
        ops.extend(erased.into_iter().map(|file| Op::Remove { file }));
        for id in retired {
            ops.push(Op::Retire { session: id });
            if let Some(session) = state.sessions.remove(&id) {
                undo.push(Undo::Session(id, Some(session)));
            }
        }
        Done { ops, undo, appended, bound, lost, parties }
    }
}

/// Where lines go in a list of this length, and the lines: on a fresh one, where a foreign hand may have left half a line.
pub(super) fn after(found: u64, known: u64, mut lines: Vec<u8>) -> (u64, Vec<u8>) {
    if found != known && found > 0 {
        lines.insert(0, b'\n');
    }
    (found, lines)
}
