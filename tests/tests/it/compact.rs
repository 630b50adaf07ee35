//! `store compact`: what counts stays, whatever it is cut off by.

use minder_proto::rpc;

use crate::crash::{OF_A_CHECKPOINT, OF_A_COMMIT, Prepared, told};
use crate::world::{Agent, World, must};

/// Two sessions: one has read a hundred messages, and one waits for it.
fn talked(world: &World) -> [Agent; 2] {
    let agents = ["w", "s"].map(|l| world.session(l));
    let [w, s] = &agents;
    let mut client = world.client();
    for n in 0..100 {
        must(&mut client, &w.letter(s, format!("letter {n}")));
    }
    assert_eq!(s.take_all(&mut client).len(), 100);
    must(&mut client, &rpc::Send { key: Some("waits".to_owned()), ..w.letter(s, "waits") });
    agents
}

#[test]
fn a_compact_store_holds_what_counts_and_no_more() {
    let world = World::new();
    let daemon = world.start();
    let [_, s] = talked(&world);
    let events = s.events();
    let before = s.file("queue.jsonl").metadata().unwrap().len();
    let said = world.run("store compact --json").json();
    assert!(said["rewritten"].as_u64().unwrap() > 0, "{said}");
    assert!(said["journal"].as_u64().unwrap() > 0, "{said}");
    let after = s.file("queue.jsonl").metadata().unwrap().len();
    assert!(after * 10 < before && after > 0, "{before} {after}");
    assert_eq!((s.events(), s.queue().len()), (events, 1));
    let feed = std::fs::read_to_string(world.home().feed()).unwrap();
    assert_eq!(feed.lines().count(), 1, "{feed}");
    // Nothing is left to do; the files fit together; the daemon goes on from there, and so does the next.
    let again = world.run("store compact").ok();
    assert!(again.starts_with("0 ledgers rewritten, 0 bytes shorter\n0 bytes of journal gone\n"), "{again}");
    world.run("store check").ok();
    daemon.kill();
    let _daemon = world.start();
    assert_eq!(s.take_all(&mut world.client()).len(), 1);
}

#[test]
fn j1_killed_while_compacting() {
    let world = World::new();
    let daemon = world.start();
    let [w, s] = talked(&world);
    daemon.stop();
    let prepared = Prepared::new(world);
    let scenario = |client: &mut minder_client::rpc::Client, _: &minder_tests::process::Process| {
        told(client, &rpc::Compact::default()).is_some()
    };
    let finish = |_: &crate::world::Minderd, _: bool, at: &str| {
        assert_eq!((s.messages().len(), s.queue().len()), (101, 1), "{at}");
        let mut client = prepared.world.client();
        let repeat = rpc::Send { key: Some("waits".to_owned()), ..w.letter(&s, "waits") };
        assert!(must(&mut client, &repeat).duplicate, "{at}: the keys are there");
    };
    let reached = prepared.at_every(&[&OF_A_COMMIT[..], &OF_A_CHECKPOINT].concat(), scenario, finish);
    assert!(reached.iter().all(|(point, n)| *n > 0 || *point == "answer.before"), "{reached:?}");
}
