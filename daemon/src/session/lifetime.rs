//! Sessions that minder took in by itself end by themselves: `adopt.keep` after their process ended, if nothing waits
//! for them and nobody named, watches or parents them.

use std::time::Duration;

use minder_proto::error::Fault;
use minder_proto::event::Author;
use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;

use super::close;
use super::retention::{self, Tidied};
use crate::store::{Session, State, Store};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(3_600);

/// True if nobody would miss it.
fn is_over(session: &Session, state: &State, now: Stamp, keep: Duration) -> bool {
    let r = &session.record;
    let ended = r.process.as_ref().and_then(|p| p.ended);
    r.adopted
        && !r.label_given
        && r.parent.is_none()
        && session.watchers.is_empty()
        && session.inbox.queue.is_empty()
        && ended.is_some_and(|at| at.age(now) >= keep)
        && !state.records().any(|other| other.parent == Some(r.id))
}

/// Closes what is over.
pub async fn close_what_is_over(store: &Store, now: Stamp) -> Result<usize, Fault> {
    let keep = store.config().adopt.keep.0;
    let over: Vec<SessionId> = store
        .read(move |state| {
            let over = state.sessions().filter(|s| is_over(s, state, now, keep));
            over.map(|s| s.record.id).collect()
        })
        .await?;
    for id in &over {
        let id = *id;
        store
            .write_on_files(move |txn, files| {
                // Judged again on the state at commit: somebody may have come meanwhile.
                let Some(session) = txn.state().session(id) else { return Ok(()) };
                if is_over(session, txn.state(), now, keep) {
                    let note = Some("its process ended long ago".to_owned());
                    close(txn, files, id, note, Author::Minder, false)?;
                }
                Ok(())
            })
            .await?;
    }
    Ok(over.len())
}

/// Looks at start and every hour; so does what is kept for a time.
pub async fn run(store: Store) {
    loop {
        if let Err(fault) = close_what_is_over(&store, Stamp::now()).await {
            tracing::debug!(%fault, "sessions that are over could not be closed yet");
        }
        match retention::tidy(&store, Stamp::now()).await {
            Ok(tidied) if tidied == Tidied::default() => {}
            Ok(tidied) => tracing::info!(?tidied, "what was kept long enough is gone"),
            Err(fault) => tracing::debug!(%fault, "what was kept long enough could not be taken away yet"),
        }
        tokio::time::sleep(EVERY).await;
    }
}
