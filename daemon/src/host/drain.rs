//! What the primary is shown of its wake queue, and what it acknowledges. A row leaves the queue by its acknowledgement
//! alone.

use std::collections::HashSet;

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::host::bounds::{ITEM_MAX, ITEMS_MAX};
use minder_proto::host::episode::{Cause, Episode, Stage};
use minder_proto::host::row::Queue;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::record::SessionRecord;
use minder_proto::rpc::{HostAckAnswer, HostDrainAnswer, HostDrained};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::text::{line_of, named};

use super::episode::{self, Handback};
use super::handback::wake_line;
use super::queue::{self, Acked, collapse};
use super::step::{owed, receipt};
use crate::delivery::rules::is_of_host;
use crate::store::{State as Store, Txn};

/// Most news that one drain settles.
const NEWS_MAX: usize = 5_000;
/// Rows that cannot be read and are shown with their text; the rest is a count.
const BROKEN_SHOWN: usize = 20;

/// Shows the primary every row, what is asked of it, and what nothing else told it.
pub fn drain(txn: &mut Txn<'_>, id: SessionId) -> Result<HostDrainAnswer, Fault> {
    let now = txn.now();
    let state = txn.state();
    let (questions, unseen) = (questions(state, id), uncovered(state, id, false));
    let (generation, by_message) = txn.edit_host(id, |host| {
        let (queue, episode) = host.desk_mut();
        let by_message = episode.mid.take();
        show(queue, episode, now);
        (episode.generation, by_message)
    })?;
    // What became a message is read here; its channel need not give it any more.
    if let Some(mid) = by_message {
        receipt(txn, id, mid, Receipt::Seen, Some("drained"))?;
    }
    let state = txn.state();
    let host = state.host(id).ok_or_else(|| gone(id))?;
    let rows = &host.queue.rows;
    let name_of = |id: SessionId| state.session(id).map(|s| s.record.label.clone());
    let wakes = collapse(rows.iter()).iter().map(|wake| wake_line(wake, name_of)).collect();
    let of_rows: HashSet<MessageId> = rows.iter().flat_map(|row| row.mids.iter().copied()).collect();
    let broken = host.queue.broken.iter().take(BROKEN_SHOWN).map(|row| line_of(row, ITEM_MAX)).collect();
    // News that is no wake: one line for each session, as it stands now.
    let kept = txn.session(id)?.inbox.queue.iter().filter(|e| is_of_host(e) && !of_rows.contains(&e.id));
    let (mut ids, mut sessions) = (Vec::new(), Vec::new());
    for entry in kept.take(NEWS_MAX) {
        ids.push(entry.id);
        sessions.extend(entry.brief.as_ref().and_then(|b| b.about).filter(|about| !sessions.contains(about)));
    }
    let news = |about: &SessionId| {
        state.session(*about).map_or_else(|| format!("{} is closed", about.short()), |s| item(&s.record))
    };
    Ok(HostDrainAnswer {
        session: id,
        wakes,
        notices: bounded(sessions.iter().map(news)),
        notice_ids: ids,
        questions,
        unseen: unseen.iter().map(|(_, _, line)| line.clone()).collect(),
        unseen_lines: unseen.into_iter().map(|(session, line, _)| (session, line)).collect(),
        broken,
        broken_count: host.queue.broken.len(),
        through: rows.iter().map(|row| row.seq).max().unwrap_or_default(),
        generation,
    })
}

/// Shows the primary every row, under the open hand-back or, where none is, a new one.
pub fn show(queue: &mut Queue, episode: &mut Episode, now: Stamp) {
    let any = !queue.rows.is_empty();
    let open = episode.stage != Stage::Closed;
    if any && !open {
        let handback = Handback { cause: Cause::Drain, rows: Vec::new(), lines: Vec::new() };
        episode::open(episode, handback, now);
    }
    if any || open {
        episode::seen(episode, now);
    }
    queue::raise(queue);
    queue::show(queue, episode.generation);
}

/// Consumes what was shown up to a row, in a generation or before it; the hand-back is closed by the last of its rows.
pub fn take(
    queue: &mut Queue,
    episode: &mut Episode,
    (through, generation): (u64, u64),
    now: Stamp,
) -> Acked {
    let acked = queue::acknowledge(queue, through, generation, episode.generation);
    // Not over rows of it that were told and not shown.
    let left = owed(queue).next().is_some();
    if matches!(acked, Acked::Rows { older: false, .. }) && !left && episode.stage != Stage::Closed {
        episode::close(episode, now);
    }
    acked
}

