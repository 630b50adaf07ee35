//! A daemon that is killed while a message is a turn's: it is run, and answered once.

use minder_proto::rpc;
use minder_proto::trial::TURN_POINTS;
use minder_tests::files;

use super::{folder, session, until};
use crate::cuts;
use crate::world::{LIMIT, World};

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
    let mut cut = |at: &str| {
        let letter = rpc::Send { key: Some(at.to_owned()), ..asker.letter(&w, at.to_owned()) };
        let answered = || answers().contains(&format!("to {at}"));
        let mut arrives = |_| {
            files::wait_for(&asker.file("timeline.jsonl"), LIMIT, || answered().then_some(())).unwrap();
            until(&w, <[_]>::is_empty);
            sent.push(at.to_owned());
        };
        cuts::cut(&world, at, &letter, &mut |_| answered(), &mut arrives)
    };
    // What comes behind the answer is cut too: then the next daemon has it to do.
    for point in TURN_POINTS {
        cut(&format!("{point}:1"));
    }
    cuts::everywhere(&mut cut);
    let expected: Vec<String> = sent.iter().map(|at| format!("to {at}")).collect();
    assert_eq!(answers(), expected, "each is answered once");
    // A program knows no message again: it has been run with the one in flight once more at most.
    let bodies = std::fs::read_to_string(folder(&world, "w").join("bodies")).unwrap();
    let runs = |at: &str| bodies.lines().filter(|line| *line == at).count();
    let often: Vec<_> = sent.iter().filter(|at| !(1..=2).contains(&runs(at))).collect();
    assert!(often.is_empty(), "{often:?} of {bodies}");
}
