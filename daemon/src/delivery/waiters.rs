//! Hooks that wait beside an idle conversation: one a session. The newest asks, the one before it ends silently;
//! one whose conversation was replaced is told to end.

use std::sync::Arc;
use std::time::Duration;

use minder_proto::error::Fault;
use minder_proto::event::Receipt;
use minder_proto::id::{Party, SessionId};
use minder_proto::queue;
use minder_proto::rpc::HookAnswer;
use tokio::sync::oneshot;

use super::Delivery;

/// How long a waiter is kept that asks for a conversation before the hook that begins it: an event's two hooks start
/// together.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// One that waits.
pub(super) struct Waiter {
    /// The same for every connection of one waiter.
    resume: String,
    /// The conversation it belongs to.
    pub conversation: String,
    reply: oneshot::Sender<HookAnswer>,
}

impl Delivery {
    /// Waits until something may enter an idle session; gives what the hook prints.
    pub async fn wait(
        self: &Arc<Self>,
        session: SessionId,
        conversation: String,
        resume: String,
    ) -> Result<HookAnswer, Fault> {
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter { resume: resume.clone(), conversation, reply };
        if !self.enter(session, waiter).await {
            return Ok(HookAnswer::default());
        }
        let _gone = Gone { delivery: Arc::clone(self), session, resume };
        self.look_again(session);
        // The daemon going down ends the wait; the hook asks the next daemon.
        answer
            .await
            .map_err(|_| Fault::new(minder_proto::error::Kind::Unavailable, "the daemon is going down"))
    }

    /// Takes a waiter in, in place of the one before it. One whose conversation is over comes too late, unless the hook
    /// that begins it again is just behind: then, after some patience, false.
    async fn enter(&self, session: SessionId, waiter: Waiter) -> bool {
        let bell = self.changes.listen(Some(Party::Session(session)));
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            {
                let mut memory = self.memory();
                if memory.over.get(&session) != Some(&waiter.conversation) {
                    if let Some(before) = memory.waiters.insert(session, waiter) {
                        let _ = before.reply.send(HookAnswer::default());
                    }
                    if let Some(told) = self.on_waiter.get() {
                        told(session);
                    }
                    return true;
                }
            }
            if tokio::time::timeout_at(deadline, bell.notified()).await.is_err() {
                return false;
            }
        }
    }

    /// A conversation begins, or begins again: its waiters may stay.
    pub fn conversation_began(&self, session: SessionId) {
        if self.memory().over.remove(&session).is_some() {
            self.changes.ring([Party::Session(session)]);
        }
    }

    /// Who else wants to know of each hook that begins to wait. Once, before the first of them.
    pub fn tell_of_waiters(&self, told: impl Fn(SessionId) + Send + Sync + 'static) {
        let before = self.on_waiter.set(Box::new(told));
        assert!(before.is_ok(), "one is told");
    }

    /// True if a hook waits to wake this session.
    pub fn has_waiter(&self, session: SessionId) -> bool {
        self.memory().waiters.contains_key(&session)
    }

    /// A conversation ended in its process: its waiter ends, and what was handed to it without evidence waits again.
    pub async fn conversation_ended(self: &Arc<Self>, session: SessionId, conversation: &str) {
        let waiter = {
            let mut memory = self.memory();
            memory.over.insert(session, conversation.to_owned());
            let its = memory.waiters.get(&session).is_some_and(|w| w.conversation == conversation);
            if its { memory.waiters.remove(&session) } else { None }
        };
        if let Some(waiter) = waiter {
            let _ = waiter.reply.send(HookAnswer::default());
        }
        let party = Party::Session(session);
        let out = self
            .store
            .read(move |state| {
                let queue = state.inbox(party).map(|i| &i.queue);
                let out = queue.into_iter().flat_map(queue::Queue::iter).filter(|e| {
                    e.receipt == Receipt::Handed && e.channel.as_deref() == Some("hook") && e.reason.is_none()
                });
                out.map(|e| (e.id, party)).collect::<Vec<_>>()
            })
            .await;
        if let Ok(out) = out
            && !out.is_empty()
        {
            self.give_back(out).await;
        }
    }

    /// True if a hook waits to wake this very conversation.
    pub fn waits_for(&self, session: SessionId, conversation: &str) -> bool {
        self.memory().waiters.get(&session).is_some_and(|w| w.conversation == conversation)
    }

    /// Ends the waiter of this very conversation with what it shall print.
    pub fn end_waiter_of(&self, session: SessionId, conversation: &str, answer: HookAnswer) -> bool {
        self.waits_for(session, conversation) && self.end_waiter(session, answer)
    }

    /// Ends a session's waiter with what it shall print.
    pub(super) fn end_waiter(&self, session: SessionId, answer: HookAnswer) -> bool {
        let waiter = self.memory().waiters.remove(&session);
        waiter.is_some_and(|w| w.reply.send(answer).is_ok())
    }
}

/// Forgets a waiter whose connection is gone, unless a newer one took its place.
struct Gone {
    delivery: Arc<Delivery>,
    session: SessionId,
    resume: String,
}

impl Drop for Gone {
    fn drop(&mut self) {
        let mut memory = self.delivery.memory();
        // A reply that was taken means that somebody else removed it.
        let ours =
            memory.waiters.get(&self.session).is_some_and(|w| w.resume == self.resume && w.reply.is_closed());
        if ours {
            memory.waiters.remove(&self.session);
        }
    }
}
