//! Those who sent a message and wait for its answer: a reply, or the final text of the turn it started.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::error::{Fault, Kind};
use minder_proto::event::{Body, Receipt};
use minder_proto::hold::{self, Hold};
use minder_proto::id::{MessageId, Party};
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::rpc::{ReceiptAnswer, WaitVerdict};
use minder_proto::state::State as Declared;
use minder_proto::{queue, snapshot, timeline};

use super::replaced::Conversation;
use super::{Delivery, rules};
use crate::session::Lookup;

/// Texts for those who wait right now. The store keeps only the beginning of an answer.
#[derive(Default)]
pub struct Answers {
    awaited: HashMap<MessageId, usize>,
    texts: HashMap<MessageId, String>,
}

impl Delivery {
    /// Keeps the whole final text of a turn for whoever waits for one of the messages seen in it.
    pub fn answer_text(&self, messages: &[MessageId], text: &str) {
        let mut memory = self.memory();
        for id in messages {
            if memory.answers.awaited.contains_key(id) {
                memory.answers.texts.insert(*id, text.to_owned());
            }
        }
    }

    /// Those of these messages whose answers somebody waits for right now.
    pub(super) fn awaited(&self, messages: &[MessageId]) -> Vec<MessageId> {
        let memory = self.memory();
        messages.iter().copied().filter(|id| memory.answers.awaited.contains_key(id)).collect()
    }

    /// How far a message got.
    pub async fn receipt(self: &Arc<Self>, at: Lookup) -> Result<ReceiptAnswer, Fault> {
        self.look(at).await.map(|looked| looked.answer)
    }

    /// How far a message got once there is an answer, there cannot be one now, or the time is over.
    pub async fn receipt_when_settled(
        self: &Arc<Self>,
        at: Lookup,
        within: Duration,
    ) -> Result<ReceiptAnswer, Fault> {
        let _awaited = Awaited::new(self, at.id);
        let bell = self.changes.listen(Some(at.to));
        let deadline = tokio::time::Instant::now() + within;
        let mut with: Option<Conversation> = None;
        loop {
            let Looked { mut answer, mut verdict, record, runs } = self.look(at).await?;
            // What its receiver has read by itself it may answer at any time.
            if answer.receipt == Receipt::Seen && !runs && answer.reason.as_deref() != Some("ack") {
                if let (Some(with), Some(record), Some(line)) = (&with, &record, answer.history.last())
                    && (verdict == Some(WaitVerdict::Failed) || *with != Conversation::of(record))
                    && self.came_to_nothing(at, line.seq, with, record).await
                {
                    Looked { answer, verdict, .. } = self.look(at).await?;
                }
            } else {
                with = record.as_ref().map(Conversation::of);
            }
            if let Some(verdict) = verdict {
                if let Some(text) = self.memory().answers.texts.remove(&at.id) {
                    answer.answer = Some(text);
                }
                answer.verdict = Some(verdict);
                return Ok(answer);
            }
            if tokio::time::timeout_at(deadline, bell.notified()).await.is_err() {
                answer.verdict = Some(WaitVerdict::Timeout);
                return Ok(answer);
            }
        }
    }

