//! What is left of a turn whose shim was killed: found by the turn's marker, and nobody else is.

use std::time::Duration;

use minder_daemon::shim::tree;
use minder_proto::id::TurnId;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn what_a_shim_that_was_killed_leaves_is_found_by_its_marker() {
    let isolated = Isolated::new().unwrap();
    // A child whose own environment is empty is found below one whose is not.
    let script = "ignore TERM\nchild : setsid; ignore TERM; hang\nchild : ignore TERM; parent cleared : hang\n\
        child : setsid; child : hang\nsleep 300ms\nnote up\nhang";
    let shim = Shim::start(&isolated, fake(&isolated, script).unwrap(), None).unwrap();
    let mut other = Shim::start(&isolated, fake(&isolated, "note up\nhang").unwrap(), None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    other.wait_record(LIMIT, "note").unwrap();
    shim.process().signal(Signal::KILL);
    assert!(shim.process().wait(LIMIT));
    assert_eq!(shim.left().len(), 5);
    assert!(shim.found().is_err(), "it left no result");

    assert_eq!(tree::kill_marked(&TurnId::now(), LIMIT), tree::Swept::default());
    let swept = tree::kill_marked(&shim.spec().turn, LIMIT);
    assert_eq!((swept.killed, swept.survivors), (5, Vec::new()));
    assert_eq!(shim.left().len(), 0);
    assert_eq!(tree::kill_marked(&shim.spec().turn, LIMIT), tree::Swept::default());

    // The other turn goes on.
    assert_eq!(other.left().len(), 1);
    other.order(minder_proto::turn::names::Trigger::Cancel).unwrap();
    assert_eq!(other.result(LIMIT).unwrap().killed_processes, 1);
}
