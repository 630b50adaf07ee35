//! A message to a session: at rest, at work, at a dialog; how far it got, and the answer of the very turn that it
//! started.

use minder_proto::event::Receipt;
use minder_proto::state::State;

use super::stage::Stage;
use crate::matrix::{Cell, Harness, proven};
use crate::scene::LIMIT;

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn an_idle_session_is_woken_by_a_message_and_its_turn_answers_it() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let body = "Which tests fail? [[say None fails.\nNot one.]]\n";
    let asked = scene.minder_with(&["send", "worker", "--wait", "-"], body);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "None fails.\nNot one.\n"), "{asked:?}");
    let id = scene.sent(worker.id, &asked.stderr);
    assert!(asked.stderr.contains(&format!("{} answered", id.short())), "{asked:?}");

    assert_eq!(scene.road(worker.id, id), "queued, handed, seen, answered");
    let head = format!("[minder] message {} from your user, sent with minder. Reply:", id.short());
    let request = stage.asked(&worker, &head);
    assert_eq!(request.count("Which tests fail?"), 1);
    let expected = [
        (State::Working, "Which tests fail? [[say None fails.".to_owned()),
        (State::Idle, "None fails.".to_owned()),
    ];
    assert_eq!(scene.path(worker.id), expected);
    let cause = scene.moves(worker.id)[0].1.cause;
    assert_eq!(cause, Some(id));
    assert_eq!(scene.record(worker.id).title, "worker", "a title comes from what its person says");
    proven(Harness::Claude, &[Cell::Idle]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn a_message_joins_a_busy_turn_at_the_next_tool_result_or_keeps_it_from_ending() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");

    // A tool result comes.
    worker.tui.prompt("work\n[[gate one]] [[sh echo tool]] [[say all done]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    let waiting = scene.minder_beside(&["send", "worker", "--wait", "by the way"], "");
    let first = scene.wait(worker.id, "the message", || scene.messages(worker.id).first().map(|m| m.id));
    let held = scene.wait_receipt(worker.id, first, Receipt::Held);
    assert_eq!(held.reason.as_deref(), Some("busy"));
    stage.model.open("one");
    let request = stage.asked(&worker, "by the way");
    assert!(request.brought("tool"), "{request:?}");
    let asked = waiting.join().unwrap();
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "all done\n"), "{asked:?}");
    let (seq, _) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(scene.road(worker.id, first), "queued, held(busy), handed, seen, answered");

    // None comes: the turn would end.
    worker.tui.prompt("work on\n[[gate two]] [[say finished]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    let body = "one more thing [[say that too]]";
    let waiting = scene.minder_beside(&["send", "worker", "--wait", body], "");
    let second = scene.wait(worker.id, "the message", || scene.messages(worker.id).get(1).map(|m| m.id));
    scene.wait_receipt(worker.id, second, Receipt::Held);
    stage.model.open("two");
    let asked = waiting.join().unwrap();
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "that too\n"), "{asked:?}");
    let (end, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("that too"), true));
    assert_eq!(scene.road(worker.id, second), "queued, held(busy), handed, seen, answered");
    worker.tui.wait_status(LIMIT, "idle").unwrap();

    // Each reached the model once, and the turn that was kept going ended once.
    worker.tui.prompt("rest\n[[say at rest]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, end, State::Working);
    let between = scene.moves(worker.id).into_iter().filter(|(n, _)| *n > end && *n < seq).count();
    assert_eq!(between, 0, "{}", scene.history(worker.id));
    scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((stage.heard(&worker, "by the way"), stage.heard(&worker, "one more thing")), (1, 1));
    proven(Harness::Claude, &[Cell::Busy]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn nothing_is_given_while_a_dialog_is_open_and_all_of_it_after_the_answer() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    worker.tui.prompt("make it\n[[sh touch made]] [[say made it]]").unwrap();
    let (seq, line) = scene.wait_move(worker.id, 0, State::Asking);
    assert_eq!(line.note.as_deref(), Some("permission: Bash touch made"));

    let sent = scene.minder(&["send", "worker", "when you can"]).ok();
    let id = scene.sent(worker.id, &sent);
    assert_eq!(scene.wait_receipt(worker.id, id, Receipt::Held).reason.as_deref(), Some("dialog"));
    // Who waits for an answer is told at once that a person has to come first.
    let asked = scene.minder(&["send", "worker", "--wait", "and you?"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (3, ""), "{asked:?}");
    assert!(asked.stderr.contains("held(dialog)"), "{asked:?}");
    assert_eq!(stage.heard(&worker, "when you can"), 0);

    worker.tui.answer_dialog(LIMIT, "1").unwrap();
    let (seq, line) = scene.wait_move(worker.id, seq, State::Working);
    assert_eq!(line.note, None);
    let request = stage.asked(&worker, "when you can");
    assert!(request.brought("and you?"), "in one go, in order: {request:?}");
    scene.wait_move(worker.id, seq, State::Idle);
    scene.wait_receipt(worker.id, id, Receipt::Answered);
    assert_eq!(scene.road(worker.id, id), "queued, held(dialog), handed, seen, answered");
    assert!(worker.tui.pane().screen().unwrap().contains("made it"));

    // A question to the person is a dialog too.
    let question = r#"{"questions":[{"question":"Which database?","header":"db","multiSelect":false,
        "options":[{"label":"red","description":"r"},{"label":"blue","description":"b"}]}]}"#;
    let question = question.replace("\n        ", "");
    worker.tui.prompt(&format!("ask me\n[[tool AskUserQuestion {question}]] [[say thanks]]")).unwrap();
    let (seq, line) = scene.wait_move(worker.id, seq + 1, State::Asking);
    assert_eq!(line.note.as_deref(), Some("question: Which database?"));
    worker.tui.answer_dialog(LIMIT, "1").unwrap();
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    let (_, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(line.note.as_deref(), Some("thanks"));
    assert_eq!(stage.heard(&worker, "when you can"), 1);
    let states: Vec<State> = scene.path(worker.id).into_iter().map(|(state, _)| state).collect();
    let turn = [State::Working, State::Asking, State::Working, State::Idle];
    assert_eq!(states, [turn, turn].concat());
    proven(Harness::Claude, &[Cell::Turn, Cell::Dialog]);
}
