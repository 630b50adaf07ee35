//! The store in memory: every open session's record, watchers and queue, and the indexes over them. Timelines are
//! not kept; their ends are read at first use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue::Queue;
use minder_proto::record::{Process, SessionRecord, Watcher};
use minder_proto::stamp::Stamp;
use minder_proto::timeline::Tail;
use serde_json::Value;

use super::hosts::Host;

/// One open session.
#[derive(Clone, Debug)]
pub struct Session {
    /// `session.json`.
    pub record: SessionRecord,
    /// `watchers.json`.
    pub watchers: Vec<Watcher>,
    /// What waits for it, and where its files end.
    pub inbox: Inbox,
}

/// A recipient's queue, and where its timeline and ledger end.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// What is not settled.
    pub queue: Queue,
    /// The timeline's end; read at first use.
    pub(super) tail: Option<Tail>,
    /// The ledger's length in bytes.
    pub(super) queue_len: u64,
}

/// What an idempotency key gave.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// When it was used.
    pub at: Stamp,
    /// Checksum of the request.
    pub sum: u32,
    /// Its result.
    pub result: Value,
}

/// Characters of an id.
const WHOLE_ID: usize = 36;

/// Everything.
#[derive(Debug, Default)]
pub struct State {
    pub(super) sessions: HashMap<SessionId, Arc<Session>>,
    pub(super) operator: Arc<Inbox>,
    pub(super) labels: HashMap<String, SessionId>,
    pub(super) bindings: HashMap<(String, String), SessionId>,
    /// Sessions by pid and start time of their process, in the order in which they were bound to it.
    pub(super) processes: BTreeMap<(i32, u64), Vec<SessionId>>,
    /// Processes that a closed session left running.
    pub(super) left: HashMap<(i32, u64), Process>,
    pub(super) keys: HashMap<String, Remembered>,
    pub(super) keys_len: u64,
    pub(super) closed_len: u64,
    pub(super) corrupt: HashMap<SessionId, String>,
    pub(super) hosts: BTreeMap<SessionId, Arc<Host>>,
    /// Hosts in the files whose session is closed.
    pub(super) left_hosts: BTreeSet<SessionId>,
    /// Hosts whose wake queue was there and cannot be read.
    pub(super) lost_queues: Vec<SessionId>,
    /// Where messages of this daemon's life went, so that a receipt is found without a search.
    pub(super) recent: HashMap<MessageId, Party>,
}

impl State {
    /// An open session.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).map(Arc::as_ref)
    }

    /// All open sessions, in no order.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> + Clone {
        self.sessions.values().map(Arc::as_ref)
    }

    /// The records of all open sessions, in no order.
    pub fn records(&self) -> impl Iterator<Item = &SessionRecord> + Clone {
        self.sessions.values().map(|s| &s.record)
    }

    /// A recipient's inbox.
    pub fn inbox(&self, party: Party) -> Option<&Inbox> {
        match party {
            Party::Session(id) => self.session(id).map(|s| &s.inbox),
            Party::Operator => Some(&self.operator),
            Party::Minder => None,
        }
    }

    /// The open session with a label.
    pub fn by_label(&self, label: &str) -> Option<SessionId> {
        self.labels.get(label).copied()
    }

    /// The open session that a harness's conversation is bound to.
    pub fn by_binding(&self, harness: &str, harness_id: &str) -> Option<SessionId> {
        self.bindings.get(&(harness.to_owned(), harness_id.to_owned())).copied()
    }

    /// The open sessions that are bound to exactly this process. A harness may hold several conversations.
    pub fn by_process(&self, process: &Process) -> impl Iterator<Item = &Session> {
        let ids = self.processes.get(&(process.pid, process.start)).map_or(&[][..], Vec::as_slice);
        let bound = ids.iter().filter_map(|id| self.session(*id));
        bound.filter(|s| s.record.process.as_ref().is_some_and(|p| p.is(process)))
    }

    /// True for a process whose session was closed while it ran.
    pub fn is_left(&self, process: &Process) -> bool {
        self.left.get(&(process.pid, process.start)).is_some_and(|left| left.is(process))
    }

    /// The open sessions that are or were bound to a process with this pid.
    pub fn by_pid(&self, pid: i32) -> impl Iterator<Item = &Session> {
        let ids = self.processes.range((pid, 0)..=(pid, u64::MAX)).flat_map(|(_, ids)| ids);
        ids.filter_map(|id| self.session(*id))
    }

    /// What a key gave, if it was used in the last 24 hours.
    pub fn remembered(&self, key: &str) -> Option<&Remembered> {
        self.keys.get(key)
    }

    /// Primaries whose wake queue was there at this start and could not be read.
    pub fn lost_queues(&self) -> &[SessionId] {
        &self.lost_queues
    }

    /// Why a session's files cannot be read, if so.
    pub fn corrupt(&self, id: SessionId) -> Option<&str> {
        self.corrupt.get(&id).map(String::as_str)
    }

    /// All sessions whose files cannot be read.
    pub fn all_corrupt(&self) -> impl Iterator<Item = (&SessionId, &String)> {
        self.corrupt.iter()
    }

    /// The recipients whose queue or recent past holds a message whose id ends so, with the message's id.
    pub fn find_message(&self, end: &str) -> Vec<(Party, MessageId)> {
        // A program says all of it, and is not to wait until every message was looked at.
        if let Some(id) = end.parse().ok().filter(|_| end.len() == WHOLE_ID) {
            return self.whereabouts(id).map(|party| (party, id)).into_iter().collect();
        }
        let mut found: Vec<(Party, MessageId)> = self
            .sessions
            .iter()
            .map(|(id, s)| (Party::Session(*id), &s.inbox.queue))
            .chain([(Party::Operator, &self.operator.queue)])
            .flat_map(|(party, queue)| queue.iter().map(move |e| (party, e.id)))
            .chain(self.recent.iter().map(|(id, party)| (*party, *id)))
            .filter(|(_, id)| id.ends_with(end))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The recipient of a message that waits, or went somewhere lately.
    fn whereabouts(&self, id: MessageId) -> Option<Party> {
        let waits = |(party, inbox): (Party, &Inbox)| inbox.queue.get(id).map(|_| party);
        self.recent.get(&id).copied().or_else(|| {
            let mut all = self.sessions.iter().map(|(id, s)| (Party::Session(*id), &s.inbox));
            all.find_map(waits).or_else(|| waits((Party::Operator, &self.operator)))
        })
    }
}
