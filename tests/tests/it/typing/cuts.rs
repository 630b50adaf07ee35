//! A daemon that is killed while it types: what was begun is brought to its end by the next one, and nothing is typed twice.

use std::sync::Arc;

use minder_proto::rpc;
use minder_proto::trial::{KILL_POINT, TYPE_POINTS};
use rustix::process::Signal;

use super::stage::{PASTE, Stage};
use crate::scene::LIMIT;
use crate::world::{World, must};

/// Places of the ledger: a line of it is not written, and is there and nothing came of it yet.
const OF_THE_LEDGER: [&str; 2] = ["journal.before-write", "journal.after-flush"];

/// More passings of a place than there are.
const MOST: u32 = 40;

#[test]
fn c1_what_is_typed_is_typed_once_wherever_the_daemon_is_killed() {
    let stage = Stage::configured("status off", "[delivery]\nevidence_timeout = \"1s\"\n");
    let world = World { isolated: Arc::clone(&stage.scene.isolated) };
    let daemon = stage.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
    let daemon = world.start();
    let sender = world.session("sender");
    daemon.kill();
    let mut sent = Vec::new();
    let mut cut = |point: &str, n: u32| {
        let at = format!("{point}:{n}");
        let to = Some(stage.id.to_string());
        let letter = rpc::Send {
            to,
            key: Some(at.clone()),
            body: at.clone(),
            caller: sender.caller(),
            ..rpc::Send::default()
        };
        let reached = match world.launch(&[(KILL_POINT, &at)]).settle() {
            Ok(mut daemon) => {
                if let Ok(answer) = world.client().call(&letter) {
                    // Until it is seen, or the daemon is gone on the way.
                    let waits = || {
                        stage
                            .scene
                            .receipts(stage.id, answer.id)
                            .pop()
                            .is_some_and(|line| !line.r.is_settled())
                    };
                    while waits() && !daemon.process.wait(std::time::Duration::from_millis(20)) {}
                }
                daemon.process.signal(Signal::TERM);
                std::os::unix::process::ExitStatusExt::signal(&daemon.ended()) == Some(9)
            }
            Err(_) => true,
        };
        let daemon = world.start();
        let id = must(&mut world.client(), &letter).id;
        stage.arrives(id);
        daemon.kill();
        sent.push(id.short());
        reached
    };
    for point in TYPE_POINTS {
        assert!(cut(point, 1), "{point} is passed");
    }
    for point in OF_THE_LEDGER {
        let passed = (1..MOST).take_while(|n| cut(point, *n)).count();
        assert!(
            (3..MOST as usize - 1).contains(&passed),
            "{point}: it is accepted, handed and seen: {passed}"
        );
    }
    assert_eq!(stage.submitted(), sent, "each once, in order");
    // Its text is in once more only where it went out again with the screen.
    assert_eq!(stage.count(PASTE), sent.len());
}
