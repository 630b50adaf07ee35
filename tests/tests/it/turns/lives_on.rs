//! F5, F6, F7, F10: the daemon dies, is stopped, is replaced; its turns go on, once.

use minder_proto::rpc::{self, Hold, TurnRun};
use minder_proto::turn::folder::{Found, RESULT};
use minder_proto::turn::names::Trigger;
use minder_proto::turn::policy::Asked;
use minder_proto::turn::{Failure, Outcome};
use minder_tests::files;
use minder_tests::process::Process;
use rustix::process::Signal;

use super::scene::*;
use crate::world::{LIMIT, World, must, ran};

#[test]
fn f6_the_daemon_dies_and_its_turns_do_not() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client();
    let socket = world.isolated.root().join("ends");
    let long = [(); 2].map(|()| fake(&world, "print begun\nhang"));
    let short = fake(&world, &format!("control {}\nwait end\nprint bye\nexit 7", socket.display()));
    let [a, b] = long.map(|call| start_held(&mut client, call));
    let c = start_held(&mut client, short);
    let roots = [a, b].map(|turn| process_of(&wait_recorded(&world, turn, "started")["pid"]));
    wait_recorded(&world, c, "started");
    daemon.kill();

    // One ends while nobody is there.
    say(&socket, "go end");
    let result = world.home().turn(c).join(RESULT);
    files::wait_for(&result, LIMIT, || result.exists().then_some(())).unwrap();
    let daemon = world.start();
    let mut client = world.client();
    let found = rows(&mut client);
    assert_eq!(found.iter().map(|row| (row.turn, row.adopted)).collect::<Vec<_>>(), [(a, 1), (b, 1)]);
    assert_eq!(found.iter().map(|row| row.pid).collect::<Vec<_>>(), [pid(&roots[0]), pid(&roots[1])]);
    let ended = settled(&mut client, c);
    assert_eq!((ended.exit_code, ended.failure), (Some(7), Some(Failure::AdapterExit)));
    // Another one dies, and one stops as it is told.
    daemon.kill();
    let daemon = world.start();
    daemon.stop();
    let _daemon = world.start();
    let mut client = world.client();
    for (turn, root) in [(a, &roots[0]), (b, &roots[1])] {
        assert!(get(&mut client, turn).settled.is_none());
        cancel(&mut client, turn);
        let settled = settled(&mut client, turn);
        assert_eq!((settled.outcome, settled.failure), (Some(Outcome::Failed), Some(Failure::Cancelled)));
        assert!(root.wait(LIMIT));
        assert_eq!(line_of(&world, turn).adopted, 3);
    }
    let line = line_of(&world, c);
    assert_eq!((line.exit_code, line.adopted, line.outcome), (Some(7), 1, Outcome::Failed));
    for turn in [a, b, c] {
        assert_eq!(recorded(&world, turn).iter().filter(|l| l["what"] == "started").count(), 1, "run once");
        wait_none_left(turn);
    }
}

fn pid(process: &Process) -> Option<i32> {
    i32::try_from(process.pid()).ok()
}

/// Says a word to a fake harness.
fn say(socket: &std::path::Path, word: &str) {
    use std::io::Write;
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    writeln!(stream, "{word}").unwrap();
}

#[test]
fn f6_what_is_left_when_daemon_shim_and_root_die_together_is_killed_and_counted() {
    let world = World::new();
    let daemon = world.start();
    let call = fake(&world, "child : setsid; child : hang\nchild : hang\nhang");
    let turn = start_held(&mut world.client(), call);
    let root = process_of(&wait_recorded(&world, turn, "started")["pid"]);
    // The root, two children, and a grandchild in a session of its own.
    let file = world.isolated.root().join(format!("{turn}.record"));
    let all = |lines: &[serde_json::Value]| {
        (lines.iter().filter(|line| line["what"] == "started").count() >= 4).then_some(())
    };
    files::wait_for_lines(&file, LIMIT, all).unwrap();
    let shim = shim_of(&root);
    daemon.kill();
    for process in [&shim, &root] {
        process.signal(Signal::KILL);
    }
    assert!(shim.wait(LIMIT) && root.wait(LIMIT));
    let _daemon = world.start();
    let settled = settled(&mut world.client(), turn);
    assert_eq!(settled.failure, Some(Failure::SupervisorLost));
    assert_eq!(settled.survivors, []);
    wait_none_left(turn);
    let line = line_of(&world, turn);
    assert_eq!((line.failure, line.survivors), (Some(Failure::SupervisorLost), 0));
    assert!((2..=3).contains(&line.killed_processes), "{line:?}");
}

