//! A session whose process minder starts: the process it has, that it is up, that it is not.

use minder_proto::error::Fault;
use minder_proto::event::{Author, NOTE_MAX, cut};
use minder_proto::id::SessionId;
use minder_proto::record::{Channel, Process};
use minder_proto::state::State;

use super::{Declaration, declare};
use crate::store::Txn;

/// A process was made for it. It knows the token of this checksum, and runs in this pane: the one that it is typed to, where it is.
pub fn process_for(
    txn: &mut Txn<'_>,
    id: SessionId,
    process: Process,
    token: String,
    pane: String,
) -> Result<(), Fault> {
    txn.edit(id, |r| {
        r.process = Some(process);
        r.turn = None;
        r.compacting = false;
        if let Channel::Tmux { pane: typed, .. } = &mut r.channel {
            typed.clone_from(&pane);
        }
        if let Some(launch) = &mut r.launch {
            launch.token = token;
            launch.pane = Some(pane);
        }
    })
}

/// Something shows that it is up. With a message that waits it stays `queued` until it takes that: `idle` would be no news.
pub fn came_up(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    let session = txn.session(id)?;
    let record = &session.record;
    if !record.launch.as_ref().is_some_and(|launch| launch.pending) {
        return Ok(());
    }
    let asked = record.state == State::Asking && record.state_by == Author::Minder;
    let idle = asked || record.state == State::Queued && session.inbox.queue.is_empty();
    over(txn, id)?;
    if idle {
        declare(txn, id, Declaration::new(State::Idle, None, Author::Minder))?;
    }
    Ok(())
}

/// It could not be started, or ended before it was up.
pub fn not_up(txn: &mut Txn<'_>, id: SessionId, why: &str) -> Result<(), Fault> {
    over(txn, id)?;
    let note = Some(cut(why, NOTE_MAX).to_owned());
    declare(txn, id, Declaration::new(State::Error, note, Author::Minder)).map(drop)
}

/// What was started has done its work.
pub fn is_done(txn: &mut Txn<'_>, id: SessionId, note: &str) -> Result<(), Fault> {
    over(txn, id)?;
    declare(txn, id, Declaration::new(State::Done, Some(note.to_owned()), Author::Minder)).map(drop)
}

fn over(txn: &mut Txn<'_>, id: SessionId) -> Result<(), Fault> {
    txn.edit(id, |r| {
        if let Some(launch) = &mut r.launch {
            launch.pending = false;
        }
    })
}
