//! The real Codex in a terminal, with the hooks that minder installs and a scripted model: what a turn of it makes of its
//! session, when a message gets in, and what is evidence that it did.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use minder_proto::event::Receipt;
use minder_proto::id::SessionId;
use minder_proto::state::State;
use minder_tests::codex::Codex;
use minder_tests::model::Model;
use minder_tests::tmux::{Pane, Tmux};
use rustix::process::Signal;

use crate::matrix::{Cell, Harness, proven};
use crate::scene::{LIMIT, Scene};

/// Hooks as somebody wrote them by hand.
const HOOKS: &str = r#"{ "description": "mine",
  "hooks": {"Stop" : [ {"hooks": [ {"type": "command", "command": "true"} ]} ] }
}
"#;

/// The user's review of the hooks, and no server that would outlive the test: such a one has its conversation in itself.
const ALONE: [&str; 3] = ["--dangerously-bypass-hook-trust", "-c", "features.daemon_auto_start=false"];

/// What asks for approval.
const ESCALATED: &str = r#"{"cmd":"echo x","sandbox_permissions":"require_escalated","justification":"why"}"#;

/// Codex, its model and its user's minder. The fields end in this order.
struct Stage {
    pane: Pane,
    tmux: Tmux,
    codex: Codex,
    model: Model,
    scene: Scene,
    folder: PathBuf,
}

impl Stage {
    /// A terminal that holds its conversation itself.
    fn alone(options: &[&str]) -> Self {
        Self::new(&[&ALONE, options].concat())
    }

    fn new(options: &[&str]) -> Self {
        let scene = Scene::new();
        let model = Model::start().unwrap();
        let folder = scene.isolated.project("worker").unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let codex = Codex::new(&scene.isolated, &model, &[&folder]).unwrap();
        std::fs::write(scene.isolated.home().join(".codex/hooks.json"), HOOKS).unwrap();
        scene.minder(&["hooks", "install", "codex"]).ok();
        // What the first hook would leave for a daemon that it starts makes no session.
        scene.minder(&["daemon", "start"]).ok();
        let tmux = Tmux::start(&scene.isolated).unwrap();
        let pane = terminal(&codex, &tmux, "worker", &folder, options);
        Self { pane, tmux, codex, model, scene, folder }
    }

    fn prompt(&self, text: &str) {
        prompt(&self.pane, text);
    }

    fn send(&self, to: SessionId, words: &str) -> minder_proto::id::MessageId {
        let printed = self.scene.minder(&["send", "worker", words]).ok();
        self.scene.sent(to, &printed)
    }

    /// Answers Codex's dialog.
    fn allow(&self) {
        self.pane.wait_text(LIMIT, "Yes, proceed").unwrap();
        // A dialog takes no key in its first moments.
        let gone = |screen: &str| (!screen.contains("Yes, proceed")).then_some(());
        let taken = (0..20).any(|_| {
            self.pane.key("y").unwrap();
            self.pane.wait_screen(Duration::from_secs(1), gone).is_ok()
        });
        assert!(taken, "{}", self.pane.screen().unwrap());
    }
}

/// Starts Codex in a terminal.
fn terminal(codex: &Codex, tmux: &Tmux, name: &str, folder: &std::path::Path, options: &[&str]) -> Pane {
    let environment: Vec<(OsString, OsString)> = codex.environment().collect();
    let program = codex.program().unwrap();
    let mut command = vec![program.into_os_string()];
    command.extend(options.iter().map(OsString::from));
    let pane = tmux.session(name, folder, &environment, &command).unwrap();
    pane.wait_text(LIMIT, "OpenAI Codex").unwrap();
    pane.wait_text(LIMIT, "\u{203a}").unwrap();
    pane
}

fn prompt(pane: &Pane, text: &str) {
    pane.paste(text).unwrap();
    let beginning: String = text.chars().take(30).collect();
    pane.wait_text(LIMIT, &beginning).unwrap();
    pane.key("Enter").unwrap();
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_is_a_session_that_is_told_of_and_reached_at_its_boundaries() {
    let stage = Stage::alone(&[]);
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
    proven(Harness::Codex, &[Cell::Registration, Cell::Turn, Cell::Busy, Cell::Kill]);
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn a_message_waits_for_the_answer_to_codexs_dialog() {
    let stage = Stage::alone(&["-a", "on-request", "-s", "read-only"]);
    let scene = &stage.scene;
    stage.prompt(&format!("ask me [[tool exec_command {ESCALATED}]] [[say all done]]"));
    let id = scene.session("worker");
    let (seq, asks) = scene.wait_move(id, 0, State::Asking);
    assert_eq!(asks.note.as_deref(), Some("permission: Bash echo x"));
    let sent = stage.send(id, "after the dialog");
    assert_eq!(scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("dialog"));
    stage.allow();
    let (seq, _) = scene.wait_move(id, seq, State::Working);
    stage.model.wait_for_text(LIMIT, "after the dialog").unwrap();
    scene.wait_move(id, seq, State::Idle);
    scene.wait_receipt(id, sent, Receipt::Answered);
    assert_eq!(scene.road(id, sent), "queued, held(dialog), handed, seen, answered");
    proven(Harness::Codex, &[Cell::Dialog]);
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_goes_on_under_another_id_and_in_another_process_as_the_same_session() {
    let stage = Stage::alone(&[]);
    let scene = &stage.scene;
    stage.prompt("remember this [[say I do]]");
    let id = scene.session("worker");
    let (seq, _) = scene.wait_move(id, 0, State::Idle);
    stage.pane.type_text("/clear").unwrap();
    stage.pane.wait_text(LIMIT, "start a new chat").unwrap();
    stage.pane.key("Enter").unwrap();
    let fresh = |screen: &str| (!screen.contains("I do")).then_some(());
    stage.pane.wait_screen(LIMIT, fresh).unwrap();
    stage.pane.wait_text(LIMIT, "Ask Codex to do anything").unwrap();
    stage.prompt("who are you? [[say another]]");
    let (seq, _) = scene.wait_move(id, seq, State::Idle);
    let record = scene.record(id);
    let [old, new] = &record.bindings[..] else { panic!("{record:?}") };
    assert!(old.id != new.id && old.until.is_some() && new.why == "clear", "{record:?}");

    assert!(stage.pane.process().signal(Signal::KILL));
    scene.wait_record(id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    let options = [&["resume", &new.id], &ALONE[..]].concat();
    let again = terminal(&stage.codex, &stage.tmux, "again", &stage.folder, &options);
    again.wait_text(LIMIT, "Ask Codex to do anything").unwrap();
    prompt(&again, "and again? [[say the same]]");
    scene.wait_move(id, seq, State::Idle);
    let record = scene.record(id);
    assert_eq!(record.process.map(|p| p.pid), i32::try_from(again.process().pid()).ok());
    assert_eq!((scene.records().len(), record.bindings.len()), (1, 2));

    scene.minder(&["hooks", "uninstall", "codex"]).ok();
    let left = std::fs::read_to_string(scene.isolated.home().join(".codex/hooks.json")).unwrap();
    assert_eq!(left, HOOKS);
    proven(Harness::Codex, &[Cell::Resume, Cell::Uninstall]);
}