#[test]
fn f6_a_root_that_dies_with_the_daemon_is_settled_by_its_shim() {
    let world = World::new();
    let daemon = world.start();
    let turn = start_held(&mut world.client(), fake(&world, "child : setsid; hang\nhang"));
    let root = process_of(&wait_recorded(&world, turn, "started")["pid"]);
    root.signal(Signal::KILL);
    daemon.kill();
    let _daemon = world.start();
    let settled = settled(&mut world.client(), turn);
    assert_eq!((settled.failure, settled.signal_number), (Some(Failure::AdapterExit), Some(9)));
    wait_none_left(turn);
    line_of(&world, turn);
}

/// A shim that is stopped holds its clocks no more; the daemon knows by when it had to be heard of.
#[test]
fn f6_a_shim_that_is_frozen_does_not_keep_its_turn_for_ever() {
    let world = World::new();
    let _daemon = world.start();
    let mut call = fake(&world, "child : setsid; hang\nhang");
    call.policy = Asked { timeout_ms: Some(1_000), grace_ms: Some(0), backstop_ms: Some(0), ..call.policy };
    let turn = start_held(&mut world.client(), call);
    let root = process_of(&wait_recorded(&world, turn, "started")["pid"]);
    let shim = shim_of(&root);
    assert!(shim.signal(Signal::STOP));
    assert_eq!(settled(&mut world.client(), turn).failure, Some(Failure::SupervisorLost));
    assert!(shim.wait(LIMIT));
    wait_none_left(turn);
    assert_eq!(line_of(&world, turn).failure, Some(Failure::SupervisorLost));
}

