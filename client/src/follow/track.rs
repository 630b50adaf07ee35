//! One session's lines as a follower hears them, one after the other. Pure.

use minder_proto::event::{ANSWER_NOTE, Body, Event, Line, Transition};
use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::state::State;
use minder_proto::timeline::Item;

use super::filter::Filter;
use super::news::{Aside, News, Why};

/// Most states of a path; of a longer one the oldest and the newest are kept.
const PATH_MAX: usize = 32;

/// What was heard of one session since the follow began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    path: Vec<State>,
    /// Whether the newest state line was a `turn_end`; `None` if none was read yet.
    turn_end: Option<bool>,
}

/// What one line is to the follower.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// An event that it waits for.
    News(Box<News>),
    /// Something to say beside.
    Aside(Aside),
    /// The last line.
    Closed(Aside),
    /// Nothing to say: no move of the session.
    Nothing,
}

impl Track {
    /// True if what `item` is depends on the state line before it, and that was not read yet.
    pub fn needs_past(&self, item: &Item, filter: Filter) -> bool {
        self.turn_end.is_none() && transition(item).is_some_and(|(_, t)| filter.needs_past(t))
    }

    /// Tells whether the newest state line before what comes was a `turn_end`.
    pub fn past(&mut self, turn_end: bool) {
        self.turn_end = Some(turn_end);
    }

    /// Hears a line. `before` is the position before it.
    pub fn hear(&mut self, session: SessionId, before: Cursor, item: &Item, filter: Filter) -> Heard {
        let event = match &item.line {
            Line::Event(event) => event,
            Line::Unknown { kind, .. } => {
                return Heard::Aside(Aside::Strange { session, what: format!("a line of kind {kind:?}") });
            }
            Line::Torn => return Heard::Aside(Aside::Strange { session, what: "a damaged line".to_owned() }),
        };
        let Event { seq, at, body } = event.as_ref();
        let (seq, at) = (*seq, *at);
        match body {
            Body::State(t) => {
                let counts = filter.counts(t, self.turn_end.unwrap_or(false));
                self.step(t);
                if !counts {
                    let (from, to, note) = (t.from, t.to, t.note.clone());
                    return Heard::Aside(Aside::Moved { session, seq, at, from, to, note });
                }
                Heard::News(Box::new(News {
                    session,
                    why: Why::Edge,
                    seq,
                    at,
                    states: self.path.clone(),
                    from: Some(t.from),
                    to: t.to,
                    note: t.note.clone(),
                    answer: t.text.clone(),
                    before,
                    after: item.after,
                    edge: seq,
                }))
            }
            Body::Created { state, .. } => Heard::Aside(Aside::Arrived { session, seq, at, state: *state }),
            Body::Closed { note, .. } => {
                let state = self.path.last().copied();
                Heard::Closed(Aside::Closed { session, at: Some(at), state, note: note.clone() })
            }
            // It belongs to the event that was told.
            Body::Note { what, .. } if what == ANSWER_NOTE => Heard::Nothing,
            Body::Note { text, .. } => Heard::Aside(Aside::Remark { session, text: text.clone() }),
            Body::Message(_)
            | Body::Receipt { .. }
            | Body::Binding { .. }
            | Body::Record { .. }
            | Body::Turn { .. } => Heard::Nothing,
        }
    }

    /// Begins the path anew, after an event was told: the next one's begins there.
    pub fn told(&mut self) {
        self.path.clear();
    }

    fn step(&mut self, t: &Transition) {
        if self.path.is_empty() {
            self.path.push(t.from);
        }
        self.path.push(t.to);
        shorten(&mut self.path);
        self.turn_end = Some(t.turn_end);
    }
}

/// Keeps the oldest state and the newest ones of a long path.
pub fn shorten(path: &mut Vec<State>) {
    if path.len() > PATH_MAX {
        path.drain(1..=path.len() - PATH_MAX);
    }
}

