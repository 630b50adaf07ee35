//! Why turns that no caller starts are not begun: an account that has used up what it is allowed or whose login is dead,
//! and the circuit of a session whose turns failed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::hold::Hold;
use crate::stamp::Stamp;
use crate::turn::names::Class;

/// Failed turns in a row that open a circuit.
pub const FAILURES_MAX: u32 = 3;
/// From the opening of a circuit to its first probe.
pub const FIRST_PROBE: Duration = Duration::from_secs(60);
/// What stands in the reason of a session whose conversation another process has.
pub const IN_USE: &str = "in use";
/// Longest pause between two probes.
pub const LAST_PROBE: Duration = Duration::from_secs(3_600);

/// Failures of a session's turns in a row. Only a finished turn, or a person, ends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    /// How many failed turns count.
    pub failures: u32,
    /// What the last one failed of.
    pub class: Class,
    /// Until the next probe, once it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Window>,
}

/// What holds an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountHold {
    /// The account.
    pub account: String,
    /// Which of the two.
    pub kind: HoldKind,
    /// Since when.
    pub since: Stamp,
    /// Until when, where the harness said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// The harness's words, one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Which hold of an account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldKind {
    /// What it may use in a period is used up.
    UsageLimit,
    /// The login or key is missing, dead or refused.
    Auth,
    /// Another process has the conversation of a session. It holds that session alone, whose label stands for the account.
    InUse,
}

impl AccountHold {
    /// The reason in a ledger.
    pub fn reason(&self) -> String {
        match (self.kind, self.until) {
            (HoldKind::UsageLimit, Some(until)) => format!("{}({until})", Hold::UsageLimit),
            (HoldKind::UsageLimit, None) => Hold::UsageLimit.to_string(),
            (HoldKind::Auth, _) => Hold::Auth.to_string(),
            (HoldKind::InUse, _) => format!("{}({IN_USE})", Hold::WrongProcess),
        }
    }

    /// True once its time is over.
    pub fn is_over(&self, now: Stamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// A stretch of time that is kept in a file. In the boot in which it began it is measured by the clock that stands still
/// in suspend, after that by the calendar, and never as longer than it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The boot in which it began.
    pub boot: String,
    /// Its end by that boot's running clock, in milliseconds.
    pub end_mono_ms: u64,
    /// Its end by the calendar.
    pub end: Stamp,
    /// How long it was, in milliseconds.
    pub length_ms: u64,
}

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks<'a> {
    /// This boot.
    pub boot: &'a str,
    /// Its running clock, in milliseconds.
    pub mono_ms: u64,
    /// The calendar.
    pub wall: Stamp,
}

impl Window {
    /// One that begins now.
    pub fn begin(now: Clocks<'_>, length: Duration) -> Self {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        Self {
            boot: now.boot.to_owned(),
            end_mono_ms: now.mono_ms.saturating_add(length_ms),
            end: now.wall.plus(length),
            length_ms,
        }
    }

    /// How much of it is left.
    pub fn left(&self, now: Clocks<'_>) -> Duration {
        let left = if self.boot == now.boot {
            Duration::from_millis(self.end_mono_ms.saturating_sub(now.mono_ms))
        } else {
            now.wall.age(self.end)
        };
        left.min(Duration::from_millis(self.length_ms))
    }
}

impl Circuit {
    /// After a failed turn; gives none where the failure is of a kind that does not count.
    pub fn after(before: Option<&Self>, class: Class, now: Clocks<'_>) -> Option<Self> {
        let failures = before.map_or(0, |c| c.failures);
        let opens = match class {
            Class::Quota => true,
            Class::Runtime | Class::Configuration => failures + 1 >= FAILURES_MAX,
            // The other side has a bad hour: tried again later, and later.
            Class::RateLimit | Class::Unavailable => return before.cloned(),
        };
        let pause = match before.and_then(|c| c.open.as_ref()) {
            Some(open) => Duration::from_millis(open.length_ms.saturating_mul(2)).min(LAST_PROBE),
            None => FIRST_PROBE,
        };
        let open = opens.then(|| Window::begin(now, pause));
        Some(Self { failures: failures.saturating_add(1), class, open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ms: u64, wall_ms: i64) -> Clocks<'static> {
        Clocks { boot: "this", mono_ms, wall: Stamp::from_millis(wall_ms) }
    }

    #[test]
    fn three_failures_in_a_row_open_it_and_probes_become_rare() {
        let now = at(0, 0);
        let mut circuit: Option<Circuit> = None;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            circuit = Circuit::after(circuit.as_ref(), Class::Runtime, now);
            pauses.push(circuit.as_ref().and_then(|c| c.open.as_ref()).map(|w| w.length_ms / 1_000));
        }
        let s = Some;
        let expected = [None, None, s(60), s(120), s(240), s(480), s(960), s(1_920), s(3_600), s(3_600)];
        assert_eq!(pauses, expected);
    }

    #[test]
    fn a_quota_opens_it_at_once_and_a_bad_hour_of_the_other_side_never() {
        let now = at(0, 0);
        assert!(Circuit::after(None, Class::Quota, now).unwrap().open.is_some());
        assert_eq!(Circuit::after(None, Class::Unavailable, now), None);
        assert_eq!(Circuit::after(None, Class::RateLimit, now), None);
    }

    #[test]
    fn a_window_stands_still_in_suspend_and_is_never_longer_than_it_was() {
        let window = Window::begin(at(1_000, 50_000), Duration::from_secs(60));
        // Suspended for an hour: the calendar went on, the running clock did not.
        assert_eq!(window.left(at(2_000, 3_650_000)), Duration::from_secs(59));
        let other = |wall_ms| Clocks { boot: "another", mono_ms: 0, wall: Stamp::from_millis(wall_ms) };
        assert_eq!(window.left(other(100_000)), Duration::from_secs(10));
        assert_eq!(window.left(other(200_000)), Duration::ZERO);
        // The clock was set back by a day.
        assert_eq!(window.left(other(-86_400_000)), Duration::from_secs(60));
    }
}
