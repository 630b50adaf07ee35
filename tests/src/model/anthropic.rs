//! The Anthropic Messages format: `POST /v1/messages`, streamed and plain, and the counting of tokens.

use std::io;

use serde_json::{Value, json};
use uuid::Uuid;

use super::http::Responder;
use super::reply::{Answer, End};
use super::script::{Conversation, Role, Text};
use super::{Ask, Wire};

pub struct Messages;

impl Wire for Messages {
    fn read(&self, path: &str, body: &Value) -> Option<Ask> {
        if path.ends_with("/messages/count_tokens") {
            return Some(Ask::Fixed(json!({"input_tokens": body.to_string().len() / 4})));
        }
        if !path.ends_with("/messages") {
            return None;
        }
        Some(Ask::Generate {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            session: session(body),
            conversation: conversation(body),
            stream: body["stream"] == true,
        })
    }

    fn answer(&self, answer: &Answer<'_>, out: &mut Responder<'_>) -> io::Result<()> {
        if answer.stream { streamed(answer, out) } else { plain(answer, out) }
    }

    fn error(&self, status: u16) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": "scripted"}})
    }

    fn limit(&self, until: u64) -> (Vec<(&'static str, String)>, Value) {
        let headers = vec![
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-reset", until.to_string()),
            ("anthropic-ratelimit-unified-representative-claim", "seven_day".to_owned()),
            ("x-should-retry", "false".to_owned()),
        ];
        (headers, self.error(429))
    }
}

/// Claude Code sends a JSON object as text in the field that the API has for the caller's user.
fn session(body: &Value) -> Option<String> {
    let user: Value = serde_json::from_str(body["metadata"]["user_id"].as_str()?).ok()?;
    Some(user["session_id"].as_str()?.to_owned())
}

/// The messages as texts. A user message may hold tool results, reminders and several typed texts, which are
/// kept apart. An assistant message is one entry, whatever it holds.
fn conversation(body: &Value) -> Conversation {
    let mut texts = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let blocks = blocks(&message["content"]);
        match message["role"].as_str() {
            Some("assistant") => {
                let said: Vec<_> = blocks.into_iter().filter(|b| b.role == Role::User).collect();
                let text = said.into_iter().map(|b| b.text).collect::<Vec<_>>().join("\n");
                texts.push(Text { role: Role::Assistant, text });
            }
            Some("system") => texts.extend(blocks.into_iter().map(|b| Text { role: Role::System, ..b })),
            _ => texts.extend(blocks),
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
    Conversation { texts, tools }
}

/// The texts of a message's content, in order: typed ones as `User`, results as `Tool`.
fn blocks(content: &Value) -> Vec<Text> {
    if let Some(text) = content.as_str() {
        return vec![Text { role: Role::User, text: text.to_owned() }];
    }
    let mut texts = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        if block["type"] == "tool_result" {
            let results = blocks(&block["content"]).into_iter().map(|b| b.text);
            texts.push(Text { role: Role::Tool, text: results.collect::<Vec<_>>().join("\n") });
        } else if let Some(text) = block["text"].as_str().filter(|text| !text.trim().is_empty()) {
            texts.push(Text { role: Role::User, text: text.to_owned() });
        }
    }
    texts
}

fn plain(answer: &Answer<'_>, out: &mut Responder<'_>) -> io::Result<()> {
    for pause in answer.pauses {
        answer.pauser.play(pause, || Ok(()))?;
    }
    let (block, stop) = match &answer.end {
        // The head of a plain answer tells its length, so there is no half of one: it is cut before it.
        End::Cut => return Ok(()),
        End::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
        End::Tool { name, input } => {
            (json!({"type": "tool_use", "id": id("toolu_"), "name": name, "input": input}), "tool_use")
        }
    };
    let mut message = head(answer);
    message["content"] = json!([block]);
    message["stop_reason"] = stop.into();
    out.json(200, &message)
}

fn streamed(answer: &Answer<'_>, out: &mut Responder<'_>) -> io::Result<()> {
    out.start_events()?;
    out.event("message_start", &json!({"type": "message_start", "message": head(answer)}))?;
    // A drip opens a text block of its own, before whatever the answer is.
    let mut index = 0;
    let mut dripping = false;
    for pause in answer.pauses {
        answer.pauser.play(pause, || {
            if !dripping {
                start(out, index, &json!({"type": "text", "text": ""}))?;
                dripping = true;
            }
            delta(out, index, &json!({"type": "text_delta", "text": "drip "}))
        })?;
        if dripping {
            stop(out, index)?;
            dripping = false;
            index += 1;
        }
    }
    let reason = match &answer.end {
        End::Cut => {
            start(out, index, &json!({"type": "text", "text": ""}))?;
            return delta(out, index, &json!({"type": "text_delta", "text": "half an ans"}));
        }
        End::Say(text) => {
            start(out, index, &json!({"type": "text", "text": ""}))?;
            delta(out, index, &json!({"type": "text_delta", "text": text}))?;
            "end_turn"
        }
        End::Tool { name, input } => {
            let block = json!({"type": "tool_use", "id": id("toolu_"), "name": name, "input": {}});
            start(out, index, &block)?;
            delta(out, index, &json!({"type": "input_json_delta", "partial_json": input.to_string()}))?;
            "tool_use"
        }
    };
    stop(out, index)?;
    let end = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 10}});
    out.event("message_delta", &end)?;
    out.event("message_stop", &json!({"type": "message_stop"}))
}

fn head(answer: &Answer<'_>) -> Value {
    json!({
        "id": id("msg_"), "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": 1,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    })
}

fn start(out: &mut Responder<'_>, index: usize, block: &Value) -> io::Result<()> {
    let event = json!({"type": "content_block_start", "index": index, "content_block": block});
    out.event("content_block_start", &event)
}

fn delta(out: &mut Responder<'_>, index: usize, delta: &Value) -> io::Result<()> {
    let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
    out.event("content_block_delta", &event)
}

fn stop(out: &mut Responder<'_>, index: usize) -> io::Result<()> {
    out.event("content_block_stop", &json!({"type": "content_block_stop", "index": index}))
}

fn id(prefix: &str) -> String {
    format!("{prefix}{}", Uuid::new_v4().simple())
}
