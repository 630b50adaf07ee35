//! What every method needs, and what they share: who calls, an idempotency key, a message by the end of its id.

use std::sync::{Arc, OnceLock};

use minder_proto::caller::Caller;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::Party;
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Peer;
use super::daemon::Process;
use crate::delivery::Delivery;
use crate::hook::Hooks;
use crate::host::Hosts;
use crate::identity::{Ancestry, Who, who, who_left};
use crate::launch::Launcher;
use crate::session::{self, Lookup};
use crate::store::{State, Store, Txn};
use crate::turn::Turns;

/// The daemon as its methods see it.
pub struct Context {
    /// The process.
    pub process: Process,
    /// The store.
    pub store: Store,
    /// Delivery.
    pub delivery: Arc<Delivery>,
    /// The runner of turns.
    pub turns: Turns,
    /// Hooks.
    pub hooks: Hooks,
    /// Supervision hosts.
    pub hosts: Arc<Hosts>,
    /// What starts the processes of sessions.
    pub launcher: Launcher,
    /// What `daemon.status` shows of the start.
    pub started: Started,
}

/// What is known since the start.
#[derive(Debug)]
pub struct Started {
    /// When.
    pub at: Stamp,
    /// When it served: until then nobody could be answered.
    pub ready: OnceLock<Stamp>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Commits that were replayed.
    pub replayed: u64,
    /// The socket.
    pub socket: String,
}

impl AsRef<Process> for Context {
    fn as_ref(&self) -> &Process {
        &self.process
    }
}

/// Where a call came from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Over the socket.
    Peer {
        /// The caller's process and what is above it.
        ancestry: Ancestry,
        /// Its connection.
        conn: u64,
    },
    /// From the spool.
    Spooled {
        /// When it was said.
        at: Stamp,
        /// When this daemon served; none before it does.
        ready: Option<Stamp>,
    },
}

impl Origin {
    /// A peer of the socket.
    pub fn peer(peer: Peer) -> Self {
        Self::Peer { conn: peer.conn, ancestry: peer.ancestry() }
    }

    /// Who calls.
    pub fn who(&self, caller: Option<&Caller>, state: &State, home: &Home) -> Result<Who, Fault> {
        match self {
            Self::Peer { ancestry, .. } => who(caller, ancestry, state, home),
            Self::Spooled { at, ready } => who_left(caller, *at, *ready, state, home),
        }
    }

    /// When it was said, where that was not now.
    pub fn said(&self) -> Option<Stamp> {
        match self {
            Self::Peer { .. } => None,
            Self::Spooled { at, .. } => Some(*at),
        }
    }
}

impl Context {
    /// The message whose id ends so.
    pub async fn find_message(&self, end: &str) -> Result<Lookup, Fault> {
        let text = end.to_owned();
        let (found, parties) = self
            .store
            .read(move |state| {
                let found = session::message(state, &text)?;
                let parties = if found.is_empty() {
                    state.records().map(|r| Party::Session(r.id)).chain([Party::Operator]).collect()
                } else {
                    Vec::new()
                };
                Ok::<_, Fault>((found, parties))
            })
            .await??;
        if !found.is_empty() {
            return session::only(&found, end);
        }
        let (home, text) = (self.store.home().clone(), end.to_owned());
        let searched =
            tokio::task::spawn_blocking(move || session::message_in_files(&home, &parties, &text)).await;
        session::only(&searched.unwrap_or_default(), end)
    }
}

/// Runs a mutation once for its key: the same key with the same content gives the first result, with another content
/// it is refused. Says whether it was a repeat.
pub fn once<T: Serialize + DeserializeOwned>(
    txn: &mut Txn<'_>,
    scope: &str,
    key: Option<&str>,
    content: &impl Serialize,
    run: impl FnOnce(&mut Txn<'_>) -> Result<T, Fault>,
) -> Result<(T, bool), Fault> {
    let Some(key) = key else { return run(txn).map(|value| (value, false)) };
    if key.is_empty() || key.len() > 256 {
        return Err(Fault::new(Kind::InvalidParams, "a key has 1 to 256 bytes"));
    }
    let name = format!("{scope}/{key}");
    let bytes = serde_json::to_vec(content).expect("parameters are plain data");
    let sum = crc32c::crc32c(&bytes);
    if let Some(before) = txn.state().remembered(&name) {
        if before.sum != sum {
            return Err(Fault::new(Kind::Conflict, format!("key {key:?} was used for something else"))
                .hint("take another --key"));
        }
        let value = serde_json::from_value(before.result.clone());
        return value.map(|value| (value, true)).map_err(|e| {
            Fault::new(Kind::InvalidState, format!("what key {key:?} gave cannot be read: {e}"))
        });
    }
    let value = run(txn)?;
    let result = serde_json::to_value(&value).expect("an answer is plain data");
    txn.remember(name, sum, result);
    Ok((value, false))
}
