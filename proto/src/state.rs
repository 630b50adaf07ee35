//! What a session can declare, and the sets of states that follows and watches are asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A session's declared state (the contract's table in `cli.md`, "States").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waits for a free place; minder says it.
    Queued,
    /// A turn runs; hooks say it.
    Working,
    /// The turn is over; hooks say it.
    Idle,
    /// Something will wake it by itself.
    Parked,
    /// Cannot go on without an answer.
    Asking,
    /// There is work that somebody should look at.
    Review,
    /// Finished, needs no look.
    Done,
    /// All is settled; the session may be closed.
    ClosePending,
    /// The turn or the process died.
    Error,
}

impl State {
    /// Every state, in the order of the contract.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Working,
        Self::Idle,
        Self::Parked,
        Self::Asking,
        Self::Review,
        Self::Done,
        Self::ClosePending,
        Self::Error,
    ];

    /// The word on disk and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Idle => "idle",
            Self::Parked => "parked",
            Self::Asking => "asking",
            Self::Review => "review",
            Self::Done => "done",
            Self::ClosePending => "close-pending",
            Self::Error => "error",
        }
    }

    /// True for a state that somebody should act on.
    pub fn is_actionable(self) -> bool {
        matches!(self, Self::Asking | Self::Review | Self::Done | Self::ClosePending | Self::Error)
    }

    /// How urgently a list shows it: smaller comes first.
    pub fn rank(self) -> u8 {
        match self {
            Self::Asking => 0,
            Self::Error => 1,
            Self::Review => 2,
            Self::Done => 3,
            Self::ClosePending => 4,
            Self::Idle => 5,
            Self::Parked => 6,
            Self::Working => 7,
            Self::Queued => 8,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no state.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no such state: {0:?} (queued, working, idle, parked, asking, review, done, close-pending, error)")]
pub struct BadState(pub String);

impl FromStr for State {
    type Err = BadState;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == text)
            .ok_or_else(|| BadState(text.chars().take(40).collect()))
    }
}

/// A set of states, and whether a `turn_end` (a turn over with nothing declared) counts as a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateSet {
    bits: u16,
    turn_end: bool,
}

impl StateSet {
    /// The default of a follow: the actionable states, and a turn that ended with nothing declared.
    pub const ACTIONABLE: Self = Self { bits: 0b1_1111_0000, turn_end: true };
    /// Every state.
    pub const ALL: Self = Self { bits: 0b1_1111_1111, turn_end: true };
    /// The default of a durable watch: everything but `working`, which would cost a model turn to say nothing.
    pub const WATCH: Self = Self { bits: 0b1_1111_1101, turn_end: true };

    /// The set of just these states.
    pub fn of(states: &[State]) -> Self {
        Self {
            bits: states.iter().fold(0, |bits, s| bits | (1 << *s as u16)),
            turn_end: states.contains(&State::Idle),
        }
    }

    /// True if a line that declares `state` (a `turn_end` or not) is in the set.
    pub fn contains(self, state: State, turn_end: bool) -> bool {
        self.bits & (1 << state as u16) != 0 || (turn_end && self.turn_end)
    }
}

impl FromStr for StateSet {
    type Err = BadState;
    /// A comma list of states; `all`, `actionable` and `turn-end` are words of it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = Self { bits: 0, turn_end: false };
        for word in text.split(',') {
            let part = match word {
                "all" => Self::ALL,
                "actionable" => Self::ACTIONABLE,
                "turn-end" => Self { bits: 0, turn_end: true },
                word => Self::of(&[word.parse()?]),
            };
            set.bits |= part.bits;
            set.turn_end |= part.turn_end;
        }
        Ok(set)
    }
}

impl fmt::Display for StateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => return f.write_str("all"),
            Self::ACTIONABLE => return f.write_str("actionable"),
            _ => {}
        }
        let mut words: Vec<_> =
            State::ALL.into_iter().filter(|s| self.contains(*s, false)).map(State::as_str).collect();
        if self.turn_end && !self.contains(State::Idle, false) {
            words.push("turn-end");
        }
        f.write_str(&words.join(","))
    }
}

impl Serialize for StateSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StateSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_actionable_set_is_the_actionable_states() {
        for state in State::ALL {
            assert_eq!(StateSet::ACTIONABLE.contains(state, false), state.is_actionable(), "{state}");
            assert!(StateSet::ALL.contains(state, false));
            assert_eq!(StateSet::WATCH.contains(state, false), state != State::Working);
        }
        assert!(StateSet::ACTIONABLE.contains(State::Idle, true));
        assert!(!"idle".parse::<StateSet>().unwrap().contains(State::Review, false));
    }

    #[test]
    fn sets_read_back() {
        for text in ["all", "actionable", "done", "asking,review", "idle", "working,turn-end"] {
            assert_eq!(text.parse::<StateSet>().unwrap().to_string(), text);
        }
        assert!("".parse::<StateSet>().is_err());
        assert!("done,".parse::<StateSet>().is_err());
        assert!("offline".parse::<StateSet>().is_err());
    }
}
