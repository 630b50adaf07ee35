//! What engine turns may cost: turns and money of a rolling window. Before a turn its price is reserved, by the dearest of
//! the last ones; when it is settled the reservation becomes what it cost.

use std::time::Duration;

use minder_proto::host::bounds::{BUDGET_WARN, COALESCE_SLOW, HANDBACKS_MAX, RESERVE_FIRST, RESERVE_OF};
use minder_proto::host::upkeep::{Budget, Charge};
use minder_proto::stamp::Stamp;

/// For how long a hand-back counts for the rate of hand-backs.
const HOUR: Duration = Duration::from_secs(3_600);

/// The limits; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Over which time.
    pub window: Duration,
    /// Turns in it.
    pub turns: u64,
    /// Money in it, in micro-dollars.
    pub microusd: u64,
}

/// What is used of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Turns.
    pub turns: u64,
    /// Micro-dollars.
    pub microusd: u64,
}

/// Which limit stands in the way, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// That of turns.
    Turns(Stamp),
    /// That of money.
    Money(Stamp),
}

impl Over {
    /// When the window has room again.
    pub fn until(self) -> Stamp {
        match self {
            Self::Turns(until) | Self::Money(until) => until,
        }
    }
}

/// Forgets what is older than the window.
pub fn trim(budget: &mut Budget, limits: Limits, now: Stamp) {
    let since = now.minus(limits.window);
    while budget.charges.front().is_some_and(|charge| charge.at <= since) {
        budget.charges.pop_front();
    }
    let since = now.minus(HOUR);
    while budget.handbacks.front().is_some_and(|at| *at <= since) {
        budget.handbacks.pop_front();
    }
}

/// What is used in the window that ends now.
pub fn used(budget: &Budget, limits: Limits, now: Stamp) -> Used {
    let since = now.minus(limits.window);
    let inside = budget.charges.iter().filter(|charge| charge.at > since);
    inside.fold(Used::default(), |used, charge| Used {
        turns: used.turns + 1,
        microusd: used.microusd.saturating_add(charge.microusd),
    })
}

/// What is reserved for the next turn.
pub fn reservation(budget: &Budget) -> u64 {
    let last = budget.charges.iter().rev().take(RESERVE_OF);
    last.map(|charge| charge.microusd).max().unwrap_or(RESERVE_FIRST)
}

/// Why no further turn may begin; none where one may. `reserved` is what turns that run have reserved.
pub fn over(budget: &Budget, limits: Limits, reserved: Used, now: Stamp) -> Option<Over> {
    let used = used(budget, limits, now);
    let inside = || budget.charges.iter().filter(|charge| charge.at > now.minus(limits.window));
    if limits.turns > 0 && used.turns + reserved.turns >= limits.turns {
        // One place is free when enough of the oldest have left.
        let leave = used.turns + reserved.turns - limits.turns;
        let last = inside().nth(usize::try_from(leave).unwrap_or(usize::MAX));
        return Some(Over::Turns(last.map_or(now, |charge| charge.at).plus(limits.window)));
    }
    let wanted = reservation(budget).saturating_add(reserved.microusd);
    if limits.microusd > 0 && used.microusd.saturating_add(wanted) > limits.microusd {
        let mut left = used.microusd;
        let frees = inside().find(|charge| {
            left = left.saturating_sub(charge.microusd);
            left.saturating_add(wanted) <= limits.microusd
        });
        let last = frees.or_else(|| inside().last());
        return Some(Over::Money(last.map_or(now, |charge| charge.at).plus(limits.window)));
    }
    None
}

/// Puts what a turn cost into the window. Without a price it is charged what was reserved.
pub fn charge(budget: &mut Budget, charge: Charge) {
    budget.charges.push_back(charge);
}