fn transition(item: &Item) -> Option<(u64, &Transition)> {
    match &item.line {
        Line::Event(event) => match &event.body {
            Body::State(t) => Some((event.seq, t)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::event::Author;

    use super::State::*;
    use super::*;
    use crate::follow::samples::{after, at, item, session, state, turn_end};

    fn hear(track: &mut Track, item: &Item) -> Heard {
        let seq = item.line.seq().unwrap_or(1);
        track.hear(session(1), after(seq - 1), item, Filter::DEFAULT)
    }

    #[test]
    fn an_edge_carries_the_path_since_the_position() {
        let mut track = Track::default();
        assert!(matches!(hear(&mut track, &state(2, Idle, Working)), Heard::Aside(Aside::Moved { .. })));
        let Heard::News(news) = hear(&mut track, &state(3, Working, Review)) else { panic!("an edge") };
        assert_eq!(
            (news.states.as_slice(), news.from, news.to),
            (&[Idle, Working, Review][..], Some(Working), Review)
        );
        assert_eq!((news.seq, news.at, news.before, news.after), (3, at(3), after(2), after(3)));
        assert!(matches!(hear(&mut track, &state(4, Review, Done)), Heard::Aside(Aside::Moved { .. })));
        track.told();
        assert!(matches!(hear(&mut track, &state(5, Done, Working)), Heard::Aside(_)));
        let Heard::News(news) = hear(&mut track, &state(6, Working, ClosePending)) else { panic!("an edge") };
        assert_eq!(news.states, [Done, Working, ClosePending]);
    }

    #[test]
    fn a_turn_that_ends_is_an_edge_and_a_declaration_after_it_another() {
        let mut track = Track::default();
        assert!(matches!(hear(&mut track, &turn_end(2)), Heard::News(_)));
        assert!(matches!(hear(&mut track, &state(3, Idle, Review)), Heard::News(_)));
        assert!(matches!(hear(&mut track, &state(4, Review, Idle)), Heard::Aside(_)));
        assert!(matches!(hear(&mut track, &state(5, Idle, Review)), Heard::News(_)));
    }

    #[test]
    fn the_past_is_asked_for_once_and_only_where_it_matters() {
        let filter = Filter::asked("idle,review".parse().unwrap());
        let mut track = Track::default();
        assert!(!track.needs_past(&state(2, Working, Review), filter));
        assert!(track.needs_past(&state(2, Idle, Review), filter));
        track.past(true);
        assert!(!track.needs_past(&state(2, Idle, Review), filter));
        let heard = track.hear(session(1), after(1), &state(2, Idle, Review), filter);
        assert!(matches!(heard, Heard::News(_)), "a declaration after a turn's end: {heard:?}");
        let mut track = Track::default();
        track.past(false);
        let heard = track.hear(session(1), after(1), &state(2, Idle, Review), filter);
        assert!(matches!(heard, Heard::Aside(_)), "within the set: {heard:?}");
    }

    #[test]
    fn other_lines_are_told_beside_or_not_at_all() {
        let mut track = Track::default();
        let closed = Body::Closed { note: Some("bye".into()), by: Author::Operator };
        hear(&mut track, &state(2, Idle, Done));
        assert!(matches!(
            hear(&mut track, &item(3, closed)),
            Heard::Closed(Aside::Closed { state: Some(Done), .. })
        ));
        let unknown = Item { line: Line::Unknown { seq: 4, kind: "hologram".into() }, after: after(4) };
        assert!(matches!(hear(&mut track, &unknown), Heard::Aside(Aside::Strange { .. })));
        let torn = Item { line: Line::Torn, after: after(4) };
        assert!(matches!(hear(&mut track, &torn), Heard::Aside(Aside::Strange { .. })));
        let record = Body::Record { what: "label".into(), from: None, to: None };
        assert_eq!(hear(&mut track, &item(5, record)), Heard::Nothing);
    }

    #[test]
    fn a_long_path_keeps_its_ends() {
        let mut track = Track::default();
        hear(&mut track, &state(2, Queued, Working));
        for seq in 3..200 {
            let (from, to) = if seq % 2 == 1 { (Working, Idle) } else { (Idle, Working) };
            hear(&mut track, &state(seq, from, to));
        }
        let Heard::News(news) = hear(&mut track, &state(200, Working, Review)) else { panic!("an edge") };
        assert_eq!(news.states.len(), PATH_MAX);
        assert_eq!((news.states[0], news.states[PATH_MAX - 1]), (Queued, Review));
    }
}
