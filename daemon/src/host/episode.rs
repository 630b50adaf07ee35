//! The one open hand-back of a host: committed, given to a park, seen, acknowledged; told again where it is not, and at
//! last no more.

use std::time::Duration;

use minder_proto::host::bounds::{EVIDENCE, GIVEN_MAX, REPEAT_FIRST, REPEAT_MAX, REPEATS};
use minder_proto::host::episode::{Cause, Episode, Stage};
use minder_proto::host::reason::{Code, HostLine};
use minder_proto::stamp::Stamp;

/// What the primary is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handback {
    /// Why.
    pub cause: Cause,
    /// The rows of it.
    pub rows: Vec<u64>,
    /// What the host says.
    pub lines: Vec<HostLine>,
}

/// Adds a hand-back: to the one that nobody was given yet, else as a new generation. Gives that.
pub fn open(episode: &mut Episode, handback: Handback, now: Stamp) -> u64 {
    if episode.stage == Stage::Pending {
        let new = handback.rows.into_iter().filter(|row| !episode.rows.contains(row)).collect::<Vec<_>>();
        episode.rows.extend(new);
        episode.lines.extend(handback.lines);
        return episode.generation;
    }
    let announced = if episode.stage == Stage::Seen { episode.announced } else { 0 };
    *episode = Episode {
        generation: episode.generation + 1,
        mid: None,
        stage: Stage::Pending,
        cause: Some(handback.cause),
        rows: handback.rows,
        lines: handback.lines,
        opened: Some(now),
        since: Some(now),
        given: 0,
        // A fresh reason begins the count of repetitions anew.
        announced: if handback.cause == Cause::Drain { announced } else { 0 },
        alarmed: episode.alarmed,
        next_announce: None,
    };
    episode.generation
}

/// The park has printed it.
pub fn handed(episode: &mut Episode, generation: u64, now: Stamp) -> bool {
    let fits = episode.stage == Stage::Pending && episode.generation == generation;
    if fits {
        (episode.stage, episode.since) = (Stage::Handed, Some(now));
        (episode.given, episode.alarmed) = (episode.given + 1, false);
    }
    fits
}

/// The primary knows it: a drain or acknowledgement of this generation, or a turn of it that began after.
pub fn seen(episode: &mut Episode, now: Stamp) {
    if matches!(episode.stage, Stage::Pending | Stage::Handed | Stage::Stuck) {
        (episode.stage, episode.since, episode.alarmed) = (Stage::Seen, Some(now), false);
        if episode.next_announce.is_none() {
            episode.next_announce = Some(now.plus(pause(episode.announced)));
        }
    }
}

/// Its rows are gone.
pub fn close(episode: &mut Episode, now: Stamp) {
    (episode.stage, episode.since, episode.next_announce) = (Stage::Closed, Some(now), None);
    (episode.announced, episode.given, episode.mid) = (0, 0, None);
    episode.rows.clear();
    episode.lines.clear();
}

/// What the clock makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet; not before then, where that is known.
    Nothing(Option<Stamp>),
    /// It is given again: nothing showed that it came.
    Again,
    /// It is told again under a new generation: so many rows are not acknowledged.
    Repeat(HostLine),
    /// It is given up, and the operator is told.
    Stuck,
}

/// Looks at the clock. `idle_since` is when the primary fell idle, where it is; `rows` are those that it was shown.
pub fn due(episode: &Episode, idle_since: Option<Stamp>, rows: usize, now: Stamp) -> Due {
    match episode.stage {
        // A message has its own evidence, and is given at the primary's next boundary, whenever that is.
        Stage::Handed if episode.mid.is_some() => match episode.since.map(|since| since.plus(REPEAT_MAX)) {
            Some(at) if at > now => Due::Nothing(Some(at)),
            _ => Due::Stuck,
        },
        Stage::Handed => {
            let Some(since) = episode.since.zip(idle_since).map(|(handed, idle)| handed.max(idle)) else {
                return Due::Nothing(None);
            };
            match since.plus(EVIDENCE) {
                at if at > now => Due::Nothing(Some(at)),
                _ if episode.given >= GIVEN_MAX => Due::Stuck,
                _ => Due::Again,
            }
        }
        Stage::Seen if rows > 0 => match episode.next_announce {
            Some(at) if at > now => Due::Nothing(Some(at)),
            _ if episode.announced >= REPEATS => Due::Stuck,
            _ => {
                let age = episode.opened.map_or(Duration::ZERO, |opened| opened.age(now));
                let minutes = age.as_secs() / 60;
                let text = format!("{rows} rows told {minutes} minutes ago are not acknowledged");
                Due::Repeat(HostLine::new(Code::Repeat, &text))
            }
        },
        Stage::Pending | Stage::Seen | Stage::Closed | Stage::Stuck => Due::Nothing(None),
    }
}

