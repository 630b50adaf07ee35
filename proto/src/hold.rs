//! Why a message waits, and what lifts it. The words stand in ledgers and in `minder queue`.

use std::fmt;
use std::str::FromStr;

use crate::account::IN_USE;

/// A reason to hold a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A turn runs, and the message's class does not let it in.
    Busy,
    /// A permission dialog or a question to the person is open.
    Dialog,
    /// Its harness was started and is not up yet, or took nothing of what was typed.
    NotReady,
    /// The session's process is gone, or its channel does not answer.
    Offline,
    /// The conversation is being compacted.
    Compacting,
    /// Nothing wakes this session; it is given at its next boundary.
    NoWakePath,
    /// As many turns of sessions run as may.
    Capacity,
    /// The account has used up what it may use.
    UsageLimit,
    /// The login or key is missing, dead or refused.
    Auth,
    /// Its turns failed too often in a row.
    Circuit,
    /// Somebody is typing, or half a prompt stands where it would be typed.
    Draft,
    /// Its pane shows what was, not what is.
    CopyMode,
    /// Another program has its pane.
    WrongProcess,
    /// What its terminal shows is not known.
    Unknown,
    /// Its text stands in the terminal, and Enter was not pressed or not taken.
    NotSubmitted,
    /// Other text stands in the terminal than was typed.
    Differs,
    /// A host supervises for this session: the news is in its wake queue.
    Posture,
}

impl Hold {
    /// Every reason.
    pub const ALL: [Self; 17] = [
        Self::Busy,
        Self::Dialog,
        Self::NotReady,
        Self::Offline,
        Self::Compacting,
        Self::NoWakePath,
        Self::Capacity,
        Self::UsageLimit,
        Self::Auth,
        Self::Circuit,
        Self::Draft,
        Self::CopyMode,
        Self::WrongProcess,
        Self::Unknown,
        Self::NotSubmitted,
        Self::Differs,
        Self::Posture,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Dialog => "dialog",
            Self::NotReady => "not-ready",
            Self::Offline => "offline",
            Self::Compacting => "compacting",
            Self::NoWakePath => "no-wake-path",
            Self::Capacity => "capacity",
            Self::UsageLimit => "usage-limit",
            Self::Auth => "auth",
            Self::Circuit => "circuit",
            Self::Draft => "draft",
            Self::CopyMode => "copy-mode",
            Self::WrongProcess => "wrong-process",
            Self::Unknown => "unknown",
            Self::NotSubmitted => "not-submitted",
            Self::Differs => "differs",
            Self::Posture => "posture",
        }
    }

    /// What lifts it, for people.
    pub fn lifted_by(self) -> &'static str {
        match self {
            Self::Busy => "the end of the turn that runs",
            Self::Dialog => "an answer to the dialog that is open",
            Self::NotReady => "its harness being up",
            Self::Offline => "its harness running again",
            Self::Compacting => "the end of the compaction",
            Self::NoWakePath => {
                "its next prompt, or minder inbox take in it: nothing wakes this session by itself"
            }
            Self::Capacity => "the end of a turn of another session",
            Self::UsageLimit => "the reset of the account's limit, or minder account release",
            Self::Auth => "a login or key that works, then minder account release",
            Self::Circuit => "a turn that succeeds, tried now and then, or minder account release",
            Self::Draft => "an empty prompt, and nobody typing for some seconds",
            Self::CopyMode => "the end of copy mode in its pane",
            Self::WrongProcess => "its harness in front in its pane, or minder set with another one",
            Self::Unknown => "a prompt in its pane that minder knows",
            Self::NotSubmitted => "its text alone in the prompt, and an Enter that is taken",
            Self::Differs => "the prompt being emptied: what stands there is not what was typed",
            Self::Posture => "minder host drain and minder host ack in it, or minder host disable",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Hold {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|h| h.as_str() == text).ok_or(())
    }
}

/// What lifts the hold of a ledger's reason, as the end of "goes on with …": a program of the user's may give reasons of
/// its own.
pub fn lifted_by(reason: &str) -> &'static str {
    if reason == format!("{}({IN_USE})", Hold::WrongProcess) {
        return "the end of the process that has its conversation, then minder account release";
    }
    of_reason(reason).map_or("the next attempt", Hold::lifted_by)
}

/// The hold that a ledger's reason is; a word may be followed by more of it in brackets: `usage-limit(…)`.
pub fn of_reason(reason: &str) -> Option<Hold> {
    reason.split_once('(').map_or(reason, |(word, _)| word).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hold_has_its_word_and_says_what_lifts_it() {
        for hold in Hold::ALL {
            assert_eq!(hold.as_str().parse(), Ok(hold));
            assert_eq!(lifted_by(hold.as_str()), hold.lifted_by());
        }
        assert_eq!(of_reason("usage-limit(2026-11-30T12:00:00.000Z)"), Some(Hold::UsageLimit));
        assert_eq!(lifted_by("the printer is out of paper"), "the next attempt");
        assert_eq!(of_reason("wrong-process(in use)"), Some(Hold::WrongProcess));
        assert!(lifted_by("wrong-process(in use)").ends_with("minder account release"));
    }
}
