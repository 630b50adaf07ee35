//! Following against the real daemon: what the client's own tests drive with written stores, end to end.

use minder_proto::rpc;
use minder_proto::state::State;

use crate::strace::traced;
use crate::world::{Running, World, must};

#[test]
fn a1_every_move_in_order_from_the_daemon_to_the_wait() {
    let world = World::new();
    let _daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    assert_eq!(world.run_as(&s, "wait w --timeout 0").code, 1);
    for round in 0..50 {
        let to = if round % 2 == 0 { State::Review } else { State::Working };
        w.declare(&mut client, to, None);
    }
    let mut seqs = Vec::new();
    loop {
        let ran = world.run_as(&s, "wait w --timeout 0 --json");
        if ran.code == 1 {
            break;
        }
        let event = ran.json();
        assert_eq!(
            (event["session"].as_str(), event["to"].as_str()),
            (Some(&*w.id.to_string()), Some("review"))
        );
        seqs.push(event["seq"].as_u64().unwrap());
    }
    let edges: Vec<u64> =
        w.moves().iter().filter(|(_, m)| m.to == State::Review).map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, edges);
    assert_eq!(seqs.len(), 25);
}

#[test]
fn a7_a_wait_opens_no_socket_and_is_woken_by_the_file() {
    let world = World::new();
    let _daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let log = w.file("strace.log").with_file_name("../../strace.log");
    let wait = world.minder_as(&s, "wait w --since 1 --json");
    let waiting = Running::new(&mut traced(&wait, &["-e", "trace=network"], &log));
    // Its first word on stderr is for the agent; from then on it follows, from the line that it was told.
    let said = waiting.said();
    assert!(said.contains("background"), "{said}");
    must(
        &mut world.client(),
        &rpc::Declare { caller: w.caller(), ..w.declaration(State::Review, Some("PR 12")) },
    );
    let event: serde_json::Value = serde_json::from_str(&waiting.line()).unwrap();
    assert_eq!((event["to"].as_str(), event["note"].as_str()), (Some("review"), Some("PR 12")));
    assert_eq!(waiting.end().code, 0);
    let calls = std::fs::read_to_string(&log).unwrap();
    assert!(!calls.contains("socket") && !calls.contains("connect"), "{calls}");
}
