//! What keeps a host within its means, and its clocks: `latch.json`, `budget.json`, `producers.json`.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;

/// `latch.json`: the pause after repeated errors of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latch {
    /// For which binding of the primary it counts.
    #[serde(default)]
    pub key: String,
    /// For which engine.
    #[serde(default)]
    pub engine: String,
    /// For which model.
    #[serde(default)]
    pub model: String,
    /// Errors in a row.
    #[serde(default)]
    pub errors: u32,
    /// How long the pause is, in milliseconds; 0 without one.
    #[serde(default)]
    pub cooldown_ms: u64,
    /// When one wake may try it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Stamp>,
    /// When it was paused first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tripped_at: Option<Stamp>,
    /// How often it was paused.
    #[serde(default)]
    pub trip_seq: u64,
}

/// What one turn cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// When it was settled.
    pub at: Stamp,
    /// The turn.
    pub turn: TurnId,
    /// In micro-dollars.
    pub microusd: u64,
    /// The engine said so; else it is what was reserved.
    pub known: bool,
}

/// `budget.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Turns of the window, oldest first.
    #[serde(default)]
    pub charges: VecDeque<Charge>,
    /// When hand-backs were made, of the last hour, oldest first.
    #[serde(default)]
    pub handbacks: VecDeque<Stamp>,
    /// The primary was told that it is used up, in this version of the posture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<u64>,
    /// It was said that it ends soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
}

/// What is known of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// When it ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Stamp>,
    /// What it said then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What it had said when it was acknowledged last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<String>,
    /// When it runs next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Stamp>,
}

/// A session's silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Rows that it raised without any evidence between.
    pub rows: u32,
    /// The evidence that came last before them.
    pub since: Option<Stamp>,
}

/// `producers.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producers {
    /// By the check's name.
    #[serde(default)]
    pub checks: BTreeMap<String, Checked>,
    /// By session.
    #[serde(default)]
    pub silences: BTreeMap<SessionId, Silence>,
    /// Reviews in a row that found nothing.
    #[serde(default)]
    pub streak: u32,
    /// When the next one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Stamp>,
}
