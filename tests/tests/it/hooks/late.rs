//! A daemon that does not answer, or is not there: the harness goes on, and what it said is not lost.

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::fake::Host;
use minder_tests::files;
use rustix::process::Signal;

use super::bench::{Bench, is_silent};
use super::rig::{CODEX, GEMINI, PI, Rig};
use crate::scene::LIMIT;

#[test]
fn h5_a_frozen_daemon_holds_no_harness_and_costs_no_event() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let daemon = bench.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::STOP));
    let mut events = 0;
    for turn in ["turn-1", "turn-2"] {
        for name in ["UserPromptSubmit", "PostToolUse", "Stop"] {
            let mut payload = bench.of_turn(name, turn);
            if name == "Stop" {
                payload["last_assistant_message"] = format!("end of {turn}").into();
            }
            let mut call = bench.call(&payload, false);
            // Nothing ends its input either.
            call.stdin_open = true;
            let answer = bench.host.call(call).unwrap();
            assert!(is_silent(&answer), "{answer:?}");
            assert!(answer.took_ms < 30_000, "{answer:?}");
            events += 1;
            assert_eq!(bench.scene.spooled().len(), events);
        }
    }
    assert_eq!(bench.scene.path(id), []);

    assert!(daemon.signal(Signal::CONT));
    let taken = || bench.scene.spooled().is_empty().then_some(());
    files::wait_for(&bench.scene.home.spool(), LIMIT, taken).unwrap();
    let text = |s: &str| s.to_owned();
    let prompt = text("use a tool [[sh echo hi]] and [[gate go]] [[say all done]]");
    let expected = [
        (State::Working, prompt.clone()),
        (State::Idle, text("end of turn-1")),
        (State::Working, prompt),
        (State::Idle, text("end of turn-2")),
    ];
    assert_eq!(bench.scene.path(id), expected, "{}", bench.scene.told());
}

#[test]
fn a_conversation_whose_new_process_was_not_heard_in_time_is_up_again() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    assert!(bench.host.process().unwrap().signal(Signal::KILL));
    bench.scene.wait_record(id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    let sent = bench.send(id, &["welcome back"]);
    bench.host = Host::start(&bench.scene.isolated, "claude").unwrap();
    let daemon = bench.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::STOP));
    let mut again = bench.payload("SessionStart");
    again["source"] = "resume".into();
    let mut call = bench.call(&again, false);
    call.environment.insert("CLAUDE_PID".to_owned(), bench.host.pid().to_string());
    assert!(is_silent(&bench.host.call(call).unwrap()));
    assert!(daemon.signal(Signal::CONT));
    let pid = i32::try_from(bench.host.pid()).unwrap();
    bench.scene.wait_record(id, "its process", |r| {
        r.process.as_ref().is_some_and(|p| p.pid == pid && p.ended.is_none())
    });
    let woken = bench.wait("SessionStart").wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("welcome back"), "{woken:?}");
    bench.reaches(id, sent, Receipt::Handed);
}

#[test]
fn h5_half_an_input_that_does_not_end_is_not_waited_for() {
    let mut bench = Bench::new("");
    for payload in ["", "{\"hook_event_name\": \"Stop\", "] {
        let mut call = bench.call(&bench.payload("Stop"), false);
        payload.clone_into(&mut call.payload);
        call.stdin_open = true;
        let answer = bench.host.call(call).unwrap();
        assert!(is_silent(&answer) && answer.took_ms < 30_000, "{answer:?}");
    }
}

