//! How a session stands, read from the end of its timeline; and the line by which it came to stand in the states
//! that a follower looks for.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use minder_proto::event::{Body, Event, Line, Transition};
use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::state::State;
use minder_proto::timeline::{self, Item};

use super::filter::Filter;
use super::news::{News, Stand, Why};
use super::track::shorten;

/// Lines that the first look takes in: enough where states are not buried under messages.
const LOOK: usize = 256;

/// The end of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The position after the newest line.
    pub cursor: Cursor,
    /// How it stands, if one of the newest lines says it.
    pub stand: Option<Stand>,
}

/// Reads the end of the timeline in `dir`.
pub fn end(dir: &Path) -> io::Result<End> {
    let mut stand = None;
    let mut left = LOOK;
    let cursor = timeline::read_back(dir, |item| {
        left -= 1;
        stand = stand_of(&item);
        if stand.is_some() || left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(End { cursor, stand })
}

/// How the session stands that this line speaks of, if it does.
pub fn stand_of(item: &Item) -> Option<Stand> {
    let Line::Event(event) = &item.line else { return None };
    let Event { seq, at, body } = event.as_ref();
    match body {
        Body::State(t) => Some(Stand {
            seq: *seq,
            at: *at,
            state: t.to,
            from: Some(t.from),
            turn_end: t.turn_end,
            note: t.note.clone(),
            answer: t.text.clone(),
        }),
        Body::Created { state, .. } => Some(Stand {
            seq: *seq,
            at: *at,
            state: *state,
            from: None,
            turn_end: false,
            note: None,
            answer: None,
        }),
        _ => None,
    }
}

/// Finds the line by which the session in `dir` came to stand in the set of `filter`, as news to be told. None if
/// it does not stand there.
pub fn standing(dir: &Path, session: SessionId, filter: Filter, why: Why) -> io::Result<Option<News>> {
    let mut look = Look::new(filter);
    timeline::read_back(dir, |item| look.take(&item))?;
    Ok(look.news(session, why))
}

/// True if the newest state line up to `seq` was a `turn_end`.
pub fn turn_ended(dir: &Path, seq: u64) -> io::Result<bool> {
    let mut ended = false;
    timeline::read_back(dir, |item| match (item.line.seq(), stand_of(&item)) {
        (Some(s), Some(stand)) if s <= seq => {
            ended = stand.turn_end;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(ended)
}

/// A look back over the states, newest first. Pure.
#[derive(Debug)]
struct Look {
    filter: Filter,
    newest: Option<(Stand, Cursor)>,
    /// The oldest line so far that may have entered the set: it, and the position after it.
    entry: Option<Entry>,
    found: bool,
}

#[derive(Debug)]
struct Entry {
    line: Option<Transition>,
    seq: u64,
    before: Option<Cursor>,
    states: Vec<State>,
}

impl Look {
    fn new(filter: Filter) -> Self {
        Self { filter, newest: None, entry: None, found: false }
    }

    fn take(&mut self, item: &Item) -> ControlFlow<()> {
        if let Some(entry) = &mut self.entry
            && entry.before.is_none()
            && item.after.seq > 0
        {
            entry.before = Some(item.after);
        }
        if self.found {
            // One good line more was wanted: the position before the one that entered.
            return if item.after.seq > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        let Some(stand) = stand_of(item) else { return ControlFlow::Continue(()) };
        let line = match &item.line {
            Line::Event(event) => match &event.body {
                Body::State(t) => Some(t.clone()),
                _ => None,
            },
            _ => None,
        };
        if self.newest.is_none() {
            if !self.filter.holds(stand.state, stand.turn_end) {
                return ControlFlow::Break(());
            }
            self.newest = Some((stand.clone(), item.after));
        } else if let Some(Entry { line: Some(younger), .. }) = &self.entry
            && self.filter.counts(younger, stand.turn_end)
        {
            self.found = true;
            // This line is older than the one that entered; it is the one more, too.
            return ControlFlow::Break(());
        }
        let mut states = self.entry.take().map_or_else(Vec::new, |e| e.states);
        states.push(stand.state);
        let sure = line.as_ref().is_none_or(|t| t.from != State::Idle && self.filter.counts(t, false));
        self.entry = Some(Entry { line, seq: stand.seq, before: None, states });
        self.found = sure;
        ControlFlow::Continue(())
    }

    fn news(self, session: SessionId, why: Why) -> Option<News> {
        let (stand, after) = self.newest?;
        let entry = self.entry?;
        let from = entry.line.as_ref().map(|t| t.from);
        let mut states = entry.states;
        states.extend(from);
        states.reverse();
        shorten(&mut states);
        Some(News {
            session,
            why,
            seq: stand.seq,
            at: stand.at,
            states,
            from: stand.from,
            to: stand.state,
            note: stand.note,
            answer: stand.answer,
            before: entry.before.unwrap_or(Cursor { seq: 0, offset: 0, segment: 0 }),
            after,
            edge: entry.seq,
        })
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::state::State::{self, *};

    use super::*;
    use crate::follow::samples::{after, item, session, state, turn_end};

    fn look(filter: Filter, mut items: Vec<Item>) -> Option<News> {
        let mut look = Look::new(filter);
        items.reverse();
        for item in &items {
            if look.take(item).is_break() {
                break;
            }
        }
        look.news(session(1), Why::Standing)
    }

    fn created(state: State) -> Item {
        item(1, Body::Created { label: "w".into(), title: "w".into(), harness: None, parent: None, state })
    }

    fn other(seq: u64) -> Item {
        item(seq, Body::Note { what: "x".into(), text: "x".into() })
    }

    #[test]
    fn the_line_that_entered_is_found_behind_those_that_stayed() {
        let idle = Filter::asked("idle".parse().unwrap());
        for (why, filter, items, found) in [
            ("not standing", Filter::DEFAULT, vec![created(Idle), state(2, Idle, Working)], None),
            ("never in", Filter::DEFAULT, vec![created(Idle)], None),
            (
                "the newest line entered",
                Filter::DEFAULT,
                vec![created(Idle), state(2, Idle, Working), state(3, Working, Review)],
                Some((3, 3, 2)),
            ),
            (
                "an older line entered",
                Filter::DEFAULT,
                vec![
                    created(Idle),
                    state(2, Idle, Working),
                    other(3),
                    state(4, Working, Review),
                    other(5),
                    state(6, Review, Done),
                    other(7),
                ],
                Some((4, 6, 3)),
            ),
            (
                "a declaration after a turn's end entered anew",
                Filter::DEFAULT,
                vec![created(Idle), turn_end(2), state(3, Idle, Review), state(4, Review, Done)],
                Some((3, 4, 2)),
            ),
            (
                "a turn's end stands",
                Filter::DEFAULT,
                vec![created(Queued), state(2, Queued, Working), turn_end(3)],
                Some((3, 3, 2)),
            ),
            ("born into the set", idle, vec![created(Idle), other(2)], Some((1, 1, 0))),
            (
                "history begins in the set",
                Filter::DEFAULT,
                vec![state(8, Review, Done), other(9)],
                Some((8, 8, 0)),
            ),
        ] {
            let news = look(filter, items).map(|n| (n.edge, n.seq, n.before.seq));
            assert_eq!(news, found, "{why}");
        }
    }

    #[test]
    fn the_news_speaks_of_now_and_begins_where_it_entered() {
        let items =
            vec![created(Idle), state(2, Idle, Working), state(3, Working, Review), state(4, Review, Done)];
        let news = look(Filter::DEFAULT, items).unwrap();
        assert_eq!((news.states, news.from, news.to), (vec![Working, Review, Done], Some(Review), Done));
        assert_eq!((news.before, news.after), (after(2), after(4)));
    }
}
