//! What must hold after every move: the store in memory and the store on disk are both what the reference says.

use std::collections::{BTreeMap, BTreeSet};

use minder_proto::event::{self, Event, NoticeKind};
use minder_proto::id::{self, SessionId};
use minder_proto::queue::Queue;
use minder_proto::record::{SessionRecord, Watcher};
use minder_proto::text::{first_line, one_line};
use minder_proto::{caller, event::Receipt, snapshot, timeline};

use super::moves::{CONVERSATIONS, LABELS};
use super::reference::{About, Body, From, Line, Message, Party, Reference, Session, Value};
use super::rig::{Rig, key_name, process};

/// Fails where they differ.
pub fn check(rig: &Rig, reference: &Reference) {
    memory(rig, reference);
    files(rig, reference);
    let parties = (0..reference.sessions.len()).map(Some).chain([None]);
    let timelines = parties.map(|party| (party, timeline_of(rig, reference, party))).collect();
    lines(rig, reference, &timelines);
    notices(rig, &timelines);
}

/// What the store has of an open session in memory.
struct Kept {
    record: SessionRecord,
    watchers: Vec<Watcher>,
    queue: Queue,
}

fn memory(rig: &Rig, reference: &Reference) {
    let open: Vec<usize> = reference.open().collect();
    let ids: Vec<SessionId> = open.iter().map(|n| rig.ids[*n]).collect();
    let (kept, operator, count, damaged) = rig.read(move |state| {
        let kept = ids.iter().map(|id| {
            let s = state.session(*id).expect("an open session is in memory");
            Kept { record: s.record.clone(), watchers: s.watchers.clone(), queue: s.inbox.queue.clone() }
        });
        let operator = state.inbox(id::Party::Operator).unwrap().queue.clone();
        (kept.collect::<Vec<_>>(), operator, state.sessions().count(), state.all_corrupt().count())
    });
    assert_eq!((count, damaged), (open.len(), 0), "sessions in memory, and damaged ones");
    let home = rig.home();
    for (n, kept) in open.iter().zip(&kept) {
        let id = rig.ids[*n];
        record(rig, &reference.sessions[*n], &kept.record);
        assert_eq!(watchers(rig, &kept.watchers), reference.sessions[*n].watchers, "watchers of {n}");
        queue(rig, Some(*n), reference, &kept.queue);
        // On disk the same, to the last field.
        assert_eq!(snapshot::record(&home, id).unwrap(), kept.record);
        assert_eq!(snapshot::watchers(&home, id).unwrap(), kept.watchers);
        assert_eq!(snapshot::queue(&home.session(id)).unwrap(), kept.queue, "ledger of {n}");
    }
    queue(rig, None, reference, &operator);
    assert_eq!(snapshot::queue(&home.operator()).unwrap(), operator, "the person's ledger");

    let labels = reference.open().map(|n| (reference.sessions[n].label.clone(), rig.ids[n]));
    let labels: BTreeMap<String, SessionId> = labels.collect();
    let asked: Vec<String> = labels.keys().cloned().chain(LABELS.map(str::to_owned)).collect();
    let expected: Vec<Option<SessionId>> = asked.iter().map(|l| labels.get(l).copied()).collect();
    let bound = CONVERSATIONS.map(|c| reference.bound(c).map(|n| rig.ids[n]));
    let running = [1, 2].map(|pid| {
        let here = |n: &usize| reference.sessions[*n].pid == Some(pid);
        reference.open().filter(here).map(|n| rig.ids[n]).collect::<BTreeSet<_>>()
    });
    let keys = [0, 1, 2].map(|key| reference.keys.get(&key).copied());
    let found = rig.read(move |state| {
        let labels: Vec<Option<SessionId>> = asked.iter().map(|label| state.by_label(label)).collect();
        let bound = CONVERSATIONS.map(|c| state.by_binding("claude", c));
        let running =
            [1, 2].map(|pid| state.by_process(&process(pid)).map(|s| s.record.id).collect::<BTreeSet<_>>());
        let keys = [0, 1, 2].map(|key| state.remembered(&key_name(key)).map(|k| k.result.as_u64().unwrap()));
        (labels, bound, running, keys)
    });
    assert_eq!(found, (expected, bound, running, keys), "labels, conversations, processes, keys");
}

fn record(rig: &Rig, expected: &Session, found: &SessionRecord) {
    let bindings: Vec<(&str, bool)> =
        found.bindings.iter().map(|b| (b.id.as_str(), b.until.is_none())).collect();
    assert_eq!(bindings, expected.bindings);
    assert_eq!(
        (&found.label, &found.title, found.title_from, found.parent, &found.process),
        (
            &expected.label,
            &expected.title,
            expected.title_from,
            expected.parent.map(|n| rig.ids[n]),
            &expected.pid.map(process)
        )
    );
    assert_eq!(
        (found.state, found.state_by, found.state_seq, found.turn_end, found.note.as_deref()),
        (expected.state, expected.state_by, expected.state_seq, expected.turn_end, expected.note)
    );
    assert!(found.last_seq <= expected.inbox.lines.len() as u64 && found.last_seq >= found.state_seq);
}

