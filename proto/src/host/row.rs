//! A row of the wake queue, and the queue: `queue.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, SessionId};
use crate::stamp::Stamp;
use crate::state::State;

/// What raised a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A session moved.
    Signal,
    /// A session works and shows no sign of it.
    Stale,
    /// A command found something, or minder itself did.
    Check,
    /// A review found what nothing covers.
    Heartbeat,
}

impl Kind {
    /// The word of its wake lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Stale => "stale",
            Self::Check => "check",
            Self::Heartbeat => "heartbeat",
        }
    }
}

/// Who has a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// Nobody.
    #[default]
    Free,
    /// The primary: a drain has shown it.
    Primary,
}

/// The key of a row that stands for no session and no check.
pub const NO_KEY: &str = "-";

/// Something that happened and is not yet handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// From 1, never given again.
    pub seq: u64,
    /// When it was added.
    pub at: Stamp,
    /// When the first row that was folded into it was.
    pub first_at: Stamp,
    /// What raised it.
    pub kind: Kind,
    /// Of a signal: the state's name, `turn-end`, `closed` or `message`; of a check its exit.
    pub what: String,
    /// The session's id, the check's name, or `-`.
    pub key: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Of that session, when the row was raised.
    #[serde(default)]
    pub incarnation: u64,
    /// The newest line of its timeline behind the row.
    #[serde(default)]
    pub ev: u64,
    /// The states that it went through, at most [`PATH_MAX`](super::bounds::PATH_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<State>,
    /// The notice or message that waits for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mids: Vec<MessageId>,
    /// It, or one that was folded into it, was raised by a question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decision: bool,
    /// One line for who reads it.
    #[serde(default)]
    pub text: String,
    /// Of what a check said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Who has it.
    #[serde(default)]
    pub owner: Owner,
    /// The generation in which its owner was shown it; 0 is never.
    #[serde(default)]
    pub shown_gen: u64,
    /// It was in the trigger of a batch that was judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raised: bool,
    /// Rows that it replaced.
    #[serde(default)]
    pub folded: u32,
    /// It is the third row of a silence that goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inspect: bool,
}

impl Row {
    /// True while nobody has it and nobody was shown it.
    pub fn is_untouched(&self) -> bool {
        self.owner == Owner::Free && self.shown_gen == 0
    }
}

/// How far somebody knows a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Through {
    /// The newest line of its timeline that the primary was shown.
    #[serde(default)]
    pub shown: u64,
    /// The newest line that an acknowledgement covers.
    #[serde(default)]
    pub covered: u64,
}

/// Reads `queue.json`. A row that cannot be read, or of a kind that this build does not know, stands among the broken
/// ones with its text, and hides no other.
pub fn read(bytes: &[u8]) -> Result<Queue, serde_json::Error> {
    #[derive(Deserialize)]
    struct Raw {
        rows: Vec<serde_json::Value>,
        #[serde(default)]
        through: BTreeMap<SessionId, Through>,
        #[serde(default)]
        broken: Vec<String>,
    }
    let Raw { rows, through, broken } = serde_json::from_slice(bytes)?;
    let mut queue = Queue { rows: Vec::new(), through, broken };
    for value in rows {
        match Row::deserialize(&value) {
            Ok(row) => queue.rows.push(row),
            Err(_) => queue.broken.push(value.to_string()),
        }
    }
    Ok(queue)
}

/// `queue.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// In the order of their numbers.
    pub rows: Vec<Row>,
    /// By session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub through: BTreeMap<SessionId, Through>,
    /// Rows that could not be read: their text, for the next drain of the primary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}
