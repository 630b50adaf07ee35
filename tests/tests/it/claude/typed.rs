//! Messages that are typed into the pane in which the real Claude Code runs: at rest, beside half a prompt, at a dialog,
//! and what is too long for a prompt.

use minder_proto::event::Receipt;
use minder_proto::state::State;

use super::stage::{Actor, Stage};
use crate::scene::LIMIT;

/// A session that nothing wakes but keys.
fn typed(stage: &Stage) -> Actor {
    stage.without_waiters();
    let worker = stage.start("worker");
    let set = stage.scene.minder(&["set", "worker", "--channel", "tmux"]).ok();
    assert_eq!(set, "channel: hook → tmux\n");
    worker
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn a_message_is_typed_into_an_empty_prompt_and_never_beside_half_of_one() {
    let stage = Stage::new(&["worker"]);
    let worker = typed(&stage);
    let scene = &stage.scene;
    let listed = scene.minder(&["ls"]).ok();
    assert!(listed.contains(&format!("tmux {}", worker.tui.pane().id())), "{listed}");

    let asked = scene.minder(&["send", "worker", "--wait", "Which tests fail? [[say None fails.]]"]);
    assert_eq!(
        (asked.code, asked.stdout.as_str()),
        (0, "None fails.\n"),
        "{asked:?}\n{}",
        scene.history(worker.id)
    );
    let id = scene.sent(worker.id, &asked.stderr);
    assert_eq!(scene.road(worker.id, id), "queued, handed, seen, answered");
    let head = format!("[minder] message {} from your user, sent with minder.", id.short());
    assert_eq!(stage.asked(&worker, &head).count("Which tests fail?"), 1);
    let channels: Vec<_> =
        scene.receipts(worker.id, id).into_iter().filter_map(|line| line.channel).collect();
    assert_eq!(channels[..2], ["tmux", "tmux"]);

    worker.tui.wait_status(LIMIT, "idle").unwrap();
    worker.tui.enter_text("half a line").unwrap();
    let sent = scene.minder(&["send", "worker", "and these? [[say Nor these.]]"]).ok();
    let id = scene.sent(worker.id, &sent);
    assert_eq!(scene.wait_receipt(worker.id, id, Receipt::Held).reason.as_deref(), Some("draft"));
    worker.tui.pane().key("C-u").unwrap();
    scene.wait_receipt(worker.id, id, Receipt::Answered);
    assert_eq!(scene.road(worker.id, id), "queued, held(draft), handed, seen, answered");
    assert_eq!((stage.heard(&worker, "half a line"), stage.heard(&worker, "and these?")), (0, 1));
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn nothing_is_typed_at_a_dialog_and_what_is_long_is_pointed_at() {
    let stage = Stage::new(&["worker"]);
    let worker = typed(&stage);
    let scene = &stage.scene;
    worker.tui.prompt("make it\n[[sh touch made]] [[say made it]]").unwrap();
    scene.wait_move(worker.id, 0, State::Asking);
    let sent = scene.minder(&["send", "worker", "--class", "idle", "when you can [[say I can]]"]).ok();
    let id = scene.sent(worker.id, &sent);
    assert_eq!(scene.wait_receipt(worker.id, id, Receipt::Held).reason.as_deref(), Some("dialog"));
    worker.tui.answer_dialog(LIMIT, "1").unwrap();
    scene.wait_receipt(worker.id, id, Receipt::Answered);
    assert!(worker.tui.pane().screen().unwrap().contains("made it"));
    assert_eq!(stage.heard(&worker, "when you can"), 1);
    worker.tui.wait_status(LIMIT, "idle").unwrap();

    let body = "a line of it\n".repeat(100);
    let sent = scene.minder_with(&["send", "worker", "-"], &body).ok();
    let id = scene.sent(worker.id, &sent);
    let seen =
        || scene.receipts(worker.id, id).into_iter().find(|l| l.reason.as_deref() == Some("pointer-seen"));
    let line = scene.wait(worker.id, "the pointer", seen);
    assert_eq!((line.r, line.channel.as_deref()), (Receipt::Handed, Some("tmux")));
    let pointer = format!("minder inbox ack {}", id.short());
    stage.asked(&worker, &pointer);
    assert_eq!(stage.heard(&worker, "a line of it"), 0);
    worker.tui.wait_status(LIMIT, "idle").unwrap();
    worker
        .tui
        .prompt(&format!("read\n[[sh minder inbox list && minder inbox ack {}]] [[say read]]", id.short()))
        .unwrap();
    scene.wait_receipt(worker.id, id, Receipt::Seen);
    stage.asked(&worker, "a line of it");
}
