//! A daemon that is killed while one message is on its way, once at each passing of a place: the next one brings the message to its
//! end. What a channel may do twice meanwhile, and what it may not, is its own test's.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use minder_proto::id::MessageId;
use minder_proto::rpc;
use minder_proto::trial::KILL_POINT;
use rustix::process::Signal;

use crate::world::{World, must};

/// Places of the ledger: a line of it is not written, and is there and nothing came of it yet.
const OF_THE_LEDGER: [&str; 2] = ["journal.before-write", "journal.after-flush"];

/// More passings of a place than there are.
const MOST: u32 = 40;

/// Sends a letter, which has a key, to a daemon that dies at `at` (a place and which passing of it), and once more to the next
/// one. `done` is asked until it says that the message is settled, `arrives` waits for that. True where the daemon died there.
pub fn cut(
    world: &World,
    at: &str,
    letter: &rpc::Send,
    done: &mut dyn FnMut(MessageId) -> bool,
    arrives: &mut dyn FnMut(MessageId),
) -> bool {
    let reached = match world.launch(&[(KILL_POINT, at)]).settle() {
        Ok(mut daemon) => {
            if let Ok(answer) = world.client().call(letter) {
                // Until it is settled, or the daemon is gone on the way.
                while !done(answer.id) && !daemon.process.wait(Duration::from_millis(10)) {}
            }
            daemon.process.signal(Signal::TERM);
            daemon.ended().signal() == Some(9)
        }
        Err(_) => true,
    };
    let daemon = world.start();
    arrives(must(&mut world.client(), letter).id);
    daemon.kill();
    reached
}

/// Goes over all passings of each place of the ledger.
pub fn everywhere(mut cut: impl FnMut(&str) -> bool) {
    for point in OF_THE_LEDGER {
        let passed = (1..MOST).take_while(|n| cut(&format!("{point}:{n}"))).count();
        assert!(
            (3..MOST as usize - 1).contains(&passed),
            "{point}: it is accepted, handed and settled: {passed}"
        );
    }
}
