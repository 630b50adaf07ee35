//! What a run that succeeded waits for until its outcome is named, and until when. Pure: a decision of who it is held for,
//! where they are, and the time.

use std::time::{Duration, Instant};

use minder_proto::turn::folder::Purpose;

/// How long a turn that was held for a connection waits, after a daemon began anew, for its caller to come back.
pub const REATTACH: Duration = Duration::from_secs(60);

/// Where the caller of a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// On this connection.
    On(u64),
    /// Its connection ended.
    Gone,
    /// It had a connection to an earlier daemon, and may come back until then.
    Expected(Instant),
    /// It never waited: it asks when it likes.
    Elsewhere,
}

/// Until when a turn that settled at `settled` is held: none is without end, and past means not at all.
pub fn until(
    purpose: &Purpose,
    caller: Caller,
    settled: Instant,
    finish_timeout: Duration,
) -> Option<Instant> {
    match (purpose, caller) {
        // Delivery names it, also after a restart; and the end of a connection is heard of.
        (Purpose::Queue { .. }, _) | (Purpose::Caller | Purpose::Connection, Caller::On(_)) => None,
        (Purpose::Held, _) | (Purpose::Caller | Purpose::Connection, Caller::Elsewhere) => {
            Some(settled + finish_timeout)
        }
        (Purpose::Caller | Purpose::Connection, Caller::Gone) => Some(settled),
        (Purpose::Caller | Purpose::Connection, Caller::Expected(until)) => Some(until.max(settled)),
    }
}

/// Where a caller is once this connection has ended.
pub fn after_end(caller: Caller, connection: u64) -> Caller {
    if caller == Caller::On(connection) { Caller::Gone } else { caller }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_it_is_held_for_and_where_they_are_decides_for_how_long() {
        let settled = Instant::now();
        let timeout = Duration::from_secs(600);
        let held = |purpose: &Purpose, caller| {
            until(purpose, caller, settled, timeout).map(|at| (at - settled).as_secs())
        };
        let later = Caller::Expected(settled + Duration::from_secs(40));
        let queue = Purpose::Queue { messages: Vec::new() };
        for caller in [Caller::On(1), Caller::Gone, later, Caller::Elsewhere] {
            assert_eq!(held(&queue, caller), None);
            assert_eq!(held(&Purpose::Held, caller), Some(600));
        }
        for purpose in [Purpose::Caller, Purpose::Connection] {
            assert_eq!(held(&purpose, Caller::On(1)), None);
            assert_eq!(held(&purpose, Caller::Gone), Some(0));
            assert_eq!(held(&purpose, later), Some(40));
            assert_eq!(held(&purpose, Caller::Elsewhere), Some(600));
        }
    }

    #[test]
    fn only_the_end_of_its_own_connection_counts() {
        assert_eq!(after_end(Caller::On(1), 1), Caller::Gone);
        assert_eq!(after_end(Caller::On(2), 1), Caller::On(2));
        assert_eq!(after_end(Caller::Elsewhere, 1), Caller::Elsewhere);
    }
}
