//! A receiver that is replaced while somebody waits for it: killed in its turn and started again, or cleared.

use std::sync::Arc;
use std::thread::JoinHandle;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_tests::fake::Host;
use minder_tests::files;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::rig::{CODEX, Rig};
use crate::scene::{LIMIT, Ran, Scene};

/// The message of this session that has this text, once there is one.
fn sent(rig: &Rig, id: SessionId, text: &str) -> MessageId {
    let found = || rig.scene.messages(id).into_iter().find(|m| m.body == text).map(|m| m.id);
    rig.scene.wait(id, text, found)
}

/// A person asks, and waits for the answer.
fn waits(rig: &Rig) -> JoinHandle<Ran> {
    let scene = Scene { isolated: Arc::clone(&rig.scene.isolated), home: rig.scene.home.clone() };
    Arc::new(scene).minder_beside(&["send", "p", "--wait", "which one?"], "")
}

/// A tool call ends, and what its hook prints reaches the model or does not.
fn tool(rig: &mut Rig, reaches: bool) {
    let payload = rig.of_turn("PostToolUse", "turn-1");
    let answer = rig.tell(&payload);
    if !reaches {
        return;
    }
    let out: Value = serde_json::from_str(&answer.stdout).unwrap();
    let text = out["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    let line = json!({"type": "response_item", "payload": {"type": "message", "role": "developer",
        "content": [{"type": "input_text", "text": text}]}});
    let mut lines = std::fs::read_to_string(rig.transcript()).unwrap_or_default();
    lines.push_str(&format!("{line}\n"));
    std::fs::write(rig.transcript(), lines).unwrap();
}

fn last(rig: &Rig, id: SessionId, message: MessageId) -> (Receipt, Option<String>) {
    rig.scene.receipts(id, message).pop().map(|line| (line.r, line.reason)).unwrap()
}

#[test]
fn c9_a_receiver_that_is_killed_and_started_again_returns_what_somebody_waits_for() {
    let mut rig = Rig::new(CODEX, "");
    let id = rig.begin();
    rig.quietly("UserPromptSubmit");
    std::fs::write(rig.transcript(), "").unwrap();
    let asking = waits(&rig);
    let waited = sent(&rig, id, "which one?");
    let told = rig.send(id, "by the way");
    tool(&mut rig, true);
    [waited, told].into_iter().for_each(|m| drop(rig.scene.wait_receipt(id, m, Receipt::Seen)));
    let third = rig.send(id, "one more");
    tool(&mut rig, false);
    rig.scene.wait_receipt(id, third, Receipt::Handed);

    assert!(rig.host.process().unwrap().signal(Signal::KILL));
    let asked = asking.join().unwrap();
    assert_eq!((asked.code, asked.stdout.as_str()), (4, ""), "{asked:?}");
    // What was only handed waits again, and nobody was given it.
    let held = || (last(&rig, id, third) == (Receipt::Held, Some("offline".to_owned()))).then_some(());
    files::wait_for(&rig.scene.home.session(id), LIMIT, held).unwrap();
    assert!(rig.scene.road(id, third).ends_with("handed, queued, held(offline)"));

    rig.host = Host::start(&rig.scene.isolated, "codex").unwrap();
    let mut start = rig.payload("SessionStart");
    start["source"] = "resume".into();
    rig.tell(&start);
    let returned = rig.scene.wait_receipt(id, waited, Receipt::Returned);
    assert_eq!(returned.reason.as_deref(), Some("receiver_replaced"));
    let shown = rig.scene.minder(&["queue", &waited.short()]).ok();
    assert!(shown.contains("returned(receiver_replaced)"), "{shown}");
    assert_eq!(last(&rig, id, told).0, Receipt::Seen, "nobody waits for it");
    let prompt = rig.of_turn("UserPromptSubmit", "turn-2");
    let answer = rig.tell(&prompt);
    let brought = [waited, told, third].map(|m| answer.stdout.contains(&m.short()));
    assert_eq!(brought, [false, false, true], "{answer:?}");
    let checked = rig.scene.minder(&["store", "check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn c9_a_conversation_that_is_cleared_returns_what_somebody_waits_for_at_once() {
    let mut rig = Rig::new(CODEX, "");
    let id = rig.begin();
    rig.quietly("UserPromptSubmit");
    std::fs::write(rig.transcript(), "").unwrap();
    let asking = waits(&rig);
    let waited = sent(&rig, id, "which one?");
    tool(&mut rig, true);
    rig.scene.wait_receipt(id, waited, Receipt::Seen);
    let mut cleared = rig.payload("SessionStart");
    cleared["session_id"] = "after".into();
    cleared["source"] = "clear".into();
    rig.tell(&cleared);
    let asked = asking.join().unwrap();
    assert_eq!(asked.code, 4, "{asked:?}");
    assert!(asked.stderr.contains("returned(receiver_replaced): no answer will come"), "{asked:?}");
    assert_eq!(rig.scene.records().len(), 1);
}