/// What a drain printed beside its rows is known; rows that cannot be read are gone from the queue.
pub fn drained(txn: &mut Txn<'_>, id: SessionId, call: &HostDrained) -> Result<(), Fault> {
    for notice in &call.notices {
        let queue = &txn.session(id)?.inbox.queue;
        if queue.get(*notice).is_some_and(is_of_host) {
            receipt(txn, id, *notice, Receipt::Seen, Some("drained"))?;
        }
    }
    if call.broken == 0 && call.unseen.is_empty() {
        return Ok(());
    }
    txn.edit_host(id, |host| {
        let (queue, _) = host.queue_mut();
        queue.broken.drain(..call.broken.min(queue.broken.len()));
        for (session, line) in &call.unseen {
            let through = queue.through.entry(*session).or_default();
            through.shown = through.shown.max(*line);
        }
    })
}

/// Consumes rows that the primary was shown.
pub fn ack(txn: &mut Txn<'_>, id: SessionId, through: u64, generation: u64) -> Result<HostAckAnswer, Fault> {
    let now = txn.now();
    let acked = txn.edit_host(id, |host| {
        let (queue, episode) = host.desk_mut();
        take(queue, episode, (through, generation), now)
    })?;
    match acked {
        Acked::Unknown { generation: present } => Err(Fault::new(
            Kind::Refused,
            format!("there is no hand-back {generation} yet, the newest is {present}"),
        )
        .hint("minder host drain")),
        Acked::Nothing { through, generation } => {
            Ok(HostAckAnswer { rows: Vec::new(), newer: false, instead: Some((through, generation)) })
        }
        Acked::Rows { rows, older } => {
            for mid in rows.iter().flat_map(|row| row.mids.iter()) {
                receipt(txn, id, *mid, Receipt::Seen, Some("acknowledged"))?;
            }
            let waits = txn.state().host(id).is_some_and(|host| host.episode.stage != Stage::Closed);
            let rows = rows.into_iter().map(|row| row.seq).collect();
            Ok(HostAckAnswer { rows, newer: older && waits, instead: None })
        }
    }
}

fn gone(id: SessionId) -> Fault {
    Fault::new(Kind::NotFound, format!("{} has no host", id.short()))
}

/// The sessions that work for a primary: its children, and those that it watches.
pub fn supervised(state: &Store, primary: SessionId) -> Vec<&SessionRecord> {
    let mut found: Vec<&SessionRecord> = state
        .sessions()
        .filter(|s| s.record.id != primary)
        .filter(|s| s.record.parent == Some(primary) || s.watchers.iter().any(|w| w.watcher == primary))
        .map(|s| &s.record)
        .collect();
    found.sort_by_key(|record| (record.state_at, record.id));
    found
}

/// Sessions that ask, the one that has waited longest first.
fn questions(state: &Store, primary: SessionId) -> Vec<String> {
    let asking = supervised(state, primary).into_iter().filter(|record| record.state == State::Asking);
    bounded(asking.map(item))
}

/// The newest line of each session that somebody should act on and that no row, acknowledgement or drain covers; `asking` says
/// whether open questions count, which a drain shows anyway. It should be none: it is for restored stores, and for what went
/// on while the host was off.
pub fn uncovered(state: &Store, primary: SessionId, asking: bool) -> Vec<(SessionId, u64, String)> {
    let Some(host) = state.host(primary) else { return Vec::new() };
    let uncovered = supervised(state, primary).into_iter().filter(|record| {
        let through = host.queue.through.get(&record.id).copied().unwrap_or_default();
        let in_row = host.queue.rows.iter().any(|r| r.session == Some(record.id) && r.ev >= record.state_seq);
        let wanted = record.state != State::Asking || asking;
        let news = record.state.is_actionable() && wanted || record.turn_end;
        news && !in_row && record.state_seq > through.shown.max(through.covered)
    });
    let mut total = 0;
    uncovered
        .map(|record| (record.id, record.state_seq, item(record)))
        .take_while(|(_, _, line)| {
            total += line.len() + 1;
            total <= ITEMS_MAX
        })
        .collect()
}

fn item(record: &SessionRecord) -> String {
    let who = named(&record.title, &record.label, Some(&record.id.short()));
    let note = record.note.as_deref().map(|note| format!(" | {note}")).unwrap_or_default();
    line_of(&format!("{who}: {}{note}", record.state), ITEM_MAX)
}

/// As many as there is room for.
fn bounded(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut total = 0;
    let fits = |line: &String| {
        total += line.len() + 1;
        total <= ITEMS_MAX
    };
    items.take_while(fits).collect()
}
