//! The end of a whole tree: whatever it forks, leaves or ignores, nothing is left of it.

use minder_proto::turn::folder::{Found, Spec};
use minder_proto::turn::names::Trigger;
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};

use super::{LIMIT, TERM};

/// Processes of the nasty tree that stay, its root included.
const TREE: u32 = 57;

/// Runs a turn until its tree stands, has it cancelled if it does not end by itself, and looks for what is left.
fn run(isolated: &std::sync::Arc<Isolated>, spec: Spec, cancel: bool) -> Found {
    let mut shim = Shim::start(isolated, spec, None).unwrap();
    shim.wait_record(LIMIT, "tree").unwrap();
    if cancel {
        shim.order(Trigger::Cancel).unwrap();
    }
    let found = shim.result(LIMIT).unwrap();
    assert!(shim.process().wait(LIMIT));
    // One that never keeps its pid is not seen by every look.
    for _ in 0..3 {
        let left: Vec<_> = shim.left().iter().map(|p| (p.pid(), p.arguments())).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    assert_eq!(found.survivors, []);
    found
}

/// The figure of the contract: 50 of 50.
#[test]
fn f1_nothing_is_left_of_a_tree_in_fifty_of_fifty_runs() {
    let isolated = Isolated::new().unwrap();
    for round in 0..50 {
        match round % 3 {
            // Ignores everything, and is not asked.
            0 => {
                let spec = fake(&isolated, "ignore HUP INT TERM\ntree\nhang").unwrap();
                let found = run(&isolated, spec, true);
                assert!(found.killed && found.killed_processes >= TREE, "{found:?}");
                assert_eq!((found.signal, found.left_behind), (Some(9), 0));
            }
            // Ends well before anybody wants it to.
            1 => {
                let found = run(&isolated, fake(&isolated, "tree\nprint done\nexit 0").unwrap(), false);
                assert_eq!((found.exit_code, found.trigger, found.killed), (Some(0), None, false));
                assert!(found.left_behind >= TREE - 1, "{found:?}");
                assert_eq!(found.left_behind, found.killed_processes);
            }
            // Ends when it is asked to, and orphans them all.
            _ => {
                let mut spec = fake(&isolated, "on TERM exit 0\ntree\nhang").unwrap();
                spec.cancel_signal = TERM;
                let found = run(&isolated, spec, true);
                assert_eq!(
                    (found.exit_code, found.trigger, found.late),
                    (Some(0), Some(Trigger::Cancel), true)
                );
                assert!(!found.killed && found.left_behind >= TREE - 1, "{found:?}");
            }
        }
    }
}

#[test]
fn f2_what_forks_while_it_is_ended_is_ended() {
    let isolated = Isolated::new().unwrap();
    let script = "on TERM exit 0\nchild : setsid; breed 2ms\nchild : setsid; hop 0\nchild : group; breed 0\nsleep 200ms\n\
        note tree\nhang";
    for _ in 0..5 {
        let mut spec = fake(&isolated, script).unwrap();
        spec.cancel_signal = TERM;
        let mut shim = Shim::start(&isolated, spec, None).unwrap();
        shim.wait_record(LIMIT, "note").unwrap();
        shim.order(Trigger::Cancel).unwrap();
        let found = shim.result(LIMIT).unwrap();
        assert_eq!((found.exit_code, found.survivors.len()), (Some(0), 0));
        assert!(found.left_behind >= 3);
        for _ in 0..3 {
            assert_eq!(shim.left().len(), 0);
        }
    }
}

#[test]
fn f3_finished_is_finished_whoever_holds_the_output() {
    let isolated = Isolated::new().unwrap();
    let script =
        "print the whole\nprint answer\nchild holding-stdout : setsid; ignore TERM; sleep 12s\nexit 0";
    let mut shim = Shim::start(&isolated, fake(&isolated, script).unwrap(), None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.exit_code, found.trigger, found.killed), (Some(0), None, false));
    assert_eq!((found.left_behind, found.killed_processes), (1, 1));
    // It was not waited for.
    assert!(found.duration_ms < 3_000, "{}", found.duration_ms);
    assert_eq!(shim.stdout().unwrap(), b"the whole\nanswer\n");
    assert_eq!(shim.left().len(), 0);
}

#[test]
fn f12_a_second_worker_ends_with_the_turn() {
    let isolated = Isolated::new().unwrap();
    let script = "child holding-stdout : print second; hang\nsleep 300ms\nprint first\nexit 0";
    let mut shim = Shim::start(&isolated, fake(&isolated, script).unwrap(), None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!((found.exit_code, found.left_behind), (Some(0), 1));
    assert_eq!(shim.left().len(), 0);
}
