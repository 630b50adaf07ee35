//! A person's Escape fires no hook: the harness's own word says that the turn is over.

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::isolate::MARK;
use minder_tests::process::{self, Process};

use super::stage::Stage;
use crate::scene::LIMIT;

/// A command that needs no leave and does not end by itself.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.05; done";

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn an_interrupted_turn_is_over_and_what_waits_is_given() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");

    // In a tool.
    worker.tui.prompt(&format!("work\n[[sh {UNTIL_GO}]]")).unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    let root = scene.isolated.root().as_os_str();
    let runs = |p: &Process| p.arguments().is_some_and(|a| a.iter().any(|a| a.contains(UNTIL_GO)));
    let found = |_: &str| process::find(|p| runs(p) && p.has_variable(MARK, root)).pop();
    let tool = worker.tui.pane().wait_screen(LIMIT, found).unwrap();
    let waiting = scene.minder_beside(&["send", "worker", "--wait", "are you free? [[say now I am]]"], "");
    let sent = scene.wait(worker.id, "the message", || scene.messages(worker.id).first().map(|m| m.id));
    scene.wait_receipt(worker.id, sent, Receipt::Held);
    worker.tui.pane().key("Escape").unwrap();
    let (seq, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("interrupted"), false));
    let asked = waiting.join().unwrap();
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "now I am\n"), "{asked:?}");
    assert!(tool.wait(LIMIT), "Claude Code ends what it interrupts");
    assert_eq!(stage.heard(&worker, "are you free?"), 1);
    let (seq, _) = scene.wait_move(worker.id, seq, State::Idle);
    worker.tui.wait_status(LIMIT, "idle").unwrap();

    // While the model is silent, in a turn that a message started: nobody waits for its answer any more.
    let waiting = scene.minder_beside(&["send", "worker", "--wait", "think [[hang]]"], "");
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    stage.asked(&worker, "think");
    worker.tui.pane().key("Escape").unwrap();
    let (seq, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(line.note.as_deref(), Some("interrupted"));
    let asked = waiting.join().unwrap();
    assert_eq!((asked.code, asked.stdout.as_str()), (4, ""), "{asked:?}");

    // At a dialog, which is a refusal.
    worker.tui.prompt("make it\n[[sh touch made]] [[say made]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, seq, State::Asking);
    worker.tui.answer_dialog(LIMIT, "Escape").unwrap();
    let (seq, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("interrupted"), false));

    // And the next turn is as ever.
    worker.tui.prompt("go on\n[[say going on]]").unwrap();
    let (_, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("going on"), true));
}
