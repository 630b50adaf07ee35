//! The daemon is killed again and again, at random and at every named place, under turns: each is run once and has one
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use minder_client::rpc::{CallError, Client, Endpoint, Start};
use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::rpc::{Hold, TurnGet, TurnRun};
use minder_proto::turn::line::Line;
use minder_tests::crash::Rng;
use minder_tests::files;

use super::scene::*;
use crate::world::World;

/// How often the daemon is killed.
const KILLS: usize = 200;
/// Callers at once.
const CALLERS: usize = 3;

/// One turn after the other, each with its word, through whatever daemon there is.
fn call_on(home: &Home, run: &dyn Fn() -> TurnRun, over: &AtomicBool) -> usize {
    let socket = || std::fs::read_link(home.socket_link()).expect("a daemon served here once");
    let client = || Client::new(Endpoint::at(home.clone(), socket()), Start::Never("this is a test"));
    let mut told = 0;
    while !over.load(Ordering::Relaxed) {
        let call = TurnRun { hold: Hold::Connection, ..run() };
        let turn = id(&call);
        let mut here = client();
        let mut answer = here.call(&call);
        // Once it is not known whether it began, it is asked for and not begun again.
        while let Err(CallError::Unreachable(_)) = &answer {
            if over.load(Ordering::Relaxed) {
                return told;
            }
            std::thread::yield_now();
            here = client();
            answer = here.call(&TurnGet { id: turn.to_string(), wait: true, caller: None });
        }
        if answer.is_ok_and(|answer| answer.settled.is_some_and(|settled| settled.failure.is_none())) {
            let _ = here.call(&finishing(turn, "delivered"));
            told += 1;
        }
    }
    told
}

/// A turn that notes that it ran.
fn noting(world: &World, notes: &Path) -> TurnRun {
    let script = format!("echo $MINDER_TURN >>{}", notes.display());
    command(world, &["sh", "-c", &script])
}

/// What ran and what the log says of it.
fn judge(world: &World, notes: &Path) -> BTreeMap<TurnId, Line> {
    let text = std::fs::read_to_string(notes).unwrap_or_default();
    let ran: Vec<TurnId> = text.lines().map(|line| line.parse().expect("an id")).collect();
    let once: BTreeSet<TurnId> = ran.iter().copied().collect();
    assert_eq!(once.len(), ran.len(), "a turn was run twice");
    let file = log_file(world, SEAT);
    let has_all = |lines: &[serde_json::Value]| {
        let ids: BTreeSet<_> = lines.iter().filter_map(|line| line["turn"].as_str()).collect();
        once.iter().all(|turn| ids.contains(turn.to_string().as_str())).then_some(())
    };
    files::wait_for_lines(&file, Duration::from_secs(60), has_all)
        .unwrap_or_else(|e| panic!("of {} turns that ran some have no line: {e}", once.len()));
    let mut found = BTreeMap::new();
    for line in lines(world, SEAT) {
        let twice = found.insert(line.turn, line);
        assert!(twice.is_none(), "two lines: {twice:?}");
    }
    found
}

#[test]
fn over_two_hundred_kills_every_turn_is_run_once_and_has_one_line() {
    let world = Arc::new(World::new());
    let notes: PathBuf = world.isolated.root().join("notes");
    let mut rng = Rng::new(20_261_130);
    let over = Arc::new(AtomicBool::new(false));
    let mut daemon = world.start();
    // One that lives through all of it.
    let long = start_held(&mut world.client(), fake(&world, "hang"));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (world, notes, over) = (Arc::clone(&world), notes.clone(), Arc::clone(&over));
            std::thread::spawn(move || call_on(&world.home(), &|| noting(&world, &notes), &over))
        })
        .collect();
    for _ in 0..KILLS {
        // A moment in the life of a daemon, and not a wait for anything.
        daemon.process.wait(Duration::from_micros(rng.below(30_000)));
        daemon.kill();
        daemon = world.start();
    }
    over.store(true, Ordering::Relaxed);
    let told: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    cancel(&mut world.client(), long);
    let adopted = line_of(&world, long).adopted;
    assert_eq!(usize::try_from(adopted).unwrap(), KILLS, "restarts that the long one lived through");
    daemon.stop();
    let daemon = world.start();
    let lines = judge(&world, &notes);
    assert!(told > KILLS / 4, "it came to something: {told} of {} turns", lines.len());
    assert!(lines.values().any(|line| line.adopted > 0 && line.turn != long), "some were adopted");
    daemon.stop();
    world.run("store check").ok();
}

/// At every named place of a turn.
#[test]
fn at_every_kill_point_of_a_turn_it_is_run_once_and_has_one_line() {
    for point in minder_proto::trial::TURN_POINTS {
        let world = World::new();
        let notes = world.isolated.root().join("notes");
        let at = format!("{point}:1");
        let mut daemon = world
            .launch(&[(minder_proto::trial::KILL_POINT, &at)])
            .settle()
            .unwrap_or_else(|e| panic!("{point}: {e}"));
        let call = TurnRun { hold: Hold::Connection, ..noting(&world, &notes) };
        let mut client = world.client();
        if client.call(&call).is_ok() {
            let _ = client.call(&finishing(id(&call), "delivered"));
        }
        daemon.ended();
        drop(client);
        let daemon = world.start();
        let again = TurnGet { id: id(&call).to_string(), wait: true, caller: None };
        let mut client = world.client();
        let _ = client.call(&again);
        let _ = client.call(&finishing(id(&call), "delivered"));
        let lines = judge(&world, &notes);
        assert!(lines.len() <= 1, "{point}: {lines:?}");
        daemon.stop();
        world.run("store check").ok();
        let left: Vec<_> = std::fs::read_dir(world.home().turns().join("run")).unwrap().collect();
        assert!(left.len() <= 1, "{point}: {left:?}");
    }
}
