//! The supervision host of a primary: what happened to the sessions it supervises waits in its wake queue until the
//! primary has acknowledged it. It is told by the hook that waits beside it, in one hand-back for all that happened
//! within some seconds, and again where nothing shows that it read it.
//!
//! Everything that decides is a function over what is in the files (`minder_proto::host`) and a time. `queue` and `episode`
//! hold the wakes and the one open hand-back; `signals` is the producer of what sessions come to, `upkeep` of what the clock
//! brings; `step` is one look at a host, `handback` its text, `drain` what the primary reads and acknowledges, `brief` what it is
//! told at its start, `switch` on and off, `status` how it stands; here is the loop. `simulation` holds it all together.
//!
//! Uses: `store`, `session`, `delivery`. Used by: `hook`, `server`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minder_proto::event::Body;
use minder_proto::host::row::{Kind, NO_KEY};
use minder_proto::id::{Party, SessionId};
use minder_proto::rpc::HookAnswer;
use minder_proto::stamp::Stamp;
use tokio::time::Instant;

use crate::delivery::{Changes, Delivery};
use crate::store::{Appended, Observer, State, Store};
use upkeep::Signs;

pub mod brief;
pub mod drain;
pub mod episode;
pub mod handback;
pub mod queue;
pub mod signals;
#[cfg(test)]
mod simulation;
pub mod status;
pub mod step;
pub mod switch;
pub mod upkeep;

/// The longest from one look by the clock to the next: more than that ahead is a clock that was set back.
const UPKEEP_MAX: std::time::Duration = std::time::Duration::from_secs(7_200);

/// The longest sleep.
const STEP_MAX: std::time::Duration = std::time::Duration::from_secs(900);

/// The host's name in ledgers of messages.
pub const CHANNEL: &str = minder_proto::queue::HOST;

/// True for a prompt that is what this session's host gave its hook to print.
pub fn is_handback(state: &State, id: SessionId, prompt: &str) -> bool {
    state.host(id).is_some() && prompt.lines().any(|line| line == handback::NEXT)
}

/// The loop over all hosts: woken by commits that touch a primary, by hooks that begin to wait, and by the few deadlines
/// there are. Without a host it never wakes.
pub struct Hosts {
    store: Store,
    delivery: Arc<Delivery>,
    listening: Listening,
}

/// The observer of hosts: what a commit touched, and who was heard of.
#[derive(Clone, Default)]
pub struct Listening {
    changes: Arc<Changes>,
    /// Primaries whose host is on, or was: commits that touch nobody else wake nobody here.
    on: Arc<Mutex<HashSet<SessionId>>>,
    signs: Arc<Signs>,
}

impl Listening {
    /// Where a sign of life is noted that is no line.
    pub fn signs(&self) -> Arc<Signs> {
        Arc::clone(&self.signs)
    }
}

