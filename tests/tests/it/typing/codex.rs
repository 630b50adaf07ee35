//! Messages that are typed into the pane in which the real Codex runs. Nothing is heard of its hooks here: what was typed
//! has no evidence, and is given once.

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_tests::codex::Codex;
use minder_tests::model::Model;
use minder_tests::tmux::{Pane, Tmux};

use crate::scene::{LIMIT, Scene};

/// Codex in a pane, and a session that is typed to.
struct Typed {
    pane: Pane,
    id: SessionId,
    model: Model,
    _tmux: Tmux,
    scene: Scene,
}

impl Typed {
    fn new() -> Self {
        let scene = Scene::new();
        let model = Model::start().unwrap();
        let folder = scene.isolated.project("worker").unwrap();
        let codex = Codex::new(&scene.isolated, &model, &[&folder]).unwrap();
        let tmux = Tmux::start(&scene.isolated).unwrap();
        let environment: Vec<_> = codex.environment().collect();
        // The server looks for programs where it was started.
        let path = &environment.iter().find(|(name, _)| name == "PATH").unwrap().1;
        let mut command = vec![std::env::split_paths(path).next().unwrap().join("codex").into_os_string()];
        let settings = [
            "features.daemon_auto_start=false",
            "approval_policy=\"on-request\"",
            "sandbox_mode=\"workspace-write\"",
        ];
        command.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
        let pane = tmux.session("worker", &folder, &environment, &command).unwrap();
        pane.wait_text(LIMIT, "Ask Codex to do anything").unwrap();
        // Until that stands below, its screen is not whole.
        pane.wait_text(LIMIT, "sim-1 default").unwrap();
        scene.minder(&["new", "--label", "worker", "--harness", "codex"]).ok();
        let id = scene.session("worker");
        let seat = format!("{}:{}", tmux.socket().display(), pane.id());
        scene.minder(&["set", "worker", "--channel", "tmux", "--pane", &seat]).ok();
        Self { pane, id, model, _tmux: tmux, scene }
    }

    /// Sends a message, and waits until it is held for this reason.
    fn held(&self, text: &str, reason: &str) -> MessageId {
        let sent = self.scene.minder(&["send", "worker", text]).ok();
        let message = self.scene.sent(self.id, &sent);
        let held = self.scene.wait_receipt(self.id, message, Receipt::Held);
        assert_eq!(held.reason.as_deref(), Some(reason), "{}", self.pane.screen().unwrap());
        message
    }
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn a_message_is_typed_into_codex_once() {
    let typed = Typed::new();
    let (pane, scene) = (&typed.pane, &typed.scene);
    pane.paste("half a line").unwrap();
    pane.wait_text(LIMIT, "half a line").unwrap();
    let message = typed.held("Which tests fail? [[say None fails.]]", "draft");
    pane.key("C-u").unwrap();
    pane.wait_text(LIMIT, "\u{2022} None fails.").unwrap();
    assert_eq!(scene.road(typed.id, message), "queued, held(draft), handed");
    assert_eq!(scene.receipts(typed.id, message).pop().unwrap().reason.as_deref(), Some("final"));
    let asked = typed.model.requests().iter().filter(|r| r.main && r.brought("Which tests fail?")).count();
    assert_eq!(asked, 1);
    assert!(typed.model.requests().iter().all(|r| r.count("half a line") == 0));
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn nothing_is_typed_at_a_question_of_codex_for_approval() {
    let typed = Typed::new();
    let (pane, scene) = (&typed.pane, &typed.scene);
    let call = r#"{"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"to see"}"#;
    pane.paste(&format!("[[tool exec_command {call}]] [[say made it]]")).unwrap();
    pane.wait_text(LIMIT, "made it]]").unwrap();
    pane.key("Enter").unwrap();
    pane.wait_text(LIMIT, "Would you like to run the following command?").unwrap();
    let message = typed.held("yes? [[say Not yet.]]", "dialog");
    assert!(!scene.isolated.project("worker").unwrap().join("made").exists());
    pane.key("Enter").unwrap();
    pane.wait_text(LIMIT, "\u{2022} Not yet.").unwrap();
    let road = scene.road(typed.id, message);
    assert!(road.starts_with("queued, held(dialog)") && road.ends_with("handed"), "{road}");
    let asked = typed.model.requests().iter().filter(|r| r.main && r.brought("yes?")).count();
    assert_eq!(asked, 1);
}