/// F5: nothing runs on a number that a file holds.
#[test]
fn f5_a_folder_whose_lock_is_free_signals_nobody_by_its_pid() {
    let world = World::new();
    let daemon = world.start();
    let turn = start_held(&mut world.client(), fake(&world, "hang"));
    let root = process_of(&wait_recorded(&world, turn, "started")["pid"]);
    let shim = shim_of(&root);
    daemon.kill();
    shim.signal(Signal::KILL);
    root.signal(Signal::KILL);
    assert!(shim.wait(LIMIT) && root.wait(LIMIT));
    // The pid that stands in `progress` is now that of somebody who has nothing to do with it.
    let mut bystander = world.isolated.command("sleep");
    let mut bystander = bystander.arg("300").spawn().unwrap();
    let progress = world.home().turn(turn).join(minder_proto::turn::folder::PROGRESS);
    let mut shown: serde_json::Value =
        serde_json::from_str(std::fs::read_to_string(&progress).unwrap().trim_end()).unwrap();
    shown["pid"] = bystander.id().into();
    std::fs::write(&progress, shown.to_string()).unwrap();
    let _daemon = world.start();
    assert_eq!(settled(&mut world.client(), turn).failure, Some(Failure::SupervisorLost));
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn f7_what_was_cancelled_does_not_come_back() {
    let world = World::new();
    for _ in 0..5 {
        let daemon = world.start();
        let mut client = world.client();
        let turn = start_held(&mut client, fake(&world, "ignore TERM INT\nhang"));
        wait_recorded(&world, turn, "started");
        cancel(&mut client, turn);
        // The daemon dies with the answer. A second word in the grace is a kill.
        daemon.kill();
        let daemon = world.start();
        cancel(&mut world.client(), turn);
        assert_eq!(settled(&mut world.client(), turn).failure, Some(Failure::Cancelled));
        line_of(&world, turn);
        wait_none_left(turn);
        daemon.kill();
        let daemon = world.start();
        assert_eq!(rows(&mut world.client()), []);
        assert_eq!(recorded(&world, turn).iter().filter(|l| l["what"] == "started").count(), 1);
        line_of(&world, turn);
        daemon.kill();
    }
}

/// F10, the daemon's side.
#[test]
fn f10_a_cancel_goes_through_the_ladder_and_leaves_nothing() {
    let world = World::with("[turn]\ncancel_grace = \"300ms\"\n");
    let _daemon = world.start();
    let mut client = world.client();
    let turn =
        start_held(&mut client, fake(&world, "ignore TERM INT\nchild : setsid; ignore TERM; hang\nhang"));
    wait_recorded(&world, turn, "started");
    cancel(&mut client, turn);
    let settled = settled(&mut client, turn);
    assert_eq!(settled.failure, Some(Failure::Cancelled));
    assert!(settled.killed);
    wait_none_left(turn);
    let line = line_of(&world, turn);
    assert!(line.cancelled && line.killed && line.killed_processes >= 2, "{line:?}");
    assert_eq!(line.survivors, 0);
}

#[test]
fn stop_now_ends_what_runs_by_its_ladder_and_another_stop_leaves_it() {
    let world = World::with("[turn]\ncancel_grace = \"300ms\"\n");
    let mut daemon = world.start();
    let mut client = world.client();
    let deaf = start_held(&mut client, fake(&world, "ignore TERM INT\nhang"));
    let good = start_held(&mut client, fake(&world, "on TERM exit 0\nhang"));
    wait_recorded(&world, deaf, "started");
    wait_recorded(&world, good, "started");
    must(&mut client, &rpc::Stop { now: true });
    assert!(daemon.ended().success());
    for turn in [deaf, good] {
        wait_none_left(turn);
        assert_eq!(line_of(&world, turn).failure, Some(Failure::Cancelled));
        // Nobody took it back.
        let result = world.home().turn(turn).join(RESULT);
        let found: Found = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
        assert_eq!(found.trigger, Some(Trigger::Boundary));
    }
}

/// E8: the program is replaced, then deleted, under a daemon whose turns go on.
#[test]
fn e8_a_daemon_whose_program_is_gone_starts_turns_and_another_build_adopts_them() {
    let world = World::new();
    let copy = world.isolated.root().join("minderd");
    // By another process: a child that another test starts meanwhile would hold it open for writing.
    let mut cp = world.isolated.command("cp");
    ran(cp.arg(world.isolated.program("minderd").unwrap()).arg(&copy), b"").ok();
    let mut command = world.isolated.command(&copy);
    command.env("RUST_BACKTRACE", "0");
    let daemon =
        crate::world::Launched::new(command, &world.home()).settle().unwrap_or_else(|e| panic!("{e}"));
    std::fs::rename(world.isolated.root().join("minderd"), world.isolated.root().join("old")).unwrap();
    std::fs::write(&copy, "#!/bin/false\n").unwrap();
    let replaced = start_held(&mut world.client(), fake(&world, "hang"));
    std::fs::remove_file(world.isolated.root().join("old")).unwrap();
    std::fs::remove_file(&copy).unwrap();
    let deleted = start_held(&mut world.client(), fake(&world, "hang"));
    for turn in [replaced, deleted] {
        wait_recorded(&world, turn, "started");
    }
    daemon.stop();
    let _daemon = world.start();
    let mut client = world.client();
    for turn in [replaced, deleted] {
        cancel(&mut client, turn);
        assert_eq!(settled(&mut client, turn).failure, Some(Failure::Cancelled));
        assert_eq!(line_of(&world, turn).adopted, 1);
    }
}

/// A caller whose daemon went away finds its turn again, and names its outcome.
#[test]
fn a_caller_comes_back_to_the_next_daemon() {
    let world = World::new();
    let daemon = world.start();
    let call = TurnRun { hold: Hold::Connection, ..fake(&world, "sleep 300ms\nprint the answer") };
    let turn = id(&call);
    let mut client = world.client();
    let waiting = std::thread::spawn(move || client.call(&call).map(drop));
    wait_recorded(&world, turn, "started");
    daemon.kill();
    waiting.join().unwrap().unwrap_err();
    let _daemon = world.start();
    let mut client = world.client();
    let answer = settled(&mut client, turn);
    assert_eq!((answer.outcome, answer.exit_code), (None, Some(0)));
    let reply = std::fs::read_to_string(answer.stdout.expect("it has a reply")).unwrap();
    assert_eq!(reply, "the answer\n");
    assert!(must(&mut client, &finishing(turn, "delivered")).counted);
    let line = line_of(&world, turn);
    assert_eq!((line.outcome, line.adopted), (Outcome::Delivered, 1));
    wait_gone(&world, turn);
    drop(client);
}

/// The same call again is the same turn.
#[test]
fn the_same_id_twice_is_one_turn() {
    let world = World::new();
    let daemon = world.start();
    let call = fake(&world, "sleep 100ms\nprint once");
    let turn = id(&call);
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (mut client, call) = (world.client(), call.clone());
            std::thread::spawn(move || must(&mut client, &call))
        })
        .collect();
    for caller in callers {
        let answer = caller.join().unwrap();
        assert_eq!(answer.settled.expect("it is settled").text.as_deref(), Some("once\n"));
    }
    assert_eq!(line_of(&world, turn).outcome, Outcome::Delivered);
    wait_gone(&world, turn);
    // It is remembered; and by the log, where the daemon is another one.
    let again = must(&mut world.client(), &call).settled.expect("it is over");
    assert_eq!(again.outcome, Some(Outcome::Delivered));
    daemon.stop();
    let _daemon = world.start();
    let (code, why) = crate::world::refused(&mut world.client(), &call);
    assert!(code == 2 && why.contains("is over"), "{code} {why}");
    assert_eq!(recorded(&world, turn).iter().filter(|l| l["what"] == "started").count(), 1);
    assert_eq!(lines(&world, SEAT).len(), 1);
}
