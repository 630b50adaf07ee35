//! The mailbox: `take` gives the oldest message to one caller, until its `ack`, the end of the connection that took
//! it, a restart, or `mailbox.visibility`. It works beside every other channel.

use std::sync::Arc;

use minder_proto::envelope;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, Party};
use minder_proto::queue;
use minder_proto::record::{SeenMessage, TurnEnd};
use minder_proto::rpc::{TakeAnswer, Taken};
use minder_proto::snapshot;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Delivery;
use super::rules::is_given_by_its_channel;
use crate::session::{Lookup, tell_senders};
use crate::store::{Settled, Txn};

/// Reason of a `dead` whose text is damaged in its timeline, and the words for it.
const UNREADABLE: &str = "unreadable";
/// What its sender is told.
const UNREADABLE_WHY: &str = "its text cannot be read any more";

/// A message that somebody took and has not acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub party: Party,
    conn: u64,
    key: Option<String>,
    pub until: Instant,
}

impl Delivery {
    /// Takes the oldest message of a mailbox. A caller who goes away meanwhile has taken nothing.
    pub async fn take(
        self: &Arc<Self>,
        party: Party,
        conn: u64,
        key: Option<String>,
    ) -> Result<TakeAnswer, Fault> {
        let (reply, answer) = oneshot::channel();
        let this = Arc::clone(self);
        // Not the caller's own: from the receipt to the lease it must not end half-way.
        tokio::spawn(async move {
            let taken = this.take_readable(party, conn, key).await;
            let id = taken.as_ref().ok().and_then(|t| t.message.as_ref()).map(|m| m.id);
            if reply.send(taken).is_err()
                && let Some(id) = id
            {
                this.memory().leases.remove(&id);
                this.give_back(vec![(id, party)]).await;
            }
        });
        answer.await.map_err(|_| Fault::new(Kind::Unavailable, "the daemon is going down"))?
    }

    /// The oldest message that can be read; what cannot is ended, and its sender told.
    async fn take_readable(
        self: &Arc<Self>,
        party: Party,
        conn: u64,
        key: Option<String>,
    ) -> Result<TakeAnswer, Fault> {
        loop {
            let (entry, more) = self.take_head(party, conn, key.clone()).await?;
            let Some(entry) = entry else { return Ok(TakeAnswer { message: None, more: 0 }) };
            let home = self.store.home();
            let dir = snapshot::party_dir(home, party);
            let message = snapshot::message_of(&dir, &entry)
                .map_err(|e| Fault::new(Kind::ReadOnly, format!("{}: {e}", dir.display())))?;
            if let Some(message) = message {
                let text = envelope::render(home, &message);
                let taken =
                    Taken { id: entry.id, from: message.from, seq: entry.seq, text, body: message.body };
                return Ok(TakeAnswer { message: Some(taken), more });
            }
            self.memory().leases.remove(&entry.id);
            self.store.write_on_files(move |txn, files| bury_unreadable(txn, files, party, &[entry])).await?;
        }
    }

    async fn take_head(
        self: &Arc<Self>,
        party: Party,
        conn: u64,
        key: Option<String>,
    ) -> Result<(Option<queue::Entry>, usize), Fault> {
        // The same key gives the same message again.
        let same = key.as_ref().and_then(|key| {
            let memory = self.memory();
            let lease = memory.leases.iter().find(|(_, l)| l.party == party && l.key.as_ref() == Some(key));
            lease.map(|(id, _)| *id)
        });
        let this = Arc::clone(self);
        let (entry, more) = self
            .store
            .write(move |txn| {
                let queue = &txn.inbox(party)?.queue;
                // What a program of the user's has right now is not given to a second reader.
                let tried = party.session().and_then(|s| this.memory().attempts.get(&s).copied());
                let waits = |e: &&queue::Entry| is_given_by_its_channel(e) && Some(e.id) != tried;
                let entry = same.and_then(|id| queue.get(id)).or_else(|| queue.iter().find(waits)).cloned();
                let Some(entry) = entry else { return Ok((None, 0)) };
                let more = queue.iter().filter(waits).filter(|e| e.id != entry.id).count();
                if entry.receipt != Receipt::Handed {
                    txn.receipt(party, entry.id, Receipt::Handed, None, entry.attempt + 1, Some("mailbox"))?;
                }
                Ok((Some(entry), more))
            })
            .await?;
        if let Some(entry) = &entry {
            let until = Instant::now() + self.store.config().mailbox.visibility.0;
            self.memory().leases.insert(entry.id, Lease { party, conn, key, until });
            self.changes.mark([party]);
        }
        Ok((entry, more))
    }

    /// The caller has read a message of its own. Gives what became of it: one that was settled stays what it is.
    pub async fn ack(self: &Arc<Self>, at: Lookup) -> Result<Receipt, Fault> {
        let this = Arc::clone(self);
        let waited = self
            .store
            .write(move |txn| {
                let waited = txn.inbox(at.to)?.queue.get(at.id).is_some();
                seen(txn, at.to, at.id, "ack", "mailbox")?;
                let mut memory = this.memory();
                memory.leases.remove(&at.id);
                memory.handed.remove(&at.id);
                Ok(waited)
            })
            .await?;
        // What became of one that was settled before is read from its history, which is long.
        if waited { Ok(Receipt::Seen) } else { Ok(self.receipt(at).await?.receipt) }
    }

