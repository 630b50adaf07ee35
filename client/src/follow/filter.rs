//! Which state lines a follower asked for.

use minder_proto::edge::is_edge;
use minder_proto::event::Transition;
use minder_proto::state::{State, StateSet};

/// The states waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    states: StateSet,
    alarm: bool,
}

impl Filter {
    /// The default: the actionable states, and a turn that ended with nothing declared.
    pub const DEFAULT: Self = Self { states: StateSet::ACTIONABLE, alarm: false };

    /// These states, as somebody asked for them.
    pub fn asked(states: StateSet) -> Self {
        Self { states, alarm: !states.contains(State::Error, false) }
    }

    /// True if a session that declared `state` (a `turn_end` or not) stands where this filter looks.
    pub fn holds(self, state: State, turn_end: bool) -> bool {
        self.states.contains(state, turn_end) || self.alarms(state)
    }

    /// True if a line is an event: it enters the set, or it goes to `error` unasked. `after_turn_end` says whether
    /// the state line before it was a `turn_end`.
    pub fn counts(self, line: &Transition, after_turn_end: bool) -> bool {
        is_edge(line, self.states, after_turn_end) || (self.alarms(line.to) && line.from != State::Error)
    }

    /// True if a session that went to `state` ended badly what was waited for.
    pub fn alarms(self, state: State) -> bool {
        self.alarm && state == State::Error
    }

    /// True if how a line counts depends on the state line before it.
    pub fn needs_past(self, line: &Transition) -> bool {
        // Only `idle` is ever the state of a `turn_end`.
        line.from == State::Idle && self.counts(line, false) != self.counts(line, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::samples::moved;

    #[test]
    fn an_error_that_nobody_asked_for_is_an_alarm() {
        let done = Filter::asked("done".parse().unwrap());
        let with_error = Filter::asked("done,error".parse().unwrap());
        for (filter, from, to, counts, alarms) in [
            (Filter::DEFAULT, State::Working, State::Error, true, false),
            (Filter::DEFAULT, State::Review, State::Error, false, false),
            (done, State::Working, State::Error, true, true),
            (done, State::Review, State::Error, true, true),
            (done, State::Error, State::Error, false, true),
            (done, State::Review, State::Done, true, false),
            (done, State::Working, State::Review, false, false),
            (with_error, State::Working, State::Error, true, false),
        ] {
            assert_eq!(filter.counts(&moved(from, to), false), counts, "{filter:?} {from} {to}");
            assert_eq!(filter.alarms(to), alarms, "{filter:?} {to}");
        }
    }

    #[test]
    fn the_past_matters_only_after_idle() {
        let review = moved(State::Idle, State::Review);
        assert!(!Filter::DEFAULT.needs_past(&review), "an edge either way");
        let idle = Filter::asked("idle,review".parse().unwrap());
        assert!(idle.needs_past(&review), "idle is in the set, a turn's end is left by a declaration");
        assert!(!idle.needs_past(&moved(State::Working, State::Review)));
    }
}
