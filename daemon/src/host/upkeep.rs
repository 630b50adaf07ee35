//! What the clock brings: a session that works and shows no sign of it is a wake, never a state; and now and then all that
//! is supervised is looked through for what nothing else told of.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use minder_proto::host::row::{Kind, NO_KEY};
use minder_proto::host::upkeep::{Producers, Silence};
use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;

use super::queue::News;

/// From one review to the next; doubled by each that finds nothing.
const REVIEW: Duration = Duration::from_secs(600);
/// The longest such pause.
const REVIEW_MAX: Duration = Duration::from_secs(7_200);
/// Rows of one silence after which each is marked: somebody should look closely.
const INSPECT: u32 = 3;

/// When each session was heard of last: a line of its own, or a hook that says nothing new. In memory alone: after a
/// start nobody is silent yet.
pub struct Signs {
    begun: Stamp,
    last: Mutex<HashMap<SessionId, Stamp>>,
}

impl Default for Signs {
    fn default() -> Self {
        Self { begun: Stamp::now(), last: Mutex::default() }
    }
}

impl Signs {
    /// A sign of life.
    pub fn note(&self, session: SessionId, at: Stamp) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(session, at);
    }

    /// Nothing will be heard of it any more.
    pub fn forget(&self, session: SessionId) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// The last sign of a session.
    pub fn of(&self, session: SessionId) -> Stamp {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(&session).copied().unwrap_or(self.begun).max(self.begun)
    }
}

/// What is known of a supervised session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Which.
    pub session: SessionId,
    /// It declared, or its hooks said, that it works, and no window of a supervised turn is over it.
    pub works: bool,
    /// The last sign of it.
    pub heard: Stamp,
    /// Of that session.
    pub incarnation: u64,
    /// The line that declared its state.
    pub ev: u64,
}

/// What a look by the clock came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows to add.
    pub news: Vec<News>,
    /// When to look again; none where nothing is supervised.
    pub again: Option<Stamp>,
}

/// Looks. `silent` is the time without a sign that is too long, 0 for never; `unseen` says whether a state stands
/// somewhere that nothing told of, `woken` whether anything else woke the host since the last review.
pub fn look(
    producers: &mut Producers,
    sights: &[Sight],
    silent: Duration,
    (unseen, woken): (bool, bool),
    now: Stamp,
) -> Found {
    if sights.is_empty() {
        *producers = Producers::default();
        return Found::default();
    }
    let mut found = Found::default();
    let mut sooner = |at: Stamp| found.again = Some(found.again.map_or(at, |before: Stamp| before.min(at)));
    let works = |id: &SessionId| sights.iter().any(|sight| sight.session == *id && sight.works);
    producers.silences.retain(|id, _| works(id));
    for sight in sights.iter().filter(|sight| sight.works && !silent.is_zero()) {
        let silence = producers.silences.get(&sight.session).copied().filter(|s| s.since >= sight.heard);
        let due = silence.map_or(sight.heard.plus(silent), |s| s.raised.plus(pause(silent, s.rows)));
        if due > now {
            sooner(due);
            continue;
        }
        let rows = silence.map_or(0, |s| s.rows) + 1;
        producers.silences.insert(sight.session, Silence { since: sight.heard, rows, raised: now });
        sooner(now.plus(pause(silent, rows)));
        let minutes = sight.heard.age(now).as_secs() / 60;
        found.news.push(News {
            session: Some(sight.session),
            incarnation: sight.incarnation,
            ev: sight.ev,
            text: format!("no sign of it for {minutes} minutes"),
            inspect: rows >= INSPECT,
            ..News::of(Kind::Stale, "silent", &sight.session.to_string())
        });
    }
    if woken || !found.news.is_empty() {
        producers.streak = 0;
    }
    let next = |producers: &Producers| {
        let pause = REVIEW.saturating_mul(1 << producers.streak.min(12)).min(REVIEW_MAX);
        producers.reviewed.map_or(now.plus(pause), |at| at.plus(pause))
    };
    // The first look begins to count; one that lies ahead of the clock is one of a clock that was set back.
    if producers.reviewed.is_none_or(|at| at > now) {
        producers.reviewed = Some(now);
    } else if next(producers) <= now {
        producers.reviewed = Some(now);
        if unseen {
            producers.streak = 0;
            found.news.push(News {
                text: "states that nothing told of: minder host drain".to_owned(),
                ..News::of(Kind::Heartbeat, "review", NO_KEY)
            });
        } else {
            producers.streak = producers.streak.saturating_add(1);
        }
    }
    let review = next(producers);
    found.again = Some(found.again.map_or(review, |at| at.min(review)));
    // What begins to work after this look is silent no sooner than this.
    if !silent.is_zero() {
        found.again = found.again.map(|at| at.min(now.plus(silent)));
    }
    found
}

