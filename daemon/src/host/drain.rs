//! What the primary is shown of its wake queue, and what it acknowledges. A row leaves the queue by its acknowledgement
//! alone.

use minder_proto::envelope;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::host::bounds::{ITEM_MAX, ITEMS_MAX};
use minder_proto::host::episode::{Cause, Episode, Stage};
use minder_proto::host::row::{Owner, Queue, Row};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::SessionRecord;
use minder_proto::rpc::{HostAckAnswer, HostDrainAnswer};
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::text::{line_of, named};

use super::episode::{self, Handback};
use super::handback::wake_line;
use super::queue::{self, Acked, collapse};
use super::step::receipt;
use crate::delivery::rules::is_kept;
use crate::store::{Settled, State as Store, Txn};

/// Rows that cannot be read and are shown with their text; the rest is a count.
const BROKEN_SHOWN: usize = 20;

/// Shows the primary every row, what is asked of it, and what nothing else told it.
pub fn drain(txn: &mut Txn<'_>, files: Settled<'_>, id: SessionId) -> Result<HostDrainAnswer, Fault> {
    let now = txn.now();
    let (questions, unseen) = (questions(txn.state(), id), unseen(txn.state(), id));
    let generation = txn.edit_host(id, |host| {
        let (queue, episode) = host.desk_mut();
        show(queue, episode, now);
        for (session, ev) in unseen.iter().map(|(session, ev, _)| (*session, *ev)) {
            let through = queue.through.entry(session).or_default();
            through.shown = through.shown.max(ev);
        }
        episode.generation
    })?;
    let host = txn.state().host(id).ok_or_else(|| gone(id))?;
    let shown: Vec<&Row> = host.queue.rows.iter().filter(|row| row.owner == Owner::Primary).collect();
    let through = shown.iter().map(|row| row.seq).max();
    let name_of = |id: SessionId| txn.state().session(id).map(|s| s.record.label.clone());
    let wakes = collapse(shown.iter().copied()).iter().map(|wake| wake_line(wake, name_of)).collect();
    let of_rows: Vec<MessageId> = shown.iter().flat_map(|row| row.mids.iter().copied()).collect();
    let broken = host.queue.broken.iter().take(BROKEN_SHOWN).map(|row| line_of(row, ITEM_MAX)).collect();
    let broken_count = host.queue.broken.len();
    let mut notices = Vec::new();
    let mut texts = Vec::new();
    let dir = snapshot::party_dir(files.home(), Party::Session(id));
    for entry in txn.session(id)?.inbox.queue.iter().filter(|e| is_kept(e) && !of_rows.contains(&e.id)) {
        notices.push(entry.id);
        let message = snapshot::message_of(&dir, entry).ok().flatten();
        if let Some(about) = message.and_then(|m| m.about) {
            texts.push(envelope::notice_text(files.home(), [&about].into_iter()));
        }
    }
    Ok(HostDrainAnswer {
        session: id,
        wakes,
        notices: texts,
        notice_ids: notices,
        questions,
        unseen: unseen.into_iter().map(|(_, _, line)| line).collect(),
        broken,
        broken_count,
        through: through.unwrap_or_default(),
        generation,
    })
}

/// Shows the primary every row, under the open hand-back or, where none is, a new one.
pub fn show(queue: &mut Queue, episode: &mut Episode, now: Stamp) {
    let any = !queue.rows.is_empty();
    let open = episode.stage != Stage::Closed;
    if any && !open {
        let handback = Handback { cause: Cause::Drain, rows: Vec::new(), lines: Vec::new() };
        episode::open(episode, handback, MessageId::now(), now);
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
    let left = queue.rows.iter().any(|row| row.owner == Owner::Primary);
    if matches!(acked, Acked::Rows { older: false, .. }) && !left && episode.stage != Stage::Closed {
        episode::close(episode, now);
    }
    acked
}

/// What a drain printed of what is in no row is seen; rows that cannot be read are gone from the queue.
pub fn drained(txn: &mut Txn<'_>, id: SessionId, notices: &[MessageId], broken: usize) -> Result<(), Fault> {
    for notice in notices {
        receipt(txn, id, *notice, Receipt::Seen, Some("drained"))?;
    }
    if broken > 0 {
        txn.edit_host(id, |host| {
            let list = &mut host.queue_mut().0.broken;
            list.drain(..broken.min(list.len()));
        })?;
    }
    Ok(())
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

/// The newest line of each session that somebody should act on and that no row, acknowledgement or drain covers. It should be
/// none: it is for restored stores, and for what went on while the host was off.
pub fn unseen(state: &Store, primary: SessionId) -> Vec<(SessionId, u64, String)> {
    let Some(host) = state.host(primary) else { return Vec::new() };
    let mut total = 0;
    let uncovered = supervised(state, primary).into_iter().filter(|record| {
        let through = host.queue.through.get(&record.id).copied().unwrap_or_default();
        let in_row = host.queue.rows.iter().any(|r| r.session == Some(record.id) && r.ev >= record.state_seq);
        let news = record.state.is_actionable() && record.state != State::Asking || record.turn_end;
        news && !in_row && record.state_seq > through.shown.max(through.covered)
    });
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
