//! The conversation as Claude Code writes it: a line of JSON for each thing that was said, in
//! `projects/<folder>/<conversation>.jsonl` of its configuration folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

/// Where it is written, and the line that the next one follows.
#[derive(Debug)]
pub struct Transcript {
    pub path: PathBuf,
    pub on: bool,
    folder: String,
    conversation: String,
    last: Option<String>,
    lines: u64,
}

impl Transcript {
    pub fn of(config: &Path, folder: &str, conversation: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = folder.chars().map(plain).collect();
        let path = config.join("projects").join(name).join(format!("{conversation}.jsonl"));
        let (folder, conversation) = (folder.to_owned(), conversation.to_owned());
        Self { path, on: true, folder, conversation, last: None, lines: 0 }
    }

    /// What the user said, as the model was given it.
    pub fn user(&mut self, prompt: &str, text: &str) {
        self.said(
            "user",
            json!({ "promptId": prompt, "message": { "role": "user", "content": text },
            "permissionMode": "default", "promptSource": "typed" }),
        );
    }

    pub fn interrupted(&mut self, prompt: &str) {
        let content = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
        self.said("user", json!({ "promptId": prompt, "message": { "role": "user", "content": content } }));
    }

    pub fn agent(&mut self, text: &str) {
        self.answer(json!([{ "type": "text", "text": text }]), "end_turn");
    }

    pub fn tool(&mut self, id: &str, name: &str, input: &Value) {
        self.answer(json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]), "tool_use");
    }

    pub fn tool_result(&mut self, prompt: &str, id: &str, output: &str) {
        let content =
            json!([{ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": false }]);
        self.said("user", json!({ "promptId": prompt, "message": { "role": "user", "content": content } }));
    }

    fn answer(&mut self, content: Value, stop: &str) {
        let id = format!("msg_{:020}", self.lines);
        self.said(
            "assistant",
            json!({ "message": { "id": id, "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "content": content, "stop_reason": stop, "stop_sequence": null } }),
        );
    }

    /// `hook_additional_context`, `hook_blocking_error`, `queued_command`: what else the model was given.
    pub fn attachment(&mut self, attachment: Value) {
        self.said("attachment", json!({ "attachment": attachment }));
    }

    /// `enqueue` with a text, `dequeue` without.
    pub fn queue(&mut self, operation: &str, text: Option<&str>) {
        let mut line = json!({ "type": "queue-operation", "operation": operation,
            "timestamp": Timestamp::now().to_string(), "sessionId": self.conversation });
        if let Some(text) = text {
            line["content"] = text.into();
        }
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
