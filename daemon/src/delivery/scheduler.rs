//! The loop over all queues: woken by changes and by the few deadlines there are. An empty queue costs nothing: no
//! timer, no probe.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::rpc::HookAnswer;
use minder_proto::stamp::Stamp;
use tokio::time::Instant;

use super::{Delivery, codex, opencode};

use super::hand::{self, POINTER_SEEN};
use super::mailbox::bury;
use super::rules::{self, Boundary};
use super::served::{self, Server as _};

/// Waiting messages that one look takes in: a long queue does not make a look long.
const WINDOW: usize = 64;

/// What one look at a queue needs: its oldest messages, and all that are handed or have a time of their own.
struct View {
    record: Option<SessionRecord>,
    waiting: Vec<queue::Entry>,
}

impl Delivery {
    /// Messages that a mailbox gave out wait again: whoever took them has lost the connection. Then every queue is
    /// looked at once.
    pub async fn start(self: &Arc<Self>) {
        let found = self
            .store
            .read(|state| {
                let everybody: Vec<Party> =
                    state.records().map(|r| Party::Session(r.id)).chain([Party::Operator]).collect();
                let mut parties = Vec::new();
                let mut taken = Vec::new();
                for party in everybody {
                    let Some(inbox) = state.inbox(party).filter(|i| !i.queue.is_empty()) else { continue };
                    parties.push(party);
                    let out = inbox.queue.iter().filter(|e| e.receipt == Receipt::Handed);
                    let out = out.filter(|e| e.channel.as_deref() == Some("mailbox"));
                    taken.extend(out.map(|e| (e.id, party)));
                }
                (parties, taken)
            })
            .await;
        let Ok((parties, taken)) = found else { return };
        if !taken.is_empty() {
            self.give_back(taken).await;
        }
        self.changes.mark(parties);
    }

