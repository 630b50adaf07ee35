//! What the engine reported: lines of `outcomes.jsonl`, and the two marks over them in `outcomes.json`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::posture::Mode;
use super::row::Kind;
use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;

/// Whether the operator is to hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Dealt with.
    Routine,
    /// For the operator.
    Operator,
}

/// What every report that names no session is of.
pub const FLEET: &str = "@fleet";

/// Whom a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All that the primary supervises.
    Fleet,
    /// One session.
    Session(SessionId),
}

impl Scope {
    /// The session.
    pub fn session(self) -> Option<SessionId> {
        match self {
            Self::Fleet => None,
            Self::Session(id) => Some(id),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fleet => f.write_str(FLEET),
            Self::Session(id) => id.fmt(f),
        }
    }
}

impl FromStr for Scope {
    type Err = <SessionId as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == FLEET { Ok(Self::Fleet) } else { text.parse().map(Self::Session) }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| serde::de::Error::custom("neither a session nor @fleet"))
    }
}

/// One line of `outcomes.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// From 1, without gaps.
    pub seq: u64,
    /// When it was recorded.
    pub at: Stamp,
    /// The turn that did.
    pub turn: TurnId,
    /// Of whom it is.
    pub session: Scope,
    /// Of that session, then.
    #[serde(default)]
    pub incarnation: u64,
    /// For whom.
    pub verdict: Verdict,
    /// Nobody is told.
    #[serde(default)]
    pub silent: bool,
    /// What the engine wrote.
    pub summary: String,
    /// The rows of its turn.
    #[serde(default)]
    pub rows: Vec<u64>,
    /// What had woken it.
    pub trigger: Kind,
    /// The session's newest line then; 0 of the fleet.
    #[serde(default)]
    pub status_ev: u64,
    /// Where the operator was when the turn was claimed.
    pub posture: Mode,
    /// By this version of the record.
    pub posture_version: u64,
    /// For which binding of the primary.
    pub key: String,
    /// It was done under the operator's words.
    #[serde(default)]
    pub mandate: bool,
    /// The operator was back by then.
    #[serde(default)]
    pub late: bool,
    /// An earlier one that says the same of an unchanged session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_of: Option<u64>,
    /// It was reported as routine, and was not.
    #[serde(default)]
    pub upgraded: bool,
}

impl Outcome {
    /// True for what anybody is told.
    pub fn is_visible(&self) -> bool {
        !self.silent
    }

    /// True for one that the operator has to hear of.
    pub fn is_for_operator(&self) -> bool {
        self.verdict == Verdict::Operator
    }
}

/// `outcomes.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The highest number that a drain has shown.
    #[serde(default)]
    pub read: u64,
    /// Up to which the operator's are dealt with.
    #[serde(default)]
    pub processed: u64,
    /// Derived: of each session its newest unprocessed one for the operator. Built anew where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<BTreeMap<String, u64>>,
}