impl Listening {
    fn on(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Listening {
    fn committed(&self, parties: &BTreeSet<Party>, lines: &[Appended]) {
        let hosts = self.on();
        let touched = parties.iter().filter(|party| party.session().is_some_and(|id| hosts.contains(&id)));
        // A child that is born touches its parent's files nowhere.
        let parents = lines.iter().filter_map(|line| match line.event.body {
            Body::Created { parent, .. } => parent.filter(|id| hosts.contains(id)).map(Party::Session),
            _ => None,
        });
        let marked: Vec<Party> = touched.copied().chain(parents).collect();
        drop(hosts);
        if !marked.is_empty() {
            self.changes.mark(marked);
        }
        for line in lines {
            let Some(session) = line.party.session() else { continue };
            match line.event.body {
                // What others wrote into its timeline is no sign of it.
                Body::Message(_) | Body::Receipt { .. } => {}
                Body::Closed { .. } => self.signs.forget(session),
                _ => self.signs.note(session, line.event.at),
            }
        }
    }
}

impl Hosts {
    /// Over a store, which was given the observer.
    pub fn new(store: Store, delivery: Arc<Delivery>, listening: Listening) -> Arc<Self> {
        let told = listening.clone();
        delivery.tell_of_waiters(move |session| {
            if told.on().contains(&session) {
                told.changes.mark([Party::Session(session)]);
            }
        });
        Arc::new(Self { store, delivery, listening })
    }

    /// What must be so before anybody can ask: a queue that was lost is one review of everything, and no news is kept for a
    /// host that is not there.
    pub async fn start(&self) {
        let primaries = self.store.read(|state| state.hosts().map(|(id, _)| id).collect::<Vec<_>>()).await;
        let Ok(primaries) = primaries else { return };
        let lost = self.store.write(|txn| {
            for id in txn.state().lost_queues().to_vec() {
                signals::raise(txn, id, queue::News::of(Kind::Heartbeat, "lost", NO_KEY))?;
            }
            switch::release_strays(txn)
        });
        if let Err(fault) = lost.await {
            tracing::warn!(%fault, "a wake queue that was lost could not be begun anew");
        }
        self.listening.on().extend(primaries.iter().copied());
        self.listening.changes.mark(primaries.into_iter().map(Party::Session));
    }

    /// The host of a session is about to be on or off.
    pub fn switched(&self, id: SessionId, on: bool) {
        if on {
            self.listening.on().insert(id);
        }
        // One that is off is looked at once more, and forgotten.
        self.listening.changes.mark([Party::Session(id)]);
    }

    /// Runs until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let mut due: HashMap<SessionId, Instant> = HashMap::new();
        let mut upkeep: HashMap<SessionId, Stamp> = HashMap::new();
        loop {
            let next = due.values().min().copied();
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.listening.changes.marked() => {}
                () = sleep => {}
            }
            let now = Instant::now();
            let mut primaries: Vec<SessionId> =
                self.listening.changes.take().into_iter().filter_map(|party| party.session()).collect();
            primaries.extend(due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id));
            for id in primaries {
                due.remove(&id);
                if let Some(at) = self.look(id, &mut upkeep).await {
                    // Calendar times: the wait is cut, so that a step of the clock is noticed.
                    let left = Stamp::now().age(at).min(STEP_MAX);
                    due.insert(id, Instant::now() + left);
                }
            }
        }
    }

    /// One look at the host of a session, if it has one; gives when to look again.
    async fn look(&self, id: SessionId, upkeep: &mut HashMap<SessionId, Stamp>) -> Option<Stamp> {
        let look = move |state: &State| {
            let record = &state.session(id).filter(|_| signals::is_on(state, id))?.record;
            Some(record.live_binding().map(|b| b.id.clone()).unwrap_or_default())
        };
        let Some(conversation) = self.store.read(look).await.ok().flatten() else {
            upkeep.remove(&id);
            return None;
        };
        let now = Stamp::now();
        if upkeep.get(&id).is_none_or(|at| *at <= now || now.age(*at) > UPKEEP_MAX) {
            let signs = self.listening.signs();
            match self.store.write(move |txn| step::upkeep(txn, id, &signs)).await {
                Ok(Some(at)) => drop(upkeep.insert(id, at)),
                Ok(None) => drop(upkeep.remove(&id)),
                Err(fault) => tracing::warn!(%id, %fault, "a host could not look by the clock"),
            }
        }
        let waiter = self.delivery.waits_for(id, &conversation);
        let (given, again) = match self.store.write(move |txn| step::step(txn, id, waiter)).await {
            Ok(found) => found,
            Err(fault) => {
                tracing::warn!(%id, %fault, "a host could not be looked at");
                return Some(Stamp::now().plus(std::time::Duration::from_secs(5)));
            }
        };
        if let Some((generation, text)) = given {
            let answer = HookAnswer { stderr: text, exit: 2, ..HookAnswer::default() };
            if !self.delivery.end_waiter_of(id, &conversation, answer) {
                // It went between the look and the answer. The next that waits is given it.
                let back = self.store.write(move |txn| step::not_given(txn, id, generation)).await;
                if let Err(fault) = back {
                    tracing::warn!(%id, %fault, "a hand-back that nobody took is not written down");
                }
            }
        }
        again.into_iter().chain(upkeep.get(&id).copied()).min()
    }
}