/// Gives it again under the same generation.
pub fn again(episode: &mut Episode, now: Stamp) {
    (episode.stage, episode.since) = (Stage::Pending, Some(now));
}

/// Tells its rows again under a new generation.
pub fn repeat(episode: &mut Episode, line: HostLine, rows: Vec<u64>, now: Stamp) {
    let (opened, announced) = (episode.opened, episode.announced + 1);
    *episode = Episode {
        generation: episode.generation + 1,
        mid: None,
        stage: Stage::Pending,
        cause: episode.cause,
        rows,
        lines: vec![line],
        opened,
        since: Some(now),
        given: 0,
        announced,
        alarmed: false,
        next_announce: Some(now.plus(pause(announced))),
    };
}

/// Gives it up.
pub fn stuck(episode: &mut Episode, now: Stamp) {
    (episode.stage, episode.since, episode.next_announce) = (Stage::Stuck, Some(now), None);
}

fn pause(announced: u32) -> Duration {
    REPEAT_FIRST.saturating_mul(1 << announced.min(16)).min(REPEAT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Stamp {
        Stamp::from_millis(0).plus(Duration::from_secs(seconds))
    }

    fn batch(rows: &[u64]) -> Handback {
        Handback { cause: Cause::Batch, rows: rows.to_vec(), lines: vec![] }
    }

    #[test]
    fn what_nobody_was_given_takes_more_and_what_was_given_does_not() {
        let mut episode = Episode::default();
        assert_eq!(open(&mut episode, batch(&[1]), at(0)), 1);
        assert_eq!(open(&mut episode, batch(&[1, 2]), at(1)), 1);
        assert_eq!(episode.rows, [1, 2]);
        assert!(!handed(&mut episode, 2, at(2)) && handed(&mut episode, 1, at(2)));
        assert_eq!(open(&mut episode, batch(&[3]), at(3)), 2);
        assert_eq!((episode.stage, &episode.rows[..]), (Stage::Pending, &[3][..]));
    }

    /// 31.
    #[test]
    fn host31_without_evidence_it_is_given_three_times_and_then_no_more() {
        let mut episode = Episode::default();
        open(&mut episode, batch(&[1]), at(0));
        for given in 1..=3 {
            let now = at(given * 1_000);
            assert!(handed(&mut episode, 1, now));
            assert_eq!(due(&episode, None, 1, at(given * 1_000 + 500)), Due::Nothing(None), "it works");
            let soon = at(given * 1_000 + 119);
            assert_eq!(due(&episode, Some(now), 1, soon), Due::Nothing(Some(at(given * 1_000 + 120))));
            let then = at(given * 1_000 + 120);
            if given < 3 {
                assert_eq!(due(&episode, Some(now), 1, then), Due::Again);
                again(&mut episode, then);
            } else {
                assert_eq!(due(&episode, Some(now), 1, then), Due::Stuck);
                stuck(&mut episode, then);
            }
        }
        assert_eq!((episode.generation, due(&episode, Some(at(0)), 1, at(90_000))), (1, Due::Nothing(None)));
        assert_eq!(open(&mut episode, batch(&[2]), at(90_001)), 2, "a new wake still comes");
    }

    /// 32.
    #[test]
    fn host32_what_is_seen_and_not_acknowledged_is_told_four_times_again() {
        let mut episode = Episode::default();
        open(&mut episode, batch(&[1, 2]), at(0));
        handed(&mut episode, 1, at(0));
        seen(&mut episode, at(0));
        let mut now = 0;
        for (number, minutes) in [15, 30, 60, 120].into_iter().enumerate() {
            assert_eq!(
                due(&episode, None, 2, at(now + minutes * 60 - 1)),
                Due::Nothing(Some(at(now + minutes * 60)))
            );
            now += minutes * 60;
            let Due::Repeat(line) = due(&episode, None, 2, at(now)) else { panic!("{minutes}") };
            assert_eq!(line.text, format!("2 rows told {} minutes ago are not acknowledged", now / 60));
            repeat(&mut episode, line, vec![1, 2], at(now));
            let generation = episode.generation;
            assert_eq!(generation, number as u64 + 2);
            handed(&mut episode, generation, at(now));
            seen(&mut episode, at(now));
        }
        assert_eq!(due(&episode, None, 2, at(now + 7_200)), Due::Stuck);
        assert_eq!(due(&episode, None, 0, at(now + 7_200)), Due::Nothing(None), "nothing is left of it");
    }

    #[test]
    fn an_acknowledgement_closes_it() {
        let mut episode = Episode::default();
        open(&mut episode, batch(&[1]), at(2));
        seen(&mut episode, at(3));
        assert_eq!(episode.stage, Stage::Seen, "a drain that shows it: no park is woken for it");
        close(&mut episode, at(4));
        assert_eq!((episode.stage, episode.rows.len(), episode.generation), (Stage::Closed, 0, 1));
    }
}
