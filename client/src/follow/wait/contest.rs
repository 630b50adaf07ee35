//! Several waits of one caller at once, over histories and interleavings that nobody chose: no event is lost, and
//! none is told twice, but where a wait was killed between telling and keeping.

use std::collections::HashMap;

use minder_proto::state::State;
use proptest::prelude::*;

use super::*;
use crate::follow::book::{Book, Entry};
use crate::follow::samples::{session, state};

const SESSIONS: u8 = 3;
const WAITS: usize = 3;

/// What happens next.
#[derive(Clone, Debug)]
enum Happening {
    /// A session declares a state.
    Moves(u8, State),
    /// A wait reads up to so many lines of a session.
    Reads(usize, u8, u8),
    /// A wait tells what it has; if it is killed, before it keeps that.
    Tells(usize, bool),
    /// A wait's time is up: it keeps how far it read, and another begins.
    Ends(usize),
}

fn happening(killed: bool) -> impl Strategy<Value = Happening> {
    let to =
        prop::sample::select(vec![State::Working, State::Review, State::Done, State::Parked, State::Asking]);
    prop_oneof![
        4 => (0..SESSIONS, to).prop_map(|(s, to)| Happening::Moves(s, to)),
        6 => (0..WAITS, 0..SESSIONS, 1..4u8).prop_map(|(w, s, n)| Happening::Reads(w, s, n)),
        4 => (0..WAITS, prop::bool::weighted(if killed { 0.3 } else { 0.0 })).prop_map(|(w, k)| Happening::Tells(w, k)),
        1 => (0..WAITS).prop_map(Happening::Ends),
    ]
}

struct World {
    logs: HashMap<u8, Vec<Item>>,
    book: Book,
    waits: Vec<Wait>,
    each: bool,
    told: HashMap<(SessionId, u64), usize>,
}

impl World {
    fn new(each: bool) -> Self {
        let logs = (0..SESSIONS).map(|s| (s, vec![state(1, State::Queued, State::Idle)])).collect();
        let mut book = Book::default();
        for s in 0..SESSIONS {
            book.advance(session(s), Cursor { seq: 1, offset: 100, segment: 1 }, None);
        }
        let mut world = Self { logs, book, waits: Vec::new(), each, told: HashMap::new() };
        world.waits = (0..WAITS).map(|_| world.begin()).collect();
        world
    }

    /// A wait that starts where the book says.
    fn begin(&self) -> Wait {
        let rules = Rules {
            filter: Filter::DEFAULT,
            each: self.each,
            keep_going: false,
            broad: false,
            inbox: false,
            deadline: None,
        };
        let mut wait = Wait::new(rules);
        for s in 0..SESSIONS {
            let Some(Entry::Mark(mark)) = self.book.follows.get(&session(s)) else {
                unreachable!("all have one")
            };
            wait.join(session(s), true, mark.cursor);
        }
        wait
    }

    fn moves(&mut self, s: u8, to: State) {
        let log = self.logs.get_mut(&s).unwrap();
        let from = match &log.last().unwrap().line {
            minder_proto::event::Line::Event(e) => match &e.body {
                minder_proto::event::Body::State(t) => t.to,
                _ => unreachable!("only states"),
            },
            _ => unreachable!("only events"),
        };
        if from != to {
            log.push(state(log.len() as u64 + 1, from, to));
        }
    }

    fn reads(&mut self, w: usize, s: u8, lines: u64) {
        let wait = &mut self.waits[w];
        for _ in 0..lines {
            let Some(target) = wait.target(session(s)) else { return };
            let next = usize::try_from(target.cursor.seq).unwrap();
            match self.logs[&s].get(next) {
                Some(item) if wait.reads(session(s)) => wait.hear(session(s), item),
                _ => return,
            };
        }
    }

    fn tells(&mut self, w: usize, killed: bool) {
        let wait = &mut self.waits[w];
        match wait.next(Instant::now()) {
            Step::Tell(tell) => {
                let mut book = self.book.clone();
                for tell in &tell {
                    let Tell::News(news) = tell else { unreachable!("there are no messages") };
                    if book.claim(news.session, news.edge) {
                        *self.told.entry((news.session, news.edge)).or_default() += 1;
                        wait.told(tell);
                    } else {
                        wait.refused(tell);
                    }
                }
                if killed {
                    self.waits[w] = self.begin();
                    return;
                }
                self.book = book;
                self.keeps(w);
            }
            Step::End(_) => self.waits[w] = self.begin(),
            Step::Sleep(_) => {}
        }
    }

    fn keeps(&mut self, w: usize) {
        for (id, target) in self.waits[w].targets() {
            self.book.advance(id, target.cursor, target.wrong);
        }
    }

    fn happens(&mut self, happening: &Happening) {
        match happening {
            Happening::Moves(s, to) => self.moves(*s, *to),
            Happening::Reads(w, s, n) => self.reads(*w, *s, u64::from(*n)),
            Happening::Tells(w, killed) => self.tells(*w, *killed),
            Happening::Ends(w) => {
                // What is pending is not passed by.
                self.keeps(*w);
                self.waits[*w] = self.begin();
            }
        }
    }

    /// Lets wait follow upon wait until nothing is left to tell.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let before: usize = self.told.values().sum();
            let book = self.book.clone();
            for w in 0..WAITS {
                loop {
                    for s in 0..SESSIONS {
                        self.reads(w, s, u64::MAX);
                    }
                    if !matches!(self.waits[w].next(Instant::now()), Step::Tell(_)) {
                        break;
                    }
                    self.tells(w, false);
                }
                self.happens(&Happening::Ends(w));
            }
            if self.told.values().sum::<usize>() == before && self.book == book {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn edges(&self) -> Vec<(SessionId, u64)> {
        let mut edges = Vec::new();
        for (s, log) in &self.logs {
            let mut was = false;
            for item in log {
                let minder_proto::event::Line::Event(event) = &item.line else { unreachable!("only events") };
                let minder_proto::event::Body::State(t) = &event.body else { unreachable!("only states") };
                if t.to.is_actionable() && !was {
                    edges.push((session(*s), event.seq));
                }
                was = t.to.is_actionable();
            }
        }
        edges
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_edge_is_told_once(happenings in prop::collection::vec(happening(false), 0..200), each: bool) {
        let mut world = World::new(each);
        happenings.iter().for_each(|h| world.happens(h));
        world.settle();
        let edges = world.edges();
        for edge in &edges {
            prop_assert_eq!(world.told.get(edge).copied(), Some(1), "{:?}", edge);
        }
        prop_assert_eq!(world.told.len(), edges.len());
    }

    #[test]
    fn a_killed_wait_loses_nothing(happenings in prop::collection::vec(happening(true), 0..200)) {
        let mut world = World::new(false);
        happenings.iter().for_each(|h| world.happens(h));
        world.settle();
        for edge in world.edges() {
            prop_assert!(world.told.get(&edge).is_some_and(|n| *n >= 1), "{:?}", edge);
        }
    }
}
