//! What a line of a typed stream (JSON lines) means for the windows, as data: an adapter lists which events are progress
//! and where a tool call begins and ends. Everything else (a heartbeat, a status tick) is bytes and no progress.

use serde::{Deserialize, Serialize};

/// The rules of one adapter's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// A line is progress if any of these fits.
    pub progress: Vec<Shape>,
    /// A tool call begins.
    #[serde(default)]
    pub tool_start: Vec<Tool>,
    /// A tool call ends.
    #[serde(default)]
    pub tool_end: Vec<Tool>,
    /// The line with the final answer: what does not exit within the grace after it is ended without being a failure.
    /// Progress or a tool call that begins takes that back, and it does not run while a tool call is open: a harness with
    /// several messages answers each, and one with a background task goes on when that has ended.
    #[serde(default)]
    pub result: Vec<Shape>,
    /// Such a line that says that the run failed: what does not exit within the exit wait after it is ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Shape>,
}

/// Fields that a JSON object must have: each a dotted path (`item.type`) and the string that stands there, or `true` or `false`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(pub Vec<(String, String)>);

/// Where in a line a tool call begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The line.
    pub line: Shape,
    /// The path of an array in it whose items are looked at; the line itself where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// The item, or the line.
    #[serde(default)]
    pub item: Shape,
    /// The path of the call's id in the item.
    pub id: String,
    /// It is work that a call began and that may go on behind it: it holds the window as a call does, and counts as none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task: bool,
}
