//! The words of a turn: how it ended, what failed, who says so, what kind of failure that is for a retry policy, and
//! what its trace may hold. Each is a value that is set where it arises; text is never searched for a name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An enum of fixed words: the word on disk, the way back, and all of them.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|w| w.as_str() == text).ok_or(UnknownWord)
            }
        }
    };
}

/// A word that is none of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such word")]
pub struct UnknownWord;

words! {
    /// What became of a turn.
    Outcome {
        /// The reply reached whom it was for.
        Delivered = "delivered",
        /// There was nothing to say, and that was the answer.
        Silent = "silent",
        /// The run failed.
        Failed = "failed",
        /// There was a reply, and nobody took it.
        ReplyLost = "reply_lost",
        /// An outer loop lost its own lease and gave the reply to nobody.
        ClaimLost = "claim_lost",
        /// The server that the reply was for took it and made nothing of it.
        ServerSkipped = "server_skipped",
        /// The server that the reply was for refused it.
        ServerRefused = "server_refused",
        /// The model's side refused, and the run had nothing to say.
        UpstreamRefused = "upstream_refused",
        /// A caller named an outcome that is none of these.
        Unknown = "unknown",
    }
}

impl Outcome {
    /// True for the two that are well.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Delivered | Self::Silent)
    }
}

/// What a reply says that is to be none: a turn that had nothing to say.
pub const NO_REPLY: &str = "NO_REPLY";

/// True for a reply that is empty, or [`NO_REPLY`] alone.
pub fn is_silent(reply: &[u8]) -> bool {
    let reply = reply.trim_ascii();
    reply.is_empty() || reply == NO_REPLY.as_bytes()
}

words! {
    /// What failed.
    Failure {
        /// No progress for the stall window.
        Stall = "stall",
        /// The budget and the backstop were over.
        WallClock = "wall_clock",
        /// Somebody took it back.
        Cancelled = "cancelled",
        /// The process could not be started.
        SpawnFailed = "spawn_failed",
        /// The working directory is not there.
        CwdMissing = "cwd_missing",
        /// No such program.
        NotFound = "not_found",
        /// The program may not be executed.
        NotExecutable = "not_executable",
        /// More output than is kept, where that was to fail (`turn.overflow`).
        OutputOverflow = "output_overflow",
        /// The shim was gone and had left no result.
        SupervisorLost = "supervisor_lost",
        /// The adapter's own budget was over.
        AdapterTimeout = "adapter_timeout",
        /// The process ended with a code or a signal.
        AdapterExit = "adapter_exit",
        /// What the harness said could not be understood.
        AdapterError = "adapter_error",
        /// A typed result says that it failed.
        AdapterResult = "adapter_result",
        /// The model's side refused.
        UpstreamRefused = "upstream_refused",
    }
}

impl Failure {
    /// Whose word it is.
    pub fn source(self) -> Source {
        match self {
            Self::Stall
            | Self::WallClock
            | Self::Cancelled
            | Self::SpawnFailed
            | Self::CwdMissing
            | Self::NotFound
            | Self::NotExecutable
            | Self::OutputOverflow
            | Self::SupervisorLost => Source::Supervisor,
            Self::AdapterTimeout
            | Self::AdapterExit
            | Self::AdapterError
            | Self::AdapterResult
            | Self::UpstreamRefused => Source::Adapter,
        }
    }
}

words! {
    /// Who says that it failed.
    Source {
        /// minder.
        Supervisor = "supervisor",
        /// The harness.
        Adapter = "adapter",
    }
}

words! {
    /// What kind of failure it is, for the caller's retry policy.
    Class {
        /// What was paid for, or allowed in a period, is used up.
        Quota = "quota",
        /// Too many requests just now.
        RateLimit = "rate_limit",
        /// A login, a key, a model or a flag is wrong: the same call fails again.
        Configuration = "configuration",
        /// The other side is overloaded, down or out of reach.
        Unavailable = "unavailable",
        /// Anything else.
        Runtime = "runtime",
    }
}

words! {
    /// What a turn's trace may hold.
    TraceKind {
        /// The turn began.
        Started = "turn.started",
        /// Its process runs.
        Spawned = "turn.spawned",
        /// The first output.
        FirstOutput = "turn.first_output",
        /// No progress for the window.
        Stalled = "liveness.stalled",
        /// Progress again.
        Resumed = "liveness.resumed",
        /// A rung of the ladder.
        Recovery = "liveness.recovery",
        /// The process ended.
        Exited = "turn.exited",
        /// The turn is settled; nothing follows.
        Settled = "turn.settled",
    }
}

words! {
    /// A rung of the ladder.
    Action {
        /// The adapter's own way to end a run.
        Cancel = "cancel",
        /// SIGKILL of the whole tree.
        Kill = "kill",
    }
}

words! {
    /// What set the ladder off.
    Trigger {
        /// No progress for the window.
        Stall = "stall",
        /// The budget: only what the harness's own time-out would send.
        Budget = "budget",
        /// The budget and the backstop: the tree is killed at once.
        WallClock = "wall_clock",
        /// Somebody takes the turn back.
        Cancel = "cancel",
        /// The surroundings end it: a host's boundary, the daemon's `stop --now`, a signal to the shim.
        Boundary = "boundary",
        /// More output than is kept, where that is to fail.
        Overflow = "overflow",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_to_disk_and_back() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(*outcome));
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        for failure in Failure::ALL {
            assert_eq!(failure.as_str().parse(), Ok(*failure));
        }
        assert_eq!("done".parse::<Outcome>(), Err(UnknownWord));
    }

    #[test]
    fn silence_is_an_empty_reply_or_the_word_for_it() {
        for silent in ["", " \n", "NO_REPLY", "\nNO_REPLY\n"] {
            assert!(is_silent(silent.as_bytes()), "{silent:?}");
        }
        for reply in ["no_reply", "NO_REPLY.", "NO_REPLY NO_REPLY", "0"] {
            assert!(!is_silent(reply.as_bytes()), "{reply:?}");
        }
    }

    #[test]
    fn only_a_reply_that_arrived_and_a_chosen_silence_are_well() {
        let well: Vec<_> = Outcome::ALL.iter().filter(|o| o.is_ok()).collect();
        assert_eq!(well, [&Outcome::Delivered, &Outcome::Silent]);
    }
}
