//! The daemon is killed again and again, at random and at every named place, under turns: each is run once and has one
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use minder_client::rpc::{Client, Endpoint, Start};
use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::rpc::{Hold, TurnGet, TurnRun};
use minder_proto::turn::line::Line;
use minder_tests::crash::Rng;
use minder_tests::files;

use super::scene::*;
use crate::world::{World, is_lost};

/// How often the daemon is killed.
const KILLS: usize = 200;
/// After how many of these it is stopped in good order.
const BETWEEN_STOPS: usize = 8;
/// Callers at once.
const CALLERS: usize = 3;

/// Which daemon there is, counted; callers wait for the next one when theirs is gone.
#[derive(Default)]
struct Daemons {
    started: Mutex<usize>,
    bell: Condvar,
    over: AtomicBool,
}

impl Daemons {
    fn count(&self) -> usize {
        *self.started.lock().unwrap()
    }

    fn started(&self) {
        *self.started.lock().unwrap() += 1;
        self.bell.notify_all();
    }

    /// Waits for one after `seen`, or for the end of all that.
    fn next(&self, seen: usize) {
        let started = self.started.lock().unwrap();
        drop(self.bell.wait_while(started, |n| *n <= seen && !self.is_over()).unwrap());
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        let _started = self.started.lock().unwrap();
        self.bell.notify_all();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// One turn after the other, each with its word, through whatever daemon there is.
fn call_on(home: &Home, run: &dyn Fn() -> TurnRun, daemons: &Daemons) -> usize {
    let mut told = 0;
    while !daemons.is_over() {
        let call = TurnRun { hold: Hold::Connection, ..run() };
        let turn = id(&call);
        let mut begun = false;
        loop {
            let seen = daemons.count();
            // A daemon that is stopped in good order takes its address with it.
            let answer = std::fs::read_link(home.socket_link()).ok().map(|socket| {
                let endpoint = Endpoint::at(home.clone(), socket);
                let mut client = Client::new(endpoint, Start::Never("this is a test"));
                // Once it is not known whether it began, it is asked for and not begun again.
                let get = TurnGet { id: turn.to_string(), wait: true, caller: None };
                let answer = if begun { client.call(&get)? } else { client.call(&call)? };
                // So is a word that may not have been heard.
                if answer.settled.is_some_and(|settled| settled.failure.is_none()) {
                    told += usize::from(client.call(&finishing(turn, "delivered"))?.counted);
                }
                Ok(())
            });
            begun |= answer.is_some();
            match answer {
                Some(Ok(())) => break,
                // It never began, or is over.
                Some(Err(error)) if !is_lost(&error) => break,
                // What was begun is ended, also where the daemon is killed no more.
                Some(Err(_)) | None => daemons.next(seen),
            }
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
    let world = Arc::new(World::in_memory());
    let notes: PathBuf = world.isolated.root().join("notes");
    let mut rng = Rng::new(20_261_130);
    let daemons = Arc::new(Daemons::default());
    let mut daemon = world.start();
    // One that lives through all of it.
    let long = start_held(&mut world.client(), fake(&world, "hang"));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (world, notes, daemons) = (Arc::clone(&world), notes.clone(), Arc::clone(&daemons));
            std::thread::spawn(move || call_on(&world.home(), &|| noting(&world, &notes), &daemons))
        })
        .collect();
    for n in 1..=KILLS {
        // A moment in the life of a daemon, and not a wait for anything.
        daemon.process.wait(Duration::from_micros(rng.below(30_000)));
        daemon.kill();
        daemon = world.start();
        // One that is stopped in between leaves no journal to the next.
        if n % BETWEEN_STOPS == 0 {
            daemon.stop();
            daemon = world.start();
        }
        daemons.started();
    }
    daemons.end();
    let told: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    cancel(&mut world.client(), long);
    let adopted = line_of(&world, long).adopted;
    assert_eq!(
        usize::try_from(adopted).unwrap(),
        KILLS + KILLS / BETWEEN_STOPS,
        "restarts that the long one lived through"
    );
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
