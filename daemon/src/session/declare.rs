//! A declaration: one line in the timeline, or nothing if it says what stands already.

use minder_proto::error::{Fault, Kind};
use minder_proto::event::{ANSWER_MAX, Author, Body, NOTE_MAX, Transition, cut};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use crate::store::Txn;

/// What is declared.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The state.
    pub to: State,
    /// What is said with it.
    pub note: Option<String>,
    /// Who says it.
    pub by: Author,
    /// The message that brought it about.
    pub cause: Option<MessageId>,
    /// A turn is over and nothing was declared.
    pub turn_end: bool,
    /// The turn's last answer; its beginning is kept.
    pub text: Option<String>,
    /// What it was read from.
    pub proof: Option<String>,
    /// When it was said, where that was not now. What was said of the session since then stands.
    pub said: Option<Stamp>,
}

impl Declaration {
    /// A plain one.
    pub fn new(to: State, note: Option<String>, by: Author) -> Self {
        Self { to, note, by, cause: None, turn_end: false, text: None, proof: None, said: None }
    }
}

/// Declares; gives the line that was written, or none if the state and note stand already, or newer ones do.
pub fn declare(txn: &mut Txn<'_>, id: SessionId, d: Declaration) -> Result<Option<u64>, Fault> {
    if d.note.as_ref().is_some_and(|n| n.len() > NOTE_MAX) {
        return Err(Fault::new(Kind::TooLarge, format!("a note has at most {NOTE_MAX} bytes"))
            .hint("send the whole text as a message: minder send @parent - <<'EOF'"));
    }
    let record = &txn.session(id)?.record;
    let from = record.state;
    let same = from == d.to && record.note == d.note && (record.turn_end || !d.turn_end);
    let cause = d.cause.or_else(|| record.turn.as_ref().and_then(|t| t.cause));
    if d.said.is_some_and(|said| said < record.state_at) {
        return Ok(None);
    }
    let at = d.said.unwrap_or_else(|| txn.now());
    let by_agent = d.by == Author::Agent;
    if same {
        // It stands; but that the session said it in this turn counts at the turn's end.
        if by_agent {
            let mark = txn.session(id)?.record.turn.as_ref().is_some_and(|t| !t.declared);
            if mark || record_turn_end(txn, id)? {
                txn.edit(id, |r| {
                    r.turn_end = false;
                    r.state_by = Author::Agent;
                    if let Some(turn) = &mut r.turn {
                        turn.declared = true;
                    }
                })?;
            }
        }
        return Ok(None);
    }
    let text = d.text.map(|t| cut(&t, ANSWER_MAX).to_owned()).filter(|t| !t.is_empty());
    let line = Transition {
        from,
        to: d.to,
        note: d.note.clone(),
        by: d.by,
        cause,
        turn: None,
        turn_end: d.turn_end,
        text,
        proof: d.proof,
    };
    let seq = txn.append(Party::Session(id), Body::State(line))?;
    txn.edit(id, |r| {
        r.state = d.to;
        r.state_at = at;
        r.state_by = d.by;
        r.state_seq = seq;
        r.turn_end = d.turn_end;
        r.note = d.note;
        if by_agent && let Some(turn) = &mut r.turn {
            turn.declared = true;
        }
    })?;
    Ok(Some(seq))
}

fn record_turn_end(txn: &Txn<'_>, id: SessionId) -> Result<bool, Fault> {
    Ok(txn.session(id)?.record.turn_end)
}
