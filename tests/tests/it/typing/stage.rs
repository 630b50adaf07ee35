//! A stand-in for Claude Code in a terminal, a session of minder's that is typed to. Of its hooks only the one that tells
//! where the conversation is runs, unless a test has all: then nothing but keys brings a message in, and the transcript
//! is the evidence.

use std::sync::Arc;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::snapshot;
use minder_tests::fake::stage::Actor;
use minder_tests::tmux::Tmux;

use crate::scene::Scene;

/// The fields end in this order.
pub struct Stage {
    pub actor: Actor,
    pub tmux: Tmux,
    pub id: SessionId,
    pub scene: Arc<Scene>,
}

impl Stage {
    /// With the steps of a script.
    pub fn new(script: &str) -> Self {
        Self::with(script, |event| event == "SessionStart")
    }

    /// The same, with this in the configuration.
    pub fn configured(script: &str, config: &str) -> Self {
        let scene = Scene::new();
        let folder = scene.isolated.config_home().join("minder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        Self::within(scene, script, |event| event == "SessionStart")
    }

    /// With those of minder's hooks that are chosen by their event; none of them waits to wake it.
    pub fn with(script: &str, runs: impl Fn(&str) -> bool) -> Self {
        Self::within(Scene::new(), script, runs)
    }

    fn within(scene: Scene, script: &str, runs: impl Fn(&str) -> bool) -> Self {
        let scene = Arc::new(scene);
        scene.minder(&["hooks", "install", "claude"]).ok();
        let file = scene.isolated.home().join(".claude/settings.json");
        let mut settings: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let hooks = settings["hooks"].as_object_mut().unwrap();
        hooks.retain(|event, _| runs(event));
        for groups in hooks.values_mut() {
            for group in groups.as_array_mut().unwrap() {
                group["hooks"].as_array_mut().unwrap().retain(|hook| hook.get("asyncRewake").is_none());
            }
        }
        std::fs::write(&file, settings.to_string()).unwrap();
        let tmux = Tmux::start(&scene.isolated).unwrap();
        let folder = scene.isolated.project("worker").unwrap();
        let script = format!("look claude\n{script}");
        let actor = Actor::start(&tmux, &scene.isolated, "claude", &folder, &script, &[]).unwrap();
        let id = scene.session("worker");
        scene.minder(&["set", "worker", "--channel", "tmux"]).ok();
        Self { actor, tmux, id, scene }
    }

    /// Sends a text as its body.
    pub fn send(&self, body: &str) -> MessageId {
        let sent = self.scene.minder_with(&["send", "worker", "-"], body).ok();
        self.scene.sent(self.id, &sent)
    }

    /// Waits until a message is held for this reason.
    pub fn held(&self, id: MessageId, reason: &str) {
        let last = || {
            let line = self.scene.receipts(self.id, id).pop()?;
            (line.r == Receipt::Held && line.reason.as_deref() == Some(reason)).then_some(())
        };
        self.scene.wait(self.id, &format!("{} held({reason})", id.short()), last);
    }

    /// Waits until there is evidence for a message, or for its pointer.
    pub fn arrives(&self, id: MessageId) {
        let there = || {
            let line = self.scene.receipts(self.id, id).pop()?;
            let pointer = line.reason.as_deref() == Some("pointer-seen");
            (matches!(line.r, Receipt::Seen | Receipt::Answered) || pointer).then_some(())
        };
        self.scene.wait(self.id, &format!("{} seen", id.short()), there);
    }

    /// Has the oldest that waits tried again, as somebody does who has cleared the way: pauses grow up to a minute.
    pub fn hurry(&self) {
        let queue = snapshot::queue(&self.scene.home.session(self.id)).unwrap();
        let waits = queue.iter().find(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held));
        if let Some(entry) = waits {
            // It may have arrived meanwhile.
            self.scene.minder(&["retry", &entry.id.short()]);
        }
    }

    /// Says steps to the stand-in.
    pub fn say(&self, steps: &[&str]) {
        for step in steps {
            self.actor.say(step).unwrap();
        }
    }

    /// What was submitted, each as the message that it is of, in order.
    pub fn submitted(&self) -> Vec<String> {
        self.actor.submitted().iter().map(|text| named(text)).collect()
    }

    /// How often a key or a byte sequence went in.
    pub fn count(&self, bytes: &str) -> usize {
        self.actor.input().matches(bytes).count()
    }
}

/// The message that a typed line is of: the line has to be one of ours, whole, and nothing else.
pub fn named(text: &str) -> String {
    let rest = text.strip_prefix("[minder] message ").unwrap_or_else(|| panic!("{text:?} was submitted"));
    assert_eq!(text.matches("[minder] message ").count(), 1, "{text:?}");
    rest.split(' ').next().unwrap().to_owned()
}

/// An Enter, as the record has it.
pub const ENTER: &str = "\\x0d";
/// The beginning of a paste.
pub const PASTE: &str = "\\x1b[200~";
