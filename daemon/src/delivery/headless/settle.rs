//! What a settled turn of a queue leads to, in one commit: the state, the receipts of what it was given, the replies to
//! those who sent it, what its account is held by. The same turn told again changes nothing.

use minder_proto::account::{AccountHold, Circuit, Clocks, HoldKind};
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{ANSWER_MAX, ANSWER_NOTE, Author, BODY_MAX, Body, Message, Receipt, cut};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{Binding, RunningTurn, SessionRecord, TurnEnd, TurnOrigin};
use minder_proto::snapshot;
use minder_proto::state::State;
use minder_proto::text::{first_line, one_line};
use minder_proto::turn::names::{Class, Failure, Trigger};

use super::{CHANNEL, WORDS, batch};
use crate::delivery::mailbox::{answered_by, bury, give_back, is_notice, settle};
use crate::session::{Declaration, declare};
use crate::store::{Settled, Txn};
use crate::turn::Ended;

/// How the key of a message begins that is the answer of a turn.
const OF_TURN: &str = "turn:";

/// The turn's end as the commit sees it.
#[derive(Clone, Copy, Debug)]
pub struct Over<'a> {
    /// The turn.
    pub ended: &'a Ended,
    /// The whole answer.
    pub text: &'a str,
    /// Messages whose senders wait for the answer right now, and are told it that way.
    pub awaited: &'a [MessageId],
    /// Something holds its account, as far as is known.
    pub account_held: bool,
    /// The clocks.
    pub now: Clocks<'a>,
}

/// Writes it. Gives the record as it is then, or none where the turn is not this session's any more.
pub fn conclude(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    over: Over<'_>,
) -> Result<Option<SessionRecord>, Fault> {
    let id = over.ended.turn.to_string();
    let Ok(found) = txn.session(session) else { return Ok(None) };
    let Some(turn) = found.record.turn.clone().filter(|t| t.prompt_id.as_deref() == Some(&id)) else {
        return Ok(None);
    };
    bind(txn, session, over.ended)?;
    match over.ended.settled.failure {
        None => succeeded(txn, files, session, &turn, over)?,
        Some(failure) => failed(txn, files, session, &turn, failure, over)?,
    }
    txn.edit(session, |r| {
        r.turn = None;
        r.last_turn = Some(id);
    })?;
    Ok(Some(txn.session(session)?.record.clone()))
}

/// The conversation is gone on with in the next turn.
fn bind(txn: &mut Txn<'_>, session: SessionId, ended: &Ended) -> Result<(), Fault> {
    let Some(conversation) = &ended.settled.conversation else { return Ok(()) };
    let record = &txn.session(session)?.record;
    let Some(harness) = record.harness.clone() else { return Ok(()) };
    if record.live_binding().is_some_and(|b| b.id == *conversation) {
        return Ok(());
    }
    if txn.state().by_binding(&harness, conversation).is_some() {
        return Ok(()); // somebody else's by now: nothing is taken away from it
    }
    let why = if record.bindings.is_empty() { "startup" } else { "new" };
    let now = txn.now();
    let line =
        Body::Binding { harness: harness.clone(), harness_id: conversation.clone(), why: why.to_owned() };
    txn.edit(session, |r| {
        for old in r.bindings.iter_mut().filter(|b| b.until.is_none()) {
            old.until = Some(now);
        }
        r.bindings.push(Binding {
            harness,
            id: conversation.clone(),
            since: now,
            until: None,
            why: why.to_owned(),
            transcript: None,
        });
    })?;
    txn.append(Party::Session(session), line).map(|_| ())
}

fn succeeded(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    turn: &RunningTurn,
    over: Over<'_>,
) -> Result<(), Fault> {
    let party = Party::Session(session);
    let text = if over.ended.silent { "" } else { over.text };
    let kept = Some(text).filter(|t| txn.config().adopt.text && !t.trim().is_empty()).map(str::to_owned);
    let before = txn.session(session)?.record.state_seq;
    if over.ended.repeated {
        return lost(txn, session, turn, &over.ended.messages);
    }
    if turn.by != TurnOrigin::Notice && !turn.declared {
        let words = kept.as_deref().map(|t| one_line(first_line(t)).chars().take(WORDS).collect());
        let end = Declaration::new(State::Idle, words, Author::Runner);
        declare(txn, session, Declaration { turn_end: true, text: kept.clone(), ..end })?;
    }
    let mut seq = Some(txn.session(session)?.record.state_seq).filter(|seq| *seq != before);
    if let Some(text) = kept.filter(|_| seq.is_none()) {
        // What the session declared stands; its last words are found beside it.
        let text = cut(&text, ANSWER_MAX).to_owned();
        seq = Some(txn.append(party, Body::Note { what: ANSWER_NOTE.to_owned(), text })?);
    }
    let end = TurnEnd { at: txn.now(), seq };
    for id in &over.ended.messages {
        let Some(entry) = txn.session(session)?.inbox.queue.get(*id).cloned() else { continue };
        settle(txn, party, &entry, "turn", CHANNEL)?;
        answered_by(txn, party, &entry, end)?;
        if !text.is_empty() && !over.awaited.contains(id) {
            reply(txn, files, session, &entry, over.ended, text)?;
        }
    }
    if over.account_held {
        release(txn, session)?;
    }
    txn.edit(session, |r| {
        r.circuit = None;
        r.account_hold = None;
        r.last_end = Some(end);
    })
}

