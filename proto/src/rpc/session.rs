//! `session.*`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::id::SessionId;
use crate::record::{Channel, SessionRecord};
use crate::state::State;

/// `session.create`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The label; derived from the folder where absent.
    #[serde(default)]
    pub label: Option<String>,
    /// The title.
    #[serde(default)]
    pub title: Option<String>,
    /// The harness.
    #[serde(default)]
    pub harness: Option<String>,
    /// The working directory; the caller's where absent.
    #[serde(default)]
    pub dir: Option<String>,
    /// How messages get in; the mailbox where absent.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// A selector for the parent; a calling session is the parent where absent.
    #[serde(default)]
    pub parent: Option<String>,
    /// A session its operator talks to.
    #[serde(default)]
    pub primary: bool,
    /// For channel `headless`: the caller's environment, of which the daemon keeps what is no secret, and the names of
    /// what its harness needs beside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Idempotency key.
    #[serde(default)]
    pub key: Option<String>,
}

/// Answer to `session.create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateAnswer {
    /// The new session.
    pub id: SessionId,
    /// Its label.
    pub label: String,
    /// Its title.
    pub title: String,
    /// Its timeline's last line.
    pub seq: u64,
    /// True if the key gave an earlier result.
    #[serde(default)]
    pub duplicate: bool,
}

impl Call for Create {
    const METHOD: &'static str = "session.create";
    type Answer = CreateAnswer;
}

/// `session.get`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session; the caller where absent.
    #[serde(default)]
    pub session: Option<String>,
}

/// One session with what waits for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GetAnswer {
    /// The record.
    pub record: SessionRecord,
    /// Messages not settled.
    pub waiting: usize,
    /// Of these, held.
    pub held: usize,
    /// Sessions that watch it.
    pub watchers: usize,
}

impl Call for Get {
    const METHOD: &'static str = "session.get";
    type Answer = GetAnswer;
}

/// `session.list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector; everything where absent.
    #[serde(default)]
    pub sessions: Option<String>,
    /// Go on after this session, from the `more` of the answer before.
    #[serde(default)]
    pub after: Option<SessionId>,
}

/// Answer to `session.list`: at most 1 MiB of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListAnswer {
    /// In the order of creation.
    pub sessions: Vec<GetAnswer>,
    /// True if there are more after the last one.
    pub more: bool,
}

impl Call for List {
    const METHOD: &'static str = "session.list";
    type Answer = ListAnswer;
}

/// `session.state`: a declaration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declare {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session; the caller where absent.
    #[serde(default)]
    pub session: Option<String>,
    /// The state.
    pub state: State,
    /// What is said with it, at most 4 KiB.
    #[serde(default)]
    pub note: Option<String>,
    /// Only if the session stands in this state now.
    #[serde(default, rename = "if")]
    pub only_if: Option<State>,
    /// Idempotency key.
    #[serde(default)]
    pub key: Option<String>,
}

/// Answer to `session.state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclareAnswer {
    /// The session.
    pub session: SessionId,
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
    /// The line that was written; none if nothing changed.
    pub seq: Option<u64>,
}

impl Call for Declare {
    const METHOD: &'static str = "session.state";
    type Answer = DeclareAnswer;
}

/// `session.set`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session.
    pub session: String,
    /// A new label.
    #[serde(default)]
    pub label: Option<String>,
    /// A new title.
    #[serde(default)]
    pub title: Option<String>,
    /// A selector for a new parent.
    #[serde(default)]
    pub parent: Option<String>,
    /// A new way in.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// For channel `headless`, as in `session.create`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Bind a conversation: its harness …
    #[serde(default)]
    pub harness: Option<String>,
    /// … and its id there.
    #[serde(default)]
    pub harness_id: Option<String>,
}

/// Answer to `session.set`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetAnswer {
    /// The session.
    pub session: SessionId,
    /// What changed: `label: api → web`.
    pub changed: Vec<String>,
}

impl Call for Set {
    const METHOD: &'static str = "session.set";
    type Answer = SetAnswer;
}

/// `session.close`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session.
    pub session: String,
    /// The closing note.
    #[serde(default)]
    pub note: Option<String>,
    /// Also take back what it sent and nobody was given yet.
    #[serde(default)]
    pub recall: bool,
}

/// Answer to `session.close`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CloseAnswer {
    /// The session.
    pub session: SessionId,
    /// Its last label.
    pub label: String,
    /// Messages for it that were not delivered; their senders are told.
    pub dead: usize,
    /// Messages of its own that were taken back.
    pub recalled: usize,
    /// A process that minder did not start and that runs on.
    #[serde(default)]
    pub left_running: Option<i32>,
}

impl Call for Close {
    const METHOD: &'static str = "session.close";
    type Answer = CloseAnswer;
}

/// `session.adopt`: takes in a conversation that already runs, as a harness lists it. The process is checked: it
/// must be this user's and the harness's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The harness.
    pub harness: String,
    /// Its own id of the conversation.
    pub harness_id: String,
    /// Its process.
    pub pid: i32,
    /// The working directory.
    #[serde(default)]
    pub dir: Option<String>,
    /// Whether a person sits at it, where the harness says so.
    #[serde(default)]
    pub attended: Option<bool>,
}

/// Answer to `session.adopt`; what is not taken in by rule is `refused`, with the rule in the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptAnswer {
    /// The session.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// True if it was a session already.
    pub known: bool,
}

impl Call for Adopt {
    const METHOD: &'static str = "session.adopt";
    type Answer = AdoptAnswer;
}
