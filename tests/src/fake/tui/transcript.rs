//! The conversation as a harness writes it, a line of JSON for each thing that was said: Claude Code's in
//! `projects/<folder>/<conversation>.jsonl` of its configuration folder, Codex's in
//! `sessions/<date>/rollout-<time>-<conversation>.jsonl` of its own.

use std::io::Write;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};

/// In whose form a conversation is written and hooks are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    #[default]
    Claude,
    Codex,
}

impl Dialect {
    /// The harness's configuration folder.
    pub fn home(self) -> PathBuf {
        let (variable, below) = match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        };
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(below);
        std::env::var_os(variable).map_or_else(home, PathBuf::from)
    }
}

/// Where it is written, and the line that the next one follows.
#[derive(Debug)]
pub struct Transcript {
    pub path: PathBuf,
    pub on: bool,
    dialect: Dialect,
    folder: String,
    conversation: String,
    last: Option<String>,
    lines: u64,
}

impl Transcript {
    pub fn of(dialect: Dialect, folder: &str, conversation: &str) -> Self {
        let path = match dialect {
            Dialect::Claude => {
                let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let name: String = folder.chars().map(plain).collect();
                dialect.home().join("projects").join(name).join(format!("{conversation}.jsonl"))
            }
            Dialect::Codex => {
                let now = Timestamp::now();
                let day = now.strftime("%Y/%m/%d").to_string();
                let name = format!("rollout-{}-{conversation}.jsonl", now.strftime("%Y-%m-%dT%H-%M-%S"));
                dialect.home().join("sessions").join(day).join(name)
            }
        };
        let (folder, conversation) = (folder.to_owned(), conversation.to_owned());
        Self { path, on: true, dialect, folder, conversation, last: None, lines: 0 }
    }

    /// What the user said, as the model was given it.
    pub fn user(&mut self, prompt: &str, text: &str) {
        match self.dialect {
            Dialect::Claude => self.said(
                "user",
                json!({ "promptId": prompt, "message": { "role": "user", "content": text },
                    "permissionMode": "default", "promptSource": "typed" }),
            ),
            Dialect::Codex => self.message("user", text),
        }
    }

    pub fn interrupted(&mut self, prompt: &str) {
        match self.dialect {
            Dialect::Claude => {
                let content = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
                let message = json!({ "role": "user", "content": content });
                self.said("user", json!({ "promptId": prompt, "message": message }));
            }
            Dialect::Codex => {
                let aborted = json!({ "type": "turn_aborted", "turn_id": prompt, "reason": "interrupted" });
                self.rollout("event_msg", &aborted);
            }
        }
    }

    pub fn agent(&mut self, text: &str) {
        match self.dialect {
            Dialect::Claude => self.answer(json!([{ "type": "text", "text": text }]), "end_turn"),
            Dialect::Codex => self.message("assistant", text),
        }
    }

    pub fn tool(&mut self, id: &str, name: &str, input: &Value) {
        match self.dialect {
            Dialect::Claude => {
                self.answer(
                    json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]),
                    "tool_use",
                );
            }
            Dialect::Codex => {
                let call = json!({ "type": "function_call", "status": "completed", "name": name, "call_id": id,
                    "arguments": input.to_string() });
                self.rollout("response_item", &call);
            }
        }
    }

    pub fn tool_result(&mut self, prompt: &str, id: &str, output: &str) {
        match self.dialect {
            Dialect::Claude => {
                let result =
                    json!({ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": false });
                let message = json!({ "role": "user", "content": [result] });
                self.said("user", json!({ "promptId": prompt, "message": message }));
            }
            Dialect::Codex => {
                let result = json!({ "type": "function_call_output", "call_id": id, "output": output });
                self.rollout("response_item", &result);
            }
        }
    }

    /// What a hook gave the model.
    pub fn context(&mut self, event: &str, text: &str) {
        match self.dialect {
            Dialect::Claude => self.attachment(json!({ "type": "hook_additional_context", "content": [text],
                "hookName": event, "hookEvent": event })),
            Dialect::Codex => self.message("developer", text),
        }
    }

    /// Why a hook kept the turn going.
    pub fn blocked(&mut self, command: &str, reason: &str) {
        match self.dialect {
            Dialect::Claude => self.attachment(json!({ "type": "hook_blocking_error", "hookName": "Stop",
                "hookEvent": "Stop", "blockingError": { "blockingError": reason, "command": command } })),
            Dialect::Codex => {
                self.message("user", &format!("<hook_prompt hook_run_id=\"run\">{reason}</hook_prompt>"));
            }
        }
    }

    /// A text that waited, given within a turn.
    pub fn joined(&mut self, text: &str) {
        match self.dialect {
            Dialect::Claude => {
                self.attachment(json!({ "type": "queued_command", "prompt": text, "commandMode": "prompt" }));
            }
            Dialect::Codex => self.message("user", text),
        }
    }

    fn answer(&mut self, content: Value, stop: &str) {
        let id = format!("msg_{:020}", self.lines);
        self.said(
            "assistant",
            json!({ "message": { "id": id, "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "content": content, "stop_reason": stop, "stop_sequence": null } }),
        );
    }

    fn attachment(&mut self, attachment: Value) {
        self.said("attachment", json!({ "attachment": attachment }));
    }

    /// `enqueue` with a text, `dequeue` without; Codex writes neither.
    pub fn queue(&mut self, operation: &str, text: Option<&str>) {
        if self.dialect == Dialect::Codex {
            return;
        }
        let mut line = json!({ "type": "queue-operation", "operation": operation,
            "timestamp": Timestamp::now().to_string(), "sessionId": self.conversation });
        if let Some(text) = text {
            line["content"] = text.into();
        }
        self.write(&line);
    }

    /// A message of Codex's.
    fn message(&mut self, role: &str, text: &str) {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        let content = json!([{ "type": kind, "text": text }]);
        self.rollout("response_item", &json!({ "type": "message", "role": role, "content": content }));
    }

    fn rollout(&mut self, kind: &str, payload: &Value) {
        let line = json!({ "timestamp": Timestamp::now().to_string(), "ordinal": self.lines, "type": kind,
            "payload": payload });
        self.lines += 1;
        self.write(&line);
    }

    fn said(&mut self, kind: &str, mut line: Value) {
        self.lines += 1;
        let id = format!("{:08x}-0000-4000-a000-{:012}", std::process::id(), self.lines);
        let common = json!({ "parentUuid": self.last, "isSidechain": false, "type": kind, "uuid": id,
            "timestamp": Timestamp::now().to_string(), "userType": "external", "entrypoint": "cli",
            "cwd": self.folder, "sessionId": self.conversation, "version": "2.1.332" });
        for (name, value) in common.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        self.last = Some(id);
        self.write(&line);
    }

    fn write(&self, line: &Value) {
        if !self.on {
            return;
        }
        let folder = self.path.parent().expect("it lies in a folder");
        let file = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::OpenOptions::new().append(true).create(true).open(&self.path));
        // A home that is gone has no reader either.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}
