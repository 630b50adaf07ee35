//! What operator and primary said lately: lines of `mirror.jsonl`, and how far the engine has read, in `mirror.json`.

use serde::{Deserialize, Serialize};

use super::turn::Cursor;
use crate::stamp::Stamp;

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// The person.
    Operator,
    /// The session that the person talks to.
    Primary,
}

/// One line of `mirror.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Greater than that of every line before.
    pub seq: u64,
    /// When it was said.
    pub at: Stamp,
    /// In which binding of the primary.
    pub key: String,
    /// The harness's id of it.
    pub id: String,
    /// Who.
    pub tag: Tag,
    /// What, at most [`MIRROR_ENTRY`](super::bounds::MIRROR_ENTRY) characters.
    pub text: String,
}

/// `mirror.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorMark {
    /// How far the engine has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}
