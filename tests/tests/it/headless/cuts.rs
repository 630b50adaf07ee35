//! A daemon that is killed while a message is a turn's: it is run, and answered once.

use std::os::unix::process::ExitStatusExt;

use minder_proto::rpc;
use minder_proto::trial::{KILL_POINT, TURN_POINTS};
use minder_tests::files;
use rustix::process::Signal;

use super::{folder, session, until};
use crate::world::{LIMIT, World, must};

/// Places of the ledger: a line of it is not written, and is there and nothing came of it yet.
const OF_THE_LEDGER: [&str; 2] = ["journal.before-write", "journal.after-flush"];

/// More passings of a place than there are.
const MOST: u32 = 40;

#[test]
fn c1_a_turn_is_given_each_message_wherever_the_daemon_is_killed_and_answers_it_once() {
    let world = World::new();
    let daemon = world.start();
    let asker = world.session("asker");
    let w =
        session(&world, "w", "read -r head; read -r none; read -r body; echo $body >> bodies; echo to $body");
    daemon.kill();
    let answers = || asker.messages().into_iter().map(|(_, m)| m.body).collect::<Vec<_>>();
    let mut sent = Vec::new();
    let mut cut = |point: &str, n: u32| {
        let at = format!("{point}:{n}");
        let letter = rpc::Send { key: Some(at.clone()), ..asker.letter(&w, at.clone()) };
        let answered = || answers().contains(&format!("to {at}"));
        let reached = match world.launch(&[(KILL_POINT, &at)]).settle() {
            Ok(mut daemon) => {
                if world.client().call(&letter).is_ok() {
                    // Until it is answered, or the daemon is gone on the way.
                    while !answered() && !daemon.process.wait(std::time::Duration::from_millis(10)) {}
                }
                daemon.process.signal(Signal::TERM);
                daemon.ended().signal() == Some(9)
            }
            Err(_) => true,
        };
        let daemon = world.start();
        must(&mut world.client(), &letter);
        files::wait_for(&asker.file("timeline.jsonl"), LIMIT, || answered().then_some(())).unwrap();
        until(&w, <[_]>::is_empty);
        daemon.kill();
        sent.push(at);
        reached
    };
    // What comes behind the answer is cut too: then the next daemon has it to do.
    for point in TURN_POINTS {
        cut(point, 1);
    }
    for point in OF_THE_LEDGER {
        let passed = (1..MOST).take_while(|n| cut(point, *n)).count();
        assert!(
            (3..MOST as usize - 1).contains(&passed),
            "{point}: it is accepted, begun and answered: {passed}"
        );
    }
    let expected: Vec<String> = sent.iter().map(|at| format!("to {at}")).collect();
    assert_eq!(answers(), expected, "each is answered once");
    // A program knows no message again: it has been run with the one in flight once more at most.
    let bodies = std::fs::read_to_string(folder(&world, "w").join("bodies")).unwrap();
    let runs = |at: &str| bodies.lines().filter(|line| *line == at).count();
    let often: Vec<_> = sent.iter().filter(|at| !(1..=2).contains(&runs(at))).collect();
    assert!(often.is_empty(), "{often:?} of {bodies}");
}