#[test]
fn without_a_daemon_events_are_left_and_applied_at_its_next_start() {
    let mut bench = Bench::without_daemon("");
    for name in ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"] {
        let mut call = bench.call(&bench.payload(name), false);
        call.environment.insert("MINDER_NO_AUTOSTART".into(), "1".into());
        let answer = bench.host.call(call).unwrap();
        assert!(is_silent(&answer), "{answer:?}");
    }
    assert_eq!(bench.scene.spooled().len(), 4);
    assert!(bench.scene.isolated.daemon().is_none());
    bench.scene.minder(&["daemon", "start"]).ok();
    let id = bench.scene.session("p");
    let taken = || bench.scene.spooled().is_empty().then_some(());
    files::wait_for(&bench.scene.home.spool(), LIMIT, taken).unwrap();
    let states: Vec<State> = bench.scene.path(id).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [State::Working, State::Idle]);
    // What it says next over the socket is of the same session, which has its process then.
    bench.tell(&bench.of_turn("UserPromptSubmit", "turn-2"));
    let record = bench.scene.record(id);
    assert_eq!((record.state, bench.scene.records().len()), (State::Working, 1));
    assert_eq!(record.process.map(|p| p.pid), i32::try_from(bench.host.pid()).ok());
}

#[test]
fn the_first_hook_starts_the_daemon_and_does_not_wait_for_it() {
    let mut bench = Bench::without_daemon("");
    assert!(bench.scene.isolated.daemon().is_none());
    bench.quietly("SessionStart");
    let waiter = bench.wait("SessionStart");
    let id = bench.scene.session("p");
    bench.quietly("UserPromptSubmit");
    assert_eq!(bench.scene.record(id).state, State::Working);
    bench.quietly("Stop");
    bench.send(id, &["hello"]);
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("hello"), "{woken:?}");
}

#[test]
fn a_first_hook_that_found_no_daemon_makes_a_session_when_it_is_read() {
    for harness in [CODEX, PI, GEMINI] {
        let (name, start, end) = (harness.name, harness.start, harness.end);
        let mut rig = Rig::new(harness, "");
        let stop = |rig: &Rig| {
            let daemon = rig.scene.isolated.daemon().unwrap();
            assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
        };
        stop(&rig);
        let mut call = rig.call(&rig.payload(start), false);
        // Behind a shell, as harnesses run their hooks.
        call.command = call.command.replacen("exec ", "", 1) + "; exit $?";
        call.environment.insert("MINDER_NO_AUTOSTART".into(), "1".into());
        if name == "pi" {
            call.environment.insert("MINDER_HARNESS_PID".into(), rig.host.pid().to_string());
        }
        assert!(is_silent(&rig.host.call(call.clone()).unwrap()), "{name}");
        assert_eq!(rig.scene.spooled().len(), 1, "{name}");
        rig.scene.minder(&["daemon", "start"]).ok();
        let id = rig.scene.session("p");
        let process = rig.scene.record(id).process.map(|p| p.pid);
        assert_eq!(process, i32::try_from(rig.host.pid()).ok(), "{name}");
        rig.quietly(end);
        rig.scene.minder(&["close", "p"]).ok();

        // Of one that is gone by then nobody knows whether anybody sat at it.
        stop(&rig);
        let mut begins = rig.payload(start);
        begins["session_id"] = "another".into();
        call.payload = begins.to_string();
        assert!(is_silent(&rig.host.call(call).unwrap()), "{name}");
        let host = rig.host.process().unwrap();
        assert!(host.signal(Signal::KILL) && host.wait(LIMIT));
        rig.scene.minder(&["daemon", "start"]).ok();
        files::wait_for(&rig.scene.home.spool(), LIMIT, || rig.scene.spooled().is_empty().then_some(()))
            .unwrap();
        assert!(rig.scene.records().is_empty(), "{name}");
    }
}

#[test]
fn c7_a_compaction_whose_end_nobody_tells_holds_nothing_for_ever() {
    // It tells one before each call of its model, and never an end.
    let mut rig = Rig::new(GEMINI, "");
    let id = rig.begin();
    rig.quietly("PreCompress");
    assert!(!rig.scene.record(id).compacting);
    // One that was broken off is over with the next that is heard.
    let mut rig = Rig::new(PI, "");
    let id = rig.begin();
    for after in ["UserPromptSubmit", "Stop", "Interrupt"] {
        let mut begins = rig.payload("UserPromptSubmit");
        begins["hook_event_name"] = "PreCompact".into();
        assert!(is_silent(&rig.tell(&begins)));
        assert!(rig.scene.record(id).compacting, "{after}");
        rig.quietly(after);
        assert!(!rig.scene.record(id).compacting, "{after}");
    }
}
