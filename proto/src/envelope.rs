//! What a receiver reads: a labelled envelope around a message, and the text of a notice.
//!
//! A body that copies an envelope stays visibly part of a body: there is one envelope, on the first line.

use crate::event::{About, Author, Body, Message, NoticeKind, cut};
use crate::id::{MessageId, Party, SessionId};
use crate::layout::Home;
use crate::snapshot;
use crate::state::State;
use crate::text::{TITLE_COLUMNS, fit, one_line};
use crate::timeline;

/// What is known of a sender or a target when a text is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The title, for reading.
    pub title: String,
    /// The label, for typing.
    pub label: String,
    /// True if it is closed by now.
    pub closed: bool,
}

/// Looks a session's name up in the files, open or closed.
pub fn name(home: &Home, id: SessionId) -> Name {
    match snapshot::record(home, id) {
        Ok(record) => Name { title: record.title, label: record.label, closed: false },
        Err(_) => match snapshot::tombstone(home, id) {
            Some(line) => Name { title: line.title, label: line.label, closed: true },
            None => Name { title: id.short(), label: id.short(), closed: true },
        },
    }
}

impl Name {
    /// `"Rework the login" (web, 5f1c2d4a)`: the title, and what can be typed.
    fn quoted(&self, id: SessionId) -> String {
        let title = fit(&one_line(&self.title), TITLE_COLUMNS).replace('"', "'");
        let label = if self.label == self.title { String::new() } else { format!("{}, ", self.label) };
        format!("\"{title}\" ({label}{})", id.short())
    }
}

/// The head line of a message.
pub fn head(message: &Message, name_of: impl Fn(SessionId) -> Name) -> String {
    let id = message.id.short();
    let reply = format!("Reply: minder send --reply-to {id} - <<'EOF'");
    match message.from {
        Party::Session(from) => {
            let name = name_of(from);
            let who = name.quoted(from);
            if name.closed {
                // Nobody is there to answer.
                return format!(
                    "[minder] message {id} from session {who}, sender closed, not from your user."
                );
            }
            format!("[minder] message {id} from session {who}, not from your user. {reply}")
        }
        Party::Operator => format!("[minder] message {id} from your user, sent with minder. {reply}"),
        Party::Minder => format!("[minder] message {id} from minder itself, not from your user."),
    }
}

/// One message or notice as its receiver reads it.
pub fn render(home: &Home, message: &Message) -> String {
    match &message.about {
        // A dead letter says itself what it is about.
        Some(_) if !message.body.is_empty() => {
            format!("[minder] {}  (notice {})", message.body, message.id.short())
        }
        Some(about) => notice(home, std::slice::from_ref(&(message.id, about.clone()))),
        None => format!("{}\n\n{}", head(message, |id| name(home, id)), message.body),
    }
}

/// What a message says in a list, where its id stands beside it: the text of a notice, or the body.
pub fn summary(home: &Home, message: &Message) -> String {
    match &message.about {
        Some(_) if !message.body.is_empty() => format!("[minder] {}", message.body),
        Some(about) => notice_text(home, std::iter::once(about)),
        None => message.body.clone(),
    }
}

/// The notices about one target, oldest first, as one text: the path, the newest note and answer, the ids.
pub fn notice(home: &Home, notices: &[(MessageId, About)]) -> String {
    let ids: Vec<String> = notices.iter().map(|(id, _)| id.short()).collect();
    let word = if ids.len() == 1 { "notice" } else { "notices" };
    format!("{}  ({word} {})", notice_text(home, notices.iter().map(|(_, about)| about)), ids.join(", "))
}

/// The text of notices about one target without their ids, as a list shows it beside them.
pub fn notice_text<'a>(home: &Home, notices: impl Iterator<Item = &'a About>) -> String {
    let notices: Vec<&About> = notices.collect();
    let Some(last) = notices.last() else { return String::new() };
    let target = last.session;
    let who = name(home, target).quoted(target);
    let dir = snapshot::timeline_dir(home, target);
    let line = dir.as_ref().and_then(|d| timeline::find(d, last.seq).ok().flatten()).map(|e| e.body);
    match last.notice {
        NoticeKind::Follower => {
            return format!(
                "[minder] {who} follows you now. To write to it: minder send {} - <<'EOF'",
                target.short()
            );
        }
        NoticeKind::DeadLetter => return format!("[minder] your message to {who} was not delivered"),
        NoticeKind::State | NoticeKind::Snapshot | NoticeKind::Closed => {}
    }
    let mut text = format!("[minder] watch: {who} {}", path(&notices));
    let mut by_person = false;
    let (note, answer) = match line {
        Some(Body::State(t)) => {
            by_person = t.by == Author::Operator;
            // A declaration is made before the turn's last words are known.
            let later = || dir.as_ref().and_then(|d| snapshot::answer_after(d, last.seq).ok().flatten());
            (t.note, t.text.or_else(later))
        }
        Some(Body::Closed { note, .. }) => (note, None),
        _ => (None, None),
    };
    if notices.len() > 1 {
        text.push_str(&format!(" ({} notices)", notices.len()));
    }
    if let Some(note) = &note {
        text.push_str(" — ");
        text.push_str(&crate::text::block(note));
    }
    if by_person {
        text.push_str(&format!("\n({})", snapshot::author_words(Author::Operator)));
    }
    if let Some(newer) = dir.as_ref().and_then(|d| superseded(d, last)) {
        text.push_str(&format!("\n(superseded: it is {newer} now)"));
    }
    if let Some(answer) = answer.filter(|a| note.as_deref() != Some(a.trim())) {
        let shown = cut(&answer, crate::event::ANSWER_MAX);
        text.push_str(&format!(
            "\nanswer: {}\n(all of it: minder show {})",
            crate::text::block(shown),
            target.short()
        ));
    }
    text
}

