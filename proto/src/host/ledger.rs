//! What a host did, a line each in `log.jsonl`. No text of a message or of a session's note is in it.

use serde::{Deserialize, Serialize};

use crate::stamp::Stamp;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Stamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// Its rows.
    pub rows: Vec<u64>,
    /// Why, in a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The generation of the hand-back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// Something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// From what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// To what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// Or why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What a line is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "kebab-case")]
pub enum Event {
    /// The host was turned on or off.
    Switch(Change),
    /// A batch is the primary's.
    Passed(BatchFacts),
    /// A hand-back was committed.
    Handback(BatchFacts),
    /// The primary's conversation or process changed.
    Binding(Change),
    /// The person was told that a hand-back was given up.
    Alarm(Change),
}
