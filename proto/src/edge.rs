//! Edges: a state line that *enters* the set that counts. A standing level is never news.

use crate::event::Transition;
use crate::state::StateSet;

/// True if this line is an edge of `set`: its `to` is in the set and its `from` is not; or it declares an
/// actionable state after a turn that had ended with nothing declared.
///
/// `after_turn_end` says whether the line before it was a `turn_end`.
pub fn is_edge(line: &Transition, set: StateSet, after_turn_end: bool) -> bool {
    if !set.contains(line.to, line.turn_end) {
        return false;
    }
    let was_in = set.contains(line.from, after_turn_end);
    !was_in || (after_turn_end && !line.turn_end && line.to.is_actionable())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Author;
    use crate::state::State::{self, *};

    fn line(from: State, to: State, turn_end: bool) -> Transition {
        Transition {
            from,
            to,
            note: None,
            by: Author::Agent,
            cause: None,
            turn: None,
            turn_end,
            text: None,
            proof: None,
        }
    }

    #[test]
    fn entering_is_an_edge_and_staying_is_not() {
        let set = StateSet::ACTIONABLE;
        for (from, to, turn_end, after, edge) in [
            (Working, Review, false, false, true),
            (Review, Done, false, false, false),
            (Done, Working, false, false, false),
            (Working, Idle, true, false, true),
            (Working, Idle, false, false, false),
            (Idle, Review, false, true, true),
            (Idle, Working, false, true, false),
            (Queued, Error, false, false, true),
            (Review, Review, false, false, false),
        ] {
            assert_eq!(is_edge(&line(from, to, turn_end), set, after), edge, "{from} -> {to}");
        }
        let done = StateSet::of(&[Done]);
        assert!(is_edge(&line(Review, Done, false), done, false));
        assert!(!is_edge(&line(Working, Review, false), done, false));
    }
}
