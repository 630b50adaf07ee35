//! The turn that runs, as far as hooks tell: how it began, and that it is over.

use minder_proto::error::Fault;
use minder_proto::event::Author;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{RunningTurn, SeenMessage, TurnOrigin};
use minder_proto::state::State;

use crate::session::{Declaration, declare};
use crate::store::Txn;

/// A turn begins.
pub fn begin(
    txn: &mut Txn<'_>,
    id: SessionId,
    prompt_id: Option<String>,
    by: TurnOrigin,
    cause: Option<MessageId>,
    note: Option<String>,
) -> Result<(), Fault> {
    let now = txn.now();
    let brief = cause.and_then(|m| txn.session(id).ok()?.inbox.queue.get(m)?.brief.clone());
    let notice_about = brief.and_then(|b| b.about).filter(|_| by == TurnOrigin::Notice);
    let hops = u8::from(matches!(by, TurnOrigin::Notice | TurnOrigin::Message));
    txn.edit(id, |r| {
        r.compacting = false;
        r.turn = Some(RunningTurn {
            prompt_id,
            since: now,
            by,
            cause,
            declared: false,
            dialog: None,
            messages: Vec::new(),
            notice_about,
            hops,
        });
    })?;
    if by == TurnOrigin::Notice {
        return Ok(()); // to say `working` would tell a watcher of its own notice
    }
    declare(txn, id, Declaration::new(State::Working, note, Author::Hook)).map(|_| ())
}

/// Makes sure that a turn is known when one of its events comes: its beginning may have been missed, and a text that
/// was typed while another turn ran starts one without saying so. Gives false for an event of a turn that is over.
pub fn ensure(txn: &mut Txn<'_>, id: SessionId, prompt_id: Option<&String>) -> Result<bool, Fault> {
    let record = &txn.session(id)?.record;
    if prompt_id.is_some() && record.last_turn.as_ref() == prompt_id {
        return Ok(false);
    }
    match &record.turn {
        Some(turn) if prompt_id.is_none() || turn.prompt_id.as_ref() == prompt_id => {}
        _ => begin(txn, id, prompt_id.cloned(), TurnOrigin::Operator, None, None)?,
    }
    Ok(true)
}

/// The turn is over: what was seen in it is answered. Gives the turn, if one ran, and the messages.
pub fn end(
    txn: &mut Txn<'_>,
    id: SessionId,
    prompt_id: Option<&String>,
) -> Result<Option<RunningTurn>, Fault> {
    txn.edit(id, |r| {
        let turn = r.turn.take();
        r.compacting = false;
        r.last_turn = prompt_id.cloned().or_else(|| turn.as_ref().and_then(|t| t.prompt_id.clone()));
        turn
    })
}

/// What was seen in a turn is answered by its end, whose text stands at `seq`.
pub fn answer(txn: &mut Txn<'_>, id: SessionId, messages: &[SeenMessage], seq: u64) -> Result<(), Fault> {
    for message in messages {
        txn.answered(Party::Session(id), message.id, message.seq, format!("turn {seq}"))?;
    }
    Ok(())
}
