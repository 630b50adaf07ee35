//! The fan-out: a contributor to every commit that holds a state line. Its cost grows with the number of the
//! target's watchers, never with the fleet.

use minder_proto::event::{About, Author, Body, Message, NoticeKind, Transition};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{RunningTurn, Watcher};

use crate::session::from_minder;
use crate::store::{Appended, Contributor, State, Txn};

/// Most notices and messages in a chain that no person began.
pub const HOPS_MAX: u8 = 4;

/// Adds the notices of a state line to its commit.
pub struct FanOut;

impl Contributor for FanOut {
    fn contribute(&self, txn: &mut Txn<'_>, line: &Appended) {
        let (Party::Session(target), Body::State(transition)) = (line.party, &line.event.body) else {
            return;
        };
        let Some(session) = txn.state().session(target) else { return };
        if session.watchers.is_empty() {
            return;
        }
        let watchers = session.watchers.clone();
        let hops = line.turn.as_ref().map_or(0, |t| t.hops);
        let (told, gone) = decide(txn.state(), &watchers, target, transition, line.turn.as_ref());
        for watcher in &told {
            let notice = Message {
                cause: transition.cause,
                hops,
                ..from_minder(
                    Some(About {
                        session: target,
                        seq: line.event.seq,
                        notice: NoticeKind::State,
                        from: Some(transition.from),
                        to: Some(transition.to),
                    }),
                    String::new(),
                )
            };
            if let Err(fault) = txn.post(Party::Session(*watcher), notice) {
                tracing::warn!(%target, %watcher, %fault, "a watcher could not be told");
            }
        }
        if !gone.is_empty() {
            tracing::info!(%target, dropped = gone.len(), "watchers that are gone were dropped");
            let kept = watchers.into_iter().filter(|w| !gone.contains(&w.watcher)).collect();
            let _ = txn.set_watchers(target, kept);
        }
    }
}

/// Who is told of a line, in the order of the relation; and whose relation has ended because they are gone.
fn decide(
    state: &State,
    watchers: &[Watcher],
    target: SessionId,
    line: &Transition,
    turn: Option<&RunningTurn>,
) -> (Vec<SessionId>, Vec<SessionId>) {
    // What a session or the person says is always told. What a hook says may be the echo of a notice.
    let said = matches!(line.by, Author::Agent | Author::Operator);
    let far = turn.is_some_and(|t| t.hops > HOPS_MAX);
    let echo = |watcher| !said && (far || came_from(turn, watcher, line.cause));
    let mut told = Vec::new();
    let mut gone = Vec::new();
    for w in watchers {
        if state.session(w.watcher).is_none() {
            gone.push(w.watcher);
        } else if w.watcher != target && w.states.contains(line.to, line.turn_end) && !echo(w.watcher) {
            told.push(w.watcher);
        }
    }
    (told, gone)
}

/// True if a notice about `watcher` brought this line about: telling them would be an echo.
fn came_from(turn: Option<&RunningTurn>, watcher: SessionId, cause: Option<MessageId>) -> bool {
    turn.is_some_and(|turn| cause.is_some() && turn.cause == cause && turn.notice_about == Some(watcher))
}
