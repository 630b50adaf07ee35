//! An engine turn that runs: `turn.json`; and the conversation that it goes on with: `engine.json`.

use serde::{Deserialize, Serialize};

use super::outcome::{Scope, Verdict};
use super::posture::Mode;
use super::row::Kind;
use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;

/// A report that was recorded under a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The outcome's number.
    pub seq: u64,
    /// What was said.
    pub verdict: Verdict,
    /// Nobody is to be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Of whom.
    pub session: Scope,
}

/// Where an engine's conversation has read the mirror to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The newest entry that it was fed.
    pub seq: u64,
    /// The conversation.
    pub conversation: String,
}

/// `turn.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTurn {
    /// The turn.
    pub turn: TurnId,
    /// What its calls carry: greater than any before.
    pub fence: u64,
    /// SHA-256 of its token, in hexadecimal.
    pub token_sha256: String,
    /// The rows that are granted to it.
    pub rows: Vec<u64>,
    /// Their sessions.
    pub sessions: Vec<SessionId>,
    /// It may report on the fleet as a whole.
    pub unscoped: bool,
    /// What woke it.
    pub trigger: Kind,
    /// Where the operator was when it was claimed.
    pub posture: Mode,
    /// By this version of the record.
    pub posture_version: u64,
    /// The primary's binding then.
    pub binding: u64,
    /// The park then; 0 without one.
    pub park: u64,
    /// Its conversation.
    pub conversation: String,
    /// That conversation was there before.
    pub resume: bool,
    /// Where the mirror's cursor goes if the wake is handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_staged: Option<Cursor>,
    /// When it was claimed.
    pub claimed: Stamp,
    /// By when it is settled at the latest.
    pub deadline: Stamp,
    /// What of the budget is reserved for it, in micro-dollars.
    pub reserved: u64,
    /// Its reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
    /// Rows of it that were acknowledged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acknowledged: Vec<u64>,
    /// It was told to end by somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
}

/// `engine.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Whose.
    pub engine: String,
    /// With which model.
    pub model: String,
    /// Its id.
    pub conversation: String,
    /// For which binding of the primary.
    pub key: String,
    /// Turns that it had.
    pub turns: u32,
    /// What they cost in all, as its harness counts, in micro-dollars.
    pub cost_microusd: u64,
    /// SHA-256 of the prompt that it was begun with, in hexadecimal.
    pub prompt_sha256: String,
}
