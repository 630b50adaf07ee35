//! What a primary is told at the start of its conversation.

use minder_proto::id::SessionId;

use super::{signals, step};
use crate::store::State;

/// How wakes arrive, and what to do with one; none for a session that no host supervises for.
pub fn of(state: &State, id: SessionId) -> Option<String> {
    let host = state.host(id).filter(|_| signals::is_on(state, id))?;
    let waits = host.queue.rows.len();
    let owed = step::owed(&host.queue).count();
    let now = match (waits, owed) {
        (0, _) => String::new(),
        (n, 0) => format!("\nNow: {n} in the wake queue."),
        (n, owed) => {
            format!("\nNow: {n} in the wake queue, {owed} of them told before and not acknowledged.")
        }
    };
    Some(format!(
        "[minder] A host keeps a wake queue for you: what the sessions come to that you started or watch. When you are idle \
         you are woken with lines that begin with signal:, and last \"next: minder host drain\". Then: run minder host \
         drain, do what there is to do, run the acknowledgement that it prints, end the turn. What is not acknowledged is \
         told again. You need not poll, list or wait.{now}"
    ))
}
