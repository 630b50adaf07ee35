//! Conversations and processes that end, go on under another name, or are none of minder's.

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::{files, process};
use rustix::process::Signal;

use super::stage::Stage;
use crate::matrix::{Cell, Harness, proven};
use crate::scene::LIMIT;

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn i3_a_conversation_that_is_cleared_is_the_same_session() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    worker.tui.prompt("remember\n[[say I do]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Idle);
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    let old = worker.tui.session_id().unwrap();
    worker.tui.prompt("/clear").unwrap();
    let renamed = || worker.tui.session_id().ok().filter(|id| *id != old);
    let new = files::wait_for(&worker.tui.state_file(), LIMIT, renamed).unwrap();
    scene.wait_record(worker.id, "the second binding", |r| r.bindings.len() == 2);
    let record = scene.record(worker.id);
    assert_eq!((record.bindings[0].id.as_str(), record.bindings[0].until.is_some()), (old.as_str(), true));
    assert_eq!((record.bindings[1].id.as_str(), record.bindings[1].why.as_str()), (new.as_str(), "clear"));
    assert_eq!(scene.records().len(), 1);

    // It is reached in the conversation that there is now.
    let asked = scene.minder(&["send", "worker", "--wait", "who are you? [[say the new one]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "the new one\n"), "{asked:?}");
    assert_eq!(stage.heard(&worker, "remember"), 0);
    assert_eq!(stage.heard(&worker, "who are you?"), 1);
    scene.wait_move(worker.id, seq, State::Idle);
    proven(Harness::Claude, &[Cell::Resume]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn h8_a_process_that_is_killed_at_work_is_an_error_and_its_conversation_goes_on_in_another() {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    // Of a conversation without a whole turn there is nothing to take up again.
    worker.tui.prompt("begin\n[[say begun]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Idle);
    worker.tui.prompt("work\n[[hang]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, seq, State::Working);
    stage.asked(&worker, "work");
    let conversation = worker.tui.session_id().unwrap();
    // It writes its conversation down a moment later than it says so, and what was not written is gone with it.
    let transcript = scene.record(worker.id).live_binding().and_then(|b| b.transcript.clone()).unwrap();
    files::wait_for_text(std::path::Path::new(&transcript), LIMIT, |text| {
        text.contains("begun").then_some(())
    })
    .unwrap();
    let pid = worker.tui.process().pid();
    assert!(worker.tui.process().signal(Signal::KILL));
    let (_, line) = scene.wait_move(worker.id, seq, State::Error);
    assert_eq!(line.note, Some(format!("claude (pid {pid}) is gone")));
    let listed = scene.minder(&["ls"]).ok();
    assert!(listed.contains("ended"), "{listed}");
    let sent = scene.minder(&["send", "worker", "are you there? [[say I am back]]"]).ok();
    let id = scene.sent(worker.id, &sent);
    assert_eq!(scene.wait_receipt(worker.id, id, Receipt::Held).reason.as_deref(), Some("offline"));

    // The conversation is taken up again: the same session, and what waited is given.
    let folder = scene.isolated.project("worker").unwrap();
    let again = stage.claude.tui(&stage.tmux, "again", &folder, &["--resume", &conversation]).unwrap();
    scene.wait_receipt(worker.id, id, Receipt::Answered);
    let record = scene.record(worker.id);
    assert_eq!(record.process.unwrap().pid, i32::try_from(again.process().pid()).unwrap());
    assert_eq!((record.incarnation, scene.records().len()), (1, 1));
    // At its normal end nothing is said but that it ended.
    let stood = scene.path(worker.id);
    again.wait_status(LIMIT, "idle").unwrap();
    again.process().signal(Signal::TERM);
    scene.wait_record(worker.id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    assert_eq!(scene.path(worker.id), stood);
    proven(Harness::Claude, &[Cell::Kill, Cell::Resume]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn h3_an_unattended_run_is_no_session_and_speaks_for_nobody() {
    let stage = Stage::new(&["worker", "robot"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let folder = scene.isolated.project("robot").unwrap();
    let prompt =
        "go\n[[sh minder send worker hello 2>&1; echo code $?]] [[sh minder; echo code $?]] [[say done]]";
    let args = ["--output-format", "json", "--allowedTools", "Bash"];
    let out = process::run(&mut stage.claude.print(&folder, prompt, &args), b"", LIMIT).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(result["result"], "done", "{result}");
    let conversation = result["session_id"].as_str().unwrap();
    let said = stage.model.wait_for_text(LIMIT, "code 3").unwrap();
    assert!(said.brought("minder new"), "{said:?}");
    // It may look.
    stage.model.wait_for_text(LIMIT, "code 0").unwrap();
    assert_eq!(scene.records().len(), 1);
    assert_eq!(scene.messages(worker.id), []);
    let sent = scene.minder(&["send", conversation, "hello"]);
    assert_eq!(sent.code, 2, "{sent:?}");

    // Run by a session's own tool it inherits much, and is still not that session.
    let claude = stage.claude.program().display();
    let nested = format!("{claude} -p 'in there [[say inner]]' < /dev/null");
    worker.tui.prompt(&format!("run it\n[[sh echo; {nested}]] [[say it ran]]")).unwrap();
    worker.tui.answer_dialog(LIMIT, "1").unwrap();
    let (_, line) = scene.wait_move(worker.id, 0, State::Idle);
    assert_eq!(line.note.as_deref(), Some("it ran"));
    stage.asked(&worker, "inner");
    let states: Vec<State> = scene.path(worker.id).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [State::Working, State::Asking, State::Working, State::Idle]);
    assert_eq!((scene.records().len(), scene.record(worker.id).bindings.len()), (1, 1));
}
