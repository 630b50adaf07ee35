//! The turn that runs, as far as hooks tell: how it began, and that it is over.

use minder_proto::error::Fault;
use minder_proto::event::Author;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{RunningTurn, SeenMessage, TurnEnd, TurnOrigin};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use crate::session::{Declaration, declare};
use crate::store::Txn;

/// How a turn begins.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The harness's id of it.
    pub prompt_id: Option<String>,
    /// Who started it.
    pub by: TurnOrigin,
    /// The message that did, where one did.
    pub cause: Option<MessageId>,
    /// Notices and messages between it and a person's act.
    pub hops: u8,
    /// What is said of it.
    pub note: Option<String>,
    /// When that was said, where it was not now.
    pub said: Option<Stamp>,
}

/// A turn begins.
pub fn begin(txn: &mut Txn<'_>, id: SessionId, beginning: Beginning) -> Result<(), Fault> {
    let Beginning { prompt_id, by, cause, hops, note, said } = beginning;
    let since = said.unwrap_or_else(|| txn.now());
    let brief = cause.and_then(|m| txn.session(id).ok()?.inbox.queue.get(m)?.brief.clone());
    let notice_about = brief.and_then(|b| b.about).filter(|_| by == TurnOrigin::Notice);
    txn.edit(id, |r| {
        r.compacting = false;
        r.turn = Some(RunningTurn {
            prompt_id,
            since,
            by,
            cause,
            declared: false,
            dialog: None,
            dialog_input: None,
            dialog_since: None,
            messages: Vec::new(),
            notice_about,
            hops,
        });
    })?;
    if by == TurnOrigin::Notice {
        return Ok(()); // to say `working` would tell a watcher of its own notice
    }
    let working = Declaration { said, ..Declaration::new(State::Working, note, Author::Hook) };
    declare(txn, id, working).map(|_| ())
}

/// Makes sure that a turn is known when one of its events comes: its beginning may have been missed, and a text that
/// was typed while another turn ran starts one without saying so. Gives false for an event of a turn that is over.
pub fn ensure(
    txn: &mut Txn<'_>,
    id: SessionId,
    prompt_id: Option<&String>,
    said: Option<Stamp>,
) -> Result<bool, Fault> {
    let record = &txn.session(id)?.record;
    if prompt_id.is_some() && record.last_turn.as_ref() == prompt_id {
        return Ok(false);
    }
    match &record.turn {
        Some(turn) if prompt_id.is_none() || turn.prompt_id.as_ref() == prompt_id => {}
        _ => {
            let prompt_id = prompt_id.cloned();
            let unknown =
                Beginning { prompt_id, by: TurnOrigin::Operator, cause: None, hops: 0, note: None, said };
            begin(txn, id, unknown)?;
        }
    }
    Ok(true)
}

/// Whatever dialog was open is answered.
pub fn answered(
    txn: &mut Txn<'_>,
    id: SessionId,
    said: Option<Stamp>,
    proof: Option<&str>,
) -> Result<(), Fault> {
    let record = &txn.session(id)?.record;
    if record.turn.as_ref().is_none_or(|turn| turn.dialog.is_none()) {
        return Ok(());
    }
    let hook_asks = record.state == State::Asking && record.state_by == Author::Hook;
    txn.edit(id, |r| {
        if let Some(turn) = &mut r.turn {
            turn.dialog = None;
            turn.dialog_input = None;
            turn.dialog_since = None;
        }
    })?;
    if hook_asks {
        let proof = proof.map(str::to_owned);
        declare(
            txn,
            id,
            Declaration { proof, said, ..Declaration::new(State::Working, None, Author::Hook) },
        )?;
    }
    Ok(())
}

/// The turn is over. Gives the turn, if one ran. What is said of its end is said before: while it is known what brought the
/// turn about, and how far from a person's act it is.
pub fn end(
    txn: &mut Txn<'_>,
    id: SessionId,
    prompt_id: Option<&String>,
) -> Result<Option<RunningTurn>, Fault> {
    txn.edit(id, |r| {
        let turn = r.turn.take();
        r.compacting = false;
        r.last_end = None;
        r.last_turn = prompt_id.cloned().or_else(|| turn.as_ref().and_then(|t| t.prompt_id.clone()));
        turn
    })
}

/// A turn came to its own end: what was seen in it is answered, and what was given
/// in it will be as soon as there is evidence that it was seen.
pub fn answer(txn: &mut Txn<'_>, id: SessionId, messages: &[SeenMessage], end: TurnEnd) -> Result<(), Fault> {
    for message in messages {
        txn.answered(Party::Session(id), message.id, message.seq, end.reason())?;
    }
    txn.edit(id, |r| r.last_end = Some(end))
}

/// A person broke the turn off: it is over without news of an answer. Nothing where no turn runs, or another one.
pub fn interrupted(
    txn: &mut Txn<'_>,
    id: SessionId,
    prompt_id: Option<&String>,
    said: Option<Stamp>,
    proof: Option<&str>,
) -> Result<(), Fault> {
    let Some(running) = &txn.session(id)?.record.turn else { return Ok(()) };
    if prompt_id.is_some() && running.prompt_id.is_some() && running.prompt_id.as_ref() != prompt_id {
        return Ok(());
    }
    if !is_silent(running) {
        let idle = Declaration {
            proof: proof.map(str::to_owned),
            said,
            ..Declaration::new(State::Idle, Some("interrupted".to_owned()), Author::Hook)
        };
        declare(txn, id, idle)?;
    }
    end(txn, id, prompt_id).map(|_| ())
}

/// True where nothing was said at a turn's beginning, so that nothing is to be said at its end.
pub fn is_silent(turn: &RunningTurn) -> bool {
    turn.by == TurnOrigin::Notice && turn.dialog.is_none()
}