    /// The receipt, and the verdict for one who waits, if there is one by now.
    async fn look(self: &Arc<Self>, at: Lookup) -> Result<Looked, Fault> {
        let waiter = at.to.session().is_some_and(|s| self.has_waiter(s));
        let (entry, record) = self
            .store
            .read(move |state| {
                let entry = state.inbox(at.to).and_then(|i| i.queue.get(at.id)).cloned();
                (entry, at.to.session().and_then(|s| state.session(s)).map(|s| s.record.clone()))
            })
            .await?;
        let home = self.store.home();
        let dir = match at.to {
            Party::Session(id) => snapshot::timeline_dir(home, id)
                .ok_or_else(|| Fault::new(Kind::Gone, format!("session {} is gone", id.short())).about(id))?,
            _ => home.operator(),
        };
        let ledger = minder_proto::whole::read(&dir.join("queue.jsonl")).unwrap_or_default();
        let mut history = queue::history(&ledger, at.id);
        if history.is_empty() && entry.is_none() {
            let past = snapshot::histories(&dir, &at.id.to_string());
            history = past.into_iter().next().map(|(_, lines)| lines).unwrap_or_default();
        }
        let last = history.last().cloned();
        let seq = entry.as_ref().map(|e| e.seq).or(history.first().map(|l| l.seq)).unwrap_or_default();
        let message = snapshot::message(&dir, seq).ok().flatten();
        let receipt = entry.as_ref().map(|e| e.receipt).or(last.as_ref().map(|l| l.r)).ok_or_else(|| {
            Fault::new(Kind::Gone, format!("message {} is not known any more", at.id.short()))
        })?;
        let live_hold = record.as_ref().and_then(|r| rules::hold(r, waiter));
        let reason = match receipt {
            Receipt::Queued => None,
            Receipt::Held => entry.as_ref().and_then(|e| e.reason.clone()),
            _ => last.as_ref().and_then(|l| l.reason.clone()),
        };
        let mut answer = ReceiptAnswer {
            id: at.id,
            from: message.map_or(Party::Minder, |m| m.from),
            to: at.to,
            history,
            receipt,
            reason,
            verdict: None,
            answer: None,
        };
        let mailbox = record.as_ref().is_some_and(|r| r.channel == Channel::Mailbox);
        let dialog = record.as_ref().is_some_and(|r| r.turn.as_ref().is_some_and(|t| t.dialog.is_some()));
        let headless = record.as_ref().is_some_and(|r| matches!(r.channel, Channel::Headless { .. }));
        // Of a queue that is run as turns the message itself says whether a turn with it failed.
        let failed = if headless {
            entry
                .as_ref()
                .is_some_and(|e| e.attempt > 0 && matches!(e.receipt, Receipt::Queued | Receipt::Held))
        } else {
            record.as_ref().is_some_and(|r| r.state == Declared::Error && r.state_seq > seq)
        };
        // It was seen in a turn that came to no end of its own, by an interrupt or the conversation's end. Who reads
        // its messages by itself may still answer.
        let runs = record
            .as_ref()
            .and_then(|r| r.turn.as_ref())
            .is_some_and(|t| t.messages.iter().any(|m| m.id == at.id));
        let unanswered = answer.reason.as_deref() != Some("ack")
            && !runs
            && record.as_ref().is_some_and(|r| {
                matches!(r.channel, Channel::Hook | Channel::Headless { .. } | Channel::Tmux { .. })
            });
        let held = entry.as_ref().and_then(|e| hold::of_reason(e.reason.as_deref()?));
        let verdict = match receipt {
            Receipt::Answered => {
                answer.answer = self.stored_answer(&dir, answer.from, answer.reason.as_deref());
                Some(WaitVerdict::Answered)
            }
            Receipt::Dead | Receipt::Returned => Some(WaitVerdict::Failed),
            Receipt::Seen if unanswered => Some(WaitVerdict::Failed),
            _ if failed => Some(WaitVerdict::Failed),
            _ if dialog => {
                answer.reason = Some(Hold::Dialog.to_string());
                Some(WaitVerdict::Blocked)
            }
            Receipt::Queued | Receipt::Held if mailbox => {
                answer.reason = Some(Hold::NoWakePath.to_string());
                Some(WaitVerdict::Blocked)
            }
            Receipt::Held if held.is_some_and(is_for_people) => Some(WaitVerdict::Blocked),
            Receipt::Queued | Receipt::Held
                if matches!(live_hold, Some(Hold::NoWakePath | Hold::Offline)) =>
            {
                answer.reason = live_hold.map(|h| h.to_string());
                Some(WaitVerdict::Blocked)
            }
            _ => None,
        };
        Ok(Looked { answer, verdict, record, runs })
    }

    /// The answer as far as the store has it: the reply's body, or the beginning of the turn's text.
    fn stored_answer(&self, dir: &std::path::Path, sender: Party, reason: Option<&str>) -> Option<String> {
        let (kind, which) = reason?.split_once(' ')?;
        match kind {
            "turn" => match timeline::find(dir, which.parse().ok()?).ok()??.body {
                Body::State(line) => line.text.or(line.note),
                Body::Note { text, .. } => Some(text),
                _ => None,
            },
            "reply" => {
                let sender = snapshot::party_dir(self.store.home(), sender);
                snapshot::message(&sender, which.parse().ok()?).ok()?.map(|m| m.body)
            }
            _ => None,
        }
    }
}

/// What a look at a message found.
struct Looked {
    answer: ReceiptAnswer,
    /// For one who waits, if there is one by now.
    verdict: Option<WaitVerdict>,
    /// Its recipient, as it was then.
    record: Option<SessionRecord>,
    /// It was seen in the turn that runs now.
    runs: bool,
}

/// True for a hold that only time or a person lifts.
fn is_for_people(hold: Hold) -> bool {
    use Hold::{Auth, Circuit, Dialog, Differs, NotSubmitted, UsageLimit, WrongProcess};
    matches!(hold, UsageLimit | Auth | Circuit | Dialog | NotSubmitted | Differs | WrongProcess)
}

/// Counts who waits for a message, for as long as they do.
struct Awaited<'a> {
    delivery: &'a Delivery,
    id: MessageId,
}

impl<'a> Awaited<'a> {
    fn new(delivery: &'a Delivery, id: MessageId) -> Self {
        *delivery.memory().answers.awaited.entry(id).or_default() += 1;
        Self { delivery, id }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut memory = self.delivery.memory();
        let left = memory.answers.awaited.get_mut(&self.id).map_or(0, |n| {
            *n -= 1;
            *n
        });
        if left == 0 {
            memory.answers.awaited.remove(&self.id);
            memory.answers.texts.remove(&self.id);
        }
    }
}