    /// Runs until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let mut due: HashMap<Party, Instant> = HashMap::new();
        loop {
            let next = due.values().min().copied();
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changes.bell.notified() => {}
                () = sleep => {}
            }
            let now = Instant::now();
            let mut parties = self.changes.take();
            parties.extend(due.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p));
            for party in parties {
                due.remove(&party);
                if let Some(at) = self.evaluate(party).await {
                    due.insert(party, at);
                }
            }
        }
    }

    /// Looks at one queue; gives when to look again if nothing happens until then.
    async fn evaluate(self: &Arc<Self>, party: Party) -> Option<Instant> {
        let view = self
            .store
            .read(move |state| {
                let mut window = WINDOW;
                let mut in_view = |e: &&queue::Entry| {
                    // Nothing here is done with it, and its time with a host is no age.
                    if rules::is_of_host(e) {
                        return false;
                    }
                    let special =
                        e.receipt == Receipt::Handed || e.brief.as_ref().is_some_and(|b| b.expires.is_some());
                    window -= usize::from(!special && window > 0);
                    special || window > 0
                };
                let queue = state.inbox(party).map(|i| &i.queue);
                View {
                    record: party.session().and_then(|s| state.session(s)).map(|s| s.record.clone()),
                    waiting: queue
                        .map(|q| q.iter().filter(|e| in_view(e)).cloned().collect())
                        .unwrap_or_default(),
                }
            })
            .await
            .ok()?;
        if let Party::Session(session) = party {
            self.return_what_was_cut(session, view.record.as_ref()).await;
        }
        match (&view.record, party) {
            (Some(record), _) => self.end_stale_waiter(record),
            (None, Party::Session(closed)) => {
                let mut memory = self.memory();
                memory.over.remove(&closed);
                memory.typing.remove(&closed);
                drop(memory);
                self.session_gone(closed);
            }
            _ => {}
        }
        if view.waiting.is_empty() {
            self.memory().retry.remove(&party.session()?);
            return None;
        }
        let now = Instant::now();
        let mut next = self.expire(party, &view.waiting).await;
        let mut sooner = |at: Option<Instant>| next = [next, at].into_iter().flatten().min();
        sooner(self.take_back_leases(party, now).await);
        let Some(record) = view.record else { return next };
        sooner(self.missing_evidence(&record, &view.waiting, now).await);
        sooner(self.compaction_over(&record, now).await);
        match record.channel.clone() {
            Channel::Mailbox => {}
            Channel::Exec { .. } => {
                // Evidence is its exit: what was handed is seen.
                if view.waiting.iter().any(rules::waits) {
                    self.try_exec(record.id);
                    sooner(
                        self.memory().retry.get(&record.id).map(rules::Backoff::next).filter(|at| *at > now),
                    );
                }
            }
            Channel::Codex { .. } | Channel::Opencode { .. }
                if !served::is_wanted(record.channel.as_str(), &view.waiting) => {}
            // In a terminal of its own it has hooks and nothing else.
            Channel::Codex { .. }
                if served::in_doubt(codex::Server::CHANNEL, &view.waiting).is_empty()
                    && codex::is_without_server(&record) =>
            {
                self.hook(&record, &view.waiting).await;
            }
            Channel::Codex { .. } | Channel::Opencode { .. } => {
                match record.channel {
                    Channel::Codex { .. } => self.try_served::<codex::Server>(record.id),
                    _ => self.try_served::<opencode::Server>(record.id),
                }
                sooner(self.memory().retry.get(&record.id).map(rules::Backoff::next).filter(|at| *at > now));
            }
            Channel::Hook => self.hook(&record, &view.waiting).await,
            Channel::Tmux { .. } => sooner(self.tmux(&record, &view.waiting).await),
            Channel::Headless { .. } => sooner(self.headless(&record, &view.waiting).await),
        }
        next
    }

    /// Messages whose time is over, or that are too old, are dead.
    async fn expire(self: &Arc<Self>, party: Party, waiting: &[queue::Entry]) -> Option<Instant> {
        if party == Party::Operator {
            return None; // a person may be away for a month: nothing of theirs dies
        }
        let wall = Stamp::now();
        let max_age = self.store.config().delivery.max_age.0;
        let mut over: BTreeMap<&str, Vec<queue::Entry>> = BTreeMap::new();
        let mut next: Option<Stamp> = None;
        for entry in waiting {
            let age = age_of(entry, max_age, wall);
            match age {
                Age::Expired => over.entry("expired").or_default().push(entry.clone()),
                Age::TooOld => over.entry("too-old").or_default().push(entry.clone()),
                Age::Given => over.entry("given").or_default().push(entry.clone()),
                Age::Young(until) => next = next.into_iter().chain(until).min(),
            }
        }
        for (reason, entries) in over {
            if reason == "given" {
                self.end_given(party, entries).await;
                continue;
            }
            let why = if reason == "expired" { "its time was over" } else { "it waited too long" };
            let result = self
                .store
                .write_on_files(move |txn, files| bury(txn, files, party, &entries, "expired", why))
                .await;
            if let Err(fault) = result {
                tracing::warn!(%fault, "a message that is over could not be ended yet");
            }
        }
        // Calendar times: the wait is cut into days, so that a step of the clock is noticed.
        next.map(|at| Instant::now() + wall.age(at).min(Duration::from_secs(86_400)))
    }

    /// Ends what was given without evidence and is old. Nobody is told: it was not lost.
    async fn end_given(self: &Arc<Self>, party: Party, entries: Vec<queue::Entry>) {
        let ended = self.store.write(move |txn| {
            for entry in &entries {
                txn.receipt(party, entry.id, Receipt::Dead, Some("expired".into()), entry.attempt, None)?;
            }
            Ok(())
        });
        if let Err(fault) = ended.await {
            tracing::warn!(%fault, "messages that were given long ago could not be ended yet");
        }
    }

    async fn take_back_leases(self: &Arc<Self>, party: Party, now: Instant) -> Option<Instant> {
        let (over, next) = {
            let mut memory = self.memory();
            let over: Vec<(MessageId, Party)> = memory
                .leases
                .iter()
                .filter(|(_, l)| l.party == party && l.until <= now)
                .map(|(id, l)| (*id, l.party))
                .collect();
            for (id, _) in &over {
                memory.leases.remove(id);
            }
            (over, memory.leases.values().filter(|l| l.party == party).map(|l| l.until).min())
        };
        if !over.is_empty() {
            self.give_back(over).await;
        }
        next
    }

    /// What a hook printed, or what was typed, and no evidence has shown waits again after a while in which nothing ran.
    async fn missing_evidence(
        self: &Arc<Self>,
        record: &SessionRecord,
        waiting: &[queue::Entry],
        now: Instant,
    ) -> Option<Instant> {
        let out: Vec<&queue::Entry> = waiting
            .iter()
            .filter(|e| e.receipt == Receipt::Handed && matches!(e.channel.as_deref(), Some("hook" | "tmux")))
            .filter(|e| !matches!(e.reason.as_deref(), Some(POINTER_SEEN | queue::FINAL)))
            .collect();
        if out.is_empty() {
            return None;
        }
        self.look_for_evidence(record.id).await;
        self.give_back_what_went(record, &out).await;
        let window = self.store.config().delivery.evidence_timeout.0;
        let wall = Stamp::now();
        let newest = out.iter().map(|e| e.since.age(wall)).min().unwrap_or_default();
        let next_look = now + rules::look_again_after(newest);
        let (over, next) = {
            let mut memory = self.memory();
            if record.turn.is_some() || record.compacting || memory.running.contains(&record.id) {
                // Its clock stands still while a turn runs or a dialog is open, and while it is being typed.
                out.iter().for_each(|e| {
                    memory.handed.remove(&e.id);
                });
                return Some(next_look);
            }
            let mut over = Vec::new();
            let mut next = Some(next_look);
            for entry in out {
                let since = *memory.handed.entry(entry.id).or_insert(now);
                if since + window <= now {
                    memory.handed.remove(&entry.id);
                    over.push((entry.id, Party::Session(record.id)));
                } else {
                    next = [next, Some(since + window)].into_iter().flatten().min();
                }
            }
            (over, next)
        };
        if !over.is_empty() {
            self.give_back(over).await;
        }
        next
    }

    /// A compaction holds no message for longer than any takes: that it was broken off may be told by nobody.
    async fn compaction_over(&self, record: &SessionRecord, now: Instant) -> Option<Instant> {
        let session = record.id;
        if !record.compacting {
            self.memory().compacting.remove(&session);
            return None;
        }
        let since = *self.memory().compacting.entry(session).or_insert(now);
        if since + rules::COMPACTION > now {
            return Some(since + rules::COMPACTION);
        }
        let over = self.store.write(move |txn| txn.edit(session, |r| r.compacting = false));
        if let Err(fault) = over.await {
            tracing::debug!(%session, %fault, "the end of a compaction is not written");
        }
        self.memory().compacting.remove(&session);
        Some(now + Duration::from_secs(1))
    }

    /// A hook session: a waiter takes what may enter an idle conversation; else the reason why it waits is kept.
    async fn hook(self: &Arc<Self>, record: &SessionRecord, waiting: &[queue::Entry]) {
        let session = record.id;
        let hold = rules::at_boundaries(record, self.has_waiter(session));
        let ready = waiting.iter().any(|e| {
            rules::is_given_by_its_channel(e)
                && rules::may_enter(e.class(), Boundary::Idle) == rules::Entry::Yes
        });
        match hold {
            None if ready => self.wake(session).await,
            None => {}
            Some(hold) => self.note_hold(session, waiting, hold, "hook").await,
        }
    }

    async fn wake(self: &Arc<Self>, session: SessionId) {
        let room = hand::Room { chars: self.store.config().hook.max_chars, bytes: None };
        let handed = self
            .store
            .write_on_files(move |txn, files| {
                // Decided on the state at commit: a turn may have begun meanwhile.
                if rules::hold(&txn.session(session)?.record, true).is_some() {
                    return Ok(hand::Handed::default());
                }
                hand::hand(txn, files, session, Boundary::Idle, room)
            })
            .await;
        let Ok(handed) = handed else { return };
        if handed.ids.is_empty() {
            return;
        }
        self.remember_transcript(session).await;
        let answer = HookAnswer { stderr: handed.text, exit: 2, ..HookAnswer::default() };
        if !self.end_waiter(session, answer) {
            let back = handed.ids.into_iter().map(|id| (id, Party::Session(session))).collect();
            self.give_back(back).await;
        }
    }

    /// Writes why messages wait, where that has changed: for the head, and for each message once.
    pub(super) async fn note_hold(
        self: &Arc<Self>,
        session: SessionId,
        waiting: &[queue::Entry],
        hold: Hold,
        channel: &'static str,
    ) {
        let reason = hold.to_string();
        let mut ids: Vec<(MessageId, u32)> = Vec::new();
        let mut head = true;
        for entry in waiting.iter().filter(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held)) {
            let differs = entry.reason.as_ref() != Some(&reason);
            if differs && (head || entry.receipt == Receipt::Queued) {
                ids.push((entry.id, entry.attempt));
            }
            head = false;
        }
        if ids.is_empty() {
            return;
        }
        let result = self
            .store
            .write(move |txn| {
                for (id, attempt) in ids {
                    let entry = txn.session(session)?.inbox.queue.get(id);
                    if entry.is_some_and(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held)) {
                        let reason = Some(reason.clone());
                        txn.receipt(
                            Party::Session(session),
                            id,
                            Receipt::Held,
                            reason,
                            attempt,
                            Some(channel),
                        )?;
                    }
                }
                Ok(())
            })
            .await;
        if let Err(fault) = result {
            tracing::debug!(%session, %fault, "a hold could not be written");
        }
    }

    /// A waiter of a conversation that is not this session's any more, or of a process that is gone, is told to end.
    fn end_stale_waiter(&self, record: &SessionRecord) {
        let gone = record.process.as_ref().is_some_and(|p| p.ended.is_some());
        let live = record.live_binding().map(|b| b.id.as_str()).filter(|_| !gone);
        let stale = {
            let memory = self.memory();
            memory.waiters.get(&record.id).is_some_and(|w| live != Some(w.conversation.as_str()))
        };
        if stale {
            self.end_waiter(record.id, HookAnswer::default());
        }
    }
}

