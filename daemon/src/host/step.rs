//! One look at a host: is a batch due, is the open hand-back given, told again or given up. `decide` is a function over the
//! queue, the hand-back, and what is known of the primary; `step` runs it inside a commit, on the state as it is then, so
//! that what changed meanwhile is never missed, and does what it says.

use std::time::Duration;

use minder_proto::config;
use minder_proto::error::Fault;
use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::host::episode::{Cause, Episode, Stage};
use minder_proto::host::ledger::{BatchFacts, Change, Event};
use minder_proto::host::row::{Kind, Owner, Queue, Row};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::stamp::Stamp;
use minder_proto::state::State as Working;

use super::episode::{self, Due, Handback};
use super::upkeep::{self, Sight, Signs};
use super::{drain, handback, queue};
use crate::delivery::rules;
use crate::session::from_minder;
use crate::store::{Session, State, Txn};

/// What is known of a primary.
#[derive(Clone, Debug)]
pub struct View {
    /// No turn of it runs, no dialog is open, and its process lives.
    pub idle: bool,
    /// A hook waits to wake it.
    pub waiter: bool,
    /// Its own channel may reach it.
    pub reachable: bool,
    /// Its process lives, as far as is known.
    pub owned: bool,
    /// When the turn began that runs.
    pub turn: Option<Stamp>,
    /// When the last one ended, or it came to its state.
    pub last_end: Stamp,
    /// From the first row of a batch until it is due.
    pub coalesce: Duration,
    /// After how long without a hook the ordinary channel is used.
    pub absent_after: Duration,
}

impl View {
    /// As its record has it.
    pub fn of(record: &SessionRecord, waiter: bool, config: &config::Host) -> Self {
        let hold = rules::at_boundaries(record, true);
        Self {
            idle: hold.is_none(),
            waiter,
            reachable: !matches!(hold, Some(Hold::Offline | Hold::Busy | Hold::Dialog)),
            owned: hold != Some(Hold::Offline),
            turn: record.turn.as_ref().map(|turn| turn.since),
            last_end: record.last_end.map_or(record.state_at, |end| end.at),
            coalesce: config.coalesce.0,
            absent_after: config.park.absent_after.0,
        }
    }
}

/// What is to be done beside the change of queue and hand-back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The rows of a batch are the primary's.
    Passed(Vec<u64>),
    /// A hand-back was opened, for these rows and this reason.
    Opened(Vec<u64>, &'static str),
    /// The hook that waits is given the open hand-back: its notices are with the primary.
    Give,
    /// The primary's ordinary channel is.
    Ordinary,
    /// What was given waits again.
    WaitsAgain,
    /// The person is told that these rows are not acknowledged.
    Alarm(Vec<u64>),
    /// The person is told that so many rows wait, and the primary's process is gone.
    Unowned(usize),
}

/// What a look came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// In this order.
    pub effects: Vec<Effect>,
    /// When to look again if nothing happens until then.
    pub again: Option<Stamp>,
}

impl Decided {
    /// A time that is past is none to look again at.
    fn sooner(&mut self, at: Option<Stamp>, now: Stamp) {
        self.again = self.again.into_iter().chain(at.filter(|at| *at > now)).min();
    }
}

/// Decides, and changes queue and hand-back accordingly.
pub fn decide(queue: &mut Queue, episode: &mut Episode, view: &View, now: Stamp) -> Decided {
    let mut decided = Decided::default();
    // Nothing is owed without a hand-back that is open: what lost its own is judged anew.
    if episode.stage == Stage::Closed {
        queue::unshow(queue);
    }
    // A turn that began after a hand-back was given shows that it was read.
    if let (Stage::Handed, Some(since)) = (episode.stage, episode.since)
        && (view.turn.is_some_and(|began| began >= since) || view.last_end > since)
    {
        episode::seen(episode, now);
    }
    told_again(queue, episode, view, now, &mut decided);
    batch(queue, episode, view, now, &mut decided);
    if episode.stage == Stage::Pending {
        let generation = episode.generation;
        if view.idle && view.waiter {
            episode::handed(episode, generation, now);
            decided.effects.push(Effect::Give);
        } else if !view.waiter {
            // Where nobody waits for long, it goes by the ordinary channel, once.
            let at = episode.since.unwrap_or(now).max(view.last_end).plus(view.absent_after);
            decided.sooner(Some(at), now);
            if now >= at && view.reachable {
                episode::handed(episode, generation, now);
                decided.effects.push(Effect::Ordinary);
            }
        }
    }
    // With nothing that comes by itself a commit is what the next look waits for.
    decided
}

/// Rows that the primary was told of and has not acknowledged.
pub fn owed(queue: &Queue) -> impl Iterator<Item = &Row> {
    queue.rows.iter().filter(|row| row.owner == Owner::Primary || row.owner == Owner::Free && row.raised)
}

