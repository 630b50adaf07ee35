//! The line in the timeline of a session whose turn is over: once, whatever is repeated after a crash.

use minder_proto::error::Fault;
use minder_proto::event::Body;
use minder_proto::id::{Party, SessionId};
use serde_json::Value;

use crate::store::{Store, Txn};

/// Writes it, as often as it takes until the disk lets it. A session that is gone by then has no timeline.
pub async fn tell(store: &Store, session: SessionId, line: Body) {
    let Body::Turn { id, .. } = line else { return };
    let key = format!("turn/{id}");
    let write = move |txn: &mut Txn<'_>| {
        if txn.state().session(session).is_none() || txn.state().remembered(&key).is_some() {
            return Ok::<_, Fault>(());
        }
        txn.append(Party::Session(session), line.clone())?;
        txn.remember(key.clone(), 0, Value::Null);
        Ok(())
    };
    if let Err(fault) = store.write_patiently(write).await {
        tracing::warn!(%session, turn = %id, %fault, "the end of a turn is not in its session's timeline");
    }
}
