//! How news and what is seen beside them look: lines for people, objects for programs. Pure; text of others is
//! escaped in lines and whole in objects.

use minder_proto::event::cut;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::state::State;
use minder_proto::text::{first_line, named, one_line};
use serde::Serialize;

use super::news::{Aside, Letter, News, Stand, Why};

/// A session's label and title.
pub type Names<'a> = &'a dyn Fn(SessionId) -> (String, String);

/// An event as an object.
#[derive(Debug, Default, Serialize)]
pub struct Object {
    pub(super) event: &'static str,
    pub(super) session: Option<SessionId>,
    pub(super) label: Option<String>,
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sender: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) about: Option<SessionId>,
    pub(super) states: Vec<State>,
    pub(super) from: Option<State>,
    pub(super) to: Option<State>,
    pub(super) note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    pub(super) seq: Option<u64>,
    pub(super) at: Option<Stamp>,
    pub(super) age_s: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) gap: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) already: bool,
}

impl Object {
    /// What is the same for every event of a session.
    pub(super) fn of(event: &'static str, session: SessionId, names: Names) -> Self {
        let (label, title) = names(session);
        Self { event, session: Some(session), label: Some(label), title: Some(title), ..Self::default() }
    }

    /// With its time, and how long ago that is.
    pub(super) fn at(mut self, at: Option<Stamp>, now: Stamp) -> Self {
        (self.at, self.age_s) = (at, at.map(|a| a.age(now).as_secs()));
        self
    }
}

/// A session's move as an object.
pub fn news_object(news: &News, names: Names, now: Stamp) -> Object {
    Object {
        states: news.states.clone(),
        from: news.from,
        to: Some(news.to),
        note: news.note.clone(),
        answer: news.answer.as_deref().map(|a| cut(a, minder_proto::event::ANSWER_MAX).to_owned()),
        seq: Some(news.seq),
        gap: news.why == Why::Gap,
        already: news.why == Why::Standing,
        ..Object::of("state", news.session, names).at(Some(news.at), now)
    }
}

/// A message as an object; `session`, `label` and `title` are the sender's.
pub fn letter_object(letter: &Letter, names: Names, now: Stamp) -> Object {
    let sender = match letter.from {
        Party::Session(id) => Object::of("message", id, names),
        Party::Operator | Party::Minder => Object { event: "message", ..Object::default() },
    };
    Object {
        id: Some(letter.id),
        sender: Some(letter.from.to_string()),
        about: letter.about,
        seq: Some(letter.seq),
        ..sender.at(Some(letter.at), now)
    }
}

/// What is said beside, as an object.
pub fn aside_object(aside: &Aside, names: Names, now: Stamp) -> Object {
    let stand = |object: Object, stand: Option<&Stand>| match stand {
        None => object,
        Some(s) => {
            Object { from: s.from, to: Some(s.state), note: s.note.clone(), seq: Some(s.seq), ..object }
                .at(Some(s.at), now)
        }
    };
    match aside {
        Aside::Moved { session, seq, at, from, to, note } => Object {
            states: vec![*from, *to],
            from: Some(*from),
            to: Some(*to),
            note: note.clone(),
            seq: Some(*seq),
            ..Object::of("state", *session, names).at(Some(*at), now)
        },
        Aside::Arrived { session, seq, at, state } => Object {
            to: Some(*state),
            seq: Some(*seq),
            ..Object::of("new", *session, names).at(Some(*at), now)
        },
        Aside::Closed { session, at, state, note } => {
            Object { to: *state, note: note.clone(), ..Object::of("gone", *session, names).at(*at, now) }
        }
        Aside::Strange { session, what } => {
            let text = Some(format!("{what} was passed over"));
            Object { text, ..Object::of("note", *session, names) }
        }
        Aside::Remark { session, text } => {
            Object { text: Some(text.clone()), ..Object::of("note", *session, names) }
        }
        Aside::Gap { session, lost, resumed, now: stands } => {
            let text = Some(gap_words(*lost, *resumed));
            stand(Object { text, ..Object::of("gap", *session, names) }, stands.as_ref())
        }
        Aside::Already { session, stand: stands, .. } => {
            Object { already: true, ..stand(Object::of("state", *session, names), Some(stands)) }
        }
        Aside::Elsewhere { session } => {
            let text = Some("told by another wait of this caller".to_owned());
            match session {
                Some(id) => Object { text, ..Object::of("note", *id, names) },
                None => Object { event: "note", text, ..Object::default() },
            }
        }
        Aside::Plain(text) => Object { event: "note", text: Some(text.clone()), ..Object::default() },
    }
}

