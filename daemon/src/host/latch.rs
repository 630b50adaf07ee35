//! The pause after repeated errors of the engine: two in a row trip it; then one wake at a time tries it again, after
//! pauses that double.

use std::time::Duration;

use minder_proto::host::bounds::{LATCH_ERRORS, LATCH_FIRST, LATCH_MAX};
use minder_proto::host::ledger::LatchMove;
use minder_proto::host::upkeep::Latch;
use minder_proto::stamp::Stamp;

/// What it counts for: another of these starts clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of<'a> {
    /// The primary's binding.
    pub key: &'a str,
    /// The engine.
    pub engine: &'a str,
    /// The model.
    pub model: &'a str,
}

/// How a turn ended, as far as the latch is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The engine failed. With when its account can be used again, where that is known.
    Error {
        /// The known end of a usage limit.
        reset: Option<Stamp>,
    },
    /// It ended well and reported.
    Reported,
    /// It ended well and reported nothing.
    Silent,
    /// It was cancelled, lost, or never begun.
    Neutral,
}

/// The latch that counts for this, clean where another one stands in the file.
pub fn of(latch: &Latch, of: Of<'_>) -> Latch {
    if (latch.key.as_str(), latch.engine.as_str(), latch.model.as_str()) == (of.key, of.engine, of.model) {
        return latch.clone();
    }
    Latch {
        key: of.key.to_owned(),
        engine: of.engine.to_owned(),
        model: of.model.to_owned(),
        trip_seq: latch.trip_seq,
        ..Latch::default()
    }
}

/// Until when no wake is given to the engine; none where one may be.
pub fn paused(latch: &Latch, now: Stamp) -> Option<Stamp> {
    latch.retry_at.filter(|at| *at > now)
}

/// What a turn does to it.
pub fn settle(latch: &mut Latch, turn: Turn, now: Stamp) -> Option<LatchMove> {
    let cooling = latch.cooldown_ms > 0;
    match turn {
        Turn::Neutral => None,
        Turn::Silent => {
            // The next one is the probe once more.
            if cooling && paused(latch, now).is_none() {
                latch.retry_at = Some(now.plus(Duration::from_millis(latch.cooldown_ms)));
            }
            None
        }
        Turn::Reported => {
            (latch.errors, latch.cooldown_ms, latch.retry_at, latch.tripped_at) = (0, 0, None, None);
            cooling.then_some(LatchMove::Recovered)
        }
        Turn::Error { reset } => {
            latch.errors += 1;
            if !cooling && latch.errors < LATCH_ERRORS {
                return None;
            }
            let cooldown = match latch.cooldown_ms {
                0 => LATCH_FIRST,
                ms => (Duration::from_millis(ms) * 2).min(LATCH_MAX),
            };
            latch.cooldown_ms = u64::try_from(cooldown.as_millis()).unwrap_or(u64::MAX);
            let until = now.plus(cooldown);
            latch.retry_at = Some(reset.map_or(until, |reset| reset.max(until)));
            if cooling {
                return Some(LatchMove::ProbeFailed);
            }
            latch.tripped_at = Some(now);
            latch.trip_seq += 1;
            Some(LatchMove::Tripped)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Of<'_> = Of { key: "k:1", engine: "claude", model: "sonnet" };
    const ERROR: Turn = Turn::Error { reset: None };

    fn at(seconds: u64) -> Stamp {
        Stamp::from_millis(0).plus(Duration::from_secs(seconds))
    }

    /// 66.
    #[test]
    fn host66_two_errors_trip_it_probes_double_the_pause_and_a_report_ends_it() {
        let mut latch = of(&Latch::default(), OF);
        assert_eq!(settle(&mut latch, ERROR, at(0)), None);
        assert_eq!(paused(&latch, at(0)), None);
        assert_eq!(settle(&mut latch, ERROR, at(10)), Some(LatchMove::Tripped));
        assert_eq!(paused(&latch, at(309)), Some(at(310)));
        let mut now = 310;
        for pause in [600, 1_200, 2_400, 3_600, 3_600] {
            assert_eq!(paused(&latch, at(now)), None, "one may try it");
            assert_eq!(settle(&mut latch, ERROR, at(now)), Some(LatchMove::ProbeFailed));
            assert_eq!(latch.retry_at, Some(at(now + pause)));
            now += pause;
        }
        assert_eq!(latch.trip_seq, 1);
        // Ended well and said nothing: neither this nor that, and the next one tries it again.
        assert_eq!(settle(&mut latch, Turn::Silent, at(now)), None);
        assert_eq!(paused(&latch, at(now + 3_599)), Some(at(now + 3_600)));
        assert_eq!(settle(&mut latch, Turn::Neutral, at(now)), None);
        assert_eq!(settle(&mut latch, Turn::Reported, at(now + 3_600)), Some(LatchMove::Recovered));
        assert_eq!((latch.errors, latch.cooldown_ms, latch.retry_at), (0, 0, None));
        assert_eq!(settle(&mut latch, ERROR, at(now + 4_000)), None, "it begins anew");
    }

    /// 66.
    #[test]
    fn host66_errors_count_for_one_engine_model_and_binding() {
        let mut latch = of(&Latch::default(), OF);
        settle(&mut latch, ERROR, at(0));
        settle(&mut latch, ERROR, at(0));
        assert_eq!(of(&latch, OF), latch);
        for other in [Of { key: "k:2", ..OF }, Of { engine: "codex", ..OF }, Of { model: "opus", ..OF }] {
            let clean = of(&latch, other);
            assert_eq!((clean.errors, paused(&clean, at(1))), (0, None), "{other:?}");
        }
    }

    #[test]
    fn a_known_reset_that_is_later_than_the_pause_counts() {
        let mut latch = of(&Latch::default(), OF);
        settle(&mut latch, ERROR, at(0));
        settle(&mut latch, Turn::Error { reset: Some(at(9_000)) }, at(0));
        assert_eq!(latch.retry_at, Some(at(9_000)));
        let mut early = of(&Latch::default(), OF);
        settle(&mut early, ERROR, at(0));
        settle(&mut early, Turn::Error { reset: Some(at(5)) }, at(0));
        assert_eq!(early.retry_at, Some(at(300)));
    }
}
