//! `store.*`.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;

/// `store.compact`: makes the store as small as it can be without anything that counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
}

/// Answer to `store.compact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactAnswer {
    /// Ledgers and lists of keys that were rewritten.
    pub rewritten: usize,
    /// Bytes of them that went.
    pub shorter: u64,
    /// Bytes of journal that went.
    pub journal: u64,
    /// Folders that left the trash.
    pub trashed: usize,
    /// Sealed segments of timelines that were dropped.
    pub segments: usize,
}

impl Call for Compact {
    const METHOD: &'static str = "store.compact";
    const LONG: bool = true;
    type Answer = CompactAnswer;
}
