//! Cases J beside damage: what a start does with a store that somebody or something else than minder changed.

use minder_proto::state::State;

use crate::crash::Prepared;
use crate::world::World;

/// Changes one byte of the first record in the journal that says this.
fn damage_the_journal(world: &World, text: &str) {
    let mut segments: Vec<_> =
        std::fs::read_dir(world.home().journal()).unwrap().map(|e| e.unwrap().path()).collect();
    segments.sort();
    for segment in segments {
        let mut bytes = std::fs::read(&segment).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|w| w == text.as_bytes()) {
            bytes[at] ^= 0x20;
            std::fs::write(segment, bytes).unwrap();
            return;
        }
    }
    panic!("{text} is not in the journal");
}

#[test]
fn j1_killed_in_a_start_beside_a_damaged_journal() {
    let world = World::new();
    let daemon = world.start();
    let w = world.session("w");
    let mut client = world.client();
    for note in ["note 1", "note 2", "note 3"] {
        let state = if note == "note 2" { State::Review } else { State::Asking };
        w.declare(&mut client, state, Some(note));
    }
    daemon.kill();
    let daemon = world.start();
    w.declare(&mut world.client(), State::Review, Some("note 4"));
    daemon.kill();
    damage_the_journal(&world, "note 2");
    let prepared = Prepared::new(world);
    let notes = || w.moves().into_iter().filter_map(|(_, m)| m.note).collect::<Vec<_>>();
    let scenario = |client: &mut minder_client::rpc::Client, _: &minder_tests::process::Process| {
        w.declare(client, State::Asking, Some("note 5"));
        true
    };
    let finish = |_: &crate::world::Minderd, told: bool, at: &str| {
        let count = if told { 5 } else { 4 };
        assert_eq!(notes(), (1..=count).map(|n| format!("note {n}")).collect::<Vec<_>>(), "{at}");
        assert!(prepared.world.home().quarantine().join("journal.why").is_file(), "{at}");
    };
    let reached = prepared.at_every(&minder_proto::trial::MEND_POINTS[..2], scenario, finish);
    assert!(reached.iter().all(|(_, n)| *n == 1), "{reached:?}");
}
