//! When a usage limit ends, from the words in which a harness says it: a time of day, a date, a span, a number of
//! seconds since the epoch. Times without a zone of their own are of the local zone, which is given, as the clock is.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use minder_proto::stamp::Stamp;

/// Words after which a time stands. The longest of those that begin alike comes first.
const TRIGGERS: [&str; 6] = ["resets", "reset", "try again", "retry after", "available again", "renews"];
/// Words that may stand between.
const FILLERS: [&str; 7] = ["at", "on", "after", "in", "by", "about", "approximately"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// A time of day is printed without its seconds: until this much after it, it is the one meant, not tomorrow's.
const PRINTED_TO: SignedDuration = SignedDuration::from_secs(60);

/// The end of a limit that a text tells.
pub fn find(text: &str, now: &ZonedDateTime) -> Option<Stamp> {
    after_bar(text).or_else(|| {
        let lower = text.to_ascii_lowercase();
        TRIGGERS.iter().find_map(|trigger| {
            let mut at = 0;
            while let Some(found) = lower[at..].find(trigger) {
                at += found + trigger.len();
                // Lower case in ASCII keeps every place.
                if let Some(stamp) = When::new(&text[at..]).read(now) {
                    return Some(stamp);
                }
            }
            None
        })
    })
}

/// A number of seconds or milliseconds since the epoch, if it is one of this century.
pub fn epoch(number: i64) -> Option<Stamp> {
    match number {
        1_000_000_000..=4_000_000_000 => Some(Stamp::from_millis(number * 1_000)),
        1_000_000_000_000..=4_000_000_000_000 => Some(Stamp::from_millis(number)),
        _ => None,
    }
}

/// `usage limit reached|1749924000`
fn after_bar(text: &str) -> Option<Stamp> {
    text.split('|').skip(1).find_map(|after| {
        let digits = after.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        epoch(digits[..end].parse().ok()?)
    })
}

/// A part of a text: a number, a word, or one other character.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'a> {
    Number(&'a str),
    Word(&'a str),
    Mark(char),
}

/// What stands after a trigger, in parts, blanks left out.
struct When<'a> {
    text: &'a str,
    parts: Vec<Part<'a>>,
}

impl<'a> When<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.trim_start();
        let text = text.split('\n').next().unwrap_or(text);
        let end = text.char_indices().nth(80).map_or(text.len(), |(at, _)| at);
        let text = &text[..end];
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let kind = |c: char| (c.is_ascii_digit(), c.is_alphabetic());
            let end = match kind(first) {
                (false, false) => first.len_utf8(),
                of => rest.find(|c| kind(c) != of).unwrap_or(rest.len()),
            };
            let part = &rest[..end];
            match kind(first) {
                (true, _) => parts.push(Part::Number(part)),
                (_, true) => parts.push(Part::Word(part)),
                _ if first.is_whitespace() => {}
                _ => parts.push(Part::Mark(first)),
            }
            rest = &rest[end..];
        }
        Self { text, parts }
    }

    fn read(&self, now: &ZonedDateTime) -> Option<Stamp> {
        let skipped = self.parts.iter().take_while(|part| match part {
            Part::Word(word) => FILLERS.contains(&word.to_ascii_lowercase().as_str()),
            // `resets_at: 1` and `reset = 1`.
            Part::Mark(mark) => matches!(mark, ':' | '=' | '_' | '"' | '\''),
            Part::Number(_) => false,
        });
        let parts = &self.parts[skipped.count()..];
        span(parts)
            .and_then(|span| now.timestamp().checked_add(span).ok())
            .or_else(|| moment(self.text))
            .map(|t| Stamp::from_millis(t.as_millisecond()))
            .or_else(|| match parts.first()? {
                Part::Number(digits) => epoch(digits.parse().ok()?),
                _ => None,
            })
            .or_else(|| calendar(parts, self.zone(), now))
    }

    /// The zone that is named in brackets, or the local one.
    fn zone(&self) -> Option<TimeZone> {
        let (_, after) = self.text.split_once('(')?;
        TimeZone::get(after.split_once(')')?.0.trim()).ok()
    }
}

