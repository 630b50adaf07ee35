//! The producer of signals: a contributor to the commit of a state line itself, so that a line, its notices and the rows
//! of the hosts that it concerns are one commit. Its cost grows with the target's watchers, never with the fleet.

use std::collections::BTreeSet;

use minder_proto::error::Fault;
use minder_proto::event::{About, Body, NoticeKind, Receipt};
use minder_proto::hold::Hold;
use minder_proto::host::row::Kind;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::state::State;

use super::queue::{self, News};
use crate::store::{Appended, Contributor, State as Store, Txn};

/// Adds rows to the wake queues of the primaries that a line concerns, and keeps their notices for a drain.
pub struct Signals;

impl Contributor for Signals {
    fn contribute(&self, txn: &mut Txn<'_>, line: &Appended) {
        let result = match (&line.party, &line.event.body) {
            (Party::Session(target), Body::State(_) | Body::Closed { .. }) => moved(txn, *target, line),
            (Party::Session(primary), Body::Message(message)) => {
                let (id, about) = (message.id, message.about.clone());
                about.filter(|a| a.notice.is_watch()).map_or(Ok(()), |a| told(txn, *primary, id, &a))
            }
            _ => Ok(()),
        };
        if let Err(fault) = result {
            tracing::warn!(%fault, "a wake could not be written down");
        }
    }
}

/// The primaries whose host is on and that this session works for: its parent, and those who watch it.
fn primaries(state: &Store, target: SessionId) -> BTreeSet<SessionId> {
    let Some(session) = state.session(target) else { return BTreeSet::new() };
    let concerned = session.record.parent.into_iter().chain(session.watchers.iter().map(|w| w.watcher));
    concerned.filter(|id| *id != target && is_on(state, *id)).collect()
}

/// True for a primary whose host supervises.
pub fn is_on(state: &Store, primary: SessionId) -> bool {
    state.host(primary).is_some_and(|host| host.record.enabled)
}

/// A session moved, or was closed.
fn moved(txn: &mut Txn<'_>, target: SessionId, line: &Appended) -> Result<(), Fault> {
    for primary in primaries(txn.state(), target) {
        let notice = notice(txn, primary, target, line.event.seq);
        if let Some(id) = notice {
            keep(txn, primary, id)?;
        }
        if let Some(news) = news(txn, primary, target, line, notice) {
            raise(txn, primary, news)?;
        }
    }
    Ok(())
}

/// A watch was set up by the primary itself: where the target stands is a row where somebody should act on it.
fn told(txn: &mut Txn<'_>, primary: SessionId, id: MessageId, about: &About) -> Result<(), Fault> {
    if !is_on(txn.state(), primary) {
        return Ok(());
    }
    keep(txn, primary, id)?;
    let actionable = about.to.filter(|to| to.is_actionable());
    let Some(to) = actionable.filter(|_| about.notice == NoticeKind::Snapshot) else { return Ok(()) };
    let Some(record) = txn.state().session(about.session).map(|s| &s.record) else { return Ok(()) };
    let news = News {
        session: Some(about.session),
        incarnation: record.incarnation,
        ev: about.seq,
        states: vec![to],
        mid: Some(id),
        decision: to == State::Asking,
        text: record.note.clone().unwrap_or_default(),
        ..News::of(Kind::Signal, to.as_str(), &about.session.to_string())
    };
    raise(txn, primary, news)
}

/// What a line is to a primary: none where nobody has to look.
fn news(
    txn: &Txn<'_>,
    primary: SessionId,
    target: SessionId,
    line: &Appended,
    mid: Option<MessageId>,
) -> Option<News> {
    let record = &txn.state().session(target)?.record;
    let (what, states, text) = match &line.event.body {
        // What the primary did itself is no news to it.
        _ if txn.actor() == Some(primary) => return None,
        Body::State(t) if t.to.is_actionable() => {
            (t.to.as_str(), vec![t.from, t.to], t.note.clone().unwrap_or_default())
        }
        Body::State(t) if t.turn_end => ("turn-end", vec![t.from, t.to], t.note.clone().unwrap_or_default()),
        Body::Closed { note, .. } => {
            let note = note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
            ("closed", vec![record.state], format!("{:?} was closed{note}", record.label))
        }
        _ => return None,
    };
    Some(News {
        session: Some(target),
        incarnation: record.incarnation,
        ev: line.event.seq,
        decision: what == State::Asking.as_str(),
        states,
        mid,
        text,
        ..News::of(Kind::Signal, what, &target.to_string())
    })
}

/// The notice of this line that the fan-out has just posted to a primary.
fn notice(txn: &Txn<'_>, primary: SessionId, target: SessionId, seq: u64) -> Option<MessageId> {
    txn.appended().iter().rev().find_map(|line| match &line.event.body {
        Body::Message(m) if line.party == Party::Session(primary) => {
            m.about.as_ref().is_some_and(|a| a.session == target && a.seq == seq).then_some(m.id)
        }
        _ => None,
    })
}

/// A notice waits for a drain: no channel of the primary gives it.
fn keep(txn: &mut Txn<'_>, primary: SessionId, id: MessageId) -> Result<(), Fault> {
    let reason = Some(Hold::Posture.as_str().to_owned());
    txn.receipt(Party::Session(primary), id, Receipt::Held, reason, 0, Some(super::CHANNEL))
}

/// Adds a row.
pub fn raise(txn: &mut Txn<'_>, primary: SessionId, news: News) -> Result<(), Fault> {
    let now = txn.now();
    txn.edit_host(primary, |host| {
        let (queue, next) = host.queue_mut();
        queue::add(queue, next, news, now);
    })
}