/// What the clock makes of the open hand-back.
fn told_again(queue: &Queue, episode: &mut Episode, view: &View, now: Stamp, decided: &mut Decided) {
    let rows: Vec<u64> = owed(queue).map(|row| row.seq).collect();
    match episode::due(episode, view.idle.then_some(view.last_end), rows.len(), now) {
        Due::Nothing(at) => decided.sooner(at, now),
        Due::Again => {
            episode::again(episode, now);
            decided.effects.push(Effect::WaitsAgain);
        }
        Due::Repeat(line) => {
            episode::repeat(episode, line, rows.clone(), now);
            decided.effects.push(Effect::Opened(rows, "repeat"));
        }
        Due::Stuck => {
            episode::stuck(episode, now);
            decided.effects.push(Effect::Alarm(rows));
        }
    }
}

/// Judges the rows that never were in a batch, if they are due and the host is on duty. Without an engine every batch is
/// the primary's.
fn batch(queue: &mut Queue, episode: &mut Episode, view: &View, now: Stamp, decided: &mut Decided) {
    let Some(due) = due(queue, view.coalesce) else { return };
    // Further off than it can be is a clock that was set back.
    if now < due && due <= now.plus(view.coalesce) {
        return decided.sooner(Some(due), now);
    }
    let on_duty = view.idle && view.waiter;
    if !on_duty {
        // Nobody waits for it: its ordinary channel gets it then.
        let late = due.max(view.last_end).plus(view.absent_after);
        decided.sooner(Some(late), now);
        if now >= late && !view.owned && !episode.alarmed {
            episode.alarmed = true;
            decided.effects.push(Effect::Unowned(queue.rows.len()));
        }
        if now < late || !view.reachable {
            return;
        }
    }
    let rows = queue::raise(queue);
    let handback = Handback { cause: Cause::Batch, rows: rows.clone(), lines: Vec::new() };
    episode::open(episode, handback, now);
    decided.effects.push(Effect::Passed(rows.clone()));
    decided.effects.push(Effect::Opened(rows, ""));
    if !on_duty {
        let generation = episode.generation;
        episode::handed(episode, generation, now);
        decided.effects.push(Effect::Ordinary);
    }
}

/// When the batch is due that waits; none where none does.
pub fn due(queue: &Queue, coalesce: Duration) -> Option<Stamp> {
    let new = queue.rows.iter().filter(|row| row.owner == Owner::Free && !row.raised);
    let at = |row: &Row| if row.kind == Kind::Signal { row.first_at.plus(coalesce) } else { row.at };
    new.map(at).min()
}

/// Looks by the clock for what nothing else tells of; gives when to do so again.
pub fn upkeep(txn: &mut Txn<'_>, id: SessionId, signs: &Signs) -> Result<Option<Stamp>, Fault> {
    let now = txn.now();
    let state = txn.state();
    let Some(host) = state.host(id).filter(|host| host.record.enabled) else { return Ok(None) };
    let sight = |record: &SessionRecord| Sight {
        session: record.id,
        // A turn of a headless session has windows of its own.
        works: record.state == Working::Working && !matches!(record.channel, Channel::Headless { .. }),
        heard: signs.of(record.id).max(record.state_at),
        incarnation: record.incarnation,
        ev: record.state_seq,
    };
    let sights: Vec<Sight> = drain::supervised(state, id).into_iter().map(sight).collect();
    // One that waits says it already.
    let reviewed_already = host.queue.rows.iter().any(|row| row.kind == Kind::Heartbeat);
    let unseen = !reviewed_already && !drain::uncovered(state, id, true).is_empty();
    let reviewed = host.producers.reviewed;
    let woken = reviewed.is_some_and(|at| host.queue.rows.iter().any(|row| row.at > at));
    let mut producers = (*host.producers).clone();
    let silent = txn.config().host.stale.silent.0;
    let found = upkeep::look(&mut producers, &sights, silent, (unseen, woken), now);
    if producers != *host.producers {
        txn.edit_host(id, |host| *host.producers_mut() = producers)?;
    }
    found.news.into_iter().try_for_each(|news| super::signals::raise(txn, id, news))?;
    Ok(found.again)
}

/// What the hook that waits is given: the text, and under which generation.
pub type Given = Option<(u64, String)>;

/// Looks at the host of a primary; gives what its hook is given, and when to look again.
pub fn step(txn: &mut Txn<'_>, id: SessionId, waiter: bool) -> Result<(Given, Option<Stamp>), Fault> {
    let now = txn.now();
    if txn.state().session(id).is_none() || !super::signals::is_on(txn.state(), id) {
        return Ok((None, None));
    }
    own(txn, id)?;
    drop_unwatched(txn, id)?;
    let view = View::of(&txn.session(id)?.record, waiter, &txn.config().host);
    let before = txn.state().host(id).map(|host| (host.queue.clone(), host.episode.clone()));
    let Some((queue, episode)) = before else { return Ok((None, None)) };
    let (mut new_queue, mut new_episode) = ((*queue).clone(), (*episode).clone());
    let decided = decide(&mut new_queue, &mut new_episode, &view, now);
    if new_queue != *queue || new_episode != *episode {
        txn.edit_host(id, |host| {
            *host.queue_mut().0 = new_queue;
            *host.episode_mut() = new_episode;
        })?;
    }
    let mut given = None;
    for effect in decided.effects {
        given = given.or(act(txn, id, effect)?);
    }
    Ok((given, decided.again))
}

