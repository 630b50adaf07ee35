//! The programs that stand in for harnesses do what their scripts say: screens, habits, conversations, an app-server.

mod cases;
mod screens;
mod servers;
mod talks;

use std::sync::Arc;

use minder_tests::fake::stage::Actor;
use minder_tests::isolate::Isolated;
use minder_tests::tmux::Tmux;

/// One actor in a terminal.
pub struct Play {
    pub actor: Actor,
    // Ends before the folder goes.
    _tmux: Tmux,
    pub isolated: Arc<Isolated>,
}

impl Play {
    pub fn new(script: &str) -> Self {
        Self::in_home(Isolated::new().unwrap(), script, &[])
    }

    pub fn in_home(isolated: Arc<Isolated>, script: &str, arguments: &[&str]) -> Self {
        let tmux = Tmux::start(&isolated).unwrap();
        let folder = isolated.project("p").unwrap();
        let actor = Actor::start(&tmux, &isolated, "claude", &folder, script, arguments).unwrap();
        Self { actor, _tmux: tmux, isolated }
    }
}