fn watchers(rig: &Rig, found: &[Watcher]) -> Vec<super::reference::Watcher> {
    let number = |id| rig.ids.iter().position(|other| *other == id).unwrap();
    let watcher = |w: &Watcher| super::reference::Watcher {
        watcher: number(w.watcher),
        sources: w.sources.clone(),
        states: w.states,
    };
    found.iter().map(watcher).collect()
}

fn queue(rig: &Rig, party: Party, reference: &Reference, found: &Queue) {
    let expected = &reference.inbox(party).queue;
    let lines: Vec<u64> = found.iter().map(|e| e.seq).collect();
    assert_eq!(lines, expected.keys().copied().collect::<Vec<_>>(), "what waits for {party:?}");
    let dir = snapshot::party_dir(&rig.home(), rig.party(party));
    for (entry, waiting) in found.iter().zip(expected.values()) {
        assert_eq!(
            (entry.receipt, entry.reason.as_deref(), entry.attempt, entry.channel.as_deref()),
            (waiting.receipt, waiting.reason, waiting.attempt, waiting.channel),
            "message {} of {party:?}",
            entry.seq
        );
        let brief = entry.brief.as_ref().unwrap();
        let watched = waiting.message.about.as_ref().filter(|a| a.notice.is_watch());
        assert_eq!(brief.about, watched.map(|a| rig.ids[a.session]));
        assert_eq!((brief.class, brief.from), (waiting.message.class, sender(rig, waiting.message.from)));
        // The ledger says where the line is.
        let at = timeline::at(&dir, brief.segment, brief.offset)
            .unwrap()
            .expect("a line is where it is said to be");
        assert_eq!(at.seq, entry.seq);
    }
}

fn files(rig: &Rig, reference: &Reference) {
    let home = rig.home();
    let ids = |open: bool| {
        let sessions = reference.sessions.iter().zip(&rig.ids).filter(|(s, _)| s.open == open);
        sessions.map(|(_, id)| *id).collect::<BTreeSet<SessionId>>()
    };
    assert_eq!(snapshot::ids(&home).unwrap().into_iter().collect::<BTreeSet<_>>(), ids(true));
    for id in ids(false) {
        assert!(home.trashed(id).is_dir() && !home.session(id).exists());
    }
    let names = |dir| {
        let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        entries.collect::<BTreeSet<String>>()
    };
    let labels: BTreeSet<String> = reference.open().map(|n| reference.sessions[n].label.clone()).collect();
    assert_eq!(names(home.root().join("labels")), labels);
    for n in reference.open() {
        assert_eq!(caller::read_id(&home.label(&reference.sessions[n].label)), Some(rig.ids[n]));
    }
    for conversation in CONVERSATIONS {
        let bound = reference.bound(conversation).map(|n| rig.ids[n]);
        assert_eq!(caller::read_id(&home.binding("claude", conversation)), bound, "{conversation}");
    }
    assert_eq!(names(home.quarantine()), BTreeSet::new());
    for (s, id) in reference.sessions.iter().zip(&rig.ids).filter(|(s, _)| !s.open) {
        let stone = snapshot::tombstone(&home, *id).expect("a closed session has a tombstone");
        let Some(Line::Closed { note, by }) = s.inbox.lines.last() else { panic!("{s:?}") };
        assert_eq!(
            (stone.label, stone.title, stone.state, stone.note.as_deref(), stone.by),
            (s.label.clone(), s.title.clone(), s.state, *note, *by)
        );
    }
}

/// Reads a timeline, and learns the ids of the messages in it.
fn timeline_of(rig: &Rig, reference: &Reference, party: Party) -> Vec<Event> {
    let home = rig.home();
    let dir = party.map_or(home.operator(), |n| {
        if reference.sessions[n].open { home.session(rig.ids[n]) } else { home.trashed(rig.ids[n]) }
    });
    let found = match timeline::last(&dir, 10_000) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && party.is_none() => Vec::new(),
        found => found.unwrap(),
    };
    for event in &found {
        if let event::Body::Message(message) = &event.body {
            let known = *rig.messages.borrow_mut().entry((party, event.seq)).or_insert(message.id);
            assert_eq!(known, message.id, "a message keeps its id");
        }
    }
    found
}

fn lines(rig: &Rig, reference: &Reference, timelines: &BTreeMap<Party, Vec<Event>>) {
    for (party, found) in timelines {
        let expected = &reference.inbox(*party).lines;
        let seqs: Vec<u64> = found.iter().map(|e| e.seq).collect();
        assert_eq!(seqs, (1..=expected.len() as u64).collect::<Vec<_>>(), "lines of {party:?}: {found:#?}");
        for (event, line) in found.iter().zip(expected) {
            same_line(rig, *party, &event.body, line);
        }
    }
}

