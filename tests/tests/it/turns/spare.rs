//! The shim that stands ready while turns are run: the next turn gets it, and it leaves nothing behind.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use minder_proto::rpc::{Hold, TurnGet, TurnRun};
use minder_proto::trial::{KILL_POINT, TURN_POINTS};
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{LOCK, PROGRESS};
use minder_tests::files;
use minder_tests::process;
use rustix::process::Signal;

use super::scene::*;
use crate::world::{LIMIT, World, must};

/// The folders in which shims stand ready.
fn spares(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.home().turns().join("run")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".spare-")).collect()
}

/// Waits for one; it has made the last of its files.
fn wait_spare(world: &World) -> PathBuf {
    let run = world.home().turns().join("run");
    let folder = files::wait_for(&run, LIMIT, || spares(world).into_iter().next()).expect("there is one");
    let last = folder.join(PROGRESS);
    files::wait_for(&last, LIMIT, || last.exists().then_some(())).expect("it stands ready");
    folder
}

#[test]
fn a_shim_that_stands_ready_gets_the_next_turn_and_goes_with_the_daemon() {
    let world = World::new();
    let daemon = world.start();
    assert_eq!(spares(&world), [] as [PathBuf; 0], "none before there are turns");
    let mut client = world.client();
    must(&mut client, &command(&world, &["true"]));
    let lock = wait_spare(&world).join(LOCK).metadata().unwrap().ino();
    // Until it says that it is ready a turn is begun without it.
    let turn = files::wait_for(&world.home().turns().join("run"), LIMIT, || {
        let turn = start_held(&mut client, fake(&world, "hang"));
        let folder = world.home().turn(turn);
        if folder.join(LOCK).metadata().unwrap().ino() == lock {
            return Some(turn);
        }
        cancel(&mut client, turn);
        None
    })
    .expect("a turn gets it");
    // It is a shim as any: it outlives the daemon, and another daemon can tell it something.
    wait_spare(&world);
    daemon.kill();
    let daemon = world.start();
    let mut client = world.client();
    cancel(&mut client, turn);
    assert_eq!(settled(&mut client, turn).outcome, Some(Outcome::Failed));
    assert_eq!(line_of(&world, turn).adopted, 1);
    wait_none_left(turn);
    must(&mut client, &command(&world, &["true"]));
    wait_spare(&world);
    daemon.stop();
    assert_eq!(spares(&world), [] as [PathBuf; 0]);
    world.run("store check").ok();
}

#[test]
fn one_that_is_gone_is_missed_by_nobody() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    for _ in 0..3 {
        must(&mut client, &command(&world, &["true"]));
        let folder = wait_spare(&world);
        let there = process::find(|p| {
            std::fs::read_link(format!("/proc/{}/cwd", p.pid())).is_ok_and(|cwd| cwd == folder)
        });
        for shim in there {
            shim.signal(Signal::KILL);
            shim.wait(LIMIT);
        }
        let call = command(&world, &["echo", "said"]);
        let settled = must(&mut client, &call).settled.expect("it ran");
        assert_eq!(settled.outcome, Some(Outcome::Delivered));
        assert_eq!(line_of(&world, id(&call)).exit_code, Some(0));
    }
}

/// At every named place of a turn that is given to a shim that stood ready.
#[test]
fn at_every_kill_point_of_a_turn_that_was_waited_for_it_has_one_line() {
    for point in TURN_POINTS {
        let world = World::new();
        let at = format!("{point}:2");
        let mut daemon =
            world.launch(&[(KILL_POINT, &at)]).settle().unwrap_or_else(|e| panic!("{point}: {e}"));
        let mut client = world.client();
        let first = command(&world, &["true"]);
        must(&mut client, &first);
        wait_spare(&world);
        let call = TurnRun { hold: Hold::Connection, ..command(&world, &["echo", "said"]) };
        if client.call(&call).is_ok() {
            let _ = client.call(&finishing(id(&call), "delivered"));
        }
        daemon.ended();
        drop(client);
        let daemon = world.start();
        let mut client = world.client();
        let again = TurnGet { id: id(&call).to_string(), wait: true, caller: None };
        let _ = client.call(&again);
        let _ = client.call(&finishing(id(&call), "delivered"));
        daemon.stop();
        let lines = lines(&world, SEAT);
        let of = |turn| lines.iter().filter(|line| line.turn == turn).count();
        assert!(of(id(&first)) == 1 && of(id(&call)) <= 1, "{point}: {lines:?}");
        assert_eq!(spares(&world), [] as [PathBuf; 0], "{point}");
        world.run("store check").ok();
    }
}

/// A reply that is empty needs no second call, and one that is not does.
#[test]
fn an_empty_reply_is_silent_where_that_is_asked_for() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    for (script, expected) in [
        ("true", Some(Outcome::Silent)),
        ("echo said", None),
        ("echo said >&2", None),
        ("exit 3", Some(Outcome::Failed)),
    ] {
        let call = command(&world, &["sh", "-c", script]);
        let call = TurnRun { hold: Hold::Connection, empty_is_silent: true, ..call };
        assert_eq!(must(&mut client, &call).settled.expect("it ran").outcome, expected, "{script}");
        let done = must(&mut client, &finishing(id(&call), "delivered"));
        assert_eq!(done.counted, expected.is_none(), "{script}");
        let outcome = expected.unwrap_or(Outcome::Delivered);
        assert_eq!(line_of(&world, id(&call)).outcome, outcome, "{script}");
        let asked = command(&world, &["sh", "-c", script]);
        let unasked = TurnRun { hold: Hold::Connection, ..asked };
        let held = must(&mut client, &unasked).settled.expect("it ran").outcome;
        assert_eq!(held, expected.filter(|o| *o == Outcome::Failed), "{script}");
    }
}
