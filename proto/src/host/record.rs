//! Which session is a primary and what parks for it: `host.json`.

use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::record::Process;
use crate::stamp::Stamp;

/// What waits on behalf of an idle primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArmOwner {
    /// Claude Code's waiting hook.
    ClaudeHook,
    /// Cursor's stop hook.
    CursorHook,
    /// OpenCode's plugin.
    OpencodePlugin,
    /// An extension of omp's.
    OmpExtension,
    /// A background command that Grok's model runs.
    GrokBackground,
    /// A command in the foreground that Codex's model runs.
    CodexCheckpoint,
    /// Pi's extension, which takes batches itself.
    PiExtension,
}

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

/// A park that is live, or was last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// Grows with every park that is accepted.
    pub generation: u64,
    /// Its id, by which its client finds it again after a restart of the daemon.
    pub id: TurnId,
    /// Who waits.
    pub owner: ArmOwner,
    /// When it began.
    pub started: Stamp,
    /// On the clock that counts suspends, in milliseconds: when it began.
    pub started_boot_ms: u64,
    /// After how long it ends by itself, in milliseconds.
    pub boundary_ms: u64,
    /// After how long it could be ended from outside, in milliseconds.
    pub limit_ms: u64,
    /// It is the turn: the model waits in the foreground.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
}

/// The next numbers that are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// A row's.
    pub row: u64,
    /// An outcome's.
    pub outcome: u64,
    /// A fence's.
    pub fence: u64,
    /// An entry's of the mirror.
    pub mirror: u64,
}

impl Default for Next {
    fn default() -> Self {
        Self { row: 1, outcome: 1, fence: 1, mirror: 1 }
    }
}

/// `host.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The version of this file.
    pub v: u32,
    /// It supervises.
    pub enabled: bool,
    /// Which engine, where somebody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Which model, where somebody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The primary's harness when it became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// Its conversation and process.
    #[serde(default)]
    pub binding: Owned,
    /// What parks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park: Option<Park>,
    /// Numbers.
    #[serde(default)]
    pub next: Next,
}
