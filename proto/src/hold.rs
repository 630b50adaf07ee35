//! Why a message waits, and what lifts it. The words stand in ledgers and in `minder queue`.

use std::fmt;
use std::str::FromStr;

/// A reason to hold a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A turn runs, and the message's class does not let it in.
    Busy,
    /// A permission dialog or a question to the person is open.
    Dialog,
    /// The session's process is gone, or its channel does not answer.
    Offline,
    /// The conversation is being compacted.
    Compacting,
    /// Nothing wakes this session; it is given at its next boundary.
    NoWakePath,
}

impl Hold {
    /// Every reason.
    pub const ALL: [Self; 5] = [Self::Busy, Self::Dialog, Self::Offline, Self::Compacting, Self::NoWakePath];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Dialog => "dialog",
            Self::Offline => "offline",
            Self::Compacting => "compacting",
            Self::NoWakePath => "no-wake-path",
        }
    }

    /// What lifts it, for people.
    pub fn lifted_by(self) -> &'static str {
        match self {
            Self::Busy => "the end of the turn that runs",
            Self::Dialog => "an answer to the dialog that is open",
            Self::Offline => "its harness running again",
            Self::Compacting => "the end of the compaction",
            Self::NoWakePath => {
                "its next prompt, or minder inbox take in it: nothing wakes this session by itself"
            }
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
    reason.parse::<Hold>().map_or("the next attempt", Hold::lifted_by)
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
        assert_eq!(lifted_by("the printer is out of paper"), "the next attempt");
    }
}
