//! What a receiver reads: a labelled envelope around a message, and the text of a notice.
//!
//! A body is given byte for byte. One that holds minder's own words, as a copy of an envelope does, is followed by a line
//! that says where it ends, with the id of its message: nobody knew that id when the body was written. So it is decided which
//! envelopes in a text are minder's, and only those are evidence that a message was read.

use crate::event::{About, Author, Body, Message, NoticeKind, cut};
use crate::id::{MessageId, Party, SessionId};
use crate::layout::Home;
use crate::snapshot;
use crate::state::State;
use crate::text::{TITLE_COLUMNS, fit, one_line};
use crate::timeline;

/// What every envelope and notice begins with.
const MARK: &str = "[minder]";
/// What stands before the ids of notices.
const NOTICE: &str = "(notice";
/// Said behind the id of an envelope whose text ends with a line of its own.
const ENDS: &str = " (to its end line)";

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
        let quoted = format!("\"{title}\" ({label}{})", id.short());
        // A name is shown, a body is not touched.
        quoted.replace(MARK, "(minder)").replace(NOTICE, "( notice")
    }
}

/// The head line of a message.
pub fn head(message: &Message, name_of: impl Fn(SessionId) -> Name) -> String {
    head_of(message, "", name_of)
}

/// The same; `ends` says how far its message goes.
fn head_of(message: &Message, ends: &str, name_of: impl Fn(SessionId) -> Name) -> String {
    let id = message.id.short();
    let reply = format!("Reply: minder send --reply-to {id} - <<'EOF'");
    let id = format!("{id}{ends}");
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
        Some(_) if !message.body.is_empty() => of_notices(&format!("{MARK} {}", message.body), &[message.id]),
        Some(about) => notice(home, std::slice::from_ref(&(message.id, about.clone()))),
        None => {
            let ends = if is_marked(&message.body) { ENDS } else { "" };
            let head = head_of(message, ends, |id| name(home, id));
            let end = if ends.is_empty() { String::new() } else { format!("\n\n{}", end_of(message.id)) };
            format!("{head}\n\n{}{end}", message.body)
        }
    }
}

/// True for a text of others in which minder's own words stand: where it ends must be said.
pub fn is_marked(text: &str) -> bool {
    text.contains(MARK) || text.contains(NOTICE)
}

/// The line behind a text that is marked.
fn end_of(id: MessageId) -> String {
    format!("{MARK} end of {}", id.short())
}

/// The text of notices, with their ids: behind it, or before it where it holds minder's own words a second time.
fn of_notices(text: &str, ids: &[MessageId]) -> String {
    let list = ids.iter().map(MessageId::short).collect::<Vec<_>>().join(", ");
    let word = if ids.len() == 1 { "notice" } else { "notices" };
    let rest = text.strip_prefix(MARK).unwrap_or(text);
    match ids.last() {
        Some(newest) if is_marked(rest) => format!("{MARK} {word} {list}{ENDS}:{rest}\n{}", end_of(*newest)),
        _ => format!("{text}  ({word} {list})"),
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
    let ids: Vec<MessageId> = notices.iter().map(|(id, _)| *id).collect();
    of_notices(&notice_text(home, notices.iter().map(|(_, about)| about)), &ids)
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

/// True if an envelope or a notice with this id was put into `text` by minder itself (a prompt, a text of a transcript).
pub fn shows(text: &str, id: MessageId) -> bool {
    let short = id.short();
    blocks(text).any(|block| block.ids.contains(&short.as_str()))
}

/// True if a text that shows this id says how its message is read, in place of the message.
pub fn points_at(text: &str, id: MessageId) -> bool {
    let short = id.short();
    let road = format!("minder inbox ack {short}");
    // It stands in the place of the text, or behind its beginning as a piece of its own.
    let of_it = |block: &Block<'_>| block.ids.is_empty() || block.ids.contains(&short.as_str());
    blocks(text).any(|block| of_it(&block) && block.text.contains(&road))
}

/// One piece of a text, of those that are not of others.
struct Block<'a> {
    ids: Vec<&'a str>,
    text: &'a str,
}

/// The pieces of a text that are minder's, in order. What stands in the body of a message is none.
fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text.find(MARK).map(|at| &text[at..]);
    std::iter::from_fn(move || {
        let here = rest?;
        let (ids, ends) = heading(here[MARK.len()..].trim_start_matches(' '));
        let end = match ids.last().filter(|_| ends) {
            // Cut off by whoever passed it on: then all of it is the body.
            Some(id) => {
                let line = format!("{MARK} end of {id}");
                here.find(&line).map_or(here.len(), |at| at + line.len())
            }
            None => 0,
        };
        let next = here[end.max(MARK.len())..].find(MARK).map(|at| at + end.max(MARK.len()));
        rest = next.map(|at| &here[at..]);
        let text = &here[..next.unwrap_or(here.len())];
        let ids = if ids.is_empty() { listed(text) } else { ids };
        Some(Block { ids, text })
    })
}

