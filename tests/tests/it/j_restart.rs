//! Cases J4 and J7: what one bad file does to all others, and what a restart changes: nothing.

use std::collections::BTreeMap;

use minder_proto::record::Channel;
use minder_proto::rpc;
use minder_proto::state::State;
use minder_tests::files::wait_for;

use crate::world::{LIMIT, World, must, refused, tree};

fn write(file: impl AsRef<std::path::Path>, text: &str) {
    // As it is: only its content is bad.
    std::fs::write(file, text).unwrap();
}

#[test]
fn j4_a_bad_file_is_shown_moved_aside_once_and_hides_nothing_else() {
    let world = World::new();
    let daemon = world.start();
    let [bad, ledger, watched, good] = ["bad", "ledger", "watched", "good"].map(|l| world.session(l));
    let mut client = world.client();
    good.watch(&mut client, &watched);
    must(&mut client, &good.letter(&ledger, "one"));
    must(&mut client, &good.letter(&ledger, "two"));
    daemon.stop();
    write(bad.file("session.json"), "{garbage");
    write(watched.file("watchers.json"), "[1,2");
    let text = std::fs::read_to_string(ledger.file("queue.jsonl")).unwrap();
    write(ledger.file("queue.jsonl"), &format!("garbage\n{text}"));

    let quarantined = || std::fs::read_dir(world.home().quarantine()).unwrap().count();
    let mut told = 0;
    for start in 0..2 {
        let mut daemon = world.start();
        let mut client = world.client();
        told += daemon.log().matches("moved to quarantine/").count();
        assert_eq!((quarantined(), told), (4, 2), "start {start}: two files, each with its .why, told once");
        // It is there and cannot be read, which is another thing than not being there.
        let shown = world.run("show bad").failed(65);
        assert!(shown.contains("session.json"), "{shown}");
        assert_eq!(refused(&mut client, &good.letter(&bad, "hello")).0, 65);
        assert_eq!(world.run("show nobody").code, 2);
        // All others are served.
        for (agent, state) in [(&ledger, State::Review), (&watched, State::Asking), (&good, State::Done)] {
            agent.declare(&mut client, state, Some(&format!("start {start}")));
        }
        assert_eq!(ledger.queue().len(), 2, "a line that cannot be read hides none");
        daemon.kill();
    }
    let found = world.run("store check");
    assert_eq!(found.code, 65);
    assert!(found.out.contains("session.json: not there"), "{found:?}");
    world.run("store repair").ok();
    world.run("store check").ok();
    let _daemon = world.start();
    world.run("show bad").ok();
    bad.declare(&mut world.client(), State::Review, Some("back"));
}

#[test]
fn j4_a_folder_taken_away_is_gone_once_and_nothing_is_half_recreated() {
    let world = World::new();
    let mut daemon = world.start();
    let [gone, good] = ["gone", "good"].map(|l| world.session(l));
    let mut client = world.client();
    let folder = gone.dir();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(world.run("show gone").code, 2);
    for _ in 0..3 {
        assert_eq!(refused(&mut client, &good.letter(&gone, "hello")).0, 2);
        assert_eq!(refused(&mut client, &good.watching(&gone)).0, 2);
    }
    must(&mut client, &good.letter(&good, "to myself"));
    assert!(!folder.exists());
    let said = daemon.log().matches("the session is given up").count();
    assert_eq!(said, 1, "told once");
    daemon.kill();
    // Nor by a replay of the journal, which has all of it.
    let daemon = world.start();
    assert!(!folder.exists());
    assert_eq!(world.run("show gone").code, 2);
    world.run("store check").ok();
    world.session("gone");
    daemon.stop();
    world.run("store check").ok();
}

#[test]
fn j7_a_daemon_that_is_killed_over_and_over_does_not_replay_ever_more() {
    let world = World::new();
    let segments = || std::fs::read_dir(world.home().journal()).unwrap().count();
    let mut daemon = world.start();
    let agent = world.session("agent");
    for round in 0..12 {
        agent.declare(&mut world.client(), State::Review, Some(&format!("round {round}")));
        agent.declare(&mut world.client(), State::Working, None);
        daemon.kill();
        let before = segments();
        daemon = world.start();
        if before >= 4 {
            // Nobody commits anything, and it does not take until the store has been idle for long.
            wait_for(&world.home().journal(), LIMIT, || (segments() == 1).then_some(())).unwrap();
        }
    }
    assert!(segments() <= 4, "{}", segments());
    daemon.stop();
    world.run("store check").ok();
}

/// What a restart may not change: everything but the journal, the bell, and what belongs to a daemon's life.
fn lasting(world: &World) -> BTreeMap<String, Vec<u8>> {
    let mut tree = tree(world.home().root());
    let passing = ["journal/", "feed.jsonl", "run/", "daemon.lock", "log/"];
    tree.retain(|name, _| !passing.iter().any(|p| name.starts_with(p)));
    tree
}

#[test]
fn j7_a_restart_changes_nothing() {
    let world = World::with("[mailbox]\nvisibility = \"7d\"\n");
    let daemon = world.start();
    let lead = world.session("lead");
    let mut client = world.client();
    for state in State::ALL {
        let agent = world.session(&format!("in-{state}"));
        lead.watch(&mut client, &agent);
        if state != State::Idle {
            // Some are minder's to say; a person may say all of them.
            let declare = rpc::Declare {
                session: Some(agent.id.to_string()),
                caller: None,
                ..agent.declaration(state, Some("as it was"))
            };
            let _ = client.call(&declare);
        }
    }
    // Holds and receipts: waits for a hook, waits in a mailbox, seen, dead, answered.
    let hooked = world.session_by("hooked", Channel::Hook);
    let reader = world.session("reader");
    for n in 0..4 {
        must(&mut client, &lead.letter(&hooked, format!("held {n}")));
        must(
            &mut client,
            &rpc::Send { key: Some(format!("k{n}")), ..lead.letter(&reader, format!("letter {n}")) },
        );
    }
    let taken = must(&mut client, &rpc::Take { caller: reader.caller(), key: None }).message.unwrap();
    must(&mut client, &rpc::Ack { caller: reader.caller(), id: taken.id.to_string(), key: None });
    let dropped = reader.queue().iter().last().unwrap().id;
    must(&mut client, &rpc::Drop { caller: lead.caller(), id: dropped.to_string() });
    let reply = reader.queue().iter().next().unwrap().id;
    let answer = rpc::Send {
        caller: reader.caller(),
        to: None,
        reply_to: Some(reply.to_string()),
        body: "the answer".to_owned(),
        ..rpc::Send::default()
    };
    must(&mut client, &answer);
    world.run_as(&lead, "wait --timeout 0");
    let queue = world.run("queue hooked --json").ok();
    let listed = || {
        let mut listed = world.run("ls --all --json").json();
        for session in listed["sessions"].as_array_mut().unwrap() {
            session.as_object_mut().unwrap().remove("age_s");
        }
        listed
    };
    let (before, shown) = (lasting(&world), listed());
    daemon.kill();
    for start in 0..3 {
        let daemon = world.start();
        assert_eq!(listed(), shown, "start {start}");
        assert_eq!(world.run("queue hooked --json").ok(), queue, "start {start}");
        let after = lasting(&world);
        let changed: Vec<_> =
            before.keys().chain(after.keys()).filter(|k| before.get(*k) != after.get(*k)).collect();
        assert!(changed.is_empty(), "start {start}: {changed:?}");
        if start == 1 {
            daemon.stop();
        } else {
            daemon.kill();
        }
    }
    assert_eq!(lasting(&world), before);
}
