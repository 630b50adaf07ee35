//! The task that waits for the ends of bound processes. It is told by the store which process a session is bound to,
//! keeps one pidfd for each such process, and says what an end means in one mutation, judged when it is made.

use std::collections::{HashMap, HashSet};

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Author;
use minder_proto::id::SessionId;
use minder_proto::record::Process;
use minder_proto::state::State;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

use super::decide::decide;
use super::kernel::{Look, look};
use crate::session::{Declaration, declare};
use crate::store::{Observer, Store, Txn};

/// What an end was read from, as the line says it.
const BY_PIDFD: &str = "pidfd";
const AT_START: &str = "pid and start time, when the daemon started";

/// The observer that is given to the store: it passes on which process a session is bound to.
pub struct Bindings(UnboundedSender<Told>);

type Told = (SessionId, Option<Process>);

impl Observer for Bindings {
    fn bound(&self, session: SessionId, process: Option<&Process>) {
        // Nobody listens any more when the daemon goes down.
        let _ = self.0.send((session, process.cloned()));
    }
}

/// What tells one process from every other.
type Key = (i32, u64, String);

fn key(process: &Process) -> Key {
    (process.pid, process.start, process.boot.clone())
}

/// A process that is waited for.
struct Watch {
    sessions: HashSet<SessionId>,
    wait: AbortHandle,
}

/// The ends of bound processes, before the store is open.
pub struct Ends {
    told: UnboundedReceiver<Told>,
}

/// The task that waits for them.
pub struct Waiting {
    told: UnboundedReceiver<Told>,
    store: Store,
    look: fn(&Process) -> Look,
    watches: HashMap<Key, Watch>,
    /// The process of each session that is waited for.
    bound: HashMap<SessionId, Process>,
    /// Those that cannot be waited for: descriptors have run out, or the kernel does not tell.
    blind: HashMap<SessionId, Process>,
    /// That there are such was said.
    warned: bool,
    waits: JoinSet<Key>,
    sayings: JoinSet<()>,
}

impl Ends {
    /// The observer for the store, and what it tells.
    pub fn new() -> (Bindings, Self) {
        let (tell, told) = unbounded_channel();
        (Bindings(tell), Self { told })
    }

    /// Takes up every bound process that is not marked as ended, and says of those that have ended meanwhile what would
    /// have been said then. To be called once what was left in the spool is taken: it may tell of a turn's end.
    pub async fn start(self, store: Store) -> Result<Waiting, Fault> {
        let bound: Vec<(SessionId, Process)> = store
            .read(|state| {
                let of = |r: &minder_proto::record::SessionRecord| Some((r.id, r.process.clone()?));
                state.records().filter_map(of).filter(|(_, p)| p.ended.is_none()).collect()
            })
            .await?;
        let mut waiting = Waiting::new(self.told, store.clone());
        let mut first = JoinSet::new();
        for (session, process) in bound {
            if waiting.watch(session, process.clone()) == Found::Ended {
                let store = store.clone();
                first.spawn(async move {
                    let noted = process.clone();
                    let result = store.write(move |txn| end(txn, session, &noted, AT_START)).await;
                    (session, process, result)
                });
            }
        }
        // All of them in one group: one flush, however many there are.
        while let Some(done) = first.join_next().await {
            match done {
                // A disk that takes nothing must not keep the daemon from answering.
                Ok((session, process, Err(fault))) if fault.kind == Kind::ReadOnly => {
                    waiting.say(session, process, AT_START);
                }
                Ok((session, _, Err(fault))) => not_said(session, &fault),
                Ok((_, _, Ok(()))) | Err(_) => {}
            }
        }
        Ok(waiting)
    }
}

impl Waiting {
    fn new(told: UnboundedReceiver<Told>, store: Store) -> Self {
        Self {
            told,
            store,
            look,
            watches: HashMap::new(),
            bound: HashMap::new(),
            blind: HashMap::new(),
            warned: false,
            waits: JoinSet::new(),
            sayings: JoinSet::new(),
        }
    }

    /// Runs until it is dropped, or the store has ended.
    pub async fn run(mut self) {
        while self.step().await {}
    }

    /// One thing that happens; false when nothing more can.
    async fn step(&mut self) -> bool {
        tokio::select! {
            told = self.told.recv() => match told {
                Some((session, process)) => self.bind(session, process),
                None => return false,
            },
            Some(ended) = self.waits.join_next() => {
                // A wait that was called off has nothing to say.
                if let Ok(key) = ended {
                    self.ended(&key);
                }
            }
            Some(_) = self.sayings.join_next() => {}
        }
        true
    }

