//! The main job: a worker's turn ends, and whoever wants to know is told, once.

use minder_proto::event::Receipt;
use minder_proto::id::MessageId;
use minder_proto::state::State;
use serde_json::Value;

use super::stage::{Actor, Stage};
use crate::matrix::{Cell, Harness, proven};
use crate::scene::LIMIT;

/// Makes the supervisor watch the worker, through its own shell tool, and end its turn.
fn watch(stage: &Stage, supervisor: &Actor) {
    let begun = stage.scene.last(supervisor.id);
    supervisor.tui.prompt("watch it\n[[sh minder watch worker]] [[say I watch]]").unwrap();
    let (seq, _) = stage.scene.wait_move(supervisor.id, begun, State::Working);
    stage.scene.wait_move(supervisor.id, seq, State::Idle);
    supervisor.tui.wait_status(LIMIT, "idle").unwrap();
    let watchers = minder_proto::snapshot::watchers(&stage.scene.home, stage.scene.session("worker"));
    assert_eq!(watchers.unwrap()[0].watcher, supervisor.id);
}

/// Runs a turn of the worker to its end; gives the notice of it that the supervisor was sent.
fn turn(stage: &Stage, worker: &Actor, supervisor: &Actor) -> MessageId {
    let scene = &stage.scene;
    let begun = scene.last(worker.id);
    worker.tui.prompt("look around\n[[gate go]] [[say The tests are green.\nNothing else.]]").unwrap();
    let (seq, line) = scene.wait_move(worker.id, begun, State::Working);
    assert_eq!(line.note.as_deref(), Some("look around"));
    stage.model.open("go");
    let (_, line) = scene.wait_move(worker.id, seq, State::Idle);
    assert_eq!((line.note.as_deref(), line.turn_end), (Some("The tests are green."), true));
    assert_eq!(line.text.as_deref(), Some("The tests are green.\nNothing else."));
    // The line and the notice are one commit.
    scene.notices(supervisor.id, worker.id).last().unwrap().id
}

/// What the notice says to the model.
const NOTICE: &str = "working → idle — The tests are green.\nanswer: The tests are green.\nNothing else.\n";

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn the_end_of_a_workers_turn_wakes_its_supervisor_once_and_ends_a_wait() {
    let stage = Stage::new(&["supervisor", "worker"]);
    let scene = &stage.scene;
    let worker = stage.start("worker");
    let supervisor = stage.start("supervisor");
    let labels: Vec<String> = scene.records().into_iter().map(|r| r.label).collect();
    assert_eq!(labels, ["worker", "supervisor"], "registered by their hooks alone");
    watch(&stage, &supervisor);
    let stood = scene.last(supervisor.id);

    // A third shell, which is no session's.
    let waiting = scene.minder_beside(&["wait", "worker"], "");
    let notice = turn(&stage, &worker, &supervisor);
    let waited = waiting.join().unwrap();
    assert_eq!(waited.code, 0, "{waited:?}");
    let short = worker.id.short();
    let answer = "answer: The tests are green.\nanswer: Nothing else.\n";
    let expected =
        format!("look around (worker, {short}) idle → working → idle\nnote: The tests are green.\n{answer}");
    assert_eq!(waited.stdout, expected);

    // Nobody touches the supervisor's terminal.
    stage.asked(&supervisor, NOTICE);
    let seen = scene.wait_receipt(supervisor.id, notice, Receipt::Seen);
    assert_eq!(seen.reason.as_deref(), Some("prompt"));
    assert_eq!(scene.road(supervisor.id, notice), "queued, handed, seen");
    let told = scene.minder(&["queue", &notice.short()]).ok();
    assert!(told.starts_with(&format!("{}  minder to supervisor  queued ", notice.short())), "{told}");
    assert!(told.contains(", handed ") && told.contains(", seen "), "{told}");
    let whole: Value =
        serde_json::from_str(&scene.minder(&["queue", &notice.short(), "--json"]).ok()).unwrap();
    let last = whole["history"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["r"], &last["reason"]), (&"seen".into(), &"prompt".into()), "{whole}");

    // The turn that it started is no news, and a later one does not bring it again.
    supervisor.tui.wait_status(LIMIT, "idle").unwrap();
    supervisor.tui.prompt("and now?\n[[say nothing new]]").unwrap();
    let (seq, _) = scene.wait_move(supervisor.id, stood, State::Working);
    scene.wait_move(supervisor.id, seq, State::Idle);
    let between = scene.moves(supervisor.id).into_iter().filter(|(n, _)| *n > stood && *n < seq).count();
    assert_eq!(between, 0, "{}", scene.history(supervisor.id));
    assert_eq!(stage.heard(&supervisor, "The tests are green.\nNothing else."), 1);
    assert_eq!(scene.notices(worker.id, supervisor.id), [], "nobody watches the supervisor");
    proven(Harness::Claude, &[Cell::Registration, Cell::Notice]);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn where_nothing_wakes_the_supervisor_its_next_prompt_carries_the_notice_once() {
    let stage = Stage::new(&["supervisor", "worker"]);
    let scene = &stage.scene;
    stage.without_waiters();
    let worker = stage.start("worker");
    let supervisor = stage.start("supervisor");
    watch(&stage, &supervisor);
    let notice = turn(&stage, &worker, &supervisor);
    scene.wait_receipt(supervisor.id, notice, Receipt::Held);
    let told = scene.minder(&["queue", &notice.short()]).ok();
    assert!(told.contains("held(no-wake-path)"), "{told}");
    assert_eq!(stage.heard(&supervisor, "The tests are green."), 0);

    let stood = scene.last(supervisor.id);
    supervisor.tui.prompt("what is new?\n[[say I see]]").unwrap();
    let request = stage.asked(&supervisor, NOTICE);
    assert!(request.brought("what is new?"), "with the prompt, not after it");
    scene.wait_move(supervisor.id, stood, State::Idle);
    let seen = scene.wait_receipt(supervisor.id, notice, Receipt::Seen);
    assert_eq!(seen.reason.as_deref(), Some("transcript"));
    assert_eq!(scene.road(supervisor.id, notice), "queued, held(no-wake-path), handed, seen");

    let stood = scene.last(supervisor.id);
    supervisor.tui.prompt("and now?\n[[say nothing new]]").unwrap();
    scene.wait_move(supervisor.id, stood, State::Idle);
    assert_eq!(stage.heard(&supervisor, NOTICE), 1);
}
