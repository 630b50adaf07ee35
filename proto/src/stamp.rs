//! Calendar stamps (RFC 3339 UTC with milliseconds) and durations as people type them.
//! Stamps say when something was; they never measure a window.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A point of calendar time with millisecond precision, written `2026-11-30T12:00:00.123Z`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp(i64);

impl Stamp {
    /// The wall clock now.
    pub fn now() -> Self {
        Self(Timestamp::now().as_millisecond())
    }

    /// The stamp `millis` milliseconds after the Unix epoch, clamped to what a calendar can show.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond()))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// How long before `later` this was; zero if it was after it (a clock may step).
    pub fn age(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }

    /// This stamp moved by `by` into the past.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This stamp moved by `by` into the future.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Time of day in the local zone, `12:00:01`; with milliseconds, `12:00:01.204`, if asked.
    pub fn clock(self, millis: bool) -> String {
        let zoned = self.timestamp().to_zoned_datetime(jiff::tz::TimeZone::system());
        zoned.strftime(if millis { "%H:%M:%S%.3f" } else { "%H:%M:%S" }).to_string()
    }

    /// Day in the local zone, `2026-11-30`.
    pub fn day(self) -> String {
        let zoned = self.timestamp().to_zoned_datetime(jiff::tz::TimeZone::system());
        zoned.strftime("%Y-%m-%d").to_string()
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp())
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Stamp {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Timestamp>().map(|t| Self(t.as_millisecond()))
    }
}

impl Serialize for Stamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A duration that could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a duration: {0:?} (90s, 15m, 2h, 3d, or a bare number of seconds)")]
pub struct BadDuration(pub String);

/// Reads `90s`, `250ms`, `15m`, `2h`, `3d`, or a bare number of seconds. Whole numbers only.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration(text.chars().take(40).collect());
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let millis = match &text[digits..] {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => None,
    };
    // The bound keeps every later sum of a clock and a window inside the clock's own range.
    millis.filter(|ms| *ms <= 1_000 * 365 * 86_400_000).map(Duration::from_millis).ok_or_else(bad)
}

/// An age in one unit, as a table shows it: `0s`, `41s`, `9m`, `3h`, `12d`.
pub fn short_age(age: Duration) -> String {
    let s = age.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m", s / 60),
        3_600..86_400 => format!("{}h", s / 3_600),
        _ => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_three_decimals_and_read_back() {
        let stamp = Stamp::from_millis(1_796_040_000_120);
        assert_eq!(stamp.to_string().len(), "2026-11-30T12:00:00.120Z".len());
        assert_eq!(&stamp.to_string()[19..], ".120Z");
        assert_eq!(stamp.to_string().parse::<Stamp>().unwrap(), stamp);
    }

    #[test]
    fn durations_are_strict() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7_200)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for bad in [
            "",
            "s",
            "-1",
            "1.5h",
            "1e3",
            "0x10",
            "1 m",
            " 5",
            "99999999999999999999",
            "18446744073709551615s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