    /// A session is bound to this process from now on.
    fn bind(&mut self, session: SessionId, process: Option<Process>) {
        let process = process.filter(|p| p.ended.is_none());
        if let (Some(old), Some(new)) = (self.bound.get(&session), &process)
            && old.is(new)
        {
            return;
        }
        self.let_go(session);
        if let Some(process) = process
            && self.watch(session, process.clone()) == Found::Ended
        {
            self.say(session, process, BY_PIDFD);
        }
        self.look_again();
    }

    /// Waits for the end of a session's process.
    fn watch(&mut self, session: SessionId, process: Process) -> Found {
        let key = key(&process);
        if let Some(watch) = self.watches.get_mut(&key) {
            watch.sessions.insert(session);
            self.bound.insert(session, process);
            return Found::Alive;
        }
        let why = match (self.look)(&process) {
            Look::Ended => return Found::Ended,
            Look::Lives(handle) => match handle.watch() {
                Ok(watched) => {
                    let ended = key.clone();
                    let wait = self.waits.spawn(async move {
                        watched.ended().await;
                        ended
                    });
                    self.watches.insert(key, Watch { sessions: HashSet::from([session]), wait });
                    self.bound.insert(session, process);
                    return Found::Alive;
                }
                Err(error) => error.to_string(),
            },
            Look::Unknown(why) => why,
        };
        // Unknown is no end. Said once for all of them.
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%session, pid = process.pid, %why, "the end of a process will not be noticed");
        }
        self.blind.insert(session, process);
        Found::Unknown
    }

    /// A session's process is not waited for any more, unless it is another session's too.
    fn let_go(&mut self, session: SessionId) {
        self.blind.remove(&session);
        let Some(key) = self.bound.remove(&session).as_ref().map(key) else { return };
        let Some(watch) = self.watches.get_mut(&key) else { return };
        watch.sessions.remove(&session);
        if watch.sessions.is_empty() {
            watch.wait.abort();
            self.watches.remove(&key);
        }
    }

    fn ended(&mut self, key: &Key) {
        let Some(watch) = self.watches.remove(key) else { return };
        for session in watch.sessions {
            if let Some(process) = self.bound.remove(&session) {
                self.say(session, process, BY_PIDFD);
            }
        }
        self.look_again();
    }

    /// A descriptor may be free again for those that could not be waited for.
    fn look_again(&mut self) {
        for (session, process) in self.blind.clone() {
            self.blind.remove(&session);
            match self.watch(session, process.clone()) {
                Found::Alive => {}
                Found::Ended => self.say(session, process, BY_PIDFD),
                Found::Unknown => return,
            }
        }
        self.warned = false;
    }

    /// Says it, as soon as the disk lets it.
    fn say(&mut self, session: SessionId, process: Process, proof: &'static str) {
        let store = self.store.clone();
        self.sayings.spawn(async move {
            let result = store.write_patiently(move |txn| end(txn, session, &process, proof)).await;
            if let Err(fault) = result {
                not_said(session, &fault);
            }
        });
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Alive,
    Ended,
    Unknown,
}

fn not_said(session: SessionId, fault: &Fault) {
    // A session that was closed meanwhile needs no such line, and a daemon that goes down says it at its next start.
    if !matches!(fault.kind, Kind::Gone | Kind::NotFound | Kind::Unavailable) {
        tracing::warn!(%session, %fault, "the end of its process could not be noted");
    }
}

/// Notes the end in the record, and says what was cut short.
fn end(txn: &mut Txn<'_>, session: SessionId, process: &Process, proof: &str) -> Result<(), Fault> {
    let Some(ending) = decide(&txn.session(session)?.record, process) else { return Ok(()) };
    let now = txn.now();
    // The turn goes first: its message did not bring this about.
    txn.edit(session, |record| {
        if let Some(process) = &mut record.process {
            process.ended = Some(now);
        }
        record.turn = None;
        record.compacting = false;
    })?;
    if let Some(note) = ending.error {
        let proof = Some(proof.to_owned());
        declare(
            txn,
            session,
            Declaration { proof, ..Declaration::new(State::Error, Some(note), Author::Minder) },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
