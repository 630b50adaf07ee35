//! The loop in front of one conversation: from a queue in which something waits to one in which nothing does. One at a time for a
//! session; it ends where the server cannot be reached, and is begun again after a pause.

use std::sync::Arc;
use std::time::Duration;

use minder_proto::envelope;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::SessionRecord;
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use tokio::time::timeout;

use super::moves::{Conversation, Move, in_doubt, is_unknown, next};
use super::{Refusal, Sent, Server};
use crate::delivery::Delivery;
use crate::delivery::mailbox::{bury, bury_unreadable, seen};
use crate::delivery::rules::UNKNOWN;
use crate::store::State;

/// How long news of a conversation are waited for before it is looked at again.
const NEWS: Duration = Duration::from_secs(30);
/// The same, for what was sent a moment ago; doubled each time.
const SOON: Duration = Duration::from_millis(250);

/// Why the loop ends before the queue is empty.
struct Away;

impl From<Refusal> for Away {
    fn from(_: Refusal) -> Self {
        Self
    }
}

impl Delivery {
    /// Starts the loop for a session, unless it runs or a pause is not over.
    pub(in crate::delivery) fn try_served<S: Server>(self: &Arc<Self>, session: SessionId) {
        if !self.begin_attempt(session) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let away = this.talk::<S>(session).await.is_err();
            this.end_attempt(session, away);
        });
    }

    /// A session of this channel as it is now, with what waits.
    async fn served<S: Server>(&self, session: SessionId) -> Option<(SessionRecord, Vec<queue::Entry>)> {
        let look = move |state: &State| {
            let found = state.session(session)?;
            (found.record.channel.as_str() == S::CHANNEL)
                .then(|| (found.record.clone(), found.inbox.queue.iter().cloned().collect()))
        };
        self.store.read(look).await.ok().flatten()
    }

    async fn talk<S: Server>(self: &Arc<Self>, session: SessionId) -> Result<(), Away> {
        let channel = S::CHANNEL;
        let bell = self.changes_of(session);
        let mut server: Option<S> = None;
        let mut soon = SOON;
        loop {
            let found = self.served::<S>(session).await;
            let Some((record, queue)) = found.filter(|(_, queue)| !queue.is_empty()) else { return Ok(()) };
            // Only the conversation that is this session's now is spoken to.
            let Some(id) = record.live_binding().filter(|b| b.harness == channel).map(|b| b.id.clone())
            else {
                self.hold_all(session, &queue, Hold::Offline.as_str(), channel).await;
                self.doubt(session, channel).await;
                return Err(Away);
            };
            let connected = match server.take() {
                Some(server) => Ok(server),
                None => S::connect(&record, &id).await,
            };
            let mut now = match connected {
                Ok(now) => now,
                Err(why) => {
                    if let Some(why) = why {
                        self.hold_all(session, &queue, &why, channel).await;
                    }
                    self.doubt(session, channel).await;
                    return Err(Away);
                }
            };
            let doubt = in_doubt(channel, &queue);
            // In this order: what joined a turn stands there once the turn is seen to be over.
            let state = now.look(&id).await?;
            let found = match now.has(&id, &doubt).await {
                Ok(found) => found,
                Err(Refusal::No(_)) if state == Conversation::Elsewhere => Vec::new(),
                // What it has cannot be read: nothing is sent on a guess.
                Err(_) => return Err(Away),
            };
            if !found.is_empty() {
                self.were_seen(session, found, S::EVIDENCE, channel).await?;
                server = Some(now);
                continue;
            }
            if state == Conversation::Elsewhere && !doubt.is_empty() {
                self.hold_all(session, &queue, Hold::Offline.as_str(), channel).await;
                self.doubt(session, channel).await;
                return Err(Away);
            }
            // What was handed to a turn that is over without it was not taken after all.
            let lost =
                doubt.iter().filter(|id| queue.iter().any(|e| e.id == **id && e.receipt == Receipt::Handed));
            let lost: Vec<(MessageId, Party)> = lost.map(|id| (*id, Party::Session(session))).collect();
            if state == Conversation::Idle && !lost.is_empty() {
                self.give_back(lost).await;
                server = Some(now);
                continue;
            }
            let wait = match next(&queue, &state) {
                Move::Rest if doubt.is_empty() => return Ok(()),
                Move::Rest => {
                    let wait = soon;
                    soon = (soon * 2).min(NEWS);
                    wait
                }
                Move::Hold(hold) => {
                    self.hold_all(session, &queue, hold.as_str(), channel).await;
                    if hold == Hold::Offline {
                        return Err(Away);
                    }
                    NEWS
                }
                Move::Start(message) => {
                    soon = SOON;
                    self.send(session, &mut now, (&id, None), &queue, message).await?;
                    SOON
                }
                Move::Steer(message, turn) => {
                    soon = SOON;
                    self.send(session, &mut now, (&id, Some(&turn)), &queue, message).await?;
                    SOON
                }
            };
            tokio::select! {
                news = timeout(wait, now.news(&id)) => {
                    if matches!(news, Ok(Err(_))) {
                        continue; // the next connection is a new one
                    }
                }
                () = bell.notified() => {}
            }
            server = Some(now);
        }
    }

    /// Sends one message. That it is sent is written before it is, lest it be sent again by who does not know.
    async fn send<S: Server>(
        &self,
        session: SessionId,
        server: &mut S,
        (conversation, turn): (&str, Option<&str>),
        queue: &[queue::Entry],
        id: MessageId,
    ) -> Result<(), Away> {
        // What was sent before and would be known again is the same attempt.
        let before = queue.iter().find(|e| e.id == id && is_unknown(e)).map(|e| e.since);
        let before = before.filter(|since| server.knows_again(*since));
        let claimed = self.make_ours(session, S::CHANNEL, conversation, id, before).await?;
        let Some((at, text)) = claimed else { return Ok(()) };
        match server.give(conversation, turn, Sent { id, at, text: &text }).await {
            Ok(()) => {
                // That it was accepted is no life: a turn that died at once has taken nothing.
                let runs =
                    matches!(server.look(conversation).await?, Conversation::Runs(_) | Conversation::Asks);
                let lives = runs || !server.has(conversation, &[id]).await?.is_empty();
                if lives {
                    return self.note_handed(session, id, S::CHANNEL).await;
                }
                self.died(session, id).await?;
                Err(Away)
            }
            Err(Refusal::No(why)) => {
                self.not_taken(session, id, why, S::CHANNEL).await?;
                Err(Away)
            }
            Err(Refusal::Lost) => Err(Away),
        }
    }

    /// Makes a message this channel's and writes that it is sent, if it waits still and the conversation is the session's: from
    /// here on no other road gives it. Gives since when it is sent, and what it reads like; none where it is not ours to send, or
    /// its line is damaged, which ends it.
    async fn make_ours(
        &self,
        session: SessionId,
        channel: &'static str,
        conversation: &str,
        id: MessageId,
        before: Option<Stamp>,
    ) -> Result<Option<(Stamp, String)>, Away> {
        let party = Party::Session(session);
        let conversation = conversation.to_owned();
        let claimed = self.store.write_on_files(move |txn, files| {
            let here = txn.session(session)?;
            let spoken_to = here.record.live_binding().is_some_and(|b| b.id == conversation);
            let waits = |e: &&queue::Entry| matches!(e.receipt, Receipt::Queued | Receipt::Held);
            let entry = here.inbox.queue.get(id).filter(waits).cloned();
            let ours = spoken_to && here.record.channel.as_str() == channel;
            let Some(entry) = entry.filter(|_| ours) else { return Ok(None) };
            let dir = snapshot::party_dir(files.home(), party);
            let message = snapshot::message_of(&dir, &entry);
            let message =
                message.map_err(|e| Fault::new(Kind::ReadOnly, format!("{}: {e}", dir.display())))?;
            let Some(message) = message else {
                return bury_unreadable(txn, files, party, &[entry]).map(|()| None);
            };
            let text = envelope::render(files.home(), &message);
            if is_unknown(&entry) && before == Some(entry.since) {
                return Ok(Some((entry.since, text)));
            }
            let reason = Some(UNKNOWN.to_owned());
            txn.receipt(party, id, Receipt::Held, reason, entry.attempt + 1, Some(channel))?;
            let since = txn.session(session)?.inbox.queue.get(id).map(|entry| entry.since);
            Ok(since.map(|since| (since, text)))
        });
        claimed.await.map_err(|_| Away)
    }

    /// What was handed and has no evidence is in doubt again: nobody who could tell is reached.
    async fn doubt(&self, session: SessionId, channel: &'static str) {
        let written = self.store.write(move |txn| {
            let queue = &txn.session(session)?.inbox.queue;
            let out = queue.iter().filter(|e| e.receipt == Receipt::Handed);
            let out = out.filter(|e| e.channel.as_deref() == Some(channel));
            let out: Vec<(MessageId, u32)> = out.map(|e| (e.id, e.attempt)).collect();
            for (id, attempt) in out {
                let reason = Some(UNKNOWN.to_owned());
                txn.receipt(Party::Session(session), id, Receipt::Held, reason, attempt, Some(channel))?;
            }
            Ok(())
        });
        if let Err(fault) = written.await {
            tracing::debug!(%session, %fault, "a doubt could not be written");
        }
    }

    async fn note_handed(
        &self,
        session: SessionId,
        id: MessageId,
        channel: &'static str,
    ) -> Result<(), Away> {
        let written = self.store.write_patiently(move |txn| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
            txn.receipt(Party::Session(session), id, Receipt::Handed, None, entry.attempt, Some(channel))
        });
        written.await.map_err(|_| Away)
    }

    /// The server took none of it.
    async fn not_taken(
        &self,
        session: SessionId,
        id: MessageId,
        why: String,
        channel: &'static str,
    ) -> Result<(), Away> {
        let most = self.store.config().delivery.max_attempts;
        let party = Party::Session(session);
        let written = self.store.write_on_files_patiently(move |txn, files| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
            if entry.attempt >= most {
                let why = format!("it was refused {} times ({why})", entry.attempt);
                return bury(txn, files, party, &[entry], "refused", &why);
            }
            let reason = Some(format!("refused: {why}"));
            txn.receipt(party, id, Receipt::Held, reason, entry.attempt, Some(channel))
        });
        written.await.map_err(|_| Away)
    }

    /// The turn that it started was over at once, and has not taken it. It stays one of which nothing is certain, so that the thread
    /// is read again before the next attempt; there are not more of those than of others.
    async fn died(&self, session: SessionId, id: MessageId) -> Result<(), Away> {
        let most = self.store.config().delivery.max_attempts;
        let party = Party::Session(session);
        let written = self.store.write_on_files_patiently(move |txn, files| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
            if entry.attempt < most {
                return Ok(());
            }
            let why = format!("{} turns with it died at once", entry.attempt);
            bury(txn, files, party, &[entry], "refused", &why)
        });
        written.await.map_err(|_| Away)
    }

    async fn were_seen(
        &self,
        session: SessionId,
        ids: Vec<MessageId>,
        evidence: &'static str,
        channel: &'static str,
    ) -> Result<(), Away> {
        let written = self.store.write_patiently(move |txn| {
            for id in &ids {
                seen(txn, Party::Session(session), *id, evidence, channel)?;
            }
            Ok(())
        });
        written.await.map_err(|_| Away)
    }

    /// Writes why messages wait, for each once a reason. What may have been taken keeps saying so.
    async fn hold_all(
        &self,
        session: SessionId,
        queue: &[queue::Entry],
        reason: &str,
        channel: &'static str,
    ) {
        let reason = reason.to_owned();
        let differs = |e: &&queue::Entry| {
            let sent = e.reason.as_deref() == Some(UNKNOWN);
            matches!(e.receipt, Receipt::Queued | Receipt::Held)
                && !sent
                && e.reason.as_ref() != Some(&reason)
        };
        let ids: Vec<(MessageId, u32)> = queue.iter().filter(differs).map(|e| (e.id, e.attempt)).collect();
        if ids.is_empty() {
            return;
        }
        let written = self.store.write(move |txn| {
            for (id, attempt) in ids {
                let entry = txn.session(session)?.inbox.queue.get(id);
                if entry.is_some_and(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held)) {
                    let reason = Some(reason.clone());
                    txn.receipt(Party::Session(session), id, Receipt::Held, reason, attempt, Some(channel))?;
                }
            }
            Ok(())
        });
        if let Err(fault) = written.await {
            tracing::debug!(%session, %fault, "a hold could not be written");
        }
    }
}
