//! The end of a turn: a hook that keeps it going never does so for the same thing twice.

use minder_proto::event::Receipt;
use minder_proto::state::State;

use super::bench::{Bench, is_silent};

#[test]
fn h1_a_stop_hook_never_loops() {
    let mut bench = Bench::new("queue.max_messages = 8");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let sent: Vec<_> = (0..8).map(|n| bench.send(id, &[&format!("text {n}")])).collect();
    assert_eq!(bench.scene.minder(&["send", "p", "one more"]).code, 75, "the queue is full");

    // The turn was kept going before, by whomever: no decision, each time.
    for n in 0..20 {
        let mut payload = bench.payload("Stop-after-block");
        assert_eq!(payload["stop_hook_active"], true);
        payload["last_assistant_message"] = format!("end {n}").into();
        let answer = bench.tell(&payload);
        assert!(is_silent(&answer), "{answer:?}");
    }
    assert_eq!(bench.scene.snapshot_queue(id), 8);

    // Without that word: one block for all that waits, and none for what was given.
    let stop = bench.of_turn("Stop", "turn-2");
    let answer = bench.tell(&stop);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""));
    for n in 0..8 {
        assert_eq!(answer.stderr.matches(&format!("text {n}")).count(), 1, "{answer:?}");
    }
    for n in 3..10 {
        assert!(is_silent(&bench.tell(&bench.of_turn("Stop", &format!("turn-{n}")))));
    }
    // A new one is one more, once there is room.
    bench.shown(&answer.stderr);
    for id_of in &sent {
        bench.reaches(id, *id_of, Receipt::Seen);
    }
    let new = bench.send(id, &["news"]);
    let answer = bench.tell(&bench.of_turn("Stop", "turn-11"));
    assert!(answer.code == Some(2) && answer.stderr.contains("news"), "{answer:?}");
    assert!(!answer.stderr.contains("text 0"), "{answer:?}");
    assert!(is_silent(&bench.tell(&bench.of_turn("Stop", "turn-12"))));
    assert_eq!(bench.scene.road(id, new), "queued, held(no-wake-path), handed");
    let road = bench.scene.road(id, sent[0]);
    assert!(road.starts_with("queued, held(busy), held(no-wake-path), handed, seen"), "{road}");
}

#[test]
fn h8_events_that_come_twice_or_in_another_order_make_a_legal_sequence() {
    let mut bench = Bench::new("");
    // An end of what never began is nobody's.
    for name in ["SessionEnd", "SessionEnd"] {
        bench.quietly(name);
    }
    assert_eq!(bench.scene.records(), []);
    let id = bench.begin();
    bench.quietly("SessionStart");
    for name in ["UserPromptSubmit", "UserPromptSubmit", "PostToolUse", "PostToolUse", "Stop", "Stop"] {
        bench.quietly(name);
    }
    // What comes late of a turn that is over is no news.
    bench.quietly("PostToolUse");
    bench.quietly("PermissionRequest");
    let path = |bench: &Bench| bench.scene.path(id).into_iter().map(|(state, _)| state).collect::<Vec<_>>();
    assert_eq!(path(&bench), [State::Working, State::Idle]);
    // One whose beginning was never told.
    bench.tell(&bench.of_turn("PostToolUse", "turn-2"));
    bench.tell(&bench.of_turn("Stop", "turn-2"));
    assert_eq!(path(&bench), [State::Working, State::Idle, State::Working, State::Idle]);
    bench.quietly("SessionEnd");
    bench.quietly("SessionEnd");
    bench.quietly("SessionStart");
    bench.quietly("SessionStart");
    assert_eq!(path(&bench).len(), 4);
    assert_eq!(bench.scene.records().len(), 1);
}

#[test]
fn what_the_session_declared_is_not_taken_back_by_a_stop_that_comes_again() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    // Somebody else's hook keeps the turn going after ours said that it is over.
    bench.quietly("Stop");
    bench.scene.minder(&["--as", "p", "state", "review", "--note", "by the person"]).ok();
    let after = bench.payload("Stop-after-block");
    let mut again = after.clone();
    again["prompt_id"] = bench.payload("Stop")["prompt_id"].clone();
    bench.tell(&again);
    let record = bench.scene.record(id);
    assert_eq!((record.state, record.note.as_deref()), (State::Review, Some("by the person")));
    let sent = bench.send(id, &["hello"]);
    bench.reaches(id, sent, Receipt::Held);
}