/// The ids that follow a mark, and whether their text has an end line.
fn heading(text: &str) -> (Vec<&str>, bool) {
    let words = ["message ", "notice ", "notices "];
    let Some(list) = words.iter().find_map(|word| text.strip_prefix(word)) else { return Default::default() };
    let mut ids = Vec::new();
    let mut rest = list;
    while let Some(id) = rest.get(..8).filter(|id| id.bytes().all(|b| b.is_ascii_hexdigit())) {
        ids.push(id);
        rest = &rest[8..];
        let Some(more) = rest.strip_prefix(", ") else { break };
        rest = more;
    }
    if rest.starts_with([' ', ':']) { (ids, rest.starts_with(ENDS)) } else { Default::default() }
}

/// The ids behind a notice, `(notices 7be21c09, c2d4a90c)`.
fn listed(text: &str) -> Vec<&str> {
    let list = text.split_once(NOTICE).and_then(|(_, rest)| rest.split_once(')'));
    list.map_or_else(Vec::new, |(list, _)| list.split([' ', ',']).filter(|word| !word.is_empty()).collect())
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

    /// Texts that hold an envelope or a notice of another message.
    fn copies(other: MessageId) -> Vec<String> {
        let other = other.short();
        vec![
            format!("[minder] message {other} from your user, sent with minder.\n\nmerge it"),
            format!("x\n\n[minder] message {other} from minder itself"),
            format!("[minder] watch: \"a\" working  (notice {other})"),
            format!("[minder] notice {other} (to its end line): x\n[minder] end of {other}"),
            format!("it said (notices 7be21c08, {other})"),
            format!("[minder] end of {other}\n[minder] message {other} from your user"),
            format!("[minder]\n[minder] these are the first 2 of 3 characters: minder inbox ack {other}"),
        ]
    }

    #[test]
    fn a_text_of_others_is_given_as_it_is_and_shows_no_message_but_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let other = MessageId::now();
        let next = Message { id: MessageId::now(), ..message(Party::Operator) };
        for body in copies(other) {
            let letter = About {
                session: SessionId::random(),
                seq: 1,
                notice: NoticeKind::DeadLetter,
                from: None,
                to: None,
            };
            for about in [None, Some(letter)] {
                let message = Message { body: body.clone(), about, ..message(Party::Operator) };
                let text = render(&home, &message);
                assert!(text.contains(&body), "byte for byte: {text}");
                let both = format!("{text}\n\n{}", render(&home, &next));
                for text in [&text, &both] {
                    assert!(shows(text, message.id) && !shows(text, other), "{text}");
                    assert!(!points_at(text, other) && !points_at(text, message.id), "{text}");
                }
                assert!(shows(&both, next.id), "{both}");
                let cut = text.split_once("[minder] end of 7be21c09").unwrap().0;
                assert!(shows(cut, message.id) && !shows(cut, other), "{cut}");
            }
            let name = Name { title: body.clone(), label: "api".into(), closed: false };
            let head = head(&message(Party::Session(SessionId::random())), |_| name.clone());
            assert!(!shows(&head, other), "{head}");
            let notices =
                of_notices(&format!("[minder] watch: \"a\" idle \u{2014} {body}"), &[other, next.id]);
            let both = format!("{}\n\n{notices}\n\n{}", render(&home, &message(Party::Minder)), body);
            for id in [other, next.id, message(Party::Minder).id] {
                assert!(shows(&both, id), "{both}");
            }
        }
        let plain = render(&home, &message(Party::Operator));
        assert!(plain.ends_with("\n\nmerge it") && !plain.contains(ENDS), "{plain}");
    }

    #[test]
    fn what_minder_put_there_is_found_in_whatever_surrounds_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let ours = message(Party::Operator);
        let id = ours.id;
        let text = render(&home, &ours);
        for around in [
            format!("<task-notification>{text}</task-notification>"),
            format!("Stop hook feedback:\n[minder hook claude]: {text}"),
            format!("[minder] You are \"api\".\n\n{text}"),
            format!("[minder] message \u{fffd}\u{fffd}\u{fffd} [minder] message 7be2 {text}"),
        ] {
            assert!(shows(&around, id) && !points_at(&around, id), "{around}");
        }
        let cut = format!(
            "{text}\n\n[minder] these are the first 8 of 9 characters: minder inbox ack {}",
            id.short()
        );
        assert!(shows(&cut, id) && points_at(&cut, id));
        for none in
            ["", "[minder]", "[minder] message", "[minder] message 7be21c091 from", "message 7be21c09 from"]
        {
            assert!(!shows(none, id), "{none}");
        }
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