    /// A connection ended: what it took and did not acknowledge waits again.
    pub async fn connection_ended(self: &Arc<Self>, conn: u64) {
        let ids: Vec<(MessageId, Party)> = {
            let mut memory = self.memory();
            let ended: Vec<_> =
                memory.leases.iter().filter(|(_, l)| l.conn == conn).map(|(id, l)| (*id, l.party)).collect();
            for (id, _) in &ended {
                memory.leases.remove(id);
            }
            ended
        };
        if !ids.is_empty() {
            self.give_back(ids).await;
        }
    }

    /// Messages that were handed and not seen wait again, under the same id.
    pub(super) async fn give_back(self: &Arc<Self>, ids: Vec<(MessageId, Party)>) {
        let give = move |txn: &mut Txn<'_>| {
            for (id, party) in &ids {
                give_back(txn, *party, std::slice::from_ref(id))?;
            }
            Ok(())
        };
        match self.store.write(give.clone()).await {
            // Nobody has them: they must not stay handed because the disk refused for a while.
            Err(fault) if fault.kind == Kind::ReadOnly => {
                let store = self.store.clone();
                tokio::spawn(async move { store.write_patiently(give).await });
            }
            Err(fault) => tracing::warn!(%fault, "a message was not given back"),
            Ok(()) => {}
        }
    }
}

/// Of these messages, those that are handed and have not been seen wait again.
pub fn give_back(txn: &mut Txn<'_>, party: Party, ids: &[MessageId]) -> Result<(), Fault> {
    for id in ids {
        let entry = txn.inbox(party).ok().and_then(|i| i.queue.get(*id)).cloned();
        if let Some(entry) = entry.filter(|e| e.receipt == Receipt::Handed) {
            txn.receipt(party, *id, Receipt::Queued, None, entry.attempt, None)?;
        }
    }
    Ok(())
}

/// Marks a message as seen, with what the evidence is. One that is settled stays what it is.
pub fn seen(
    txn: &mut Txn<'_>,
    party: Party,
    id: MessageId,
    evidence: &str,
    channel: &str,
) -> Result<(), Fault> {
    // Settled before: acknowledging twice is no mistake.
    let Some(entry) = txn.inbox(party)?.queue.get(id).cloned() else { return Ok(()) };
    settle(txn, party, &entry, evidence, channel)?;
    joins_turn(txn, party, &entry)
}

/// The receipt of a message that is seen, with what the evidence is.
pub(super) fn settle(
    txn: &mut Txn<'_>,
    party: Party,
    entry: &queue::Entry,
    evidence: &str,
    channel: &str,
) -> Result<(), Fault> {
    let attempt = entry.attempt.max(1);
    txn.receipt(party, entry.id, Receipt::Seen, Some(evidence.to_owned()), attempt, Some(channel))
}

/// A notice is nothing that anybody waits to have answered.
pub(super) fn is_notice(entry: &queue::Entry) -> bool {
    entry.brief.as_ref().is_none_or(|b| b.from == Party::Minder)
}

/// What is seen while a turn runs is answered by that turn's end.
pub(super) fn joins_turn(txn: &mut Txn<'_>, party: Party, entry: &queue::Entry) -> Result<(), Fault> {
    let Some(session) = party.session().filter(|_| !is_notice(entry)) else { return Ok(()) };
    txn.edit(session, |r| {
        if let Some(turn) = &mut r.turn {
            turn.messages.push(SeenMessage { id: entry.id, seq: entry.seq });
        }
    })
}

/// The turn in which it was given is over, and has answered it.
pub(super) fn answered_by(
    txn: &mut Txn<'_>,
    party: Party,
    entry: &queue::Entry,
    end: TurnEnd,
) -> Result<(), Fault> {
    if is_notice(entry) {
        return Ok(());
    }
    txn.answered(party, entry.id, entry.seq, end.reason())
}

/// Ends messages whose text is damaged. Judged here on the files as they are committed: whoever looked before may have
/// come between a commit and its appearance in the files, which a full disk makes long.
pub fn bury_unreadable(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    party: Party,
    entries: &[queue::Entry],
) -> Result<(), Fault> {
    let dir = snapshot::party_dir(files.home(), party);
    let lost: Vec<queue::Entry> =
        entries.iter().filter(|e| matches!(snapshot::message_of(&dir, e), Ok(None))).cloned().collect();
    if lost.is_empty() {
        return Ok(());
    }
    bury(txn, files, party, &lost, UNREADABLE, UNREADABLE_WHY)
}

/// Ends messages that will never be given: their receipts, and one message to each sender.
pub fn bury(
    txn: &mut Txn<'_>,
    files: Settled<'_>,
    party: Party,
    entries: &[queue::Entry],
    reason: &str,
    why: &str,
) -> Result<(), Fault> {
    let title = match party {
        Party::Session(id) => txn.session(id)?.record.title.clone(),
        _ => "the person".to_owned(),
    };
    for entry in entries {
        txn.receipt(party, entry.id, Receipt::Dead, Some(reason.to_owned()), entry.attempt, None)?;
    }
    tell_senders(txn, files, party, &title, entries, why);
    Ok(())
}
