//! Many orders of what may happen to a host: moves, hooks that come and go, turns, drains, acknowledgements that are right,
//! old or wrong, hand-backs that nobody took, clocks that are set. After every step: no wake is lost or taken twice, none is
//! taken that was not shown, nobody is woken at work, and at the end everything can be acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use minder_proto::host::bounds::{GIVEN_MAX, REPEATS};
use minder_proto::host::episode::{Episode, Stage};
use minder_proto::host::row::{Kind, Owner, Queue};
use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::queue::{Acked, News, add};
use super::step::{Decided, Effect, View, decide, due, owed};
use super::{drain, episode};

const SEEDS: u64 = 1_000;
const STEPS: usize = 100;

/// A generator of numbers that is the same for a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A host, its primary, and what is known to have happened.
struct World {
    dice: Dice,
    queue: Queue,
    next: u64,
    episode: Episode,
    view: View,
    now: Stamp,
    sessions: Vec<SessionId>,
    /// Everything that happened, by the row that stands for it now.
    events: BTreeMap<u64, BTreeSet<u64>>,
    happened: u64,
    acknowledged: BTreeSet<u64>,
    /// Acknowledgements that were printed and not run yet.
    printed: Vec<(u64, u64)>,
    /// Under which generation each was given how often.
    given: BTreeMap<u64, u32>,
    /// What came about.
    met: BTreeSet<&'static str>,
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Stamp::from_millis(1_000_000_000);
        let view = View {
            idle: true,
            waiter: false,
            reachable: true,
            owned: true,
            turn: None,
            last_end: now,
            coalesce: Duration::from_secs(30),
            absent_after: Duration::from_secs(300),
        };
        Self {
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            queue: Queue::default(),
            next: 1,
            episode: Episode::default(),
            view,
            now,
            sessions: (0..4).map(|_| SessionId::random()).collect(),
            events: BTreeMap::new(),
            happened: 0,
            acknowledged: BTreeSet::new(),
            printed: Vec::new(),
            given: BTreeMap::new(),
            met: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0..=2 => self.happens(),
            3 => self.view.waiter = self.view.idle || self.view.waiter,
            4 => self.view.waiter = false,
            5 => self.turn_begins(),
            6 => self.turn_ends(),
            7 => self.drain(),
            8 | 9 => self.acknowledge(),
            10 => {
                let seconds = self.dice.below(1_500);
                self.now = self.now.plus(Duration::from_secs(seconds));
            }
            _ if self.dice.once_in(20) => self.now = self.now.minus(Duration::from_secs(3_600)),
            _ if self.dice.once_in(10) => self.dies(),
            _ if self.dice.once_in(10) => self.loses_the_handback(),
            _ => {}
        }
        self.look();
        self.holds();
    }

    /// A session comes to a state.
    fn happens(&mut self) {
        let session = self.sessions[self.dice.below(4) as usize];
        let state = if self.dice.once_in(4) { State::Asking } else { State::Review };
        let before = self.queue.clone();
        self.happened += 1;
        let news = News {
            session: Some(session),
            ev: self.happened,
            states: vec![state],
            decision: state == State::Asking,
            ..News::of(Kind::Signal, state.as_str(), &session.to_string())
        };
        let seq = add(&mut self.queue, &mut self.next, news, self.now);
        let mut stands_for = BTreeSet::from([self.happened]);
        let now = self.rows();
        for row in before.rows.iter().filter(|row| !now.contains(&row.seq)) {
            assert!(row.is_untouched(), "what somebody was shown stays what it was: {row:?}");
            let old = self.events.remove(&row.seq).expect("each row stands for something");
            stands_for.extend(old);
        }
        self.events.insert(seq, stands_for);
    }

    fn rows(&self) -> BTreeSet<u64> {
        self.queue.rows.iter().map(|row| row.seq).collect()
    }

    fn turn_begins(&mut self) {
        if self.view.idle {
            (self.view.idle, self.view.turn) = (false, Some(self.now));
        }
    }

    /// The primary's process ends; its next turn is another one's.
    fn dies(&mut self) {
        let view = &mut self.view;
        (view.owned, view.reachable, view.idle, view.waiter, view.turn) = (false, false, false, false, None);
    }

    /// The file of the open hand-back cannot be read at a start.
    fn loses_the_handback(&mut self) {
        let generation = self.queue.rows.iter().map(|row| row.shown_gen).max().unwrap_or_default();
        self.episode = Episode { generation, ..Episode::default() };
        self.given.retain(|given, _| *given <= generation);
    }

    fn turn_ends(&mut self) {
        (self.view.owned, self.view.reachable) = (true, true);
        if !self.view.idle {
            (self.view.idle, self.view.turn, self.view.last_end) = (true, None, self.now);
        }
    }

    fn drain(&mut self) {
        drain::show(&mut self.queue, &mut self.episode, self.now);
        let shown = self.queue.rows.iter().filter(|row| row.owner == Owner::Primary);
        if let Some(through) = shown.map(|row| row.seq).max() {
            self.printed.push((through, self.episode.generation));
        }
    }

    /// Runs an acknowledgement that was printed at some time, or one that nobody printed.
    fn acknowledge(&mut self) {
        let wild = (self.dice.below(self.next + 2), self.dice.below(self.episode.generation + 2));
        let any = self.printed.len() as u64;
        let (through, generation) = match any {
            _ if self.dice.once_in(5) => wild,
            0 => wild,
            _ => self.printed.swap_remove(self.dice.below(any) as usize),
        };
        self.acknowledge_these(through, generation);
    }

    fn acknowledge_these(&mut self, through: u64, generation: u64) {
        let (before, open) = (self.queue.clone(), self.episode.clone());
        let acked = drain::take(&mut self.queue, &mut self.episode, (through, generation), self.now);
        match acked {
            Acked::Rows { rows, older } => {
                assert!(!older || self.episode == open, "an old acknowledgement closes no newer hand-back");
                for row in rows {
                    assert_eq!(row.owner, Owner::Primary, "what was not shown is not taken: {row:?}");
                    assert!(row.shown_gen >= 1 && row.shown_gen <= generation && row.seq <= through);
                    let events = self.events.remove(&row.seq).expect("a row is taken once");
                    self.acknowledged.extend(events);
                }
            }
            Acked::Nothing { .. } | Acked::Unknown { .. } => {
                assert_eq!((&before, &open), (&self.queue, &self.episode), "nothing changed");
            }
        }
    }

    /// The host looks, and what it says is done, or is not.
    fn look(&mut self) {
        let view = self.view.clone();
        let Decided { effects, again } = decide(&mut self.queue, &mut self.episode, &view, self.now);
        assert!(again.is_none_or(|at| at > self.now), "a timer lies ahead");
        for effect in effects {
            self.met.insert(match &effect {
                Effect::Passed(_) => "passed",
                Effect::Opened(_, "repeat") => "repeated",
                Effect::Opened(..) => "opened",
                Effect::Give => "given",
                Effect::Ordinary => "given by another road",
                Effect::WaitsAgain => "given again",
                Effect::Alarm(_) => "given up",
                Effect::Unowned(_) => "nobody there",
            });
            match effect {
                Effect::Give => {
                    assert!(view.idle && view.waiter, "nobody is woken at work, or where nobody waits");
                    self.view.waiter = false;
                    if self.dice.once_in(6) {
                        // The hook was gone.
                        episode::again(&mut self.episode, self.now);
                        self.episode.given = self.episode.given.saturating_sub(1);
                    } else {
                        *self.given.entry(self.episode.generation).or_default() += 1;
                        if !self.dice.once_in(4) {
                            self.turn_begins();
                        }
                    }
                }
                Effect::Ordinary => {
                    assert!(view.reachable && !(view.idle && view.waiter));
                    *self.given.entry(self.episode.generation).or_default() += 1;
                }
                Effect::Opened(rows, _) | Effect::Passed(rows) | Effect::Alarm(rows) => {
                    assert!(!rows.is_empty());
                }
                Effect::Unowned(rows) => assert!(rows > 0 && !view.owned),
                Effect::WaitsAgain => {}
            }
        }
        if view.idle && view.waiter {
            let late = due(&self.queue, view.coalesce).filter(|at| *at <= self.now);
            assert_eq!(late, None, "what is due is judged while somebody is on duty");
        }
    }

    /// What always holds.
    fn holds(&self) {
        let rows = self.rows();
        assert_eq!(rows.len(), self.queue.rows.len(), "a number is given once");
        assert_eq!(rows, self.events.keys().copied().collect(), "each row stands for what happened");
        let waiting: usize = self.events.values().map(BTreeSet::len).sum();
        let all: BTreeSet<u64> = self.events.values().flatten().chain(&self.acknowledged).copied().collect();
        assert_eq!(all.len() as u64, self.happened, "nothing is lost");
        assert_eq!(waiting + self.acknowledged.len(), all.len(), "nothing is in two places");
        let owed = owed(&self.queue).next().is_some();
        let closed = self.episode.stage == Stage::Closed;
        assert!(!(owed && closed), "what was told is owed: {:?}", self.episode);
        for (generation, times) in &self.given {
            assert!(*generation <= self.episode.generation && *times <= GIVEN_MAX, "{generation}: {times}");
        }
        assert!(self.episode.announced <= REPEATS);
        for row in &self.queue.rows {
            assert!(row.shown_gen <= self.episode.generation && row.seq < self.next);
        }
    }

    /// From anywhere a primary that does as it is told has nothing left.
    fn comes_to_rest(&mut self) {
        self.turn_ends();
        self.happens();
        for _ in 0..8 {
            self.now = self.now.plus(Duration::from_secs(60));
            self.view.waiter = true;
            self.look();
            self.drain();
            if let Some((through, generation)) = self.printed.pop() {
                self.acknowledge_these(through, generation);
            }
            self.turn_ends();
            self.holds();
        }
        assert_eq!((self.queue.rows.len(), self.acknowledged.len() as u64), (0, self.happened));
        assert_eq!(self.episode.stage, Stage::Closed);
    }
}

#[test]
fn in_any_order_no_wake_is_lost_and_none_is_taken_that_was_not_shown() {
    let mut met = BTreeSet::new();
    for seed in 0..SEEDS {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            (0..STEPS).for_each(|_| world.step());
            world.comes_to_rest();
            world.met
        });
        met.extend(run.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    assert_eq!(met.len(), 8, "the runs meet everything: {met:?}");
}