/// `2h 30m`, `3 days 2 hours 5 minutes`, `20s`, `1.5 hours`
fn span(parts: &[Part<'_>]) -> Option<SignedDuration> {
    let mut total = None;
    let mut rest = parts;
    loop {
        let (number, after) = match rest {
            [Part::Number(whole), Part::Mark('.'), Part::Number(part), after @ ..] => {
                (format!("{whole}.{part}").parse::<f64>().ok()?, after)
            }
            [Part::Number(whole), after @ ..] => (whole.parse::<f64>().ok()?, after),
            [Part::Word("and") | Part::Mark(','), after @ ..] if total.is_some() => {
                rest = after;
                continue;
            }
            _ => return total,
        };
        let Some((Part::Word(unit), after)) = after.split_first() else { return total };
        let seconds = match unit.to_ascii_lowercase().as_str() {
            "d" | "day" | "days" => 86_400.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" => 0.001,
            _ => return total,
        };
        let more = SignedDuration::try_from_secs_f64(number * seconds).ok()?;
        total = Some(total.unwrap_or(SignedDuration::ZERO).checked_add(more)?);
        rest = after;
    }
}

/// A moment with its own offset: `2026-11-30T20:00:00Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let written = text[at..].split([' ', ',', ')', '"', '·']).next()?;
    written.trim_end_matches('.').parse().ok()
}

/// A date, a day of the week, a time of day, or some of them: the next one there is.
fn calendar(parts: &[Part<'_>], zone: Option<TimeZone>, now: &ZonedDateTime) -> Option<Stamp> {
    let mut zone = zone.unwrap_or_else(|| now.time_zone().clone());
    let here = now.with_time_zone(zone.clone());
    let mut rest = parts;
    let mut date: Option<(Date, bool)> = None;
    let mut time = None;
    let mut day_after = false;
    // Each step takes something, and the words of one moment are few.
    while time.is_none() || date.is_none() {
        if date.is_none()
            && let Some((found, exact, after)) = day(rest, here.date())
        {
            date = Some((found, exact));
            rest = after;
        } else if time.is_none()
            && let Some((found, after)) = time_of_day(rest)
        {
            time = Some(found);
            rest = after;
        } else {
            match rest.split_first() {
                Some((Part::Word("tomorrow" | "Tomorrow"), after)) if !day_after => {
                    day_after = true;
                    rest = after;
                }
                Some((Part::Word("at" | "on" | "T"), after)) => rest = after,
                Some((Part::Mark(',' | '-' | '.'), after)) if date.is_some() || time.is_some() => {
                    rest = after;
                }
                _ => break,
            }
        }
    }
    if let [Part::Word("UTC" | "GMT" | "Z"), ..] = rest {
        zone = TimeZone::UTC;
    }
    let here = now.with_time_zone(zone.clone());
    let stamp = |date: Date, time: Time| {
        let zoned = DateTime::from_parts(date, time).to_zoned_datetime(zone.clone()).ok()?;
        Some(zoned.timestamp())
    };
    let is_past = |t: &Timestamp| t.checked_add(PRINTED_TO).is_ok_and(|end| end < now.timestamp());
    let found = match (date, time) {
        (None, None) => return None,
        (Some((date, true)), time) => stamp(date, time.unwrap_or(Time::midnight()))?,
        (Some((date, false)), time) => {
            let time = time.unwrap_or(Time::midnight());
            let this = stamp(date, time)?;
            if is_past(&this) {
                stamp(Date::new(date.year() + 1, date.month(), date.day()).ok()?, time)?
            } else {
                this
            }
        }
        (None, Some(time)) if day_after => stamp(here.date().tomorrow().ok()?, time)?,
        (None, Some(time)) => {
            let today = stamp(here.date(), time)?;
            if is_past(&today) { stamp(here.date().tomorrow().ok()?, time)? } else { today }
        }
    };
    Some(Stamp::from_millis(found.as_millisecond()))
}

/// `Dec 3`, `Dec 3rd, 2026`, `3 December`, `2026-12-03`, `Monday`: the date, whether it has its year, and what follows.
fn day<'p, 't>(parts: &'p [Part<'t>], today: Date) -> Option<(Date, bool, &'p [Part<'t>])> {
    let number = |text: &str| text.parse::<i16>().ok();
    let (month, dom, after) = match parts {
        [Part::Number(y), Part::Mark('-'), Part::Number(m), Part::Mark('-'), Part::Number(d), after @ ..]
            if y.len() == 4 =>
        {
            let date = Date::new(number(y)?, i8::try_from(number(m)?).ok()?, i8::try_from(number(d)?).ok()?);
            return Some((date.ok()?, true, after));
        }
        [Part::Word(word), Part::Number(d), after @ ..] if month(word).is_some() => (month(word)?, d, after),
        [Part::Number(d), Part::Word(word), after @ ..] if month(word).is_some() => (month(word)?, d, after),
        [Part::Word(word), after @ ..] => {
            let wanted = weekday(word)?;
            let mut date = today;
            for _ in 0..7 {
                date = date.tomorrow().ok()?;
                if date.weekday() == wanted {
                    return Some((date, true, after));
                }
            }
            return None;
        }
        _ => return None,
    };
    let dom = i8::try_from(number(dom)?).ok()?;
    let after = if let [Part::Word("st" | "nd" | "rd" | "th"), after @ ..] = after { after } else { after };
    match after {
        [Part::Mark(','), Part::Number(y), after @ ..] | [Part::Number(y), after @ ..] if y.len() == 4 => {
            Some((Date::new(number(y)?, month, dom).ok()?, true, after))
        }
        after => Some((Date::new(today.year(), month, dom).ok()?, false, after)),
    }
}

