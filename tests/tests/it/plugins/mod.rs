//! The real OpenCode and the real Pi with minder's own plugin in them, against a scripted model: a turn from its begin to
//! its end, who is taken for the caller, a message to one that is idle, to one that works and to one that asks, and the
//! end of it all.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::model::Model;
use minder_tests::opencode::Server;
use minder_tests::pi::{self, Pi};
use minder_tests::tmux::Tmux;
use rustix::process::Signal;

use crate::matrix::{Cell, Harness, proven};
use crate::scene::{LIMIT, Scene};

static TURN: Mutex<()> = Mutex::new(());

/// One at a time: each of them is a large program.
fn seat() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A scene in which a harness's plugin is installed, and the folder of a session to come.
fn scene(harness: &str) -> (Arc<Scene>, Model, PathBuf) {
    let scene = Arc::new(Scene::new());
    let model = Model::start().unwrap();
    let folder = scene.isolated.project("worker").unwrap();
    scene.minder(&["hooks", "install", harness]).ok();
    scene.minder(&["hooks", "status", harness]).ok();
    // Of what was left for a daemon that was not up nothing tells whether somebody sits there.
    scene.minder(&["daemon", "start"]).ok();
    (scene, model, folder)
}

/// Lets the session that works watch another, whose news has to wake it.
fn is_told_of_another(scene: &Scene, model: &Model) {
    let id = scene.session("worker");
    scene.minder(&["new", "--label", "api"]).ok();
    scene.minder(&["--as", "worker", "watch", "api"]).ok();
    scene.minder(&["--as", "api", "state", "review", "--note", "PR 12"]).ok();
    model.wait_for_text(LIMIT, "\u{2014} PR 12").unwrap();
    let notice = scene.notices(id, scene.session("api")).pop().unwrap();
    scene.wait_receipt(id, notice.id, Receipt::Seen);
}

/// Sends a message to a session at work, opens the gate at which its turn stands, and waits for the end of both.
fn is_reached_at_work(scene: &Scene, model: &Model, begun: u64) {
    let id = scene.session("worker");
    let (seq, _) = scene.wait_move(id, begun, State::Working);
    let sent = scene.minder(&["send", "worker", "a word [[say heard]]"]).ok();
    let sent = scene.sent(id, &sent);
    model.open("go");
    scene.wait_receipt(id, sent, Receipt::Answered);
    scene.wait_move(id, seq, State::Idle);
    model.wait_for_text(LIMIT, "a word").unwrap();
    let heard = model.requests().iter().map(|r| r.count("a word")).max();
    assert_eq!(heard, Some(1), "{}", scene.history(id));
}

/// What a tool of a session runs to find out who it is.
const WHO: &str = "[[sh minder]] [[say I know]]";

