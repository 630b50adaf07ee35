//! Delivery: from a queue to a receiver, and the evidence that it arrived. Store first, deliver second; waking
//! somebody is not delivery.
//!
//! `rules` decides (pure), `hand` turns queued messages into the text that a hook prints, `evidence` looks for their
//! ids where the harness writes what its model saw, `mailbox` and `exec` are channels, `waiters` are the hooks that
//! wait to wake an idle session, `headless` runs a queue as supervised turns, `codex` and `opencode` speak with servers
//! that hold the conversation, over what they have in common in `served`, `tmux` types into a terminal, `answers`
//! serves those who wait for a reply, `replaced` tells them that there will be none, `scheduler` is the loop over all of it.
//!
//! Uses: `store`, `session`, `identity`, `turn`. Used by: `hook`, `server`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use minder_proto::event::{Body, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{Channel, SessionRecord};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::store::{Appended, Observer, Store};
use crate::turn::Turns;

pub mod answers;
mod codex;
pub mod evidence;
mod exec;
pub mod hand;
pub mod headless;
pub mod mailbox;
mod opencode;
mod replaced;
pub mod rules;
mod scheduler;
mod served;
pub mod tmux;
pub mod waiters;

/// How messages get into a session from its first hook on. What is typed to stays so where its harness has neither a hook that wakes
/// it nor a server.
pub fn way_of_hooks(record: &SessionRecord) -> Channel {
    let way = record.harness.as_deref().map_or(Channel::Hook, Channel::of_hooks);
    let typed = matches!(record.channel, Channel::Tmux { .. });
    let served = SessionRecord { channel: way.clone(), ..record.clone() };
    if typed && codex::is_without_server(&served) { record.channel.clone() } else { way }
}

/// What delivery knows beside the store. None of it has to survive the daemon: what is lost costs a second look.
pub struct Delivery {
    store: Store,
    changes: Arc<Changes>,
    /// Runs the turns of headless sessions.
    turns: OnceLock<Turns>,
    /// Who types into which pane of tmux.
    panes: tmux::Panes,
    memory: Mutex<Memory>,
    /// Told of hooks that begin to wait.
    on_waiter: OnceLock<Told>,
}

type Told = Box<dyn Fn(SessionId) + Send + Sync>;

#[derive(Default)]
struct Memory {
    waiters: HashMap<SessionId, waiters::Waiter>,
    /// Conversations that ended in a process that may live on, until they begin again.
    over: HashMap<SessionId, String>,
    leases: HashMap<MessageId, mailbox::Lease>,
    /// Sessions whose program runs right now.
    running: HashSet<SessionId>,
    /// What those programs are given, or what is typed.
    attempts: HashMap<SessionId, MessageId>,
    retry: HashMap<SessionId, rules::Backoff>,
    /// Since when a handed message has waited for evidence while nothing else ran.
    handed: HashMap<MessageId, Instant>,
    /// Since when a message has waited for the end of a compaction.
    compacting: HashMap<SessionId, Instant>,
    transcripts: HashMap<SessionId, evidence::Transcript>,
    /// Sessions whose transcripts have not been read yet, long after they were opened.
    blind: HashSet<SessionId>,
    answers: answers::Answers,
    /// Messages that somebody waited for until their session's process ended.
    cut: HashMap<SessionId, Vec<replaced::Cut>>,
    /// Sessions that are typed to.
    typing: HashMap<SessionId, tmux::Typing>,
    /// Turns of headless sessions, and what holds them.
    runs: headless::gate::Runs,
    /// Sessions whose next turn is given one message: more together were refused.
    alone: HashSet<SessionId>,
    /// When a session whose turn failed may have the next one, and how long that pause is.
    pauses: HashMap<SessionId, (Instant, Duration)>,
}