/// `working → asking → review`, `closed`, or the state that stands.
fn path(notices: &[&About]) -> String {
    let mut states: Vec<State> = Vec::new();
    let mut closed = false;
    let mut standing = false;
    for about in notices {
        match about.notice {
            NoticeKind::Closed => closed = true,
            NoticeKind::Snapshot => {
                standing = true;
                states.extend(about.to);
            }
            _ => {
                if states.last().copied() != about.from {
                    states.extend(about.from);
                }
                states.extend(about.to);
            }
        }
    }
    let mut words: Vec<String> = states.iter().map(ToString::to_string).collect();
    if standing && words.len() == 1 && !closed {
        return format!("is {}", words[0]);
    }
    if closed {
        words.push("closed".to_owned());
    }
    words.join(" → ")
}

/// The state the target stands in, if a line newer than the notice's moved it elsewhere.
fn superseded(dir: &std::path::Path, about: &About) -> Option<State> {
    let newest = snapshot::last_state(dir).ok()??;
    match newest.body {
        Body::State(t) if newest.seq > about.seq && Some(t.to) != about.to => Some(t.to),
        _ => None,
    }
}

/// True if `text` (a prompt, a line of a transcript) shows an envelope or notice with this id.
pub fn shows(text: &str, id: MessageId) -> bool {
    let short = id.short();
    text.contains(&format!("[minder] message {short} ")) || in_notices(text, &short)
}

/// True if a text that shows this id says how its message is read, in place of the message.
pub fn points_at(text: &str, id: MessageId) -> bool {
    text.contains(&format!("minder inbox ack {}", id.short()))
}

/// True if a list of notices, `(notices 7be21c09, c2d4a90c)`, has this id.
fn in_notices(text: &str, short: &str) -> bool {
    text.contains("[minder]")
        && text.split("(notice").skip(1).any(|rest| {
            let list = rest.split_once(')').map_or("", |(list, _)| list);
            list.split([' ', ',']).any(|word| word == short)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Class;

    fn message(from: Party) -> Message {
        Message {
            id: "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap(),
            from,
            about: None,
            body: "merge it".into(),
            class: Class::Now,
            key: None,
            reply_to: None,
            thread: None,
            cause: None,
            hops: 0,
            expires: None,
        }
    }

    #[test]
    fn the_head_names_the_sender_that_the_daemon_knows() {
        let from: SessionId = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        let open = |_| Name { title: "api worker".into(), label: "api".into(), closed: false };
        assert_eq!(
            head(&message(Party::Session(from)), open),
            "[minder] message 7be21c09 from session \"api worker\" (api, 5f1c2d4a), not from your user. Reply: minder send --reply-to 7be21c09 - <<'EOF'"
        );
        assert!(head(&message(Party::Operator), open).contains("from your user"));
        let gone = |_| Name { title: "a\"b\n".into(), label: "a".into(), closed: true };
        let text = head(&message(Party::Session(from)), gone);
        assert!(text.contains("\"a'b\"") && text.contains("sender closed") && !text.contains("Reply"));
        assert!(shows(&text, message(Party::Minder).id));
    }

    #[test]
    fn a_burst_is_one_path() {
        let session = SessionId::random();
        let step =
            |from, to| About { session, seq: 1, notice: NoticeKind::State, from: Some(from), to: Some(to) };
        let (a, b, c) = (
            step(State::Working, State::Asking),
            step(State::Asking, State::Working),
            step(State::Working, State::Review),
        );
        assert_eq!(path(&[&a, &b, &c]), "working → asking → working → review");
        assert_eq!(path(&[&a, &c]), "working → asking → working → review");
        let standing = About { notice: NoticeKind::Snapshot, from: None, ..c.clone() };
        assert_eq!(path(&[&standing]), "is review");
        let closed = About { notice: NoticeKind::Closed, from: None, to: None, ..c.clone() };
        assert_eq!(path(&[&c, &closed]), "working → review → closed");
    }
}
