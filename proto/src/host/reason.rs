//! Why a hand-back is one: a code for scripts, a line for the primary.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bounds::CAUSE_MAX;
use crate::text::line_of;

/// What every line of the host's begins with.
pub const PREFIX: &str = "minder host: ";

macro_rules! codes {
    ($($name:ident = $code:literal, $doc:literal;)*) => {
        /// The code of a host line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $doc] #[serde(rename = $code)] $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in files and in `--json`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

codes! {
    EngineNone = "engine-none", "No engine can be used.";
    EngineMissing = "engine-missing", "Its program is not there.";
    Latched = "latched", "It is paused after errors.";
    AccountHold = "account-hold", "Its account has used up what it may, or its login is dead.";
    Budget = "budget", "What it may cost is used up.";
    OfferError = "offer-error", "Whether it may take the batch could not be found out.";
    QueueUnreadable = "queue-unreadable", "A row cannot be read or placed.";
    ClaimFailed = "claim-failed", "The rows could not be granted.";
    MirrorUnreadable = "mirror-unreadable", "What operator and primary said cannot be read.";
    PromptFailed = "prompt-failed", "The engine's prompt or conversation could not be prepared.";
    MessageFailed = "message-failed", "The wake message could not be written.";
    StartFailed = "start-failed", "The engine's program did not start.";
    TurnTimeout = "turn-timeout", "Its time was over.";
    TurnStalled = "turn-stalled", "It was silent for too long.";
    TurnExit = "turn-exit", "It ended with an error.";
    TurnLost = "turn-lost", "Its turn was lost.";
    TurnCancelled = "turn-cancelled", "Somebody cancelled its turn.";
    ResultIncomplete = "result-incomplete", "It ended without a complete result.";
    ResultError = "result-error", "Its result says error.";
    NoReport = "no-report", "It reported nothing.";
    RowsLeft = "rows-left", "It left rows unacknowledged.";
    PostureUnreadable = "posture-unreadable", "The posture record cannot be read.";
    Returned = "returned", "The operator came back meanwhile.";
    OutcomeNote = "outcome-note", "One outcome of the turn.";
    OutcomesUnverified = "outcomes-unverified", "The outcomes of the turn could not be looked up.";
    Outcome = "outcome", "Outcomes are for the operator.";
    LatchTripped = "latch-tripped", "The engine is paused from now on.";
    Survivors = "survivors", "Processes of the engine's turn could not be killed.";
    Boundary = "boundary", "The park came to its boundary.";
    Repeat = "repeat", "What was told is not acknowledged.";
    NotRecorded = "not-recorded", "The hand-back could not be written down.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of the host's in a hand-back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLine {
    /// For scripts.
    pub code: Code,
    /// For the primary, without [`PREFIX`]; one line.
    pub text: String,
}

/// Whether a wake came while the operator was away: its lines say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The operator was there.
    Here,
    /// The operator was away.
    Away,
}

impl HostLine {
    /// Why an engine could not take a wake.
    pub fn not_taken(code: Code, wake: Wake, why: &str) -> Self {
        Self { code, text: format!("could not take this wake{}: {}", away(wake), one_line(why)) }
    }

    /// Why an engine could not finish a wake.
    pub fn not_finished(code: Code, wake: Wake, why: &str) -> Self {
        Self { code, text: format!("could not finish this wake{}: {}", away(wake), one_line(why)) }
    }

    /// Any other line.
    pub fn new(code: Code, text: &str) -> Self {
        Self { code, text: one_line(text) }
    }
}

impl fmt::Display for HostLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.text)
    }
}

fn away(wake: Wake) -> &'static str {
    if wake == Wake::Away { " (away)" } else { "" }
}

/// Text of somebody else's in one line, bounded, nothing in it that acts on a terminal.
fn one_line(text: &str) -> String {
    line_of(text, CAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_its_word_and_no_two_are_one() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        for (code, word) in Code::ALL.iter().zip(&words) {
            assert_eq!(serde_json::to_value(code).unwrap(), *word);
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn what_an_agent_wrote_is_one_bounded_line() {
        let line = HostLine::not_taken(Code::ClaimFailed, Wake::Away, "a\nb\x1b[2J\u{9b}c");
        assert_eq!(line.to_string(), "minder host: could not take this wake (away): a\\nb\\x1b[2J\\x9bc");
        let long = HostLine::not_finished(Code::TurnExit, Wake::Here, &"ä".repeat(400));
        let cause = long.text.strip_prefix("could not finish this wake: ").unwrap();
        assert!(cause.len() <= CAUSE_MAX && cause.ends_with("ä…"), "{}", cause.len());
    }
}
