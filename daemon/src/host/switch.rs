//! A host is switched on or off. What it keeps outlives both.

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::host::ledger::{Change, Event};
use minder_proto::host::record::HostRecord;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::queue;

use super::episode;
use super::step::receipt;
use crate::delivery::rules::is_of_host;
use crate::store::Txn;

/// Makes a session a primary whose host supervises. False if it did already.
pub fn enable(txn: &mut Txn<'_>, id: SessionId) -> Result<bool, Fault> {
    let record = &txn.session(id)?.record;
    let harness = record.harness.clone();
    if harness.as_deref() != Some("claude") {
        let what = harness.map_or_else(|| "no harness".to_owned(), |h| format!("harness {h}"));
        return Err(Fault::new(
            Kind::Refused,
            format!("{:?} has {what}: only Claude Code keeps something that waits beside it", record.label),
        )
        .hint("its notices stay ordinary messages: minder watch"));
    }
    if txn.state().host(id).is_some_and(|host| host.record.enabled) {
        return Ok(false);
    }
    txn.make_host(id, HostRecord::new(harness.clone()))?;
    txn.edit_host(id, |host| {
        let record = host.record_mut();
        (record.enabled, record.harness) = (true, harness);
    })?;
    txn.edit(id, |record| record.primary = true)?;
    switched(txn, id, "on")?;
    Ok(true)
}

/// Ends the supervision of a primary: its rows are nobody's, and the news that was kept goes out as ordinary messages. False if
/// it was off.
pub fn disable(txn: &mut Txn<'_>, id: SessionId) -> Result<bool, Fault> {
    if !super::signals::is_on(txn.state(), id) {
        return Ok(false);
    }
    let now = txn.now();
    txn.edit_host(id, |host| {
        host.record_mut().enabled = false;
        let (queue, episode) = host.desk_mut();
        super::queue::unshow(queue);
        episode::close(episode, now);
    })?;
    release(txn, id)?;
    switched(txn, id, "off")?;
    Ok(true)
}

/// News that was kept for the drains of a host goes out by the session's own channel.
fn release(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    for mid in kept(&txn.session(id)?.inbox.queue) {
        receipt(txn, id, mid, Receipt::Queued, None)?;
    }
    Ok(())
}

fn kept(queue: &queue::Queue) -> Vec<MessageId> {
    queue.iter().filter(|e| is_of_host(e)).map(|e| e.id).collect()
}

/// The same for sessions whose host is gone: its record could not be read.
pub fn release_strays(txn: &mut Txn<'_>) -> Result<(), Fault> {
    let state = txn.state();
    let off = state.sessions().filter(|s| !super::signals::is_on(state, s.record.id));
    let strays: Vec<SessionId> =
        off.filter(|s| !kept(&s.inbox.queue).is_empty()).map(|s| s.record.id).collect();
    strays.into_iter().try_for_each(|id| release(txn, id))
}

fn switched(txn: &mut Txn<'_>, id: SessionId, to: &str) -> Result<(), Fault> {
    let change = Change { new: Some(to.to_owned()), ..Change::default() };
    txn.note_host(id, Event::Switch(change))
}
