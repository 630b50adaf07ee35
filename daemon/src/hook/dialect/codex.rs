//! Codex, as seen in 0.171.0. `SessionStart` comes with the first prompt, not with the start of the program. An
//! interrupt is told. Text over some 10 KB is cut in its middle. Nothing wakes it: a command that ends in the
//! background starts no turn.

use super::{Dialect, Event, Form, Means, Takes, heard};

pub const DIALECT: Dialect = Dialect {
    harness: "codex",
    events: EVENTS,
    renamed: &[("turn_id", "prompt_id")],
    foreign: &["prompt_id", "conversation_id", "generation_id"],
    turn_ids: true,
    wakes: false,
    max_bytes: Some(9_000),
    form: Form::Claude,
};

const EVENTS: &[Event] = &[
    heard("SessionStart", Means::Begins, Takes::Context),
    heard("UserPromptSubmit", Means::Prompt, Takes::Context),
    // Its exit code 2 would replace what the tool gave.
    heard("PostToolUse", Means::ToolDone, Takes::Context),
    heard("PermissionRequest", Means::Dialog, Takes::Nothing),
    heard("Stop", Means::TurnEnd, Takes::More),
    heard("Interrupt", Means::Interrupted, Takes::Nothing),
    heard("SessionEnd", Means::Ends, Takes::Nothing),
    heard("PreCompact", Means::CompactionBegins, Takes::Nothing),
    heard("PostCompact", Means::CompactionEnds, Takes::Nothing),
];