/// From one row of a silence to the next: 30 and 60 minutes for 15.
fn pause(silent: Duration, rows: u32) -> Duration {
    silent.saturating_mul(1 << rows.min(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Duration = Duration::from_secs(15 * 60);

    fn at(minutes: i64) -> Stamp {
        Stamp::from_millis(minutes * 60_000)
    }

    fn sight(works: bool, heard: Stamp) -> Sight {
        let session = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        Sight { session, works, heard, incarnation: 0, ev: 7 }
    }

    /// 50.
    #[test]
    fn host50_a_silence_is_told_after_15_30_and_60_minutes_and_any_sign_ends_it() {
        let mut producers = Producers::default();
        let mut told = Vec::new();
        let mut look_at = |producers: &mut Producers, minute: i64, sight: Sight| {
            let found = look(producers, &[sight], SILENT, (false, false), at(minute));
            for news in found.news {
                told.push((minute, news.inspect, news.text));
            }
            found.again
        };
        for minute in 0..=170 {
            look_at(&mut producers, minute, sight(true, at(0)));
        }
        // A sign, and then none again; then its turn is over.
        for minute in 171..=190 {
            look_at(&mut producers, minute, sight(true, at(171)));
        }
        look_at(&mut producers, 191, sight(false, at(171)));
        assert_eq!(producers.silences.len(), 0);
        for minute in 192..400 {
            look_at(&mut producers, minute, sight(false, at(171)));
        }
        let times: Vec<(i64, bool)> = told.iter().map(|(minute, inspect, _)| (*minute, *inspect)).collect();
        assert_eq!(times, [(15, false), (45, false), (105, true), (165, true), (186, false)]);
        assert_eq!(told[1].2, "no sign of it for 45 minutes");
    }

    #[test]
    fn it_is_looked_at_when_it_is_due_and_never_where_nothing_is_supervised() {
        let mut producers = Producers::default();
        let again = |p: &mut Producers, sights: &[Sight], silent, now| {
            look(p, sights, silent, (false, false), now).again
        };
        assert_eq!(again(&mut producers, &[], SILENT, at(0)), None);
        assert_eq!(again(&mut producers, &[sight(true, at(-5))], SILENT, at(0)), Some(at(10)));
        let mut producers = Producers::default();
        assert_eq!(again(&mut producers, &[sight(true, at(-50))], Duration::ZERO, at(0)), Some(at(10)));
        assert_eq!(producers.silences.len(), 0, "it is off");
    }

    /// 51.
    #[test]
    fn host51_reviews_are_ever_rarer_while_they_find_nothing() {
        let mut producers = Producers::default();
        let mut reviews = Vec::new();
        for minute in 0..=900 {
            let before = producers.reviewed;
            let found =
                look(&mut producers, &[sight(false, at(0))], Duration::ZERO, (false, false), at(minute));
            assert_eq!(found.news, []);
            if producers.reviewed != before {
                reviews.push(minute);
            }
        }
        assert_eq!(reviews, [0, 10, 30, 70, 150, 270, 390, 510, 630, 750, 870]);
        // Over a restart, which reads it again.
        let text = serde_json::to_string(&producers).unwrap();
        let mut producers: Producers = serde_json::from_str(&text).unwrap();
        let found = look(&mut producers, &[sight(false, at(0))], Duration::ZERO, (true, false), at(990));
        assert_eq!((found.news.len(), found.news[0].kind, producers.streak), (1, Kind::Heartbeat, 0));
        look(&mut producers, &[sight(false, at(0))], Duration::ZERO, (false, true), at(1_000));
        assert_eq!(producers.streak, 1, "the review itself");
        // A clock that was set back begins to count anew.
        look(&mut producers, &[sight(false, at(0))], Duration::ZERO, (false, false), at(100));
        assert_eq!(producers.reviewed, Some(at(100)));
    }
}
