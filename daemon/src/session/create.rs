//! A session is registered: its record, its arrival, and the parent's watch, in one commit.

use std::collections::BTreeMap;
use std::path::Path;

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Author;
use minder_proto::id::SessionId;
use minder_proto::label;
use minder_proto::limits;
use minder_proto::record::{
    Binding, Channel, Launch, Process, SessionRecord, TitleSource, WatchSource, Watcher,
};
use minder_proto::stamp::Stamp;
use minder_proto::state::{State, StateSet};

use crate::store::{State as Stored, Txn};

/// What is known of a session at its birth.
#[derive(Clone, Debug)]
pub struct Born {
    /// A label that somebody chose.
    pub label: Option<String>,
    /// A title that somebody chose.
    pub title: Option<String>,
    /// The harness.
    pub harness: Option<String>,
    /// Its own id of the conversation, why it is bound, and where it is written.
    pub conversation: Option<(String, String, Option<String>)>,
    /// The working directory.
    pub dir: String,
    /// The parent, who is told of what it declares.
    pub parent: Option<SessionId>,
    /// Its operator talks to it.
    pub primary: bool,
    /// How messages get in.
    pub channel: Channel,
    /// The process it is.
    pub process: Option<Process>,
    /// A hook registered it.
    pub adopted: bool,
    /// When its arrival was said, where that was not now.
    pub said: Option<Stamp>,
    /// How minder is about to start its process: it is `queued` until that is up.
    pub launch: Option<Launch>,
}

/// Registers it.
pub fn create(txn: &mut Txn<'_>, born: Born) -> Result<SessionId, Fault> {
    if let Some(label) = &born.label {
        label::check(label).map_err(|e| Fault::new(Kind::InvalidParams, e.to_string()))?;
        if let Some(other) = txn.state().by_label(label) {
            return Err(Fault::new(Kind::Conflict, format!("label {label:?} is taken by {}", other.short()))
                .about(other));
        }
    }
    check(&born)?;
    if let Some(parent) = born.parent {
        txn.session(parent)?;
    }
    if let (Some(harness), Some((conversation, _, _))) = (&born.harness, &born.conversation)
        && let Some(other) = txn.state().by_binding(harness, conversation)
    {
        return Err(Fault::new(
            Kind::Conflict,
            format!("this conversation is registered already, as session {}", other.short()),
        )
        .about(other));
    }
    let now = txn.now();
    let id = SessionId::random();
    let label_given = born.label.is_some();
    let label = born.label.unwrap_or_else(|| free_label(txn.state(), &born.dir));
    let (title, title_from) = match born.title {
        Some(title) => (title, TitleSource::Given),
        None if label_given => (label.clone(), TitleSource::Label),
        None => (label.clone(), TitleSource::None),
    };
    let bindings = born.conversation.zip(born.harness.clone()).map(|((id, why, transcript), harness)| {
        Binding { harness, id, since: now, until: None, why, transcript }
    });
    txn.create(SessionRecord {
        id,
        label,
        label_given,
        title,
        title_from,
        harness: born.harness,
        dir: born.dir,
        parent: born.parent,
        primary: born.primary,
        channel: born.channel,
        until_hook: false,
        account: None,
        created: now,
        adopted: born.adopted,
        state: if born.launch.is_some() { State::Queued } else { State::Idle },
        state_at: born.said.unwrap_or(now),
        state_by: Author::Minder,
        turn_end: false,
        note: None,
        last_seq: 0,
        state_seq: 1,
        bindings: bindings.into_iter().collect(),
        incarnation: 0,
        process: born.process,
        compacting: false,
        compacting_since: None,
        turn: None,
        last_turn: None,
        last_end: None,
        env: BTreeMap::new(),
        env_names: Vec::new(),
        circuit: None,
        account_hold: None,
        launch: born.launch,
        unknown: serde_json::Map::new(),
    })?;
    if let Some(parent) = born.parent {
        let relation = Watcher {
            watcher: parent,
            sources: vec![WatchSource::Parent],
            states: StateSet::WATCH,
            since: now,
            unknown: serde_json::Map::new(),
        };
        txn.set_watchers(id, vec![relation])?;
    }
    Ok(id)
}

/// Every field of a caller's making has a bound.
fn check(born: &Born) -> Result<(), Fault> {
    let (conversation, transcript) = born.conversation.as_ref().map(|(id, _, t)| (id, t.as_deref())).unzip();
    limits::text("a title", born.title.as_deref(), limits::TITLE_MAX)?;
    limits::text("a folder", Some(&born.dir), limits::PATH_MAX)?;
    limits::text("a transcript's path", transcript.flatten(), limits::PATH_MAX)?;
    limits::word("a harness", born.harness.as_deref(), limits::HARNESS_MAX)?;
    limits::word("a conversation's id", conversation.map(String::as_str), limits::CONVERSATION_MAX)?;
    match &born.channel {
        // The pane of what is to be started is not there yet.
        Channel::Tmux { pane, .. } if pane.is_empty() && born.launch.is_some() => Ok(()),
        channel => limits::channel(channel),
    }
}

/// A label from a folder's name that no open session has: `web`, then `web-2`.
pub fn free_label(state: &Stored, dir: &str) -> String {
    let name = Path::new(dir).file_name().and_then(|n| n.to_str()).unwrap_or("");
    let base = label::from_text(name);
    if state.by_label(&base).is_none() {
        return base;
    }
    let most = state.sessions().count() + 2;
    let free = (2..=most).map(|n| format!("{base}-{n}")).find(|l| state.by_label(l).is_none());
    free.expect("there are more numbers than sessions")
}
