//! The store, the watches, the sessions' functions and the mailbox against a reference of plain lists and maps: random
//! histories with groups of mutations, refusals, clean restarts, crashes and power cuts, compared after every move.
//!
//! `moves.rs` is what can happen, `reference.rs` what it must do, `rig.rs` does it to the real store, `agree.rs`
//! compares, `tree.rs` is a store's files as a crash leaves them.

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

mod agree;
mod moves;
mod reference;
mod rig;
mod tree;

use moves::Move;
use reference::Reference;
use rig::Rig;

struct Histories;

impl ReferenceStateMachine for Histories {
    type State = Reference;
    type Transition = Move;

    fn init_state() -> BoxedStrategy<Reference> {
        Just(Reference::default()).boxed()
    }

    fn transitions(_: &Reference) -> BoxedStrategy<Move> {
        moves::any_move()
    }

    fn apply(reference: Reference, next: &Move) -> Reference {
        reference.go(next)
    }
}

struct RealStore;

impl StateMachineTest for RealStore {
    type SystemUnderTest = Rig;
    type Reference = Histories;

    fn init_test(_: &Reference) -> Rig {
        Rig::new()
    }

    fn apply(mut rig: Rig, reference: &Reference, _: Move) -> Rig {
        rig.follow(&reference.last);
        rig
    }

    fn check_invariants(rig: &Rig, reference: &Reference) {
        agree::check(rig, reference);
    }
}

/// Histories in one run; `PROPTEST_CASES` asks for another number.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.map_or(200, |cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Whatever happens in whatever order, the store is what the reference says: in memory, on disk, and after every
    /// kind of end.
    #[test]
    fn a_store_is_what_was_done_to_it(sequential 1..40 => RealStore);
}