/// Title, label where that differs, short id: the order of every line for people.
pub fn who(session: SessionId, names: Names) -> String {
    let (label, title) = names(session);
    named(&title, &label, Some(&session.short()))
}

/// A session's move as lines.
pub fn news_lines(news: &News, names: Names, now: Stamp) -> String {
    let mut text = format!("{} {}", who(news.session, names), path(&news.states));
    if news.why != Why::Edge {
        let age = short_age(news.at.age(now));
        let why = if news.why == Why::Gap { " (its place in the log was lost)" } else { "" };
        text.push_str(&format!("\nage: {age}{why}"));
    }
    push_lines(&mut text, "note", news.note.as_deref());
    let answer = news.answer.as_deref().map(|a| cut(a, minder_proto::event::ANSWER_MAX));
    // A hook's note is often all of the answer.
    push_lines(&mut text, "answer", answer.filter(|a| news.note.as_deref() != Some(a.trim())));
    text
}

/// A message as a line; its text is for the hook, or `minder inbox`.
pub fn letter_line(letter: &Letter, names: Names) -> String {
    let mut text = format!("message {} from {}", letter.id.short(), sender(letter.from, names));
    if let Some(about) = letter.about {
        text.push_str(&format!(" about {}", who(about, names)));
    }
    text
}

/// A sender as lines name it.
pub fn sender(from: Party, names: Names) -> String {
    match from {
        Party::Session(id) => who(id, names),
        other => other.to_string(),
    }
}

/// What is said beside, as a line.
pub fn aside_line(aside: &Aside, names: Names, now: Stamp) -> String {
    match aside {
        Aside::Moved { session, from, to, note, .. } => {
            format!("{} {from} → {to}{}", who(*session, names), noted(note.as_deref()))
        }
        Aside::Arrived { session, state, .. } => format!("{} new, {state}", who(*session, names)),
        Aside::Closed { session, at, state, note } => {
            let mut text = format!("{} is closed", who(*session, names));
            if let Some(at) = at {
                text.push_str(&format!(" ({} ago)", short_age(at.age(now))));
            }
            if let Some(state) = state {
                text.push_str(&format!("; its last state was {state}"));
            }
            text + &noted(note.as_deref())
        }
        Aside::Strange { session, what } => {
            format!("{}: {} was passed over", who(*session, names), one_line(what))
        }
        Aside::Remark { session, text } => {
            format!("{}: {}", who(*session, names), one_line(first_line(text)))
        }
        Aside::Gap { session, lost, resumed, now: stand } => {
            let mut text = format!("gap: {}: {}", who(*session, names), gap_words(*lost, *resumed));
            if let Some(s) = stand {
                let age = short_age(s.at.age(now));
                text.push_str(&format!("; it is in {} now ({age}){}", s.state, noted(s.note.as_deref())));
            }
            text
        }
        Aside::Already { session, stand, told } => {
            let (age, note) = (short_age(stand.at.age(now)), noted(stand.note.as_deref()));
            let way = if *told { "you were told" } else { "--or-already returns it" };
            format!("{} is already in {} ({age}){note}  ({way})", who(*session, names), stand.state)
        }
        Aside::Elsewhere { session } => {
            let what = session.map_or_else(|| "a message".to_owned(), |id| who(id, names));
            format!("{what}: told by another wait of this caller")
        }
        Aside::Plain(text) => one_line(text),
    }
}

/// The states of a path.
pub fn path(states: &[State]) -> String {
    states.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(" → ")
}

fn gap_words(lost: Option<u64>, resumed: u64) -> String {
    match lost {
        Some(lost) => format!("line {lost} is not there any more, reading goes on after line {resumed}"),
        None => format!("its place was lost, reading goes on after line {resumed}"),
    }
}

fn noted(note: Option<&str>) -> String {
    match note.map(first_line) {
        None | Some("") => String::new(),
        Some(line) => format!(": {}", one_line(line)),
    }
}

fn push_lines(text: &mut String, word: &str, lines: Option<&str>) {
    for line in lines.unwrap_or_default().lines() {
        text.push_str(&format!("\n{word}: {}", one_line(line)));
    }
}

#[cfg(test)]
mod tests {
    use super::State::*;
    use super::*;
    use crate::follow::samples::{after, at, session};

    fn names(_: SessionId) -> (String, String) {
        ("api".to_owned(), "api worker\x1b[2J".to_owned())
    }

