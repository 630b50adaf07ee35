//! A daemon that is killed while it types: what was begun is brought to its end by the next one, and nothing is typed twice.

use std::sync::Arc;

use minder_proto::rpc;
use minder_proto::trial::TYPE_POINTS;
use rustix::process::Signal;

use super::stage::{PASTE, Stage};
use crate::cuts;
use crate::scene::LIMIT;
use crate::world::World;

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
    let mut cut = |at: &str| {
        let (to, key) = (Some(stage.id.to_string()), Some(at.to_owned()));
        let letter =
            rpc::Send { to, key, body: at.to_owned(), caller: sender.caller(), ..rpc::Send::default() };
        let mut arrives = |id| {
            stage.arrives(id);
            sent.push(id.short());
        };
        cuts::cut(&world, at, &letter, &mut |id| stage.scene.is_settled(stage.id, id), &mut arrives)
    };
    for point in TYPE_POINTS {
        assert!(cut(&format!("{point}:1")), "{point} is passed");
    }
    cuts::everywhere(&mut cut);
    assert_eq!(stage.submitted(), sent, "each once, in order");
    // Its text is in once more only where it went out again with the screen.
    assert_eq!(stage.count(PASTE), sent.len());
}