#[test]
#[cfg_attr(not(opencode), ignore = "needs OpenCode: run tests/setup.sh")]
fn opencode_is_a_session_from_its_first_prompt_to_its_end() {
    let _seat = seat();
    let (scene, model, folder) = scene("opencode");
    let mut server = Server::start(&scene.isolated, &model, &folder).unwrap();
    let conversation = server.begin().unwrap();
    server.prompt(&conversation, WHO).unwrap();
    let id = scene.session("worker");
    let (working, _) = scene.wait_move(id, 0, State::Working);
    let (seq, _) = scene.wait_move(id, working, State::Idle);
    let record = scene.record(id);
    assert_eq!(record.bindings.last().map(|b| b.id.as_str()), Some(conversation.as_str()));
    model.wait_for_text(LIMIT, "you: ").expect("a tool of it is taken for it");
    assert!(model.requests().iter().any(|r| r.brought("(worker, ")), "{}", scene.history(id));

    // Idle: it is woken, and the answer comes back.
    let asked = scene.minder(&["send", "worker", "--wait", "and now? [[say woken]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "woken\n"), "{asked:?} {}", scene.history(id));

    // A question is open: nothing is given, and all of it after the answer.
    server.prompt(&conversation, "make it [[sh touch it]] [[say made]]").unwrap();
    let (asking, _) = scene.wait_move(id, seq, State::Asking);
    let sent = scene.minder(&["send", "worker", "while you ask [[say got it]]"]).ok();
    let sent = scene.sent(id, &sent);
    assert_eq!(scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("dialog"));
    assert!(!folder.join("it").exists(), "nobody answered for the person");
    server.allow().unwrap();
    scene.wait_move(id, asking, State::Working);
    scene.wait_receipt(id, sent, Receipt::Answered);
    assert!(folder.join("it").exists());

    // Busy: it is given in the same turn.
    scene.wait_move(id, asking, State::Idle);
    let begun = scene.last(id);
    server.prompt(&conversation, "[[gate go]] [[sh echo busy]] [[say over]]").unwrap();
    is_reached_at_work(&scene, &model, begun);
    is_told_of_another(&scene, &model);
    scene.wait_record(id, "rest", |r| r.turn.is_none());

    // It dies in a turn.
    server.prompt(&conversation, "think [[hang]]").unwrap();
    let (working, _) = scene.wait_move(id, scene.last(id), State::Working);
    server.kill().unwrap();
    let (seq, _) = scene.wait_move(id, working, State::Error);

    // Its conversation is taken up again.
    let server = Server::start(&scene.isolated, &model, &folder).unwrap();
    server.prompt(&conversation, "still there? [[say the same]]").unwrap();
    scene.wait_move(id, seq, State::Idle);
    assert_eq!(scene.records().iter().filter(|r| r.harness.is_some()).count(), 1, "{}", scene.history(id));
    scene.minder(&["hooks", "uninstall", "opencode"]).ok();
    assert!(!scene.isolated.config_home().join("opencode/plugin").exists());
    proven(
        Harness::OpenCode,
        &[
            Cell::Registration,
            Cell::Turn,
            Cell::Idle,
            Cell::Busy,
            Cell::Dialog,
            Cell::Notice,
            Cell::Resume,
            Cell::Kill,
            Cell::Uninstall,
        ],
    );
}

#[test]
#[cfg_attr(not(pi), ignore = "needs Pi: run tests/setup.sh")]
fn pi_is_a_session_from_its_start_to_its_end() {
    let _seat = seat();
    let (scene, model, folder) = scene("pi");
    let tmux = Tmux::start(&scene.isolated).unwrap();
    let pi = Pi::new(&scene.isolated, &model).unwrap();
    let pane = pi.tui(&tmux, "worker", &folder, &[]).unwrap();
    let id = scene.session("worker");
    assert_eq!(scene.record(id).process.map(|p| p.pid), i32::try_from(pane.process().pid()).ok());
    pi::prompt(&pane, WHO).unwrap();
    let (working, _) = scene.wait_move(id, 0, State::Working);
    scene.wait_move(id, working, State::Idle);
    assert!(model.requests().iter().any(|r| r.brought("(worker, ")), "{}", scene.history(id));

    // Idle, with a line half typed: it is woken, and the line stays.
    pane.type_text("half a thought").unwrap();
    pane.wait_text(LIMIT, "half a thought").unwrap();
    let asked = scene.minder(&["send", "worker", "--wait", "and now? [[say woken]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "woken\n"), "{asked:?} {}", scene.history(id));
    assert!(pane.screen().unwrap().contains("half a thought"));
    pane.key("C-u").unwrap();

    // Busy: it is given after the tool that runs, in the same turn.
    let begun = scene.last(id);
    pi::prompt(&pane, "[[gate go]] [[sh echo busy]] [[say over]]").unwrap();
    is_reached_at_work(&scene, &model, begun);
    is_told_of_another(&scene, &model);
    scene.wait_record(id, "rest", |r| r.turn.is_none());

    // It dies in a turn, and its conversation is taken up again.
    let begun = scene.last(id);
    pi::prompt(&pane, "think [[hang]]").unwrap();
    let (working, _) = scene.wait_move(id, begun, State::Working);
    pane.process().signal(Signal::KILL);
    let (seq, _) = scene.wait_move(id, working, State::Error);
    let conversation = scene.record(id).bindings.pop().unwrap().id;
    let pane = pi.tui(&tmux, "again", &folder, &["--session", &conversation]).unwrap();
    pi::prompt(&pane, "still there? [[say the same]]").unwrap();
    scene.wait_move(id, seq, State::Idle);
    assert_eq!(scene.record(id).process.map(|p| p.pid), i32::try_from(pane.process().pid()).ok());
    assert_eq!(scene.records().iter().filter(|r| r.harness.is_some()).count(), 1, "{}", scene.history(id));

    pane.key("C-d").unwrap();
    scene.wait_record(id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    scene.minder(&["hooks", "uninstall", "pi"]).ok();
    assert!(!scene.isolated.home().join(".pi/agent/extensions").exists());
    proven(
        Harness::Pi,
        &[
            Cell::Registration,
            Cell::Turn,
            Cell::Idle,
            Cell::Busy,
            Cell::Notice,
            Cell::Resume,
            Cell::Kill,
            Cell::Uninstall,
        ],
    );
}
