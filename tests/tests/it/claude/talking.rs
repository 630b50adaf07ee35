//! Two sessions that talk to each other through their own shell tools, and a daemon that dies in between.

use minder_proto::event::Receipt;
use minder_proto::id::Party;
use minder_proto::state::State;
use rustix::process::Signal;

use super::stage::Stage;
use crate::scene::LIMIT;

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn a_session_asks_another_and_has_its_answer_in_the_same_turn_or_by_a_reply() {
    let stage = Stage::new(&["supervisor", "worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let supervisor = stage.start("supervisor");
    let ask = "minder send worker --wait 'Which one? ((say the red one))'";
    supervisor.tui.prompt(&format!("ask\n[[sh {ask}]] [[say I know]]")).unwrap();
    stage.asked(&supervisor, "the red one\n");
    let (seq, _) = scene.wait_move(supervisor.id, 0, State::Idle);
    assert_eq!(scene.messages(worker.id)[0].from, Party::Session(supervisor.id));
    let head = format!("from session \"ask\" (supervisor, {}), not from your user.", supervisor.id.short());
    assert_eq!(stage.asked(&worker, &head).count(&head), 1);

    // By a reply, later: it is a message like any other, and wakes.
    supervisor.tui.wait_status(LIMIT, "idle").unwrap();
    supervisor.tui.prompt("ask again\n[[sh minder send worker 'Are you sure?']] [[say I wait]]").unwrap();
    let (seq, _) = scene.wait_move(supervisor.id, seq, State::Idle);
    let question = scene.wait(worker.id, "the message", || scene.messages(worker.id).get(1).cloned());
    scene.wait_receipt(worker.id, question.id, Receipt::Answered);
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    let reply = format!("minder send --reply-to {} 'Quite sure.'", question.id.short());
    worker.tui.prompt(&format!("answer it\n[[sh {reply}]] [[say answered]]")).unwrap();
    let heard = stage.asked(&supervisor, "Quite sure.");
    assert!(heard.brought(&format!("{}), not from your user.", worker.id.short())), "{heard:?}");
    let answer = scene.messages(supervisor.id).pop().unwrap();
    assert_eq!((answer.from, answer.reply_to), (Party::Session(worker.id), Some(question.id)));
    scene.wait_receipt(supervisor.id, answer.id, Receipt::Answered);
    let (_, line) = scene.wait_move(supervisor.id, seq, State::Working);
    assert_eq!((line.note.as_deref(), line.cause), (Some("Quite sure."), Some(answer.id)));
    assert_eq!(stage.heard(&supervisor, "Quite sure."), 1);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn sessions_outlive_the_daemon_at_work_and_at_rest() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    worker.tui.prompt("work\n[[gate go]] [[say done with it]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    let daemon = scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
    stage.model.open("go");
    // Its own hook starts the next one.
    let (seq, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(line.note.as_deref(), Some("done with it"));
    // And its waiter finds that one.
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    let first = scene.minder(&["send", "worker", "first [[say heard the first]]"]).ok();
    let first = scene.sent(worker.id, &first);
    scene.wait_receipt(worker.id, first, Receipt::Answered);
    let (seq, _) = scene.wait_move(worker.id, seq, State::Idle);
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    scene.minder(&["daemon", "restart"]).ok();
    let second = scene.minder(&["send", "worker", "second [[say heard the second]]"]).ok();
    let second = scene.sent(worker.id, &second);
    scene.wait_receipt(worker.id, second, Receipt::Answered);
    let (_, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!(line.note.as_deref(), Some("heard the second"));
    assert_eq!((stage.heard(&worker, "first [["), stage.heard(&worker, "second [[")), (1, 1));
    assert_eq!(scene.records().len(), 1);
}
