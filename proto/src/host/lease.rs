//! Who may change a session at present: `leases.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::Scope;
use crate::id::TurnId;
use crate::stamp::Stamp;

/// Who has a lease, and what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "actor", rename_all = "kebab-case")]
pub enum Holder {
    /// The engine, until its turn is settled.
    Engine {
        /// The turn.
        turn: TurnId,
    },
    /// The primary, until its next park.
    Primary {
        /// The generation of its binding.
        binding: u64,
    },
    /// The person, until it is released.
    Operator,
}

impl Holder {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine { .. } => "engine",
            Self::Primary { .. } => "primary",
            Self::Operator => "operator",
        }
    }
}

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Whose.
    #[serde(flatten)]
    pub holder: Holder,
    /// Greater than that of any before.
    pub fence: u64,
    /// Since when.
    pub at: Stamp,
}

/// `leases.json`, by session or `@fleet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Leases(pub BTreeMap<String, Lease>);

impl Leases {
    /// The lease on a session, or on what has none.
    pub fn of(&self, scope: Scope) -> Option<&Lease> {
        self.0.get(&scope.to_string())
    }
}
