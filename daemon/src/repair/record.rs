//! A record is patched where its timeline says otherwise, and made anew from the timeline where it cannot be read.

use std::collections::BTreeMap;

use minder_proto::event::{Author, Body};
use minder_proto::id::SessionId;
use minder_proto::record::{Binding, Channel, SessionRecord, TitleSource};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::timeline::Mended;

/// The state that a timeline ends in.
struct Standing {
    state: State,
    at: Stamp,
    by: Author,
    turn_end: bool,
    note: Option<String>,
    seq: u64,
}

fn standing(timeline: &Mended) -> Option<Standing> {
    timeline.events.iter().rev().find_map(|p| match &p.event.body {
        Body::State(line) => Some(Standing {
            state: line.to,
            at: p.event.at,
            by: line.by,
            turn_end: line.turn_end,
            note: line.note.clone(),
            seq: p.event.seq,
        }),
        Body::Created { state, .. } => Some(Standing {
            state: *state,
            at: p.event.at,
            by: Author::Minder,
            turn_end: false,
            note: None,
            seq: p.event.seq,
        }),
        _ => None,
    })
}

/// Makes a record say what its timeline says; gives what was changed.
pub fn patch(record: &mut SessionRecord, timeline: &Mended) -> Vec<&'static str> {
    let mut changed = Vec::new();
    if record.last_seq != timeline.last {
        record.last_seq = timeline.last;
        changed.push("last_seq");
    }
    // What stands behind missing lines is not known: there the record may know better.
    let Some(s) = standing(timeline) else { return changed };
    let missing = timeline.events.iter().any(|p| {
        let note = matches!(&p.event.body, Body::Note { what, .. } if what == "torn" || what == "repaired");
        note && p.event.seq > s.seq
    });
    if missing && record.state_seq > s.seq {
        return changed;
    }
    if record.state != s.state {
        (record.state, record.state_at, record.state_by) = (s.state, s.at, s.by);
        record.turn_end = s.turn_end;
        changed.push("state");
    }
    if record.state_seq != s.seq {
        record.state_seq = s.seq;
        changed.push("state_seq");
    }
    if record.note != s.note {
        record.note = s.note;
        changed.push("note");
    }
    changed
}

/// A record from a timeline alone; `label` is one that a file in `labels/` says is its own.
pub fn rebuild(id: SessionId, timeline: &Mended, label: Option<String>, now: Stamp) -> SessionRecord {
    let first = timeline.events.first().map_or(now, |p| p.event.at);
    let fallback = label.unwrap_or_else(|| format!("recovered-{}", id.short()));
    let mut record = SessionRecord {
        id,
        label: fallback.clone(),
        // Nobody knows; what was chosen by hand is not closed by itself.
        label_given: true,
        title: fallback,
        title_from: TitleSource::Label,
        harness: None,
        dir: "/".to_owned(),
        parent: None,
        primary: false,
        channel: Channel::Mailbox,
        until_hook: false,
        account: None,
        created: first,
        adopted: false,
        state: State::Idle,
        state_at: first,
        state_by: Author::Minder,
        turn_end: false,
        note: None,
        last_seq: timeline.last,
        state_seq: 0,
        bindings: Vec::new(),
        incarnation: 0,
        process: None,
        compacting: false,
        compacting_since: None,
        turn: None,
        last_turn: None,
        last_end: None,
        env: BTreeMap::new(),
        env_names: Vec::new(),
        circuit: None,
        account_hold: None,
        launch: None,
        unknown: serde_json::Map::new(),
    };
    let mut channel = None;
    for placed in &timeline.events {
        let at = placed.event.at;
        match &placed.event.body {
            Body::Created { label, title, harness, parent, .. } => {
                record.label.clone_from(label);
                record.title.clone_from(title);
                record.harness.clone_from(harness);
                record.parent = *parent;
            }
            Body::Record { what, to: Some(to), .. } => match what.as_str() {
                "label" => {
                    if record.title == record.label {
                        record.title.clone_from(to);
                    }
                    record.label.clone_from(to);
                }
                "title" => {
                    record.title.clone_from(to);
                    record.title_from = TitleSource::Given;
                }
                "parent" => record.parent = to.parse().ok().or(record.parent),
                // The program of an `exec` stands in the record alone.
                "channel" => channel = Some(if to == "hook" { Channel::Hook } else { Channel::Mailbox }),
                _ => {}
            },
            Body::Binding { harness, harness_id, why } => {
                record.bindings.iter_mut().filter(|b| b.until.is_none()).for_each(|b| b.until = Some(at));
                record.harness = Some(harness.clone());
                record.bindings.push(Binding {
                    harness: harness.clone(),
                    id: harness_id.clone(),
                    since: at,
                    until: None,
                    why: why.clone(),
                    transcript: None,
                });
            }
            _ => {}
        }
    }
    let bound = !record.bindings.is_empty();
    record.until_hook = channel.is_none() && !bound;
    record.channel = channel.unwrap_or(if bound { Channel::Hook } else { Channel::Mailbox });
    patch(&mut record, timeline);
    record
}