fn month(word: &str) -> Option<i8> {
    let word = word.to_ascii_lowercase();
    let begins = |month: &str| word.len() >= 3 && word.starts_with(month);
    MONTHS.iter().position(|month| begins(month)).and_then(|at| i8::try_from(at + 1).ok())
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word.to_ascii_lowercase().as_str() {
        "mon" | "monday" => Weekday::Monday,
        "tue" | "tues" | "tuesday" => Weekday::Tuesday,
        "wed" | "wednesday" => Weekday::Wednesday,
        "thu" | "thurs" | "thursday" => Weekday::Thursday,
        "fri" | "friday" => Weekday::Friday,
        "sat" | "saturday" => Weekday::Saturday,
        "sun" | "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

/// `3pm`, `8:14 PM`, `15:30`, `15:30:10`
fn time_of_day<'p, 't>(parts: &'p [Part<'t>]) -> Option<(Time, &'p [Part<'t>])> {
    let number = |text: &str| if text.len() <= 2 { text.parse::<i8>().ok() } else { None };
    let (hour, minute, second, after) = match parts {
        [Part::Number(h), Part::Mark(':'), Part::Number(m), Part::Mark(':'), Part::Number(s), after @ ..] => {
            (number(h)?, Some(number(m)?), number(s)?, after)
        }
        [Part::Number(h), Part::Mark(':'), Part::Number(m), after @ ..] => {
            (number(h)?, Some(number(m)?), 0, after)
        }
        [Part::Number(h), after @ ..] => (number(h)?, None, 0, after),
        _ => return None,
    };
    let half = match after.first() {
        Some(Part::Word(word)) => match word.to_ascii_lowercase().as_str() {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        },
        _ => None,
    };
    let (hour, after) = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => (hour % 12 + half, &after[1..]),
        None => (hour, after),
    };
    // A bare number is no time.
    let minute = minute.or(half.map(|_| 0))?;
    Some((Time::new(hour, minute, second, 0).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone with summer time that needs no files: it ends on 2026-11-01.
    fn new_york() -> TimeZone {
        TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap()
    }

    fn at(now: &str, text: &str) -> Option<String> {
        let now = now.parse::<Timestamp>().unwrap();
        find(text, &ZonedDateTime::new(now, new_york())).map(|stamp| stamp.to_string())
    }

    #[test]
    fn every_form_in_which_a_reset_is_told() {
        // 12:00 in the zone.
        let now = "2026-11-30T17:00:00Z";
        for (text, expected) in [
            ("You've hit your session limit · resets 3pm", "2026-11-30T20:00:00.000Z"),
            ("5-hour limit reached ∙ resets 11am", "2026-12-01T16:00:00.000Z"),
            ("resets 12am", "2026-12-01T05:00:00.000Z"),
            ("resets 12:30pm", "2026-11-30T17:30:00.000Z"),
            ("You've hit your 5-hour limit · resets 8:14pm (UTC)", "2026-11-30T20:14:00.000Z"),
            ("You've hit your weekly limit · resets Dec 3, 8:14pm (UTC)", "2026-12-03T20:14:00.000Z"),
            ("limit · resets Jan 2, 9am", "2027-01-02T14:00:00.000Z"),
            ("limit · resets Dec 3 at 9am", "2026-12-03T14:00:00.000Z"),
            ("try again at 8:15 PM.", "2026-12-01T01:15:00.000Z"),
            ("purchase more credits or try again at Dec 3rd, 2026 8:15 PM.", "2026-12-04T01:15:00.000Z"),
            ("It resets at 2026-12-01T08:00:00Z.", "2026-12-01T08:00:00.000Z"),
            ("resets at 2026-12-01 08:00", "2026-12-01T13:00:00.000Z"),
            ("resets at 2026-12-01 08:00 UTC", "2026-12-01T08:00:00.000Z"),
            ("resets on 2026-12-01", "2026-12-01T05:00:00.000Z"),
            ("resets at 15:30", "2026-11-30T20:30:00.000Z"),
            ("resets tomorrow at 9am", "2026-12-01T14:00:00.000Z"),
            ("resets Thursday 9am", "2026-12-03T14:00:00.000Z"),
            ("Claude AI usage limit reached|1796069664", "2026-11-30T20:14:24.000Z"),
            ("usage limit reached|1796069664000", "2026-11-30T20:14:24.000Z"),
            (r#"{"resets_at": 1796069664}"#, "2026-11-30T20:14:24.000Z"),
            ("Please try again in 20s.", "2026-11-30T17:00:20.000Z"),
            ("try again in 3 days 2 hours 5 minutes", "2026-12-03T19:05:00.000Z"),
            ("Your quota will reset after 5h2m3s.", "2026-11-30T22:02:03.000Z"),
            ("retry after 1.5 hours", "2026-11-30T18:30:00.000Z"),
        ] {
            assert_eq!(at(now, text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_tells_no_time_gives_none() {
        for text in [
            "Please try again later.",
            "resets soon",
            "You've hit your limit",
            "reset 5 files",
            "line 403 | 500 tokens",
            "resets at 99:99",
            "try again at 13pm",
            "",
        ] {
            assert_eq!(at("2026-11-30T17:00:00Z", text), None, "{text}");
        }
    }

    #[test]
    fn a_time_that_was_printed_without_its_seconds_is_not_tomorrows() {
        let text = "limit · resets 12pm";
        assert_eq!(at("2026-11-30T17:00:40Z", text).as_deref(), Some("2026-11-30T17:00:00.000Z"));
        assert_eq!(at("2026-11-30T17:02:00Z", text).as_deref(), Some("2026-12-01T17:00:00.000Z"));
    }

    #[test]
    fn the_local_zone_has_its_summer_time() {
        // The evening before the clocks go back, and the day in March on which 2:30 does not exist.
        assert_eq!(at("2026-10-31T22:00:00Z", "resets 9am").as_deref(), Some("2026-11-01T14:00:00.000Z"));
        assert_eq!(at("2027-03-14T05:00:00Z", "resets 2:30am").as_deref(), Some("2027-03-14T07:30:00.000Z"));
    }
}
