//! The OpenAI Responses format, as Codex speaks it: `POST /v1/responses`, streamed.

use std::io;

use serde_json::{Value, json};
use uuid::Uuid;

use super::http::Responder;
use super::reply::{Answer, End};
use super::script::{Conversation, Role, Text};
use super::{Ask, Wire};

pub struct Responses;

impl Wire for Responses {
    fn read(&self, path: &str, body: &Value) -> Option<Ask> {
        path.ends_with("/responses").then(|| Ask::Generate {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            session: body["prompt_cache_key"].as_str().map(str::to_owned),
            conversation: conversation(body),
            stream: body["stream"] == true,
        })
    }

    fn answer(&self, answer: &Answer<'_>, out: &mut Responder<'_>) -> io::Result<()> {
        if !answer.stream {
            return Err(io::Error::other("only streamed answers are known"));
        }
        out.start_events()?;
        let mut response = json!({"id": id("resp_"), "object": "response", "created_at": 1, "model": answer.model,
            "status": "in_progress", "output": []});
        event(out, "response.created", &json!({"response": response}))?;
        for pause in answer.pauses {
            answer
                .pauser
                .play(pause, || event(out, "response.in_progress", &json!({"response": response})))?;
        }
        let item = match &answer.end {
            End::Cut => {
                let item = message("half an ans", "in_progress");
                return event(out, "response.output_item.added", &json!({"output_index": 0, "item": item}));
            }
            End::Say(text) => message(text, "completed"),
            End::Tool { name, input } => {
                json!({"type": "function_call", "id": id("fc_"), "call_id": id("call_"),
                "name": name, "arguments": input.to_string(), "status": "completed"})
            }
        };
        event(out, "response.output_item.added", &json!({"output_index": 0, "item": item}))?;
        if let End::Say(text) = &answer.end {
            let delta = json!({"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": text});
            event(out, "response.output_text.delta", &delta)?;
        }
        event(out, "response.output_item.done", &json!({"output_index": 0, "item": item}))?;
        response["status"] = "completed".into();
        response["output"] = json!([item]);
        response["usage"] = json!({"input_tokens": answer.input_tokens, "output_tokens": 7,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.input_tokens + 7});
        event(out, "response.completed", &json!({"response": response}))
    }

    fn error(&self, status: u16) -> Value {
        let kind = match status {
            401 => "invalid_api_key",
            429 => "rate_limit_exceeded",
            _ => "server_error",
        };
        json!({"error": {"type": kind, "code": kind, "message": "scripted"}})
    }

    fn limit(&self, until: u64) -> (Vec<(&'static str, String)>, Value) {
        let error = json!({"type": "usage_limit_reached", "message": "scripted", "plan_type": "plus", "resets_at": until});
        (Vec::new(), json!({"error": error}))
    }
}

/// The input as texts. Each answer of the model is one item, or a call and the message that came with it.
fn conversation(body: &Value) -> Conversation {
    let mut texts: Vec<Text> = Vec::new();
    for item in body["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or("message");
        let (role, text) = match kind {
            "message" => (role(item), said(&item["content"])),
            kind if kind.ends_with("_call_output") => (Role::Tool, said(&item["output"])),
            kind if kind.ends_with("_call") => (Role::Assistant, String::new()),
            // What a model thought.
            _ => continue,
        };
        texts.push(Text { role, text });
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|tool| tool["name"].as_str().or(tool["type"].as_str())).map(str::to_owned);
    Conversation { texts, tools: tools.collect() }
}

fn role(item: &Value) -> Role {
    match item["role"].as_str() {
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        _ => Role::System,
    }
}

fn said(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn message(text: &str, status: &str) -> Value {
    json!({"type": "message", "id": id("msg_"), "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn event(out: &mut Responder<'_>, name: &str, data: &Value) -> io::Result<()> {
    let mut data = data.clone();
    data["type"] = name.into();
    out.event(name, &data)
}

fn id(prefix: &str) -> String {
    format!("{prefix}{}", Uuid::new_v4().simple())
}