    fn json(object: &Object) -> String {
        serde_json::to_string(object).unwrap()
    }

    fn news() -> News {
        News {
            session: "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap(),
            why: Why::Edge,
            seq: 7,
            at: at(0),
            states: vec![Working, Review],
            from: Some(Working),
            to: Review,
            note: Some("PR 12\n\u{202e}two".to_owned()),
            answer: None,
            before: after(6),
            after: after(7),
            edge: 7,
        }
    }

    #[test]
    fn a_move_is_one_line_and_its_note() {
        let text = news_lines(&news(), &names, at(120));
        assert_eq!(
            text,
            "api worker\\x1b[2J (api, 5f1c2d4a) working → review\nnote: PR 12\nnote: \\u{202e}two"
        );
        let ended = News { note: Some("All done.".into()), answer: Some("All done.\n".into()), ..news() };
        assert!(!news_lines(&ended, &names, at(0)).contains("answer"));
        let ended = News { note: Some("All".into()), answer: Some("All\ndone".into()), ..news() };
        assert!(news_lines(&ended, &names, at(0)).ends_with("note: All\nanswer: All\nanswer: done"));
        let stands = News { why: Why::Standing, note: None, ..news() };
        assert!(news_lines(&stands, &names, at(120)).ends_with("\nage: 2m"));
    }

    #[test]
    fn a_move_as_an_object_is_whole() {
        let line = json(&news_object(&news(), &names, at(120)));
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        let keys: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
        let expected =
            ["event", "session", "label", "title", "states", "from", "to", "note", "seq", "at", "age_s"];
        assert!(expected.iter().all(|k| keys.contains(k)) && keys.len() == expected.len(), "{keys:?}");
        assert_eq!(object["title"], "api worker\x1b[2J");
        assert_eq!(object["note"], "PR 12\n\u{202e}two");
        assert_eq!((object["seq"].as_u64(), object["age_s"].as_u64()), (Some(7), Some(120)));
        assert_eq!(object["states"], serde_json::json!(["working", "review"]));
    }

    #[test]
    fn a_message_names_its_sender() {
        let letter = Letter {
            seq: 4,
            id: "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap(),
            from: Party::Session(news().session),
            about: None,
            at: at(0),
        };
        assert_eq!(letter_line(&letter, &names), "message 7be21c09 from api worker\\x1b[2J (api, 5f1c2d4a)");
        let notice = Letter { from: Party::Minder, about: Some(news().session), ..letter.clone() };
        assert_eq!(
            letter_line(&notice, &names),
            "message 7be21c09 from minder about api worker\\x1b[2J (api, 5f1c2d4a)"
        );
        let object = json(&letter_object(&letter, &names, at(1)));
        assert!(object.starts_with(r#"{"event":"message","session":"5f1c2d4a-"#), "{object}");
        assert!(object.contains(r#""id":"0199c2d4-90c3-7f0e-8a17-c2b67be21c09""#), "{object}");
    }

    #[test]
    fn what_is_beside_is_one_line_each() {
        let session = session(1);
        let stand = Stand {
            seq: 3,
            at: at(0),
            state: Asking,
            from: Some(Working),
            turn_end: false,
            note: Some("which\nbase?".into()),
            answer: None,
        };
        for (aside, line) in [
            (
                Aside::Moved {
                    session,
                    seq: 3,
                    at: at(0),
                    from: Review,
                    to: Done,
                    note: Some("a\nb".into()),
                },
                "review → done: a",
            ),
            (Aside::Arrived { session, seq: 1, at: at(0), state: Idle }, "new, idle"),
            (
                Aside::Closed { session, at: Some(at(0)), state: Some(Done), note: None },
                "is closed (2m ago); its last state was done",
            ),
            (
                Aside::Already { session, stand: stand.clone(), told: false },
                "is already in asking (2m): which  (--or-already returns it)",
            ),
        ] {
            let text = aside_line(&aside, &names, at(120));
            assert_eq!(text, format!("api worker\\x1b[2J (api, {}) {line}", session.short()));
        }
        let gap = Aside::Gap { session, lost: Some(40), resumed: 8, now: Some(stand) };
        let text = aside_line(&gap, &names, at(120));
        assert!(
            text.starts_with("gap: ") && text.ends_with("after line 8; it is in asking now (2m): which"),
            "{text}"
        );
        let object = json(&aside_object(&gap, &names, at(120)));
        assert!(object.contains(r#""event":"gap""#) && object.contains(r#""age_s":120"#), "{object}");
    }
}
