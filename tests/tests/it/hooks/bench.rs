//! A fake harness, the hooks that minder installed, and the recorded payloads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_tests::claude;
use minder_tests::fake::{Answer, Call, Host, Pending};
use serde_json::{Value, json};

use crate::scene::Scene;

/// The conversation and the turn that the recorded payloads name.
const CONVERSATION: &str = "00000000-0000-4000-8000-000000000001";

/// Hooks of one user, and a process that runs them.
pub struct Bench {
    pub host: Host,
    pub scene: Scene,
    hooks: Value,
}

/// What a hook that has nothing to say does.
pub fn is_silent(answer: &Answer) -> bool {
    answer.code == Some(0) && answer.stdout.is_empty() && answer.stderr.is_empty()
}

impl Bench {
    /// With a daemon that was told this configuration.
    pub fn new(config: &str) -> Self {
        let bench = Self::without_daemon(config);
        bench.scene.minder(&["daemon", "start"]).ok();
        bench
    }

    pub fn without_daemon(config: &str) -> Self {
        let scene = Scene::new();
        let folder = scene.isolated.config_home().join("minder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        scene.minder(&["hooks", "install", "claude"]).ok();
        let settings = std::fs::read_to_string(scene.isolated.home().join(".claude/settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&settings).unwrap();
        let host = Host::start(&scene.isolated, "claude").unwrap();
        std::fs::create_dir_all(scene.isolated.project("p").unwrap()).unwrap();
        let bench = Self { host, scene, hooks: settings["hooks"].clone() };
        std::fs::create_dir_all(bench.transcript().parent().unwrap()).unwrap();
        bench
    }

    /// A recorded payload, in this user's folders.
    pub fn payload(&self, name: &str) -> Value {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/claude").join(claude::version());
        let text = std::fs::read_to_string(file.join(name).with_extension("json")).unwrap();
        let mut payload: Value = serde_json::from_str(&text).unwrap();
        payload["transcript_path"] = self.transcript().to_str().unwrap().into();
        payload["cwd"] = self.scene.isolated.project("p").unwrap().to_str().unwrap().into();
        payload
    }

    /// The same, of another turn.
    pub fn of_turn(&self, name: &str, turn: &str) -> Value {
        let mut payload = self.payload(name);
        payload["prompt_id"] = turn.into();
        payload
    }

    /// Where the harness writes its conversation.
    pub fn transcript(&self) -> PathBuf {
        self.scene.isolated.home().join(".claude/projects/-p").join(CONVERSATION).with_extension("jsonl")
    }

    /// The harness writes what its model was given.
    pub fn shown(&self, text: &str) {
        use std::io::Write;
        let attachment = json!({"type": "hook_additional_context", "content": [text]});
        let line = json!({"type": "attachment", "attachment": attachment});
        let mut file = std::fs::File::options().append(true).create(true).open(self.transcript()).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// The call of an event's hook, or of its waiter.
    pub fn call(&self, payload: &Value, waiter: bool) -> Call {
        let event = payload["hook_event_name"].as_str().unwrap();
        let hooks = &self.hooks[event][0]["hooks"];
        let is_waiter = |hook: &&Value| hook.get("asyncRewake").is_some();
        let hook = hooks.as_array().unwrap().iter().find(|hook| is_waiter(hook) == waiter);
        let hook = hook.unwrap_or_else(|| panic!("{event} has no such hook: {hooks}"));
        let variables = [
            ("CLAUDE_CODE_SESSION_ID", payload["session_id"].as_str().unwrap()),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("CLAUDE_CODE_SESSION_ATTENDED", "1"),
        ];
        Call {
            id: 0,
            command: hook["command"].as_str().unwrap().to_owned(),
            payload: payload.to_string(),
            stdin_open: false,
            environment: HashMap::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))),
            limit_ms: hook["timeout"].as_u64().unwrap() * 1000,
        }
    }

    /// Runs an event's hook.
    pub fn tell(&mut self, payload: &Value) -> Answer {
        let call = self.call(payload, false);
        self.host.call(call).unwrap()
    }

    /// Runs the hook of a recorded event, which must have nothing to say.
    pub fn quietly(&mut self, name: &str) {
        let answer = self.tell(&self.payload(name));
        assert!(is_silent(&answer), "{name}: {answer:?}");
    }

    /// Starts a waiter.
    pub fn wait(&mut self, name: &str) -> Pending {
        let call = self.call(&self.payload(name), true);
        self.host.begin(call).unwrap()
    }

    /// The session that the recorded conversation becomes, by its start.
    pub fn begin(&mut self) -> SessionId {
        self.quietly("SessionStart");
        self.scene.session("p")
    }

    /// Sends a message to the session.
    pub fn send(&self, to: SessionId, words: &[&str]) -> MessageId {
        let printed = self.scene.minder(&[&["send", "p"], words].concat()).ok();
        self.scene.sent(to, &printed)
    }

    /// Waits until a message got this far.
    pub fn reaches(&self, to: SessionId, id: MessageId, receipt: Receipt) {
        self.scene.wait_receipt(to, id, receipt);
    }
}
