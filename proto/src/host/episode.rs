//! The one open hand-back of a host: `episode.json`.

use serde::{Deserialize, Serialize};

use super::reason::HostLine;
use crate::id::MessageId;
use crate::stamp::Stamp;

/// How far a hand-back got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Committed, and given to nobody.
    Pending,
    /// A park has printed it and said so.
    Handed,
    /// The primary knows it.
    Seen,
    /// Nothing is owed.
    #[default]
    Closed,
    /// It was given or repeated as often as it is; the operator was told.
    Stuck,
}

/// Why there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A batch is the primary's.
    Batch,
    /// A drain showed rows.
    Drain,
}

/// `episode.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// Grows with each one; 0 before the first.
    pub generation: u64,
    /// The message that it became where nobody waited for it: the primary's own channel gives that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<MessageId>,
    /// How far it is.
    pub stage: Stage,
    /// Why it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The rows that its text names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<u64>,
    /// What the host says with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<HostLine>,
    /// When it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Stamp>,
    /// When it came to its stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// How often a park was given it under this generation.
    #[serde(default)]
    pub given: u32,
    /// How often its rows were told again, over generations.
    #[serde(default)]
    pub announced: u32,
    /// The person was told that nobody is there to be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alarmed: bool,
    /// When they are told again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_announce: Option<Stamp>,
}
