//! One look at a host, inside a commit: is a batch due, is the open hand-back given, told again or given up. Decided on
//! the state at commit, so that what changed meanwhile is never missed.

use std::time::Duration;

use minder_proto::error::Fault;
use minder_proto::event::{Message, Receipt};
use minder_proto::hold::Hold;
use minder_proto::host::episode::{Cause, Stage};
use minder_proto::host::ledger::{BatchFacts, Change, Event};
use minder_proto::host::posture::Mode;
use minder_proto::host::row::{Kind, Owner, Queue, Row};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::SessionRecord;
use minder_proto::stamp::Stamp;

use super::episode::{self, Due, Handback};
use super::{handback, queue};
use crate::delivery::rules;
use crate::session::from_minder;
use crate::store::{State, Txn};

/// What a look led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// What the hook that waits shall print, and under which generation it is handed now.
    pub give: Option<(u64, String)>,
    /// When to look again if nothing happens until then.
    pub again: Option<Stamp>,
}

/// Looks at the host of a primary. `waiter` says whether a hook waits to wake it.
pub fn step(txn: &mut Txn<'_>, id: SessionId, waiter: bool) -> Result<Stepped, Fault> {
    let now = txn.now();
    if txn.state().session(id).is_none() || !super::signals::is_on(txn.state(), id) {
        return Ok(Stepped::default());
    }
    own(txn, id)?;
    let record = txn.session(id)?.record.clone();
    let idle = rules::at_boundaries(&record, true).is_none();
    let mut next = Next(None);
    noticed(txn, id, &record)?;
    next.sooner(told_again(txn, id, &record, idle)?);
    next.sooner(batch(txn, id, idle && waiter)?);
    let mut give = None;
    let Some(host) = txn.state().host(id) else { return Ok(Stepped::default()) };
    if host.episode.stage == Stage::Pending {
        if idle && waiter {
            let text = text(txn.state(), id);
            let generation = host.episode.generation;
            hand(txn, id, generation)?;
            give = Some((generation, text));
        } else if !waiter {
            next.sooner(otherwise(txn, id, &record)?);
        }
    }
    // With nothing that comes by itself a commit is what the next look waits for.
    Ok(Stepped { give, again: next.0.filter(|at| *at > now) })
}

#[derive(Clone, Copy)]
struct Next(Option<Stamp>);

impl Next {
    fn sooner(&mut self, at: Option<Stamp>) {
        self.0 = self.0.into_iter().chain(at).min();
    }
}

/// Follows the primary's conversation and process: another one of either is another binding.
fn own(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    let record = &txn.session(id)?.record;
    let conversation = record.live_binding().map(|b| b.id.clone());
    let process = record.process.clone().filter(|p| p.ended.is_none());
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(()) };
    let old = &host.record.binding;
    let same_process = match (&old.process, &process) {
        (Some(old), Some(new)) => old.is(new),
        (None, None) => true,
        _ => false,
    };
    if same_process && old.harness_id == conversation {
        return Ok(());
    }
    let change = |generation: u64, owned: bool| {
        Some(format!("{generation} {}", if owned { "owned" } else { "not owned" }))
    };
    let (before, owned) = (change(old.generation, old.process.is_some()), process.is_some());
    let generation = old.generation + 1;
    txn.edit_host(id, |host| {
        let binding = &mut host.record_mut().binding;
        (binding.generation, binding.harness_id, binding.process) = (generation, conversation, process);
        binding.since = Some(now);
    })?;
    let after = change(generation, owned);
    txn.note_host(id, Event::Binding(Change { old: before, new: after, cause: None }))
}

/// A turn of the primary that began after a hand-back was given shows that it was read.
fn noticed(txn: &mut Txn<'_>, id: SessionId, record: &SessionRecord) -> Result<(), Fault> {
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(()) };
    let Some(since) = host.episode.since.filter(|_| host.episode.stage == Stage::Handed) else {
        return Ok(());
    };
    let began = record.turn.as_ref().is_some_and(|turn| turn.since >= since);
    let ended = record.last_end.is_some_and(|end| end.at > since);
    if began || ended {
        txn.edit_host(id, |host| episode::seen(host.episode_mut(), now))?;
    }
    Ok(())
}