/// A turn of the account succeeded: nothing holds it, whoever met what.
fn release(txn: &mut Txn<'_>, session: SessionId) -> Result<(), Fault> {
    let account = txn.session(session)?.record.account().to_owned();
    let held = |r: &&SessionRecord| r.account_hold.as_ref().is_some_and(|h| h.account == account);
    let held: Vec<SessionId> = txn.state().records().filter(held).map(|r| r.id).collect();
    held.into_iter().try_for_each(|id| txn.edit(id, |r| r.account_hold = None))
}

/// The harness had done with the messages in a turn whose end was lost, and its answer with it: they are seen, and nobody
/// is told of an answer.
fn lost(
    txn: &mut Txn<'_>,
    session: SessionId,
    turn: &RunningTurn,
    messages: &[MessageId],
) -> Result<(), Fault> {
    if turn.by != TurnOrigin::Notice && !turn.declared {
        let note = "what was sent had been handled in a turn whose answer was lost".to_owned();
        let end = Declaration::new(State::Idle, Some(note), Author::Runner);
        declare(txn, session, Declaration { turn_end: true, ..end })?;
    }
    for id in messages {
        let Some(entry) = txn.session(session)?.inbox.queue.get(*id).cloned() else { continue };
        settle(txn, Party::Session(session), &entry, "turn", CHANNEL)?;
    }
    txn.edit(session, |r| r.circuit = None)
}

/// The answer as a message to who asked. What a turn answered by itself asks for nothing: two sessions would never come to
/// an end.
fn reply(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    entry: &queue::Entry,
    ended: &Ended,
    text: &str,
) -> Result<(), Fault> {
    if is_notice(entry) {
        return Ok(());
    }
    let dir = snapshot::party_dir(files.home(), Party::Session(session));
    let Some(asked) = snapshot::message_of(&dir, entry).ok().flatten() else { return Ok(()) };
    let gone = asked.from.session().is_some_and(|id| txn.session(id).is_err());
    let by_a_turn = asked.key.as_deref().is_some_and(|key| key.starts_with(OF_TURN));
    if by_a_turn || gone || asked.from == Party::Session(session) {
        return Ok(());
    }
    let answer = Message {
        id: MessageId::now(),
        from: Party::Session(session),
        about: None,
        body: cut(text, BODY_MAX).to_owned(),
        class: asked.class,
        key: Some(format!("{OF_TURN}{}", ended.turn)),
        reply_to: Some(asked.id),
        thread: asked.thread.or(Some(asked.id)),
        cause: Some(asked.id),
        hops: asked.hops.saturating_add(1),
        expires: None,
    };
    match txn.post(asked.from, answer) {
        // Its sender can read it in this session's timeline all the same.
        Err(fault) if fault.kind == Kind::Full => Ok(()),
        posted => posted.map(|_| ()),
    }
}

