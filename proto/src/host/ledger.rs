//! What a host did, a line each in `log.jsonl`. No text of a message, a prompt or a summary is in it.

use serde::{Deserialize, Serialize};

use super::posture::Mode;
use super::reason::Code;
use super::row::Kind;
use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;
use crate::turn::Failure;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Stamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What one engine turn came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnFacts {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Where the operator was.
    pub posture: Mode,
    /// What woke it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Kind>,
    /// Its rows.
    pub rows: Vec<u64>,
    /// Their sessions.
    pub sessions: Vec<SessionId>,
    /// Reports.
    pub reports: u32,
    /// Of these, those for the operator.
    pub operator: u32,
    /// Of these, those that nobody is told of.
    pub silent: u32,
    /// Rows that were left.
    pub unacked: Vec<u64>,
    /// Its exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The runner's word for what it failed of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// It counts for the latch.
    pub engine_error: bool,
    /// Why it handled nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<Code>,
    /// What it cost, in micro-dollars.
    pub cost_microusd: u64,
    /// The engine said so.
    pub cost_known: bool,
    /// What its conversation cost so far, in micro-dollars.
    pub conversation_cost_microusd: u64,
    /// Its conversation.
    pub conversation: String,
    /// Turns of that, this one included.
    pub conv_turns: u32,
    /// Tokens that went in anew.
    pub input: u64,
    /// Tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Tokens that were written to it.
    pub cache_write: u64,
    /// Tokens that came out.
    pub output: u64,
    /// Calls of the model.
    pub model_turns: u64,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Beginning of the hash of its prompt.
    pub prompt_sha8: String,
}

/// What became of a batch without a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// Its rows.
    pub rows: Vec<u64>,
    /// Where the operator was.
    pub posture: Mode,
    /// Why, in a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The generation of the hand-back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Who consumed the rows, where somebody had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
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
    /// An engine handled its wake.
    Handled(TurnFacts),
    /// An engine did not.
    Failed(TurnFacts),
    /// A batch was the primary's.
    Passed(BatchFacts),
    /// A hand-back was committed.
    Handback(BatchFacts),
    /// A batch had nothing left in it.
    Noop(BatchFacts),
    /// A batch is kept for later.
    Held(BatchFacts),
    /// A park began.
    Park {
        /// Its generation.
        park: u64,
        /// The primary's harness.
        harness: String,
    },
    /// A park ended.
    ParkEnd {
        /// Its generation.
        park: u64,
        /// How.
        result: String,
        /// After how long, in seconds.
        elapsed_s: u64,
    },
    /// The posture changed.
    Posture(Change),
    /// The primary's conversation or process did.
    Binding(Change),
    /// What may be spent.
    Budget(Change),
    /// The clock was set, or the machine slept.
    ClockJump(Change),
    /// The operator was told by the alarm.
    Alarm(Change),
    /// A daemon took over a turn of an earlier one.
    Adopted(Change),
    /// Somebody came with the token of a closed turn.
    StaleToken(Change),
    /// The latch moved.
    Latch {
        /// `tripped`, `probe-failed` or `recovered`.
        what: LatchMove,
        /// Errors in a row.
        errors: u32,
        /// The pause, in seconds.
        cooldown_s: u64,
        /// Until when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Stamp>,
    },
}

/// How the latch moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatchMove {
    /// It pauses the engine now.
    Tripped,
    /// The wake that tried it failed too.
    ProbeFailed,
    /// The engine works again.
    Recovered,
}
