//! The real Codex in a terminal, with the hooks that minder installs and a scripted model: what a turn of it makes of its
//! session, when a message gets in, and what is evidence that it did.

use std::ffi::OsString;
use std::time::Duration;

use minder_proto::event::Receipt;
use minder_proto::id::SessionId;
use minder_proto::state::State;
use minder_tests::codex::Codex;
use minder_tests::model::Model;
use minder_tests::tmux::{Pane, Tmux};
use rustix::process::Signal;

use crate::scene::{LIMIT, Scene};

/// Codex, its model and its user's minder. The fields end in this order.
struct Stage {
    pane: Pane,
    _tmux: Tmux,
    model: Model,
    scene: Scene,
}

impl Stage {
    fn new(options: &[&str]) -> Self {
        let scene = Scene::new();
        let model = Model::start().unwrap();
        let folder = scene.isolated.project("worker").unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let codex = Codex::new(&scene.isolated, &model, &[&folder]).unwrap();
        scene.minder(&["hooks", "install", "codex"]).ok();
        // What the first hook would leave for a daemon that it starts makes no session.
        scene.minder(&["daemon", "start"]).ok();
        let tmux = Tmux::start(&scene.isolated).unwrap();
        let environment: Vec<(OsString, OsString)> = codex.environment().collect();
        // The user's review of the hooks; and no server of its own that would outlive the test.
        // A new session in tmux has the path of whoever asked for it.
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()).unwrap();
        let program = std::env::split_paths(&path).next().unwrap().join("codex");
        let fixed = [
            program.to_str().unwrap(),
            "--dangerously-bypass-hook-trust",
            "-c",
            "features.daemon_auto_start=false",
        ];
        let command: Vec<OsString> = fixed.iter().chain(options).map(OsString::from).collect();
        let pane = tmux.session("worker", &folder, &environment, &command).unwrap();
        pane.wait_text(LIMIT, "OpenAI Codex").unwrap();
        pane.wait_text(LIMIT, "›").unwrap();
        Self { pane, _tmux: tmux, model, scene }
    }

    fn prompt(&self, text: &str) {
        self.pane.paste(text).unwrap();
        let beginning: String = text.chars().take(30).collect();
        self.pane.wait_text(LIMIT, &beginning).unwrap();
        self.pane.key("Enter").unwrap();
    }

    fn send(&self, to: SessionId, words: &str) -> minder_proto::id::MessageId {
        let printed = self.scene.minder(&["send", "worker", words]).ok();
        self.scene.sent(to, &printed)
    }
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_is_a_session_that_is_told_of_and_reached_at_its_boundaries() {
    let stage = Stage::new(&[]);
    let scene = &stage.scene;
    stage.prompt("first work [[gate one]] [[sh echo tool]] [[say all done]]");
    let id = scene.session("worker");
    let (seq, working) = scene.wait_move(id, 0, State::Working);
    assert!(working.note.is_some_and(|note| note.starts_with("first work")));
    let record = scene.record(id);
    assert_eq!((record.harness.as_deref(), record.channel.as_str()), (Some("codex"), "codex"));
    assert_eq!(record.process.map(|p| p.pid), i32::try_from(stage.pane.process().pid()).ok());
    scene.minder(&["new", "--label", "lead"]).ok();
    let lead = scene.session("lead");
    scene.minder(&["--as", "lead", "watch", "worker"]).ok();

    // At work: with the next tool result, and Codex's own record of that is the evidence.
    let busy = stage.send(id, "by the way");
    assert_eq!(scene.wait_receipt(id, busy, Receipt::Held).reason.as_deref(), Some("busy"));
    stage.model.open("one");
    stage.model.wait_for_text(LIMIT, "by the way").unwrap();
    let (seq, idle) = scene.wait_move(id, seq, State::Idle);
    assert_eq!((idle.note.as_deref(), idle.turn_end), (Some("all done"), true));
    scene.wait_receipt(id, busy, Receipt::Answered);
    assert_eq!(scene.road(id, busy), "queued, held(busy), handed, seen, answered");
    let told = scene.notices(lead, id);
    assert!(told.iter().any(|m| m.about.as_ref().is_some_and(|a| a.seq == seq)), "{}", scene.history(lead));

    // At rest: nothing wakes it, which is said; its next prompt brings it.
    let resting = stage.send(id, "when you are back");
    assert_eq!(scene.wait_receipt(id, resting, Receipt::Held).reason.as_deref(), Some("no-wake-path"));
    stage.prompt("second work [[gate two]] [[say never]]");
    let (seq, _) = scene.wait_move(id, seq, State::Working);
    stage.model.wait_for_text(LIMIT, "when you are back").unwrap();
    scene.wait_receipt(id, resting, Receipt::Seen);

    // Interrupted: over, and no news.
    stage.pane.key("Escape").unwrap();
    let (seq, over) = scene.wait_move(id, seq, State::Idle);
    assert_eq!((over.note.as_deref(), over.turn_end), (Some("interrupted"), false));

    // Killed at work.
    stage.pane.key("C-u").unwrap();
    stage.prompt("third work [[gate three]]");
    let (seq, _) = scene.wait_move(id, seq, State::Working);
    assert!(stage.pane.process().signal(Signal::KILL));
    let (_, gone) = scene.wait_move(id, seq, State::Error);
    assert!(gone.note.is_some_and(|note| note.starts_with("codex (pid ")));
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn a_message_waits_for_the_answer_to_codexs_dialog() {
    let stage = Stage::new(&["-a", "on-request", "-s", "read-only"]);
    let scene = &stage.scene;
    let call = r#"{"cmd":"echo x","sandbox_permissions":"require_escalated","justification":"why"}"#;
    stage.prompt(&format!("ask me [[tool exec_command {call}]] [[say all done]]"));
    let id = scene.session("worker");
    let (seq, asks) = scene.wait_move(id, 0, State::Asking);
    assert_eq!(asks.note.as_deref(), Some("permission: Bash echo x"));
    let sent = stage.send(id, "after the dialog");
    assert_eq!(scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("dialog"));
    stage.pane.wait_text(LIMIT, "Yes, proceed").unwrap();
    // A dialog takes no key in its first moments.
    let gone = |screen: &str| (!screen.contains("Yes, proceed")).then_some(());
    let taken = (0..20).any(|_| {
        stage.pane.key("y").unwrap();
        stage.pane.wait_screen(Duration::from_secs(1), gone).is_ok()
    });
    assert!(taken, "{}", stage.pane.screen().unwrap());
    let (seq, _) = scene.wait_move(id, seq, State::Working);
    stage.model.wait_for_text(LIMIT, "after the dialog").unwrap();
    scene.wait_move(id, seq, State::Idle);
    scene.wait_receipt(id, sent, Receipt::Answered);
    assert_eq!(scene.road(id, sent), "queued, held(dialog), handed, seen, answered");
}
