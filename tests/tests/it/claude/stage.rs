//! Real Claude Code sessions under minder: its hooks are installed as a user installs them, and the model is scripted.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use minder_proto::id::SessionId;
use minder_tests::claude::{Claude, Tui};
use minder_tests::model::{Model, Request};
use minder_tests::tmux::Tmux;

use crate::scene::{LIMIT, Scene};

/// So many tests have sessions at a time: each of those is a large program.
const SEATS: usize = 2;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// A place among the tests that run sessions.
struct Seat;

impl Seat {
    fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = FREED.wait_while(taken, |n| *n >= SEATS).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

/// Model, terminal, Claude Code and minder of one user. The fields end in this order.
pub struct Stage {
    pub claude: Claude,
    pub tmux: Tmux,
    pub model: Model,
    pub scene: Arc<Scene>,
    _seat: Seat,
}

/// A session that a person started in a terminal, and what minder made of it.
pub struct Actor {
    pub tui: Tui,
    pub id: SessionId,
}

/// Lets a session run `minder` and a few harmless commands without asking.
const ALLOWED: [&str; 2] = ["--allowedTools", "Bash(minder:*),Bash(echo:*)"];

impl Stage {
    /// With minder's hooks installed, and folders in which Claude Code may run.
    pub fn new(folders: &[&str]) -> Self {
        let stage = Self::without_hooks(folders);
        stage.scene.minder(&["hooks", "install", "claude"]).ok();
        stage
    }

    /// The same before the hooks are installed.
    pub fn without_hooks(folders: &[&str]) -> Self {
        let seat = Seat::take();
        let scene = Arc::new(Scene::new());
        let model = Model::start().unwrap();
        let claude = Claude::new(&scene.isolated, &model).unwrap();
        for folder in folders {
            claude.project(folder).unwrap();
        }
        let tmux = Tmux::start(&scene.isolated).unwrap();
        Self { claude, tmux, model, scene, _seat: seat }
    }

    /// Takes the waiters out of the installed hooks, as an older Claude Code or a user who does not want them has it:
    /// then nothing wakes an idle session.
    pub fn without_waiters(&self) {
        let text = std::fs::read_to_string(self.claude.settings()).unwrap();
        let mut settings: serde_json::Value = serde_json::from_str(&text).unwrap();
        for groups in settings["hooks"].as_object_mut().unwrap().values_mut() {
            for group in groups.as_array_mut().unwrap() {
                group["hooks"].as_array_mut().unwrap().retain(|hook| hook.get("asyncRewake").is_none());
            }
        }
        self.claude.write_settings(&settings).unwrap();
    }

    /// Starts Claude Code in a folder, plainly; it becomes a session by itself, called after the folder.
    pub fn start(&self, folder: &str) -> Actor {
        let tui = self.tui(folder);
        let id = self.scene.session(folder);
        Actor { tui, id }
    }

    /// Starts Claude Code in a folder.
    pub fn tui(&self, folder: &str) -> Tui {
        let dir = self.scene.isolated.project(folder).unwrap();
        self.claude.tui(&self.tmux, folder, &dir, &ALLOWED).unwrap()
    }

    /// Waits for a request of a session's main loop that brings a text.
    pub fn asked(&self, actor: &Actor, text: &str) -> Request {
        let session = actor.tui.session_id().unwrap();
        let of = |r: &&Request| r.main && r.session.as_ref() == Some(&session) && r.brought(text);
        let found = self.model.wait_for(LIMIT, |all| all.iter().find(of).cloned());
        found.unwrap_or_else(|e| panic!("{e}\n{}\n{}", self.scene.history(actor.id), self.scene.told()))
    }

    /// How often a session's model was told a text, by all that it was ever asked.
    pub fn heard(&self, actor: &Actor, text: &str) -> usize {
        let session = actor.tui.session_id().unwrap();
        let own = |r: &&Request| r.main && r.session.as_ref() == Some(&session);
        self.model.requests().iter().filter(own).map(|r| r.count(text)).max().unwrap_or(0)
    }
}
