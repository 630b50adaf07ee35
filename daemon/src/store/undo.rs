//! What takes a mutation back: what stood before each of its changes.

use std::sync::Arc;

use minder_proto::id::{MessageId, SessionId};

use super::hosts::Host;
use super::state::{Inbox, Remembered, Session, State};

/// What stood before one change.
pub(super) enum Undo {
    Session(SessionId, Option<Arc<Session>>),
    Operator(Arc<Inbox>),
    Label(String, Option<SessionId>),
    Binding((String, String), Option<SessionId>),
    Process((i32, u64), Vec<SessionId>),
    Key(String, Option<Remembered>),
    Recent(MessageId),
    Host(SessionId, Option<Arc<Host>>),
    Lengths { keys: u64, closed: u64 },
}

/// Takes changes back, newest first.
pub(super) fn roll_back(state: &mut State, undo: Vec<Undo>) {
    for step in undo.into_iter().rev() {
        match step {
            Undo::Session(id, None) => {
                state.sessions.remove(&id);
            }
            Undo::Session(id, Some(session)) => {
                state.sessions.insert(id, session);
            }
            Undo::Operator(inbox) => state.operator = inbox,
            Undo::Label(label, None) => {
                state.labels.remove(&label);
            }
            Undo::Label(label, Some(id)) => {
                state.labels.insert(label, id);
            }
            Undo::Binding(key, None) => {
                state.bindings.remove(&key);
            }
            Undo::Binding(key, Some(id)) => {
                state.bindings.insert(key, id);
            }
            Undo::Process(key, ids) if ids.is_empty() => {
                state.processes.remove(&key);
            }
            Undo::Process(key, ids) => {
                state.processes.insert(key, ids);
            }
            Undo::Key(key, None) => {
                state.keys.remove(&key);
            }
            Undo::Key(key, Some(old)) => {
                state.keys.insert(key, old);
            }
            Undo::Recent(id) => {
                state.recent.remove(&id);
            }
            Undo::Host(id, None) => {
                state.hosts.remove(&id);
            }
            Undo::Host(id, Some(host)) => {
                state.hosts.insert(id, host);
            }
            Undo::Lengths { keys, closed } => (state.keys_len, state.closed_len) = (keys, closed),
        }
    }
}