/// What its age makes of a message.
#[derive(Debug, PartialEq, Eq)]
enum Age {
    /// Its own time is over.
    Expired,
    /// It waited for too long.
    TooOld,
    /// It was given, nothing can show that it was read, and nobody waits for that any more.
    Given,
    /// Nothing before this, if its age alone will ever do anything.
    Young(Option<Stamp>),
}

fn age_of(entry: &queue::Entry, max_age: Duration, now: Stamp) -> Age {
    let limit = entry.accepted.plus(max_age);
    let expires = entry.brief.as_ref().and_then(|b| b.expires);
    let handed = entry.receipt == Receipt::Handed;
    if expires.is_some_and(|at| at <= now) {
        return Age::Expired;
    }
    match limit <= now {
        false => Age::Young(expires.into_iter().chain([limit]).min()),
        true if entry.is_final() => Age::Given,
        // Its end is its reader's: it is looked at again when that comes.
        true if handed => Age::Young(expires),
        true => Age::TooOld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_does_not_die_of_age_and_is_not_looked_at_for_ever() {
        let day = Duration::from_secs(86_400);
        let (begun, now) = (Stamp::from_millis(0), Stamp::from_millis(0).plus(day * 8));
        let age = |receipt: Receipt, reason: Option<&str>, now| {
            let entry = queue::Entry {
                id: MessageId::now(),
                seq: 1,
                brief: None,
                receipt,
                reason: reason.map(str::to_owned),
                since: begun,
                accepted: begun,
                attempt: 1,
                channel: None,
            };
            age_of(&entry, day * 7, now)
        };
        assert_eq!(age(Receipt::Held, None, now), Age::TooOld);
        assert_eq!(age(Receipt::Handed, Some("pointer-seen"), now), Age::Young(None));
        assert_eq!(age(Receipt::Handed, Some(queue::FINAL), now), Age::Given);
        for receipt in [Receipt::Queued, Receipt::Handed] {
            assert_eq!(age(receipt, None, begun), Age::Young(Some(begun.plus(day * 7))));
        }
    }
}
