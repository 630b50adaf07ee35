//! A fake harness of any name and minder's hook for it, with the payloads of `tests/data/hooks`: those of Codex and
//! Gemini as the real programs were seen to send them, those of OpenCode and Pi as minder's plugin in them makes them,
//! those of Cursor as its documentation has them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use minder_proto::id::{MessageId, SessionId};
use minder_proto::state::State;
use minder_tests::fake::{Answer, Call, Host, Pending};
use serde_json::Value;

use super::bench::is_silent;
use crate::scene::Scene;

/// A harness, the folder of its payloads, and what it calls its events.
pub struct Harness {
    pub name: &'static str,
    pub folder: &'static str,
    pub start: &'static str,
    pub prompt: &'static str,
    pub tool: &'static str,
    pub stop: &'static str,
    pub end: &'static str,
}

const CLAUDE_NAMES: Harness = Harness {
    name: "codex",
    folder: "codex-0.171.0",
    start: "SessionStart",
    prompt: "UserPromptSubmit",
    tool: "PostToolUse",
    stop: "Stop",
    end: "SessionEnd",
};
pub const CODEX: Harness = CLAUDE_NAMES;
pub const OPENCODE: Harness = Harness { name: "opencode", folder: "opencode-1.18.33", ..CLAUDE_NAMES };
pub const PI: Harness = Harness { name: "pi", folder: "pi-0.73.1", ..CLAUDE_NAMES };
pub const GEMINI: Harness = Harness {
    name: "gemini",
    folder: "gemini-0.61.0",
    prompt: "BeforeAgent",
    tool: "AfterTool",
    stop: "AfterAgent",
    ..CLAUDE_NAMES
};
pub const CURSOR: Harness = Harness {
    name: "cursor",
    folder: "cursor-unseen",
    start: "sessionStart",
    prompt: "beforeSubmitPrompt",
    tool: "postToolUse",
    stop: "stop",
    end: "sessionEnd",
};
pub const ALL: [Harness; 5] = [CODEX, OPENCODE, PI, GEMINI, CURSOR];

/// One user's minder and a process that runs hooks as this harness.
pub struct Rig {
    pub host: Host,
    pub scene: Scene,
    pub harness: Harness,
}

impl Rig {
    pub fn new(harness: Harness, config: &str) -> Self {
        let process = if harness.name == "cursor" { "cursor-agent" } else { harness.name };
        Self::under(process, harness, config)
    }

    /// Its hooks are run by a process of this name.
    pub fn under(process: &str, harness: Harness, config: &str) -> Self {
        let scene = Scene::new();
        let folder = scene.isolated.config_home().join("minder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        std::fs::create_dir_all(scene.isolated.project("p").unwrap()).unwrap();
        scene.minder(&["daemon", "start"]).ok();
        let host = Host::start(&scene.isolated, process).unwrap();
        Self { host, scene, harness }
    }

    /// The folder of its payloads.
    pub fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hooks").join(self.harness.folder)
    }

    /// A payload, in this user's folders.
    pub fn payload(&self, event: &str) -> Value {
        let text = std::fs::read_to_string(self.folder().join(event).with_extension("json")).unwrap();
        let mut payload: Value = serde_json::from_str(&text).unwrap();
        let dir = self.scene.isolated.project("p").unwrap();
        if payload.get("cwd").is_some() {
            payload["cwd"] = dir.to_str().unwrap().into();
        }
        if payload.get("workspace_roots").is_some() {
            payload["workspace_roots"][0] = dir.to_str().unwrap().into();
        }
        if payload["transcript_path"].is_string() {
            payload["transcript_path"] = self.transcript().to_str().unwrap().into();
        }
        payload
    }

    /// The same, in another turn, where its turns have names.
    pub fn of_turn(&self, event: &str, turn: &str) -> Value {
        let mut payload = self.payload(event);
        for name in ["turn_id", "generation_id"] {
            if payload.get(name).is_some() {
                payload[name] = turn.into();
            }
        }
        payload
    }

    pub fn transcript(&self) -> PathBuf {
        self.scene.isolated.home().join("rollout.jsonl")
    }

    pub fn program(&self) -> String {
        self.scene.isolated.program("minder").unwrap().display().to_string()
    }

    pub fn call(&self, payload: &Value, waiter: bool) -> Call {
        let wait = if waiter { " --wait" } else { "" };
        Call {
            id: 0,
            command: format!("exec {} hook {}{wait}", self.program(), self.harness.name),
            payload: payload.to_string(),
            stdin_open: false,
            environment: HashMap::new(),
            limit_ms: 60_000,
        }
    }

    pub fn tell(&mut self, payload: &Value) -> Answer {
        let call = self.call(payload, false);
        self.host.call(call).unwrap()
    }

    /// Tells an event to which nothing must be said.
    pub fn quietly(&mut self, event: &str) {
        let payload = self.payload(event);
        let answer = self.tell(&payload);
        assert!(is_silent(&answer), "{} {event}: {answer:?}", self.harness.name);
    }

    pub fn wait(&mut self, event: &str) -> Pending {
        let call = self.call(&self.payload(event), true);
        self.host.begin(call).unwrap()
    }

    pub fn begin(&mut self) -> SessionId {
        self.quietly(self.harness.start);
        self.scene.session("p")
    }

    pub fn send(&self, to: SessionId, words: &str) -> MessageId {
        let printed = self.scene.minder(&["send", "p", words]).ok();
        self.scene.sent(to, &printed)
    }

    /// The states it went through.
    pub fn states(&self, id: SessionId) -> Vec<State> {
        self.scene.path(id).into_iter().map(|(state, _)| state).collect()
    }
}
