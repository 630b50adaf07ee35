//! What a turn says of its session, and what it does not: declarations, failures, sub-agents, waits in the background.

use minder_proto::event::{Author, Receipt};
use minder_proto::state::State;

use super::stage::Stage;
use crate::scene::LIMIT;

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn what_a_session_declares_stands_until_its_next_turn() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    worker.tui.prompt("do it\n[[sh minder state review --note 'PR 12']] [[say It is up.]]").unwrap();
    let (seq, line) = scene.wait_move(worker.id, 0, State::Review);
    assert_eq!((line.note.as_deref(), line.by), (Some("PR 12"), Author::Agent));
    worker.tui.pane().wait_text(LIMIT, "● It is up.").unwrap();
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    worker.tui.prompt("go on\n[[say On it.]]").unwrap();
    let (next, _) = scene.wait_move(worker.id, seq, State::Working);
    let (_, line) = scene.wait_move(worker.id, next, State::Idle);
    assert_eq!(line.note.as_deref(), Some("On it."));
    let states: Vec<State> = scene.path(worker.id).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [State::Working, State::Review, State::Working, State::Idle]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn a_turn_that_the_model_fails_is_an_error_and_answers_nothing() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let asked = scene.minder(&["send", "worker", "--wait", "try it [[err 529]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (4, ""), "{asked:?}");
    let (seq, line) = scene.wait_move(worker.id, 0, State::Error);
    assert_eq!(line.note.as_deref(), Some("the model failed: server_error"));
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    // The next turn is as ever, and a message wakes it.
    let asked = scene.minder(&["send", "worker", "--wait", "again [[say better]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "better\n"), "{asked:?}");
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    scene.wait_move(worker.id, seq, State::Idle);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn h10_what_a_sub_agent_does_is_nothing_that_its_session_does() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let agent = r#"{"description":"look","subagent_type":"general-purpose","prompt":"((gate inside)) ((sh echo from-agent)) ((gate end)) ((say agent done))"}"#;
    worker
        .tui
        .prompt(&format!("let it look\n[[tool Agent {agent}]] [[gate own]] [[say all looked at]]"))
        .unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    // It works at its own gate: what waits for the session is not for it.
    let inside = |r: &minder_tests::model::Request| {
        r.main && r.brought("((gate inside))") && !r.brought("let it look")
    };
    stage.model.wait_for(LIMIT, |all| all.iter().find(|r| inside(r)).map(drop)).unwrap();
    let sent = scene.minder(&["send", "worker", "not for a sub-agent"]).ok();
    let id = scene.sent(worker.id, &sent);
    scene.wait_receipt(worker.id, id, Receipt::Held);
    stage.model.open("inside");
    let result =
        |r: &minder_tests::model::Request| r.main && r.brought("from-agent") && !r.brought("let it look");
    let request = stage.model.wait_for(LIMIT, |all| all.iter().find(|r| result(r)).cloned()).unwrap();
    assert_eq!(request.count("not for a sub-agent"), 0);
    assert_eq!(scene.path(worker.id).len(), 1, "{}", scene.history(worker.id));
    stage.model.open("end");
    stage.model.open("own");
    scene.wait_receipt(worker.id, id, Receipt::Answered);
    scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(stage.heard(&worker, "not for a sub-agent"), 1);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn who_waits_in_the_background_is_parked_and_its_exit_starts_a_turn() {
    let stage = Stage::new(&["supervisor", "worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let supervisor = stage.start("supervisor");
    let wait = r#"{"command":"minder wait worker","description":"wait","run_in_background":true}"#;
    supervisor.tui.prompt(&format!("wait for it\n[[tool Bash {wait}]] [[say I wait]]")).unwrap();
    let (seq, line) = scene.wait_move(supervisor.id, 0, State::Parked);
    assert_eq!(line.note.as_deref(), Some("waits for worker"));

    worker.tui.prompt("go\n[[say gone]]").unwrap();
    scene.wait_move(worker.id, 0, State::Idle);
    let (seq, line) = scene.wait_move(supervisor.id, seq, State::Working);
    assert_eq!(line.note.as_deref(), Some("a background task ended"));
    scene.wait_move(supervisor.id, seq, State::Idle);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn what_is_typed_while_a_turn_runs_is_a_turn_of_its_own_after_it() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    worker.tui.prompt("one\n[[gate one]] [[say end of one]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    worker.tui.prompt("two\n[[gate two]] [[say end of two]]").unwrap();
    stage.model.open("one");
    let (seq, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(line.note.as_deref(), Some("end of one"));
    // No event says that the next one begins: its own end does.
    stage.asked(&worker, "two");
    stage.model.open("two");
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    let (_, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("end of two"), true));
    assert_eq!(scene.path(worker.id).len(), 4, "{}", scene.history(worker.id));
}
