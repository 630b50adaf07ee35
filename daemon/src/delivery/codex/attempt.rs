//! The loop in front of one thread: from a queue in which something waits to one in which nothing does. One at a time for a
//! session; it ends where the server cannot be reached, and is begun again after a pause.

use std::sync::Arc;
use std::time::Duration;

use minder_proto::envelope;
use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::snapshot;
use tokio::time::{Instant, timeout};

use super::moves::{CHANNEL, Move, Thread, in_doubt, next};
use super::server::{Refusal, Server, is_without_server, place};
use crate::delivery::Delivery;
use crate::delivery::mailbox::{bury, bury_unreadable, seen};
use crate::delivery::rules::{Backoff, UNKNOWN};
use crate::store::State;

/// How long news of a thread are waited for before it is looked at again.
const NEWS: Duration = Duration::from_secs(30);
/// The same, for what was sent a moment ago.
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
    pub(in crate::delivery) fn try_codex(self: &Arc<Self>, session: SessionId) {
        {
            let mut memory = self.memory();
            let early = memory.retry.get(&session).is_some_and(|b| b.next() > Instant::now());
            if early || !memory.running.insert(session) {
                return;
            }
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let away = this.talk(session).await.is_err();
            {
                let mut memory = this.memory();
                memory.running.remove(&session);
                if away {
                    let before = memory.retry.get(&session).copied();
                    memory.retry.insert(session, Backoff::after(before, Instant::now()));
                } else {
                    memory.retry.remove(&session);
                }
            }
            this.look_again(session);
        });
    }

    /// A codex session as it is now, with what waits.
    async fn thread_of(&self, session: SessionId) -> Option<(SessionRecord, Vec<queue::Entry>)> {
        let look = move |state: &State| {
            let found = state.session(session)?;
            matches!(found.record.channel, Channel::Codex { .. })
                .then(|| (found.record.clone(), found.inbox.queue.iter().cloned().collect()))
        };
        self.store.read(look).await.ok().flatten()
    }

    async fn talk(self: &Arc<Self>, session: SessionId) -> Result<(), Away> {
        let bell = self.changes_of(session);
        let mut server: Option<Server> = None;
        loop {
            let Some((record, queue)) = self.thread_of(session).await.filter(|(_, queue)| !queue.is_empty())
            else {
                return Ok(());
            };
            // Only the conversation that is this session's now is spoken to.
            let binding = record.live_binding().filter(|b| b.harness == CHANNEL);
            let Some((thread, path)) = binding.map(|b| b.id.clone()).zip(place(&record)) else {
                self.hold_all(session, &queue, Hold::Offline).await;
                return Err(Away);
            };
            let connected = match server.take() {
                Some(server) => Ok(server),
                None => Server::connect(&path).await,
            };
            let Ok(mut now) = connected else {
                // A Codex without a server is reached at its boundaries only: the scheduler says why it waits.
                if !is_without_server(&record) {
                    self.hold_all(session, &queue, Hold::Offline).await;
                }
                return Err(Away);
            };
            let doubt = in_doubt(&queue);
            let found = now.has(&thread, &doubt).await.unwrap_or_default();
            if !found.is_empty() {
                self.were_seen(session, found).await?;
                server = Some(now);
                continue;
            }
            let state = now.thread(&thread).await?;
            // What was handed to a turn that is over without it was not taken after all.
            let lost =
                doubt.iter().filter(|id| queue.iter().any(|e| e.id == **id && e.receipt == Receipt::Handed));
            let lost: Vec<(MessageId, Party)> = lost.map(|id| (*id, Party::Session(session))).collect();
            if state == Thread::Idle && !lost.is_empty() && now.has(&thread, &doubt).await?.is_empty() {
                self.give_back(lost).await;
                server = Some(now);
                continue;
            }
            let wait = match next(&queue, &state) {
                Move::Rest if doubt.is_empty() => return Ok(()),
                Move::Rest => SOON,
                Move::Hold(hold) => {
                    self.hold_all(session, &queue, hold).await;
                    if hold == Hold::Offline {
                        return Err(Away);
                    }
                    NEWS
                }
                Move::Start(id) => {
                    self.send(session, &mut now, (&thread, None), id).await?;
                    SOON
                }
                Move::Steer(id, turn) => {
                    self.send(session, &mut now, (&thread, Some(&turn)), id).await?;
                    SOON
                }
            };
            tokio::select! {
                news = timeout(wait, now.news(&thread)) => {
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
    async fn send(
        &self,
        session: SessionId,
        server: &mut Server,
        (thread, turn): (&str, Option<&str>),
        id: MessageId,
    ) -> Result<(), Away> {
        let Some(text) = self.text_of(session, id).await? else { return Ok(()) };
        self.note(session, id, Receipt::Held, Some(UNKNOWN.to_owned()), true).await?;
        let sent = match turn {
            None => server.start(thread, id, &text).await,
            Some(turn) => match server.steer(thread, turn, id, &text).await {
                // The turn was over before it came: a new one takes it.
                Err(Refusal::No(_)) => server.start(thread, id, &text).await,
                sent => sent,
            },
        };
        match sent {
            Ok(()) => {
                // That it was accepted is no life: a turn that died at once has taken nothing.
                let lives = !server.has(thread, &[id]).await?.is_empty()
                    || matches!(server.thread(thread).await?, Thread::Runs(_) | Thread::Asks);
                if lives {
                    return self.note(session, id, Receipt::Handed, None, false).await;
                }
                self.died(session, id).await?;
                Err(Away)
            }
            Err(Refusal::No(why)) => {
                self.not_taken(session, id, why).await?;
                Err(Away)
            }
            Err(Refusal::Lost) => Err(Away),
        }
    }

    /// What a message reads like; none where its line is damaged, which ends it.
    async fn text_of(&self, session: SessionId, id: MessageId) -> Result<Option<String>, Away> {
        let party = Party::Session(session);
        let read = self.store.write_on_files(move |txn, files| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(None) };
            match snapshot::message_of(&snapshot::party_dir(files.home(), party), &entry) {
                Ok(Some(message)) => Ok(Some(envelope::render(files.home(), &message))),
                _ => bury_unreadable(txn, files, party, &[entry]).map(|()| None),
            }
        });
        read.await.map_err(|_| Away)
    }

    async fn note(
        &self,
        session: SessionId,
        id: MessageId,
        receipt: Receipt,
        reason: Option<String>,
        counts: bool,
    ) -> Result<(), Away> {
        let written = self.store.write_patiently(move |txn| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
            let attempt = entry.attempt + u32::from(counts);
            txn.receipt(Party::Session(session), id, receipt, reason.clone(), attempt, Some(CHANNEL))
        });
        written.await.map_err(|_| Away)
    }

    /// The server took none of it.
    async fn not_taken(&self, session: SessionId, id: MessageId, why: String) -> Result<(), Away> {
        let most = self.store.config().delivery.max_attempts;
        let party = Party::Session(session);
        let written = self.store.write_on_files_patiently(move |txn, files| {
            let Some(entry) = txn.session(session)?.inbox.queue.get(id).cloned() else { return Ok(()) };
            if entry.attempt >= most {
                let why = format!("it was refused {} times ({why})", entry.attempt);
                return bury(txn, files, party, &[entry], "refused", &why);
            }
            let reason = Some(format!("refused: {why}"));
            txn.receipt(party, id, Receipt::Held, reason, entry.attempt, Some(CHANNEL))
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

    async fn were_seen(&self, session: SessionId, ids: Vec<MessageId>) -> Result<(), Away> {
        let written = self.store.write_patiently(move |txn| {
            for id in &ids {
                seen(txn, Party::Session(session), *id, "thread", CHANNEL)?;
            }
            Ok(())
        });
        written.await.map_err(|_| Away)
    }

    /// Writes why messages wait, for each once a reason. What may have been taken keeps saying so.
    async fn hold_all(&self, session: SessionId, queue: &[queue::Entry], hold: Hold) {
        let reason = hold.to_string();
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
                    txn.receipt(Party::Session(session), id, Receipt::Held, reason, attempt, Some(CHANNEL))?;
                }
            }
            Ok(())
        });
        if let Err(fault) = written.await {
            tracing::debug!(%session, %fault, "a hold could not be written");
        }
    }
}