/// Rows that the primary was told of and has not acknowledged.
pub fn owed(queue: &Queue) -> impl Iterator<Item = &Row> {
    queue.rows.iter().filter(|row| row.owner == Owner::Primary || row.owner == Owner::Free && row.raised)
}

/// What the clock makes of the open hand-back.
fn told_again(
    txn: &mut Txn<'_>,
    id: SessionId,
    record: &SessionRecord,
    idle: bool,
) -> Result<Option<Stamp>, Fault> {
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(None) };
    let rows: Vec<u64> = owed(&host.queue).map(|row| row.seq).collect();
    let idle_since = idle.then(|| record.last_end.map_or(record.state_at, |end| end.at));
    match episode::due(&host.episode, idle_since, rows.len(), now) {
        Due::Nothing(at) => return Ok(at),
        Due::Again => {
            txn.edit_host(id, |host| episode::again(host.episode_mut(), now))?;
            wait_again(txn, id)?;
        }
        Due::Repeat(line) => {
            let generation = txn.edit_host(id, |host| {
                episode::repeat(host.episode_mut(), line, rows.clone(), MessageId::now(), now);
                host.episode.generation
            })?;
            handed_back(txn, id, rows, "repeat", generation)?;
        }
        Due::Stuck => {
            txn.edit_host(id, |host| episode::stuck(host.episode_mut(), now))?;
            alarm(txn, id, &rows)?;
        }
    }
    Ok(None)
}

/// Tells the person, once a hand-back was given up.
fn alarm(txn: &mut Txn<'_>, id: SessionId, rows: &[u64]) -> Result<(), Fault> {
    let label = txn.session(id)?.record.label.clone();
    let body = format!(
        "The host of {label} ({}) told it of {} wakes as often as it does, and they are not acknowledged. In it: minder \
         host drain. From here: minder host status {label}",
        id.short(),
        rows.len()
    );
    txn.post(Party::Operator, from_minder(None, body))?;
    txn.note_host(
        id,
        Event::Alarm(Change { cause: Some("not acknowledged".to_owned()), ..Change::default() }),
    )
}

/// Judges the rows that never were in a batch, if they are due and the host is on duty. Without an engine every batch is
/// the primary's.
fn batch(txn: &mut Txn<'_>, id: SessionId, on_duty: bool) -> Result<Option<Stamp>, Fault> {
    let now = txn.now();
    let coalesce = txn.config().host.coalesce.0;
    let absent = txn.config().host.park.absent_after.0;
    let Some(host) = txn.state().host(id) else { return Ok(None) };
    let Some(due) = due(&host.queue, coalesce) else { return Ok(None) };
    if now < due && due <= now.plus(coalesce) {
        return Ok(Some(due));
    }
    if !on_duty {
        // Nobody waits for it: its ordinary channel gets it then.
        let late = due.plus(absent);
        if now < late || !is_reachable(&txn.session(id)?.record) {
            return Ok(Some(late));
        }
    }
    let (rows, generation) = txn.edit_host(id, |host| {
        let rows = queue::raise(host.queue_mut().0);
        let handback = Handback { cause: Cause::Batch, rows: rows.clone(), lines: Vec::new() };
        (rows, episode::open(host.episode_mut(), handback, MessageId::now(), now))
    })?;
    let facts = BatchFacts {
        rows: rows.clone(),
        posture: Mode::Attended,
        reason: "engine".to_owned(),
        ..BatchFacts::default()
    };
    txn.note_host(id, Event::Passed(facts))?;
    handed_back(txn, id, rows, "", generation)?;
    Ok(None)
}

/// When the batch is due that waits; none where none does.
pub fn due(queue: &Queue, coalesce: Duration) -> Option<Stamp> {
    let new = queue.rows.iter().filter(|row| row.owner == Owner::Free && !row.raised);
    let at = |row: &Row| if row.kind == Kind::Signal { row.first_at.plus(coalesce) } else { row.at };
    new.map(at).min()
}

