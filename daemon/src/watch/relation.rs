//! Setting a watch up, with a snapshot of where the target stands in the same commit, and ending one, with what is
//! queued of it.

use minder_proto::error::{Fault, Kind};
use minder_proto::event::{About, Class, Message, NoticeKind, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue::Entry;
use minder_proto::record::{WatchSource, Watcher};
use minder_proto::rpc::{Cancelled, Watched};
use minder_proto::state::StateSet;

use crate::session::from_minder;
use crate::store::Txn;

/// Adds `watcher` to each target and sends it each target's current state. What stands already is left alone.
pub fn add(
    txn: &mut Txn<'_>,
    watcher: SessionId,
    targets: &[SessionId],
    states: Option<StateSet>,
) -> Result<Vec<Watched>, Fault> {
    txn.session(watcher)?;
    let mut rows = Vec::new();
    for target in targets {
        if *target == watcher {
            // A broad selector sweeps the caller in; naming only oneself is a mistake.
            if targets.len() == 1 {
                return Err(Fault::new(Kind::Refused, "a session cannot watch itself"));
            }
            continue;
        }
        let session = txn.session(*target)?;
        let record = session.record.clone();
        let mut watchers = session.watchers.clone();
        let (already, states) = match watchers.iter_mut().find(|w| w.watcher == watcher) {
            Some(w) => {
                let same = w.sources.contains(&WatchSource::Manual) && states.is_none_or(|s| s == w.states);
                if !w.sources.contains(&WatchSource::Manual) {
                    w.sources.push(WatchSource::Manual);
                }
                w.states = states.unwrap_or(w.states);
                (same, w.states)
            }
            None => {
                let states = states.unwrap_or(StateSet::WATCH);
                watchers.push(Watcher {
                    watcher,
                    sources: vec![WatchSource::Manual],
                    states,
                    since: txn.now(),
                    unknown: serde_json::Map::new(),
                });
                (false, states)
            }
        };
        if !already {
            txn.set_watchers(*target, watchers)?;
            let about = About {
                session: *target,
                seq: record.state_seq,
                notice: NoticeKind::Snapshot,
                from: None,
                to: Some(record.state),
            };
            // Where it stands is no reason to start a turn: the watcher asked a moment ago and is told with
            // whatever it is given next, unless somebody should act on it and it is among what was asked for.
            let news = record.state.is_actionable() || record.turn_end;
            let asked_for = states.contains(record.state, record.turn_end);
            let class = if news && asked_for { Class::Now } else { Class::WithNext };
            let notice = Message { class, ..from_minder(Some(about), String::new()) };
            txn.post(Party::Session(watcher), notice)?;
        }
        rows.push(Watched {
            session: *target,
            label: record.label,
            title: record.title,
            state: record.state,
            already,
        });
    }
    Ok(rows)
}

/// Ends the caller's relation to each target; its queued notices about them are dead.
pub fn cancel(txn: &mut Txn<'_>, watcher: SessionId, targets: &[SessionId]) -> Result<Vec<Cancelled>, Fault> {
    txn.session(watcher)?;
    let mut rows = Vec::new();
    for target in targets {
        let session = txn.session(*target)?;
        let (label, title) = (session.record.label.clone(), session.record.title.clone());
        let before = session.watchers.clone();
        let after: Vec<Watcher> = before.iter().filter(|w| w.watcher != watcher).cloned().collect();
        let was = after.len() < before.len();
        txn.set_watchers(*target, after)?;
        let queued = notices_about(txn, watcher, *target)?;
        for id in &queued {
            let reason = Some("cancelled".to_owned());
            txn.receipt(Party::Session(watcher), *id, Receipt::Dead, reason, 0, None)?;
        }
        rows.push(Cancelled { session: *target, label, title, was, notices: queued.len() });
    }
    Ok(rows)
}

fn notices_about(txn: &Txn<'_>, watcher: SessionId, target: SessionId) -> Result<Vec<MessageId>, Fault> {
    let queue = &txn.session(watcher)?.inbox.queue;
    let about =
        |e: &Entry| e.brief.as_ref().is_some_and(|b| b.from == Party::Minder && b.about == Some(target));
    Ok(queue.iter().filter(|e| about(e)).map(|e| e.id).collect())
}
