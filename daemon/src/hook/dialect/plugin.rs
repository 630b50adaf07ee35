//! OpenCode and Pi, told by minder's own plugin or extension in them. What it and the daemon agree on:
//!
//! * It runs `minder hook HARNESS` with one JSON object in Claude Code's names: `session_id` (the harness's own id of
//!   the conversation), `hook_event_name`, `cwd`; with `UserPromptSubmit` the `prompt` (the text of the user's message,
//!   whoever sent it), with `PostToolUse` and `PermissionRequest` `tool_name` and `tool_input`, with `Stop`
//!   `last_assistant_message`, with `StopFailure` `error`, with `SessionStart` `source`, with `SessionEnd` `reason`.
//!   `agent_id` is set for a sub-agent's conversation, which is not heard. No turn ids: a prompt while a turn runs joins it.
//! * `Interrupt` is told in place of `Stop` where a person broke the turn off; a `Stop` that follows it is not heard.
//! * `PermissionReplied` is told when a dialog was answered, where the harness says so; else the end of the tool call
//!   does.
//! * The answer is exit 0 with nothing; or exit 0 with `hookSpecificOutput.additionalContext` on standard output
//!   (`SessionStart`), a text to put before the model with the next prompt; or exit 2 with a text on standard error
//!   (`PostToolUse`, `Stop`, and `minder hook HARNESS --wait`), which the plugin sends as a user's message: to a turn
//!   that runs, it enters at the next step. The prompt event of that message has our id in it, which is the evidence.
//!   `stop_hook_active` is set in the `Stop` of a turn that a text of such a `Stop` kept going.
//! * `minder hook HARNESS --wait` is kept beside each conversation from `SessionStart` on, with the payload of that
//!   event, and started again when it ended with a text or when a turn begins or ends without one. It ends with a text
//!   only while no turn runs.
//! * Its process is named in `MINDER_HARNESS_PID`; for tools it sets `MINDER_SESSION` to `HARNESS:ID`, the
//!   harness's own id of the conversation.

use super::{Dialect, Event, Form, Means, Takes, heard};

pub const OPENCODE: Dialect = dialect("opencode");
pub const PI: Dialect = dialect("pi");

const fn dialect(harness: &'static str) -> Dialect {
    Dialect {
        harness,
        events: EVENTS,
        renamed: &[],
        foreign: &["prompt_id", "turn_id", "conversation_id", "generation_id"],
        turn_ids: false,
        wakes: true,
        max_bytes: None,
        form: Form::Claude,
    }
}

/// What a plugin tells.
pub const EVENTS: &[Event] = &[
    heard("SessionStart", Means::Begins, Takes::Context),
    heard("UserPromptSubmit", Means::Prompt, Takes::Nothing),
    heard("PostToolUse", Means::ToolDone, Takes::More),
    heard("PermissionRequest", Means::Dialog, Takes::Nothing),
    heard("PermissionReplied", Means::Answered, Takes::Nothing),
    heard("Stop", Means::TurnEnd, Takes::More),
    heard("StopFailure", Means::TurnFailed, Takes::Nothing),
    heard("Interrupt", Means::Interrupted, Takes::Nothing),
    heard("SessionEnd", Means::Ends, Takes::Nothing),
    heard("PreCompact", Means::CompactionBegins, Takes::Nothing),
    heard("PostCompact", Means::CompactionEnds, Takes::Nothing),
];