/// Does what was decided.
fn act(txn: &mut Txn<'_>, id: SessionId, effect: Effect) -> Result<Given, Fault> {
    let facts =
        |rows: Vec<u64>, reason: &str, generation| BatchFacts { rows, reason: reason.to_owned(), generation };
    let generation = txn.state().host(id).map_or(0, |host| host.episode.generation);
    match effect {
        Effect::Passed(rows) => txn.note_host(id, Event::Passed(facts(rows, "", None)))?,
        Effect::Opened(rows, why) => {
            txn.note_host(id, Event::Handback(facts(rows, why, Some(generation))))?;
        }
        Effect::Give => {
            let text = text(txn.state(), id);
            notices(txn, id, Receipt::Handed, None)?;
            return Ok(Some((generation, text)));
        }
        Effect::Ordinary => {
            let body = text(txn.state(), id);
            let (mid, _) = txn.post(Party::Session(id), from_minder(None, body))?;
            txn.edit_host(id, |host| host.episode_mut().mid = Some(mid))?;
            notices(txn, id, Receipt::Handed, None)?;
        }
        Effect::WaitsAgain => notices(txn, id, Receipt::Held, Some(Hold::Posture.as_str()))?,
        Effect::Alarm(rows) => alarm(txn, id, rows.len(), "told it of them as often as it does")?,
        Effect::Unowned(rows) => alarm(txn, id, rows, "has nobody to tell: its process is gone")?,
    }
    Ok(None)
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

/// Tells the person, once, that wakes wait in vain.
fn alarm(txn: &mut Txn<'_>, id: SessionId, rows: usize, why: &str) -> Result<(), Fault> {
    let label = txn.session(id)?.record.label.clone();
    let body = format!(
        "{rows} wakes of {label} ({}) are not acknowledged, and its host {why}. In it: minder host drain. From here: minder \
         host status {label}",
        id.short()
    );
    txn.post(Party::Operator, from_minder(None, body))?;
    txn.note_host(id, Event::Alarm(Change { cause: Some(why.to_owned()), ..Change::default() }))
}

/// What was never told of a session that the primary watches no more is no wake any more.
fn drop_unwatched(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    let state = txn.state();
    let Some(host) = state.host(id) else { return Ok(()) };
    let left = |row: &Row| {
        let session = row.session.and_then(|of| state.session(of));
        let works_for =
            |s: &Session| s.record.parent == Some(id) || s.watchers.iter().any(|w| w.watcher == id);
        row.is_untouched() && !row.raised && session.is_some_and(|s| !works_for(s))
    };
    let gone: Vec<u64> = host.queue.rows.iter().filter(|row| left(row)).map(|row| row.seq).collect();
    if gone.is_empty() {
        return Ok(());
    }
    txn.edit_host(id, |host| host.queue_mut().0.rows.retain(|row| !gone.contains(&row.seq)))
}

/// The text of the open hand-back.
fn text(state: &State, id: SessionId) -> String {
    let Some(host) = state.host(id) else { return String::new() };
    let named = |row: &&Row| host.episode.rows.contains(&row.seq);
    let rows: Vec<&Row> = host.queue.rows.iter().filter(named).collect();
    handback::render(&rows, &host.episode.lines, |id| state.session(id).map(|s| s.record.label.clone()))
}

/// Nothing took what was given: it waits again.
pub fn not_given(txn: &mut Txn<'_>, id: SessionId, generation: u64) -> Result<(), Fault> {
    let now = txn.now();
    let Some(host) = txn.state().host(id) else { return Ok(()) };
    if host.episode.stage != Stage::Handed || host.episode.generation != generation {
        return Ok(());
    }
    txn.edit_host(id, |host| {
        let episode = host.episode_mut();
        episode::again(episode, now);
        episode.given = episode.given.saturating_sub(1);
    })?;
    notices(txn, id, Receipt::Held, Some(Hold::Posture.as_str()))
}

/// Writes how far the notices behind the rows of the open hand-back got.
fn notices(txn: &mut Txn<'_>, id: SessionId, to: Receipt, reason: Option<&str>) -> Result<(), Fault> {
    let Some(host) = txn.state().host(id) else { return Ok(()) };
    let named = host.queue.rows.iter().filter(|row| host.episode.rows.contains(&row.seq));
    let mids: Vec<MessageId> = named.flat_map(|row| row.mids.iter().copied()).collect();
    mids.into_iter().try_for_each(|mid| receipt(txn, id, mid, to, reason))
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
