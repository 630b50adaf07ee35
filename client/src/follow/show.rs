//! Which lines a stream shows, and how. Pure.

use minder_proto::event::{ANSWER_NOTE, Body, Event, Line};
use minder_proto::id::{Party, SessionId};
use minder_proto::stamp::Stamp;
use minder_proto::state::StateSet;
use minder_proto::text::named;

use super::news::Aside;
use super::render::{self, Names, Object};
use crate::event_line;

/// One line of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Stamp,
    /// What.
    pub what: What,
}

/// What a line of a stream says.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A line of the timeline.
    Event(Box<Event>),
    /// What is no line, or none that can be read.
    Aside(Aside),
}

/// Picks what a stream shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Show {
    /// Only moves to these states, and what nobody may miss.
    pub states: Option<StateSet>,
}

impl Show {
    /// What of a line is shown; `at` is the time of one that has none. `new`: the session appeared while it was
    /// followed.
    pub fn pick(self, session: SessionId, line: Line, at: Stamp, new: bool) -> Option<Shown> {
        let event = match line {
            Line::Event(event) => event,
            Line::Unknown { kind, .. } => {
                return Some(strange(session, at, format!("a line of kind {kind:?}")));
            }
            Line::Torn => return Some(strange(session, at, "a damaged line".to_owned())),
        };
        let all = self.states.is_none();
        let shown = match &event.body {
            Body::State(t) => self.states.is_none_or(|s| s.contains(t.to, t.turn_end)),
            Body::Message(_) => all,
            Body::Created { .. } => new && all,
            Body::Note { what, .. } if what == ANSWER_NOTE => all,
            Body::Closed { .. } | Body::Note { .. } => true,
            // Of the record and the receipts `show` and `queue` tell, of turns `turn ls`.
            Body::Receipt { .. } | Body::Binding { .. } | Body::Record { .. } | Body::Turn { .. } => false,
        };
        shown.then_some(Shown { session, at: event.at, what: What::Event(event) })
    }
}

impl Shown {
    /// The line for people: time, title (and the label where that differs), what.
    pub fn line(&self, names: Names, now: Stamp) -> String {
        let clock = self.at.clock(false);
        // What is not of today says so.
        let day = self.at.day();
        let day = if day == now.day() { String::new() } else { format!("{day} ") };
        let title = |id| {
            let (label, title) = names(id);
            named(&title, &label, None)
        };
        let what = match &self.what {
            What::Event(event) => {
                let sender = |from: Party| from.session().map_or_else(|| from.to_string(), title);
                event_line::line(event, sender, title)
            }
            What::Aside(aside) => {
                return format!("{day}{clock}  {}", render::aside_line(aside, names, now));
            }
        };
        format!("{day}{clock}  {}  {what}", title(self.session))
    }

    /// The object for programs.
    pub fn object(&self, names: Names, now: Stamp) -> Object {
        let session = self.session;
        match &self.what {
            What::Event(event) => {
                let of = |event: &'static str| Object::of(event, session, names);
                let object = match &event.body {
                    Body::State(t) => Object {
                        states: vec![t.from, t.to],
                        from: Some(t.from),
                        to: Some(t.to),
                        note: t.note.clone(),
                        answer: t.text.clone(),
                        ..of("state")
                    },
                    Body::Created { state, .. } => Object { to: Some(*state), ..of("new") },
                    Body::Message(message) => Object {
                        id: Some(message.id),
                        sender: Some(message.from.to_string()),
                        about: message.about.as_ref().map(|a| a.session),
                        text: Some(message.body.clone()),
                        ..of("message")
                    },
                    Body::Closed { note, .. } => Object { note: note.clone(), ..of("gone") },
                    Body::Note { text, .. } => Object { text: Some(text.clone()), ..of("note") },
                    Body::Receipt { .. } | Body::Binding { .. } | Body::Record { .. } | Body::Turn { .. } => {
                        of("note")
                    }
                };
                Object { seq: Some(event.seq), ..object.at(Some(event.at), now) }
            }
            What::Aside(aside) => render::aside_object(aside, names, now),
        }
    }
}

fn strange(session: SessionId, at: Stamp, what: String) -> Shown {
    Shown { session, at, what: What::Aside(Aside::Strange { session, what }) }
}

#[cfg(test)]
mod tests {
    use minder_proto::event::{Author, Class, Message};
    use minder_proto::id::MessageId;

    use super::*;
    use crate::follow::samples::{at, item, session, state, turn_end};
    use minder_proto::state::State;

    fn names(id: SessionId) -> (String, String) {
        let name = if id == session(1) { "api" } else { "lead\x07" };
        (name.to_owned(), name.to_owned())
    }

    fn lines(show: Show, new: bool) -> Vec<String> {
        let message = Message {
            id: MessageId::now(),
            from: Party::Session(session(2)),
            about: None,
            body: "merge it\nnow".into(),
            class: Class::Now,
            key: None,
            reply_to: None,
            thread: None,
            cause: None,
            hops: 0,
            expires: None,
        };
        let created = Body::Created {
            label: "api".into(),
            title: "api".into(),
            harness: None,
            parent: None,
            state: State::Idle,
        };
        let items = [
            item(1, created),
            state(2, State::Idle, State::Working),
            item(3, Body::Message(Box::new(message))),
            turn_end(4),
            item(5, Body::Record { what: "label".into(), from: None, to: None }),
            item(6, Body::Closed { note: Some("done with".into()), by: Author::Operator }),
        ];
        let picked = items.into_iter().filter_map(|i| show.pick(session(1), i.line, at(0), new));
        let line = |s: Shown| {
            let object = serde_json::to_value(s.object(&names, at(9))).unwrap();
            assert_eq!(object["label"], "api");
            s.line(&names, at(9)).split_once("  ").unwrap().1.to_owned()
        };
        picked.map(line).collect()
    }

    #[test]
    fn every_event_is_one_line() {
        assert_eq!(
            lines(Show::default(), true),
            [
                "api  new → idle",
                "api  idle → working",
                "api  message from lead\\x07: merge it",
                "api  working → idle",
                "api  closed by operator  done with"
            ]
        );
        assert_eq!(lines(Show::default(), false).len(), 4, "it was there before");
    }

    #[test]
    fn asked_for_states_leave_only_those_and_the_end() {
        let show = Show { states: Some("turn-end".parse().unwrap()) };
        assert_eq!(lines(show, true), ["api  working → idle", "api  closed by operator  done with"]);
    }

    #[test]
    fn what_is_not_of_today_says_its_day() {
        let picked =
            Show::default().pick(session(1), state(2, State::Idle, State::Working).line, at(0), false);
        let later = Stamp::from_millis(at(2).as_millis() + 3 * 86_400_000);
        let line = picked.unwrap().line(&names, later);
        let time = line.split_once("  ").unwrap().0;
        assert_eq!((&time[..2], time.len()), ("20", "2026-11-30 12:00:00".len()), "{line}");
    }
}