fn same_line(rig: &Rig, party: Party, found: &event::Body, expected: &Line) {
    let id = |n: &usize| rig.ids[*n];
    match (found, expected) {
        (event::Body::Message(found), Line::Message(expected)) => same_message(rig, found, expected),
        (
            event::Body::Created { label, title, harness: None, parent, state },
            Line::Created { label: l, title: t, parent: p, state: s },
        ) => {
            assert_eq!((label, title, *parent, state), (l, t, p.as_ref().map(id), s));
        }
        (event::Body::State(found), Line::State { from, to, note, by, turn_end }) => {
            assert_eq!(
                (found.from, found.to, found.note.as_deref(), found.by, found.turn_end, found.cause),
                (*from, *to, *note, *by, *turn_end, None)
            );
        }
        (
            event::Body::Receipt { id, receipt, reason },
            Line::Receipt { message, receipt: r, reason: why },
        ) => {
            let message = rig.messages.borrow()[&(party, *message)];
            assert_eq!((*id, *receipt, reason.as_deref()), (message, *r, Some(*why)));
        }
        (event::Body::Binding { harness, harness_id, why }, Line::Binding(conversation)) => {
            assert_eq!(
                (harness.as_str(), harness_id.as_str(), why.as_str()),
                ("claude", *conversation, "new")
            );
        }
        (event::Body::Record { what, from, to }, Line::Record { what: w, from: f, to: t }) => {
            let value = |value: &Value| match value {
                Value::Text(text) => Some(text.clone()),
                Value::Session(session) => session.map(|n| rig.ids[n].to_string()),
            };
            assert_eq!((what.as_str(), from, to), (*w, &value(f), &value(t)));
        }
        (event::Body::Closed { note, by }, Line::Closed { note: n, by: b }) => {
            assert_eq!((note.as_deref(), by), (*n, b));
        }
        _ => panic!("expected {expected:?}, found {found:?}"),
    }
}

fn sender(rig: &Rig, from: From) -> id::Party {
    match from {
        From::Minder => id::Party::Minder,
        From::Party(party) => rig.party(party),
    }
}

fn same_message(rig: &Rig, found: &event::Message, expected: &Message) {
    let about = |a: &About| event::About {
        session: rig.ids[a.session],
        seq: a.seq,
        notice: a.notice,
        from: a.from,
        to: a.to,
    };
    assert_eq!(
        (found.from, &found.about, found.class),
        (sender(rig, expected.from), &expected.about.as_ref().map(about), expected.class)
    );
    match &expected.body {
        Body::Text(text) => assert_eq!(found.body, *text),
        Body::Undelivered { to, title, why, letters } => {
            let short = to.map_or_else(|| "operator".to_owned(), |n| rig.ids[n].short());
            let title = one_line(title).replace('"', "'");
            let mut body = format!("not delivered to \"{title}\" ({short}): {why}.");
            for (seq, letter) in letters {
                let Body::Text(letter) = letter else { panic!("minder is no sender") };
                let id = rig.messages.borrow()[&(*to, *seq)].short();
                body.push_str(&format!("\n{id} {}", one_line(first_line(letter))));
            }
            assert_eq!(found.body, body);
        }
    }
}

/// Whatever the reference says: of each session a watcher is told in its order, and of each line once; what it is told
/// is a line of that session; and nothing comes after it was closed.
fn notices(rig: &Rig, timelines: &BTreeMap<Party, Vec<Event>>) {
    let number = |id| rig.ids.iter().position(|other| *other == id).unwrap();
    for (watcher, events) in timelines {
        let mut newest: BTreeMap<usize, u64> = BTreeMap::new();
        for event in events {
            let event::Body::Message(message) = &event.body else { continue };
            let Some(about) = &message.about else { continue };
            let target = number(about.session);
            let line = || &timelines[&Some(target)][about.seq as usize - 1].body;
            match about.notice {
                NoticeKind::State => {
                    let event::Body::State(line) = line() else { panic!("{about:?} is of {:?}", line()) };
                    assert_eq!((about.from, about.to), (Some(line.from), Some(line.to)));
                }
                NoticeKind::Closed => assert!(matches!(line(), event::Body::Closed { .. })),
                _ => continue,
            }
            let before = newest.insert(target, about.seq);
            assert!(
                before.is_none_or(|before| before < about.seq),
                "{watcher:?} is told of {target} out of order or twice"
            );
        }
    }
    for events in timelines.values() {
        let closed = events.iter().position(|e| matches!(e.body, event::Body::Closed { .. }));
        assert!(closed.is_none_or(|at| at + 1 == events.len()), "something came after the end: {events:#?}");
        // A message is settled once.
        let mut settled = BTreeSet::new();
        for event in events {
            if let event::Body::Receipt { id, receipt, .. } = &event.body
                && *receipt != Receipt::Answered
            {
                assert!(settled.insert(id.to_string()), "{id} is settled twice");
            }
        }
    }
}
