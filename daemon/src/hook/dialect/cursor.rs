//! Cursor, from its documentation alone: its agent could not be run where the others were, so nothing here was seen.

use super::{Dialect, Event, Form, Means, Takes, heard};

pub const DIALECT: Dialect = Dialect {
    harness: "cursor",
    events: EVENTS,
    renamed: &[
        ("conversation_id", "session_id"),
        ("generation_id", "prompt_id"),
        ("workspace_roots", "cwd"),
        ("error_message", "error"),
    ],
    foreign: &["prompt_id", "turn_id"],
    turn_ids: true,
    wakes: false,
    max_bytes: None,
    form: Form::Cursor,
};

const EVENTS: &[Event] = &[
    heard("sessionStart", Means::Begins, Takes::Nothing),
    heard("beforeSubmitPrompt", Means::Prompt, Takes::Nothing),
    heard("postToolUse", Means::ToolDone, Takes::Nothing),
    heard("stop", Means::TurnEnd, Takes::More),
    heard("sessionEnd", Means::Ends, Takes::Nothing),
    heard("preCompact", Means::CompactionBegins, Takes::Nothing),
];
