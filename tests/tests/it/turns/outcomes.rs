//! M5: one line for every turn, and the first word on its outcome counts.

use minder_proto::event::Body;
use minder_proto::id::TurnId;
use minder_proto::rpc::{Hold, TurnFinish, TurnGet, TurnRun};
use minder_proto::turn::folder::SPEC;
use minder_proto::turn::{Failure, Outcome};
use rustix::process::Signal;

use super::scene::*;
use crate::world::{LIMIT, World, must, refused};

#[test]
fn m5_each_outcome_is_one_line_and_the_first_word_counts() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let words = [
        "delivered",
        "silent",
        "reply_lost",
        "claim_lost",
        "server_skipped",
        "server_refused",
        "upstream_refused",
        "no such word",
    ];
    let mut turns = Vec::new();
    for word in words {
        let call = TurnRun { hold: Hold::Connection, ..command(&world, &["echo", "reply"]) };
        let answer = must(&mut client, &call);
        assert_eq!(answer.settled.expect("it ran").outcome, None, "it is held");
        let done = must(&mut client, &finishing(answer.turn, word));
        assert!(done.counted);
        let outcome = line_of(&world, answer.turn).outcome;
        assert_eq!((outcome, done.outcome), (word.parse().unwrap_or(Outcome::Unknown), Some(outcome)));
        turns.push(answer.turn);
    }
    for turn in turns {
        wait_gone(&world, turn);
        let again = must(&mut client, &finishing(turn, "silent"));
        assert!(!again.counted, "an earlier word counted");
        line_of(&world, turn);
    }
    // Of a turn that was never spawned nothing is written.
    let (code, why) = refused(&mut client, &finishing(TurnId::now(), "delivered"));
    assert!(code == 2 && why.contains("no turn"), "{code} {why}");
    assert_eq!(lines(&world, SEAT).len(), words.len());
}

#[test]
fn m5_what_the_daemon_delivers_itself_is_delivered_or_silent_by_what_there_is_to_say() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let cases = [
        (&["echo", "hello"][..], Outcome::Delivered),
        (&["true"], Outcome::Silent),
        (&["echo", " NO_REPLY "], Outcome::Silent),
        (&["echo", "NO_REPLY to you"], Outcome::Delivered),
        (&["false"], Outcome::Failed),
    ];
    for (argv, outcome) in cases {
        let answer = must(&mut client, &command(&world, argv));
        assert_eq!(answer.settled.expect("it ran").outcome, Some(outcome), "{argv:?}");
        let line = line_of(&world, answer.turn);
        assert_eq!((line.outcome, line.ok), (outcome, outcome.is_ok()), "{argv:?}");
    }
}

#[test]
fn m5_the_end_of_a_connection_without_a_word_is_a_lost_reply() {
    let world = World::new();
    let _daemon = world.start();
    let call = TurnRun { hold: Hold::Connection, ..command(&world, &["echo", "reply"]) };
    let mut client = world.client();
    let turn = must(&mut client, &call).turn;
    drop(client);
    assert_eq!(line_of(&world, turn).outcome, Outcome::ReplyLost);
    // One whose connection ends while it runs runs on, and has nobody to reply to.
    let call = TurnRun { hold: Hold::Connection, ..fake(&world, "sleep 200ms\nprint reply") };
    let mut client = world.client();
    let turn = start(&mut client, &call);
    drop(client);
    let line = line_of(&world, turn);
    assert_eq!((line.outcome, line.exit_code), (Outcome::ReplyLost, Some(0)));
}

#[test]
fn m5_a_turn_that_nobody_finishes_in_time_has_lost_its_reply() {
    let world = World::with("[turn]\nfinish_timeout = \"200ms\"\n");
    let _daemon = world.start();
    let mut client = world.client();
    let turn = start_held(&mut client, command(&world, &["echo", "reply"]));
    assert_eq!(line_of(&world, turn).outcome, Outcome::ReplyLost);
    wait_gone(&world, turn);
    assert!(!must(&mut client, &finishing(turn, "delivered")).counted);
}

/// A reboot: nothing of an earlier boot lives, and nobody looks for it.
#[test]
fn m5_after_a_reboot_a_turn_is_lost_once() {
    let world = World::new();
    let daemon = world.start();
    let turn = start_held(&mut world.client(), fake(&world, "hang"));
    let root = process_of(&wait_recorded(&world, turn, "started")["pid"]);
    let shim = shim_of(&root);
    daemon.kill();
    for process in [&shim, &root] {
        process.signal(Signal::KILL);
        assert!(process.wait(LIMIT));
    }
    let spec = world.home().turn(turn).join(SPEC);
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&spec).unwrap()).unwrap();
    text["boot"] = "a boot before this one".into();
    std::fs::write(&spec, text.to_string()).unwrap();
    for _ in 0..3 {
        let daemon = world.start();
        assert_eq!(settled(&mut world.client(), turn).failure, Some(Failure::SupervisorLost));
        let line = line_of(&world, turn);
        assert_eq!((line.failure, line.killed_processes), (Some(Failure::SupervisorLost), 0));
        daemon.kill();
    }
}

