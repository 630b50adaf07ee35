//! `hello` and `daemon.*`.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::{Caller, Identity};
use crate::id::SessionId;
use crate::stamp::Stamp;

/// `hello`: who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The client's name and version.
    pub client: String,
    /// The lowest and highest protocol it speaks.
    pub protocol: [u32; 2],
}

/// Answer to `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAnswer {
    /// `minderd`.
    pub daemon: String,
    /// Its version.
    pub build: String,
    /// The protocol that both will speak.
    pub protocol: u32,
    /// The boot it runs in.
    pub boot_id: String,
    /// Its process.
    pub pid: u32,
    /// The real path of its store.
    pub store: String,
}

impl Call for Hello {
    const METHOD: &'static str = "hello";
    type Answer = HelloAnswer;
}

/// `daemon.status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Who asks; the answer says whom the daemon takes them for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
}

/// Answer to `daemon.status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// The daemon's version.
    pub version: String,
    /// The protocol it speaks.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// Since when it runs.
    pub started: Stamp,
    /// The real path of its store.
    pub store: String,
    /// Its socket.
    pub socket: String,
    /// Open sessions.
    pub sessions: usize,
    /// Sessions whose files cannot be read, with why.
    pub corrupt: Vec<String>,
    /// Messages not settled.
    pub waiting: usize,
    /// Of these, held.
    pub held: usize,
    /// Messages to the person that they have not seen.
    #[serde(default)]
    pub operator: usize,
    /// Messages that died since the daemon started.
    pub dead: u64,
    /// Why nothing new is taken, if so: the path and its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// Commits since the daemon started.
    pub commits: u64,
    /// Flushes of the journal since the daemon started: one for each group of commits.
    pub flushes: u64,
    /// Bytes of journal since the last checkpoint.
    pub journal_bytes: u64,
    /// How many milliseconds the start took, replay included.
    pub start_ms: u64,
    /// Commits replayed at the start.
    pub replayed: u64,
    /// Processes that write a conversation which another one has: they are not heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub second_writers: Vec<SecondWriter>,
    /// Whom the caller was taken for.
    pub you: Identity,
}

/// A process that writes a conversation which another one has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondWriter {
    /// The session whose conversation it is.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// The harness.
    pub harness: String,
    /// The process that has it.
    pub bound: i32,
    /// The other one.
    pub pid: i32,
}

impl Call for Status {
    const METHOD: &'static str = "daemon.status";
    type Answer = StatusAnswer;
}

/// `daemon.stop`: answers before the daemon goes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Ends the turns that run first, by their ladder. A daemon that knows none of this is not asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

impl Call for Stop {
    const METHOD: &'static str = "daemon.stop";
    type Answer = serde_json::Value;
}