/// True the first time that most of a limit is used.
pub fn warns(budget: &mut Budget, limits: Limits, now: Stamp) -> bool {
    let used = used(budget, limits, now);
    let near = |used: u64, limit: u64| {
        limit > 0 && u128::from(used) * 100 >= u128::from(limit) * u128::from(BUDGET_WARN)
    };
    let near = near(used.turns, limits.turns) || near(used.microusd, limits.microusd);
    near && !std::mem::replace(&mut budget.warned, near)
}

/// For how long rows are collected before a batch is judged.
pub fn coalesce(budget: &Budget, usual: Duration, now: Stamp) -> Duration {
    let lately = budget.handbacks.iter().filter(|at| **at > now.minus(HOUR)).count();
    if lately >= HANDBACKS_MAX { COALESCE_SLOW.max(usual) } else { usual }
}

#[cfg(test)]
mod tests {
    use minder_proto::id::TurnId;

    use super::*;

    const LIMITS: Limits = Limits { window: Duration::from_secs(1_000), turns: 3, microusd: 1_000_000 };

    fn at(seconds: u64) -> Stamp {
        Stamp::from_millis(0).plus(Duration::from_secs(seconds))
    }

    fn paid(seconds: u64, microusd: u64) -> Charge {
        Charge { at: at(seconds), turn: TurnId::now(), microusd, known: true }
    }

    /// 67.
    #[test]
    fn host67_the_window_rolls_and_a_reservation_counts() {
        let mut budget = Budget::default();
        assert_eq!((reservation(&budget), over(&budget, LIMITS, Used::default(), at(0))), (250_000, None));
        for second in [10, 20, 30] {
            charge(&mut budget, paid(second, 100_000));
        }
        assert_eq!(over(&budget, LIMITS, Used::default(), at(40)), Some(Over::Turns(at(1_010))));
        assert_eq!(over(&budget, LIMITS, Used::default(), at(1_009)), Some(Over::Turns(at(1_010))));
        assert_eq!(over(&budget, LIMITS, Used::default(), at(1_010)), None, "the oldest has left");
        // One that runs has its place.
        let one = Used { turns: 1, microusd: 100_000 };
        assert_eq!(over(&budget, LIMITS, one, at(1_010)), Some(Over::Turns(at(1_020))));
        trim(&mut budget, LIMITS, at(1_025));
        assert_eq!(budget.charges.len(), 1);
    }

    /// 67.
    #[test]
    fn host67_money_is_refused_before_it_is_spent() {
        let limits = Limits { turns: 0, ..LIMITS };
        let mut budget = Budget::default();
        charge(&mut budget, paid(10, 700_000));
        charge(&mut budget, paid(20, 100_000));
        assert_eq!(reservation(&budget), 700_000, "as dear as the dearest");
        assert_eq!(over(&budget, limits, Used::default(), at(30)), Some(Over::Money(at(1_010))));
        assert_eq!(over(&budget, limits, Used::default(), at(1_010)), None);
        let none = Limits { turns: 0, microusd: 0, ..LIMITS };
        assert_eq!(over(&budget, none, Used::default(), at(30)), None, "0 is no limit");
    }

    #[test]
    fn that_it_ends_is_said_once() {
        let mut budget = Budget::default();
        charge(&mut budget, paid(1, 799_999));
        assert!(!warns(&mut budget, LIMITS, at(2)));
        charge(&mut budget, paid(2, 1));
        assert!(warns(&mut budget, LIMITS, at(2)));
        assert!(!warns(&mut budget, LIMITS, at(3)));
    }

    #[test]
    fn many_hand_backs_of_an_hour_make_the_collecting_slower() {
        let usual = Duration::from_secs(30);
        let mut budget = Budget { handbacks: (0..60).map(at).collect(), ..Budget::default() };
        assert_eq!(coalesce(&budget, usual, at(100)), COALESCE_SLOW);
        assert_eq!(coalesce(&budget, usual, at(3_601)), usual);
        trim(&mut budget, LIMITS, at(3_601));
        assert_eq!(budget.handbacks.len(), 58);
    }
}
