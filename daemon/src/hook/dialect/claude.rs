//! Claude Code, as seen in 2.1.197 and 2.1.332.

use super::{Dialect, Event, Form, Means, Takes, heard};

pub const DIALECT: Dialect = Dialect {
    harness: "claude",
    events: EVENTS,
    renamed: &[],
    foreign: &["turn_id", "conversation_id", "generation_id"],
    turn_ids: true,
    wakes: true,
    max_bytes: None,
    form: Form::Claude,
};

const EVENTS: &[Event] = &[
    heard("SessionStart", Means::Begins, Takes::Context),
    heard("UserPromptSubmit", Means::Prompt, Takes::Context),
    heard("PostToolUse", Means::ToolDone, Takes::Context),
    heard("PostToolUseFailure", Means::ToolDone, Takes::Context),
    heard("PermissionRequest", Means::Dialog, Takes::Nothing),
    heard("Stop", Means::TurnEnd, Takes::More),
    heard("StopFailure", Means::TurnFailed, Takes::Nothing),
    heard("SessionEnd", Means::Ends, Takes::Nothing),
    heard("PreCompact", Means::CompactionBegins, Takes::Nothing),
    heard("PostCompact", Means::CompactionEnds, Takes::Nothing),
];
