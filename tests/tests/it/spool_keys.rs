//! A request that was left counts once: by its own key where it has one, else by its file's name.

use minder_proto::rpc::{self, Call, Spooled};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use crate::world::{World, must};

fn leave<C: Call>(world: &World, call: &C) {
    let params = serde_json::to_value(call).unwrap();
    let spooled = Spooled { method: C::METHOD.to_owned(), params, at: Stamp::now() };
    minder_client::spool::put(&world.home(), uuid::Uuid::now_v7(), &spooled).unwrap();
}

#[test]
fn what_was_left_twice_under_one_key_counts_once() {
    let world = World::new();
    let daemon = world.start();
    let [w, s] = ["w", "s"].map(|l| world.session(l));
    daemon.kill();
    let letter = rpc::Send { key: Some("once".to_owned()), ..w.letter(&s, "hello") };
    let moved = rpc::Declare { key: Some("moved".to_owned()), ..w.declaration(State::Review, Some("look")) };
    let back = w.declaration(State::Working, None);
    leave(&world, &letter);
    leave(&world, &letter);
    leave(&world, &moved);
    leave(&world, &back);
    leave(&world, &moved);
    let _daemon = world.start();
    assert_eq!(s.messages().len(), 1);
    let states: Vec<State> = w.moves().into_iter().map(|(_, m)| m.to).collect();
    assert_eq!(states, [State::Review, State::Working], "the repeat is no new move");
    assert_eq!(std::fs::read_dir(world.home().spool()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(world.home().quarantine()).unwrap().count(), 0);
    // Nor does the same key by another way.
    let mut client = world.client();
    assert!(must(&mut client, &letter).duplicate);
    assert_eq!(s.messages().len(), 1);
}
