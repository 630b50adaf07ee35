//! One event of a timeline as one line for people, without its time and its session.

use std::time::Duration;

use minder_proto::event::{Body, Event, NoticeKind};
use minder_proto::id::{Party, SessionId};
use minder_proto::stamp::short_age;
use minder_proto::text::{first_line, one_line};

use crate::holds;

/// `working → review  PR 12 is up`; `message from lead: merge it`. `label` names a sender, `named` a session.
pub fn line(event: &Event, label: impl Fn(Party) -> String, named: impl Fn(SessionId) -> String) -> String {
    match &event.body {
        Body::Created { state, .. } => format!("new → {state}"),
        Body::State(t) => {
            let note = t.note.as_deref().map_or_else(String::new, |n| format!("  {}", one_line(n)));
            format!("{} → {}{note}", t.from, t.to)
        }
        Body::Message(m) => match &m.about {
            None => format!("message from {}: {}", label(m.from), one_line(first_line(&m.body))),
            Some(about) => {
                let moved = match (about.notice, about.from, about.to) {
                    (NoticeKind::State, Some(from), Some(to)) => format!("{from} → {to}"),
                    (NoticeKind::Snapshot, _, Some(to)) => format!("is {to}"),
                    (NoticeKind::Closed, ..) => "closed".to_owned(),
                    (NoticeKind::DeadLetter, ..) => "was not given your message".to_owned(),
                    (NoticeKind::Follower, ..) => "follows you".to_owned(),
                    (NoticeKind::State | NoticeKind::Snapshot, ..) => "moved".to_owned(),
                };
                format!("notice: {} {moved}", named(about.session))
            }
        },
        Body::Receipt { id, receipt, reason } => {
            format!("{} {}", id.short(), one_line(&holds::receipt(*receipt, reason.as_deref())))
        }
        Body::Binding { harness, harness_id, why } => {
            format!("bound to {} {} ({})", one_line(harness), one_line(harness_id), one_line(why))
        }
        Body::Record { what, from, to } => {
            let shown = |v: &Option<String>| v.as_deref().map_or_else(|| "none".to_owned(), one_line);
            format!("{}: {} → {}", one_line(what), shown(from), shown(to))
        }
        Body::Turn { id, outcome, failure, duration_ms } => {
            let why = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
            let lasted = short_age(Duration::from_millis(*duration_ms));
            format!("turn {} {outcome}{why} after {lasted}", id.short())
        }
        Body::Closed { note, by } => {
            let note = note.as_deref().map_or_else(String::new, |n| format!("  {}", one_line(n)));
            format!("closed by {}{note}", by.as_str())
        }
        Body::Note { what, text } => format!("{}: {}", one_line(what), one_line(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_one_line_whatever_is_in_it() {
        let line = |json: serde_json::Value| {
            let event: Event = serde_json::from_value(json).unwrap();
            line(&event, |p| p.to_string(), |s| s.short())
        };
        let at = "2026-11-30T12:00:00.000Z";
        let state = serde_json::json!({"seq": 2, "at": at, "kind": "state", "from": "working", "to": "review",
            "by": "agent", "note": "PR 12\nis up\x1b[2J"});
        assert_eq!(line(state), "working → review  PR 12\\nis up\\x1b[2J");
        let message = serde_json::json!({"seq": 3, "at": at, "kind": "message", "from": "operator",
            "id": "0199c2d4-90c3-7f0e-8a17-c2b67be21c09", "body": "\n merge it\nplease"});
        assert_eq!(line(message), "message from operator: merge it");
        let dead = serde_json::json!({"seq": 4, "at": at, "kind": "receipt", "receipt": "dead",
            "id": "0199c2d4-90c3-7f0e-8a17-c2b67be21c09", "reason": "expired"});
        assert_eq!(line(dead), "7be21c09 dead(expired)");
    }
}
