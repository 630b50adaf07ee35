//! Sessions that watch each other in a ring, each of whose turns is begun by news of the one before and fails.

use minder_proto::id::SessionId;
use minder_proto::state::State;
use serde_json::Value;

use super::bench::is_silent;
use super::rig::{OPENCODE, Rig};
use crate::scene::LIMIT;

const NAMES: [&str; 3] = ["p", "q", "r"];

/// An event of one of the three.
fn of(rig: &Rig, who: usize, event: &str) -> Value {
    let known = if event == "StopFailure" { "Stop" } else { event };
    let mut payload = rig.payload(known);
    payload["hook_event_name"] = event.into();
    payload["session_id"] = format!("ses_{who}").into();
    payload["cwd"] = rig.scene.isolated.project(NAMES[who]).unwrap().to_str().unwrap().into();
    payload
}

#[test]
fn b2_in_a_ring_of_watchers_a_failure_is_not_passed_on_for_ever() {
    let mut rig = Rig::new(OPENCODE, "");
    for who in 0..3 {
        assert!(is_silent(&rig.tell(&of(&rig, who, "SessionStart"))));
    }
    let ids: [SessionId; 3] = NAMES.map(|name| rig.scene.session(name));
    for (watcher, target) in [("q", "p"), ("r", "q"), ("p", "r")] {
        rig.scene.minder(&["--as", watcher, "watch", target, "--states", "error"]).ok();
    }
    let mut waiters: Vec<_> = (0..3)
        .map(|who| {
            let call = rig.call(&of(&rig, who, "SessionStart"), true);
            Some(rig.host.begin(call).unwrap())
        })
        .collect();
    let mut failures = 0;
    let mut fails = |rig: &mut Rig, who: usize, prompt: &str| {
        failures += 1;
        let mut taken = of(rig, who, "UserPromptSubmit");
        taken["prompt"] = prompt.into();
        rig.tell(&taken);
        let mut failed = of(rig, who, "StopFailure");
        failed["error"] = format!("overloaded {failures}").into();
        rig.tell(&failed);
        assert_eq!(rig.scene.record(ids[who]).state, State::Error);
    };
    fails(&mut rig, 0, "a person's");
    let mut known = [0; 3];
    let mut passed = 0;
    for link in 1..12 {
        let (before, who) = ((link - 1) % 3, link % 3);
        let news = rig.scene.notices(ids[who], ids[before]).len();
        if news == known[who] {
            break;
        }
        known[who] = news;
        let woken = waiters[who].take().unwrap().wait(LIMIT).unwrap();
        let call = rig.call(&of(&rig, who, "SessionStart"), true);
        waiters[who] = Some(rig.host.begin(call).unwrap());
        fails(&mut rig, who, &woken.stderr);
        passed += 1;
    }
    assert_eq!(passed, 5, "a person's failure, and what four more come to");
    let mut hops: Vec<u8> = (0..3).flat_map(|who| rig.scene.messages(ids[who])).map(|m| m.hops).collect();
    hops.sort_unstable();
    assert_eq!(hops[hops.len() - 5..], [0, 1, 2, 3, 4]);
}

#[test]
fn what_is_said_at_the_end_of_a_turn_has_what_brought_the_turn_about() {
    let mut rig = Rig::new(OPENCODE, "");
    let target = rig.begin();
    rig.scene.minder(&["new", "--label", "watcher"]).ok();
    let watcher = rig.scene.session("watcher");
    rig.scene.minder(&["--as", "watcher", "watch", "p", "--states", "idle,working"]).ok();
    for end in ["Stop", "Interrupt"] {
        let waiter = rig.wait("SessionStart");
        let sent = rig.send(target, end);
        let mut taken = rig.payload("UserPromptSubmit");
        taken["prompt"] = waiter.wait(LIMIT).unwrap().stderr.into();
        rig.tell(&taken);
        let mut over = rig.payload("Stop");
        over["hook_event_name"] = end.into();
        rig.tell(&over);
        let (_, line) = rig.scene.moves(target).pop().unwrap();
        assert_eq!((line.to, line.cause), (State::Idle, Some(sent)), "{end}");
        let told = rig.scene.notices(watcher, target).pop().unwrap();
        assert_eq!((told.cause, told.hops), (Some(sent), 1), "{end}");
    }
}