impl Delivery {
    /// Delivery over a store; `changes` is the observer that was given to it.
    pub fn new(store: Store, changes: Arc<Changes>) -> Arc<Self> {
        Arc::new(Self {
            store,
            changes,
            turns: OnceLock::new(),
            panes: tmux::Panes::default(),
            memory: Mutex::default(),
            on_waiter: OnceLock::new(),
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of the one attempt that a session has at a time; false while one runs or a pause is not over.
    fn begin_attempt(&self, session: SessionId) -> bool {
        let mut memory = self.memory();
        let early = memory.retry.get(&session).is_some_and(|pause| pause.next() > Instant::now());
        !early && memory.running.insert(session)
    }

    /// Leaves that place, with a longer pause than before where it is to be tried again, and has the queue looked at.
    fn end_attempt(&self, session: SessionId, again: bool) {
        {
            let mut memory = self.memory();
            memory.running.remove(&session);
            memory.attempts.remove(&session);
            let before = memory.retry.remove(&session);
            if again {
                memory.retry.insert(session, rules::Backoff::after(before, Instant::now()));
            }
        }
        self.look_again(session);
    }

    /// Messages that died since the daemon started.
    pub fn dead(&self) -> u64 {
        self.changes.dead.load(Ordering::Relaxed)
    }

    /// A bell that rings at every commit for as long as it is held.
    pub fn any_change(&self) -> Arc<Notify> {
        self.changes.listen(None)
    }

    /// A bell that rings at every commit that touches a session, for as long as it is held.
    pub fn changes_of(&self, session: SessionId) -> Arc<Notify> {
        self.changes.listen(Some(Party::Session(session)))
    }

    /// Forgets the pause before the next attempt for a session, and looks at its queue.
    pub fn try_now(&self, session: SessionId) {
        {
            let mut memory = self.memory();
            memory.retry.remove(&session);
            memory.pauses.remove(&session);
        }
        self.look_again(session);
    }

    /// True for a message that is on its way to its session this very moment.
    pub fn is_given_now(&self, to: Party, id: MessageId) -> bool {
        to.session().is_some_and(|session| self.memory().attempts.get(&session) == Some(&id))
    }

    /// Asks for another look at a session's queue.
    pub fn look_again(&self, session: SessionId) {
        self.changes.mark([Party::Session(session)]);
    }
}

/// Collects whose queues or records changed, for the scheduler and for those who wait for a receipt. Bounded by the
/// number of sessions.
#[derive(Default)]
pub struct Changes {
    dirty: Mutex<HashSet<Party>>,
    bell: Notify,
    listeners: Mutex<HashMap<Option<Party>, Vec<Weak<Notify>>>>,
    dead: AtomicU64,
}

impl Changes {
    /// Marks parties and rings.
    pub fn mark(&self, parties: impl IntoIterator<Item = Party>) {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner).extend(parties);
        self.bell.notify_one();
    }

    /// Everything marked since the last call.
    pub fn take(&self) -> HashSet<Party> {
        std::mem::take(&mut self.dirty.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rings at the next mark, or now where there is one.
    pub async fn marked(&self) {
        self.bell.notified().await;
    }

    /// A bell that rings at every change of this party, or of any, for as long as it is held.
    pub fn listen(&self, party: Option<Party>) -> Arc<Notify> {
        let bell = Arc::new(Notify::new());
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.entry(party).or_default().push(Arc::downgrade(&bell));
        bell
    }

    /// Rings for those who listen to these parties, or to any.
    fn ring(&self, parties: impl IntoIterator<Item = Party>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.is_empty() {
            return;
        }
        for party in parties.into_iter().map(Some).chain([None]) {
            let Some(bells) = listeners.get_mut(&party) else { continue };
            // `notify_one` keeps a permit, so that a listener between two looks misses nothing.
            bells.retain(|bell| bell.upgrade().inspect(|bell| bell.notify_one()).is_some());
            if bells.is_empty() {
                listeners.remove(&party);
            }
        }
    }
}

/// The observer that is given to the store.
pub struct Watching(pub Arc<Changes>);

impl Observer for Watching {
    fn committed(&self, parties: &std::collections::BTreeSet<Party>, lines: &[Appended]) {
        let dead = |l: &&Appended| matches!(l.event.body, Body::Receipt { receipt: Receipt::Dead, .. });
        self.0.dead.fetch_add(lines.iter().filter(dead).count() as u64, Ordering::Relaxed);
        self.0.mark(parties.iter().copied());
        self.0.ring(parties.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::record::Binding;
    use minder_proto::stamp::Stamp;

    use super::*;

    #[test]
    fn what_is_typed_to_is_spoken_to_from_its_first_hook_on_where_there_is_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let control = dir.path().join("app-server-control");
        std::fs::create_dir(&control).unwrap();
        let mut record: SessionRecord = serde_json::from_value(serde_json::json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
            "harness": "codex", "channel": {"kind": "tmux", "socket": "/s", "pane": "%1"}, "state": "idle",
            "created": "2026-11-30T12:00:00Z", "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 1,
        }))
        .unwrap();
        record.bindings.push(Binding {
            harness: "codex".to_owned(),
            id: "t".to_owned(),
            since: Stamp::from_millis(0),
            until: None,
            why: "startup".to_owned(),
            transcript: Some(dir.path().join("sessions/2026/t.jsonl").to_str().unwrap().to_owned()),
        });
        assert_eq!(way_of_hooks(&record), record.channel);
        std::fs::write(control.join("app-server-control.sock"), "").unwrap();
        assert_eq!(way_of_hooks(&record), Channel::Codex { socket: None });
        record.harness = Some("claude".to_owned());
        assert_eq!(way_of_hooks(&record), Channel::Hook);
    }
}