/// The folder of a failed turn stays for a while; nothing is said twice because of it.
#[test]
fn what_a_failed_turn_wrote_is_kept_for_a_while() {
    let world = World::with("[turn]\nkeep_failed = \"1s\"\n");
    let daemon = world.start();
    let call = command(&world, &["sh", "-c", "echo half; echo the reason >&2; exit 9"]);
    let turn = must(&mut world.client(), &call).turn;
    line_of(&world, turn);
    let written = world.home().turn(turn).join(minder_proto::turn::folder::WRITTEN);
    minder_tests::files::wait_for(&written, LIMIT, || written.exists().then_some(())).unwrap();
    let answer = get(&mut world.client(), turn).settled.expect("it is over");
    let kept = |path: Option<String>| std::fs::read_to_string(path.expect("it is kept")).unwrap();
    assert_eq!((kept(answer.stdout), kept(answer.stderr)), ("half\n".to_owned(), "the reason\n".to_owned()));
    assert_eq!((answer.exit_code, answer.outcome), (Some(9), Some(Outcome::Failed)));
    daemon.kill();
    let daemon = world.start();
    wait_gone(&world, turn);
    line_of(&world, turn);
    daemon.stop();
    world.run("store check").ok();
}

/// A turn of a session is one line in its timeline.
#[test]
fn the_end_of_a_sessions_turn_is_one_line_of_its_timeline() {
    let world = World::new();
    let mut daemon = world.start();
    let worker = world.session("worker");
    let mut turns = Vec::new();
    for argv in [&["echo", "hello"][..], &["false"]] {
        let call = TurnRun { session: Some("worker".to_owned()), seat: None, ..command(&world, argv) };
        let answer = must(&mut world.client(), &call);
        assert_eq!((answer.session, answer.seat.as_str()), (Some(worker.id), "worker"));
        turns.push(answer.turn);
        wait_lines(&world, "worker", turns.len());
        daemon.kill();
        daemon = world.start();
    }
    let file = worker.file("timeline.jsonl");
    let told = || -> Vec<_> {
        let found = worker.events().into_iter().filter_map(|event| match event.body {
            Body::Turn { id, outcome, failure, .. } => Some((id, outcome, failure)),
            _ => None,
        });
        found.collect()
    };
    let all = || (told().len() >= 2).then(told);
    let told = minder_tests::files::wait_for(&file, LIMIT, all).unwrap();
    let expected =
        [(turns[0], Outcome::Delivered, None), (turns[1], Outcome::Failed, Some(Failure::AdapterExit))];
    assert_eq!(told, expected);
    daemon.stop();
    world.run("store check").ok();
}

/// Only the person, the session, who asked and a parent may end a turn.
#[test]
fn a_turn_is_ended_by_those_whose_it_is() {
    let world = World::new();
    let _daemon = world.start();
    let [worker, stranger] = ["worker", "stranger"].map(|label| world.session(label));
    let mut client = world.client();
    let call =
        TurnRun { session: Some("worker".to_owned()), caller: worker.caller(), ..fake(&world, "hang") };
    let turn = start_held(&mut client, call);
    let by = |who: &crate::world::Agent| TurnFinish { caller: who.caller(), ..finishing(turn, "delivered") };
    assert_eq!(refused(&mut client, &by(&stranger)).0, 3);
    let (code, why) = refused(&mut client, &by(&worker));
    assert!(why.contains("runs yet"), "{code} {why}");
    let other = TurnRun {
        session: Some("worker".to_owned()),
        caller: stranger.caller(),
        ..command(&world, &["true"])
    };
    assert_eq!(refused(&mut client, &other).0, 3);
    cancel(&mut client, turn);
    assert_eq!(settled(&mut client, turn).failure, Some(Failure::Cancelled));
    // Who only waits for one that is held for a connection does not become whose it is.
    let call =
        TurnRun { hold: Hold::Connection, caller: worker.caller(), ..command(&world, &["echo", "reply"]) };
    let turn = must(&mut client, &call).turn;
    let mut elsewhere = world.client();
    let wait = TurnGet { id: turn.to_string(), wait: true, caller: stranger.caller() };
    must(&mut elsewhere, &wait);
    let again = TurnRun { caller: stranger.caller(), ..call };
    must(&mut elsewhere, &again);
    let by_stranger = TurnFinish { caller: stranger.caller(), ..finishing(turn, "silent") };
    assert_eq!(refused(&mut elsewhere, &by_stranger).0, 3);
    assert!(must(&mut client, &finishing(turn, "delivered")).counted);
}
