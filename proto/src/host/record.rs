//! Which session is a primary: `host.json`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::Process;
use crate::stamp::Stamp;

/// The primary's present conversation and process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// Grows when either is replaced.
    pub generation: u64,
    /// The conversation's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_id: Option<String>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Since when; or since when it is not owned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
}

/// The next numbers that are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// A row's.
    pub row: u64,
    /// Numbers of a newer build.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl Default for Next {
    fn default() -> Self {
        Self { row: 1, unknown: Map::new() }
    }
}

/// The version of `host.json`.
const VERSION: u32 = 1;

/// `host.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The version of this file.
    pub v: u32,
    /// It supervises.
    pub enabled: bool,
    /// The primary's harness when it became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// Its conversation and process.
    #[serde(default)]
    pub binding: Owned,
    /// Numbers.
    #[serde(default)]
    pub next: Next,
    /// Fields of a newer build.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl HostRecord {
    /// One that is off and has nothing.
    pub fn new(harness: Option<String>) -> Self {
        Self {
            v: VERSION,
            enabled: false,
            harness,
            binding: Owned::default(),
            next: Next::default(),
            unknown: Map::new(),
        }
    }
}
