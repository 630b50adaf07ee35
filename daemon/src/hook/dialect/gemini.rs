//! Gemini, as seen in 0.61.0. What keeps a turn going reaches its model as a user's message, and `BeforeAgent` tells it
//! as a prompt: that is the evidence. Of what another event brings to the model there is none, so only the start brings
//! something. Nothing wakes it. It tells that it compacts before each call of its model, and never the end of that: this is not
//! heard, lest it hold a message for ever.

use super::{Dialect, Event, Form, Means, Takes, heard};

pub const DIALECT: Dialect = Dialect {
    harness: "gemini",
    events: EVENTS,
    renamed: &[("prompt_response", "last_assistant_message")],
    foreign: &["prompt_id", "turn_id", "conversation_id", "generation_id"],
    turn_ids: false,
    wakes: false,
    max_bytes: None,
    form: Form::Claude,
};

const EVENTS: &[Event] = &[
    heard("SessionStart", Means::Begins, Takes::Context),
    heard("BeforeAgent", Means::Prompt, Takes::Nothing),
    heard("AfterTool", Means::ToolDone, Takes::Nothing),
    heard("Notification", Means::Notification, Takes::Nothing),
    heard("AfterAgent", Means::TurnEnd, Takes::More),
    heard("SessionEnd", Means::Ends, Takes::Nothing),
];
