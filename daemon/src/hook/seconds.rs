//! Processes that write a conversation which another one has. They are not heard, and one of the two will lose what it writes:
//! whoever asks how the daemon is, is told of them while both live.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use minder_proto::error::Fault;
use minder_proto::id::SessionId;
use minder_proto::record::Process;
use minder_proto::rpc::SecondWriter;

use super::Origin;
use crate::identity::process_of;
use crate::store::{State, Store};

/// Most that are remembered: a person has few.
const MOST: usize = 64;

/// Those that were seen, by the session whose conversation they write.
#[derive(Debug, Default)]
pub struct Seconds(Mutex<BTreeMap<SessionId, Process>>);

/// The process of a harness that a hook speaks for, with the harness.
pub fn writer(harness: &str, origin: &Origin) -> Option<(String, Process)> {
    let Origin::Peer(ancestry) = origin else { return None };
    let own = ancestry.harness().filter(|a| a.harness == Some(harness))?;
    Some((harness.to_owned(), own.process.clone()))
}

impl Seconds {
    /// A hook was not heard: remembers its process if that is because another one has the conversation.
    pub async fn look(
        &self,
        store: &Store,
        (harness, process): (String, Process),
        conversation: String,
    ) -> Result<(), Fault> {
        let other = process.clone();
        let look = move |state: &State| {
            let id = state.by_binding(&harness, &conversation)?;
            is_second(state, id, &other).then_some(id)
        };
        if let Some(id) = store.glance(look).await? {
            let mut seen = self.seen();
            if seen.len() < MOST || seen.contains_key(&id) {
                seen.insert(id, process);
            }
        }
        Ok(())
    }

    /// Those that live, beside the process that has their conversation.
    pub async fn all(&self, store: &Store) -> Result<Vec<SecondWriter>, Fault> {
        let seen = self.seen().clone();
        if seen.is_empty() {
            return Ok(Vec::new());
        }
        let look = move |state: &State| {
            let still = seen.into_iter().filter(|(id, process)| is_second(state, *id, process));
            let told = still.filter_map(|(id, process)| {
                let record = &state.session(id)?.record;
                Some(SecondWriter {
                    session: id,
                    label: record.label.clone(),
                    harness: record.harness.clone()?,
                    bound: record.process.as_ref()?.pid,
                    pid: process.pid,
                })
            });
            told.collect::<Vec<_>>()
        };
        let told = store.read(look).await?;
        self.seen().retain(|id, _| told.iter().any(|one| one.session == *id));
        Ok(told)
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<SessionId, Process>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_second(state: &State, id: SessionId, process: &Process) -> bool {
    let bound = state.session(id).and_then(|s| s.record.process.as_ref());
    let lives = |process: &Process| process_of(process.pid).is_some_and(|p| p.is(process));
    bound.is_some_and(|bound| bound.ended.is_none() && !bound.is(process) && lives(bound)) && lives(process)
}
