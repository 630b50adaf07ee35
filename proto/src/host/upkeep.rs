//! What a host has noticed by the clock alone: `producers.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::stamp::Stamp;

/// A session that works and shows no sign of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The last sign of it.
    pub since: Stamp,
    /// Rows that were raised since.
    pub rows: u32,
    /// When the last of them was.
    pub raised: Stamp,
}

/// `producers.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producers {
    /// By session.
    #[serde(default)]
    pub silences: BTreeMap<SessionId, Silence>,
    /// Reviews in a row that found nothing.
    #[serde(default)]
    pub streak: u32,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Stamp>,
}