/// True for a primary whose own channel may reach it: its process lives, and no turn of it runs.
fn is_reachable(record: &SessionRecord) -> bool {
    !matches!(rules::at_boundaries(record, true), Some(Hold::Offline | Hold::Busy | Hold::Dialog))
}

fn handed_back(
    txn: &mut Txn<'_>,
    id: SessionId,
    rows: Vec<u64>,
    reason: &str,
    generation: u64,
) -> Result<(), Fault> {
    let facts = BatchFacts {
        rows,
        posture: Mode::Attended,
        reason: reason.to_owned(),
        generation: Some(generation),
        ..BatchFacts::default()
    };
    txn.note_host(id, Event::Handback(facts))
}

/// The text of the open hand-back.
pub fn text(state: &State, id: SessionId) -> String {
    let Some(host) = state.host(id) else { return String::new() };
    let named = |row: &&Row| host.episode.rows.contains(&row.seq);
    let rows: Vec<&Row> = host.queue.rows.iter().filter(named).collect();
    handback::render(&rows, &host.episode.lines, |id| state.session(id).map(|s| s.record.label.clone()))
}

/// The hand-back is given: its notices are with the primary from here on.
fn hand(txn: &mut Txn<'_>, id: SessionId, generation: u64) -> Result<(), Fault> {
    let now = txn.now();
    let mids = mids(txn.state(), id);
    txn.edit_host(id, |host| episode::handed(host.episode_mut(), generation, now))?;
    for mid in mids {
        receipt(txn, id, mid, Receipt::Handed, None)?;
    }
    Ok(())
}

/// Nothing took what was given: it waits again.
pub fn not_given(txn: &mut Txn<'_>, id: SessionId, generation: u64) -> Result<(), Fault> {
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(()) };
    if host.episode.stage == Stage::Handed && host.episode.generation == generation {
        txn.edit_host(id, |host| {
            let episode = host.episode_mut();
            episode::again(episode, now);
            episode.given = episode.given.saturating_sub(1);
        })?;
        wait_again(txn, id)?;
    }
    Ok(())
}

/// The notices of the open hand-back wait again.
fn wait_again(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    for mid in mids(txn.state(), id) {
        receipt(txn, id, mid, Receipt::Held, Some(Hold::Posture.as_str()))?;
    }
    Ok(())
}

/// The notices behind the rows of the open hand-back.
fn mids(state: &State, id: SessionId) -> Vec<MessageId> {
    let Some(host) = state.host(id) else { return Vec::new() };
    let named = host.queue.rows.iter().filter(|row| host.episode.rows.contains(&row.seq));
    named.flat_map(|row| row.mids.iter().copied()).collect()
}

/// Writes how far a notice got. One that is not in the queue any more has got where it gets.
pub fn receipt(
    txn: &mut Txn<'_>,
    primary: SessionId,
    mid: MessageId,
    to: Receipt,
    reason: Option<&str>,
) -> Result<(), Fault> {
    let party = Party::Session(primary);
    let entry = txn.session(primary)?.inbox.queue.get(mid);
    let Some(attempt) = entry.filter(|e| e.receipt != to).map(|e| e.attempt) else { return Ok(()) };
    let attempt = if to == Receipt::Handed { attempt + 1 } else { attempt };
    txn.receipt(party, mid, to, reason.map(str::to_owned), attempt, Some(super::CHANNEL))
}

/// Where nobody waits for long, the hand-back goes by the primary's ordinary channel, once.
fn otherwise(txn: &mut Txn<'_>, id: SessionId, record: &SessionRecord) -> Result<Option<Stamp>, Fault> {
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(None) };
    let pending = host.episode.since.unwrap_or(now);
    let since = record.last_end.map_or(pending, |end| end.at.max(pending));
    let at = since.plus(txn.config().host.park.absent_after.0);
    if now < at {
        return Ok(Some(at));
    }
    if !is_reachable(record) {
        return Ok(None);
    }
    let (generation, body) = (host.episode.generation, text(txn.state(), id));
    let message = Message { ..from_minder(None, body) };
    txn.post(Party::Session(id), message)?;
    hand(txn, id, generation)?;
    Ok(None)
}
