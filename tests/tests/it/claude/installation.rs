//! Hooks that come and go, and the hooks of others beside ours.

use std::process::Command;

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::files;
use serde_json::Value;

use super::stage::Stage;
use crate::matrix::{Cell, Harness, proven};
use crate::scene::LIMIT;

/// Settings as somebody wrote them by hand. Their hook tells the test that Claude Code has read them anew.
const SETTINGS: &str = r#"{ "cleanupPeriodDays": 20,
  "hooks": {"ConfigChange" : [ {"hooks": [ {"type": "command", "command": "touch \"$RIG_ROOT/changed\""} ]} ],

    "Stop": [{"hooks": [{"type": "command", "command": "true"}]}] }
}
"#;

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn o2_hooks_that_come_while_it_runs_act_from_its_next_prompt_and_go_without_a_trace() {
    let stage = Stage::without_hooks(&["worker"]);
    let scene = &stage.scene;
    std::fs::write(stage.claude.settings(), SETTINGS).unwrap();
    let tui = stage.tui("worker");
    scene.minder(&["hooks", "install", "claude"]).ok();
    let changed = scene.isolated.root().join("changed");
    files::wait_for(&changed, LIMIT, || changed.exists().then_some(())).unwrap();
    assert_eq!(scene.records(), [], "nothing happened since");
    tui.prompt("look around\n[[say I did]]").unwrap();
    let id = scene.session("worker");
    scene.wait_move(id, 0, State::Idle);
    let record = scene.record(id);
    assert_eq!(record.process.map(|p| p.pid), i32::try_from(tui.process().pid()).ok());
    // Its waiter came with the prompt.
    let asked = scene.minder(&["send", "worker", "--wait", "and now? [[say here]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "here\n"), "{asked:?}");
    tui.wait_status(LIMIT, "idle").unwrap();

    scene.minder(&["hooks", "uninstall", "claude"]).ok();
    assert_eq!(std::fs::read_to_string(stage.claude.settings()).unwrap(), SETTINGS);
    proven(Harness::Claude, &[Cell::Uninstall]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn o8_setup_takes_in_what_runs_already() {
    let stage = Stage::without_hooks(&["worker", "other"]);
    let scene = &stage.scene;
    let worker = stage.tui("worker");
    // Claude Code is found where a user has it.
    let program = stage.claude.program();
    let path = format!("PATH={}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut setup = Command::new("/usr/bin/env");
    setup.arg(path).arg(scene.isolated.program("minder").unwrap()).args(["setup", "claude", "--yes"]);
    let done = scene.orphan(&setup, "", LIMIT);
    assert_eq!(done.code, 0, "{done:?}");
    let id = scene.session("worker");
    let record = scene.record(id);
    assert_eq!(record.process.map(|p| p.pid), i32::try_from(worker.process().pid()).ok());
    assert_eq!(scene.records().len(), 1);
    // Nothing wakes it before an event of its own; and one that starts now is as any other.
    let sent = scene.minder(&["send", "worker", "hello"]).ok();
    let sent = scene.sent(id, &sent);
    assert_eq!(scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("no-wake-path"));
    let other = stage.start("other");
    let asked = scene.minder(&["send", "other", "--wait", "and you? [[say as any other]]"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "as any other\n"), "{asked:?}");
    assert_eq!(scene.records().len(), 2);
    drop(other);
}

/// Somebody else's hooks: one that keeps each turn going once, and one that hangs until it is killed.
const NEIGHBOURS: &str = r#"[
  {"hooks": [{"type": "command", "command": "grep -q '\"stop_hook_active\":true' && exit 0; echo 'not yet, says the neighbour' >&2; exit 2"}]},
  {"hooks": [{"type": "command", "command": "exec sleep 600", "timeout": 2}]}
]"#;

/// Gives a session a message at the end of a turn, with those hooks before ours or behind them.
fn beside_bad_neighbours(first: bool) {
    let stage = Stage::new(&["worker"]);
    let scene = &stage.scene;
    let text = std::fs::read_to_string(stage.claude.settings()).unwrap();
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    let theirs: Vec<Value> = serde_json::from_str(NEIGHBOURS).unwrap();
    let stop = settings["hooks"]["Stop"].as_array_mut().unwrap();
    let place = if first { 0 } else { stop.len() };
    stop.splice(place..place, theirs);
    stage.claude.write_settings(&settings).unwrap();

    let worker = stage.start("worker");
    worker.tui.prompt("work\n[[gate go]] [[say first end]] [[say second end]] [[say third end]]").unwrap();
    let (seq, _) = scene.wait_move(worker.id, 0, State::Working);
    let sent = scene.minder(&["send", "worker", "a word from me"]).ok();
    let sent = scene.sent(worker.id, &sent);
    scene.wait_receipt(worker.id, sent, Receipt::Held);
    stage.model.open("go");
    stage.asked(&worker, "a word from me");
    stage.asked(&worker, "not yet, says the neighbour");
    scene.wait_receipt(worker.id, sent, Receipt::Answered);
    scene.wait_move(worker.id, seq, State::Idle);
    // A waiter still wakes it, and nothing comes twice.
    let asked = scene.minder(&["send", "worker", "--wait", "a second word [[say heard]]"]);
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!((stage.heard(&worker, "a word from me"), stage.heard(&worker, "a second word")), (1, 1));
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn h2_behind_hooks_that_block_or_hang_messages_arrive_once() {
    beside_bad_neighbours(true);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn h2_before_hooks_that_block_or_hang_messages_arrive_once() {
    beside_bad_neighbours(false);
}