fn failed(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    session: SessionId,
    turn: &RunningTurn,
    failure: Failure,
    over: Over<'_>,
) -> Result<(), Fault> {
    let party = Party::Session(session);
    let settled = &over.ended.settled;
    let given = batch::handed(txn, session)?;
    let entries: Vec<queue::Entry> =
        given.iter().filter_map(|id| txn.session(session).ok()?.inbox.queue.get(*id).cloned()).collect();
    let most = txn.config().delivery.max_attempts;
    // What the harness has done with is not given to it again, whatever the rest of the turn came to; nor is anything
    // where its answer came late and whole.
    let text = over.text.trim();
    let whole = settled.late && over.ended.taken.is_empty() && !text.is_empty();
    let (taken, entries): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|e| whole || over.ended.taken.contains(&e.id));
    // The surroundings ended it, or nobody knows how it ended: that is no attempt.
    let outside = settled.trigger == Some(Trigger::Boundary);
    if failure == Failure::SupervisorLost || outside {
        never_given(txn, session, &entries)?;
    } else if failure == Failure::Cancelled {
        bury(txn, files, party, &entries, "cancelled", "its turn was cancelled")?;
    } else {
        let (dead, again): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| e.attempt >= most);
        if !dead.is_empty() {
            let why = format!("{most} turns with it failed, the last of {failure}");
            bury(txn, files, party, &dead, "refused", &why)?;
        }
        give_back(txn, party, &again.iter().map(|e| e.id).collect::<Vec<_>>())?;
    }
    if outside && !turn.declared {
        let note = "its turn was ended from outside; what it was given waits".to_owned();
        declare(txn, session, Declaration::new(State::Idle, Some(note), Author::Runner))?;
    } else if !turn.declared {
        let why =
            settled.why.as_deref().map(|w| format!(": {}", one_line(first_line(w)))).unwrap_or_default();
        let note: String = format!("turn failed: {failure}{why}").chars().take(4 * WORDS).collect();
        declare(txn, session, Declaration::new(State::Error, Some(note), Author::Runner))?;
    }
    if !taken.is_empty() {
        let mut seq = None;
        if txn.config().adopt.text && !text.is_empty() {
            let text = cut(text, ANSWER_MAX).to_owned();
            seq = Some(txn.append(party, Body::Note { what: ANSWER_NOTE.to_owned(), text })?);
        }
        let end = TurnEnd { at: txn.now(), seq };
        for entry in taken {
            settle(txn, party, &entry, "turn", CHANNEL)?;
            answered_by(txn, party, &entry, end)?;
            if !text.is_empty() && !over.awaited.contains(&entry.id) {
                reply(txn, files, session, &entry, over.ended, text)?;
            }
        }
    }
    let record = &txn.session(session)?.record;
    let kind = match (over.ended.login, over.ended.limit) {
        (true, _) => Some((HoldKind::Auth, None)),
        (false, Some(limit)) if limit.reset.is_some() => Some((HoldKind::UsageLimit, limit.reset)),
        _ if over.ended.in_use => Some((HoldKind::InUse, None)),
        _ => None,
    };
    let of_its_own = matches!(kind, Some((HoldKind::InUse, _)));
    let account = if of_its_own { record.label.clone() } else { record.account().to_owned() };
    let now = txn.now();
    let hold = kind.map(|(kind, until)| {
        let why = settled.why.as_deref().map(|w| one_line(first_line(w)));
        AccountHold { account, kind, since: now, until, why }
    });
    // Neither a limit nor a dead login nor a conversation that somebody else has is a failure of the session's; nor is what
    // somebody cancelled.
    let counts = hold.is_none() && failure != Failure::Cancelled;
    let class = settled.class.unwrap_or(Class::Runtime);
    txn.edit(session, |r| {
        if counts {
            r.circuit = Circuit::after(r.circuit.as_ref(), class, over.now);
        }
        r.account_hold = hold;
        r.last_end = None;
    })
}

/// An attempt of which nothing is known was none: the same id is given again.
fn never_given(txn: &mut Txn<'_>, session: SessionId, entries: &[queue::Entry]) -> Result<(), Fault> {
    for entry in entries {
        let attempt = entry.attempt.saturating_sub(1);
        txn.receipt(Party::Session(session), entry.id, Receipt::Queued, None, attempt, None)?;
    }
    Ok(())
}

/// What can never be given, by itself, is dead; gives false where it was given with others, which may be the reason.
pub fn refuse(txn: &mut Txn<'_>, files: Settled<'_>, session: SessionId, why: &str) -> Result<bool, Fault> {
    let given = batch::handed(txn, session)?;
    let queue = &txn.session(session)?.inbox.queue;
    let entries: Vec<queue::Entry> = given.iter().filter_map(|id| queue.get(*id).cloned()).collect();
    let alone = entries.len() == 1;
    if alone {
        bury(txn, files, Party::Session(session), &entries, "refused", why)?;
    }
    undo(txn, session, None)?;
    Ok(alone)
}

/// A turn that never began: what it was given waits again.
pub fn undo(txn: &mut Txn<'_>, session: SessionId, note: Option<String>) -> Result<(), Fault> {
    let given = batch::handed(txn, session)?;
    let queue = &txn.session(session)?.inbox.queue;
    let entries: Vec<queue::Entry> = given.iter().filter_map(|id| queue.get(*id).cloned()).collect();
    never_given(txn, session, &entries)?;
    let Some(turn) = txn.edit(session, |r| r.turn.take())? else { return Ok(()) };
    let record = &txn.session(session)?.record;
    if turn.by != TurnOrigin::Notice && record.state == State::Working && record.state_by == Author::Runner {
        declare(txn, session, Declaration::new(State::Idle, note, Author::Runner))?;
    }
    Ok(())
}

/// What waits is said to be held, where that is new, and that it was seen is not.
pub fn hold(
    txn: &mut Txn<'_>,
    session: SessionId,
    ids: &[(MessageId, u32)],
    reason: &str,
) -> Result<(), Fault> {
    for (id, attempt) in ids {
        let entry = txn.session(session)?.inbox.queue.get(*id);
        if entry.is_some_and(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held)) {
            let reason = Some(reason.to_owned());
            txn.receipt(Party::Session(session), *id, Receipt::Held, reason, *attempt, Some(CHANNEL))?;
        }
    }
    Ok(())
}
