//! A conversation that is replaced while somebody waits for its answer: there will be none, and the receipt says so. What was
//! only handed to it waits again.

use std::sync::Arc;

use minder_proto::id::{Party, SessionId};
use minder_proto::record::{Process, SessionRecord};
use minder_proto::stamp::Stamp;

use super::Delivery;
use crate::session::Lookup;

/// The reason of a receipt that is `returned`.
const REPLACED: &str = "receiver_replaced";

/// Waits of one session that are remembered, from the end of its process to the next one.
const CUT_MAX: usize = 100;

/// Who it is that answers: another one has another process, another conversation, or both anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    incarnation: u64,
    binding: Option<String>,
    process: Option<(i32, u64, String)>,
}

impl Conversation {
    /// As the record has it.
    pub fn of(record: &SessionRecord) -> Self {
        let key = |p: &Process| (p.pid, p.start, p.boot.clone());
        Self {
            incarnation: record.incarnation,
            binding: record.live_binding().map(|b| b.id.clone()),
            process: record.process.as_ref().map(key),
        }
    }
}

/// A message whose sender waited until the process that had seen it ended. The next process is another receiver.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    at: Lookup,
    seq: u64,
    with: Conversation,
}

/// True where what was handed at this time went to a conversation that is no more.
pub fn is_gone_with_it(record: &SessionRecord, handed: Stamp) -> bool {
    let ended = record.process.as_ref().and_then(|p| p.ended).is_some_and(|at| at >= handed);
    // A compaction keeps what was said.
    let replaced = record.live_binding().is_some_and(|b| b.since > handed && b.why != "compact");
    ended || replaced
}

impl Delivery {
    /// The turn that had seen a message is over without an answer, and its sender waits. True where its receipt says by now
    /// that the receiver is another one.
    pub(super) async fn came_to_nothing(
        self: &Arc<Self>,
        at: Lookup,
        seq: u64,
        with: &Conversation,
        record: &SessionRecord,
    ) -> bool {
        if *with != Conversation::of(record) {
            return self.will_have_none(vec![(at, seq)]).await;
        }
        if record.process.as_ref().is_some_and(|p| p.ended.is_some()) {
            let mut memory = self.memory();
            let cut = memory.cut.entry(record.id).or_default();
            if cut.len() < CUT_MAX && cut.iter().all(|c| c.at != at) {
                cut.push(Cut { at, seq, with: with.clone() });
            }
        }
        false
    }

    /// Looks whether another conversation, or another process of it, has come since somebody waited for the one before.
    pub(super) async fn return_what_was_cut(
        self: &Arc<Self>,
        session: SessionId,
        record: Option<&SessionRecord>,
    ) {
        let due: Vec<(Lookup, u64)> = {
            let mut memory = self.memory();
            let Some(record) = record else { return drop(memory.cut.remove(&session)) };
            let Some(cut) = memory.cut.get_mut(&session) else { return };
            let now = Conversation::of(record);
            let due = cut.extract_if(.., |cut| cut.with != now).map(|cut| (cut.at, cut.seq)).collect();
            if cut.is_empty() {
                memory.cut.remove(&session);
            }
            due
        };
        if !due.is_empty() {
            self.will_have_none(due).await;
        }
    }

    async fn will_have_none(&self, messages: Vec<(Lookup, u64)>) -> bool {
        let written = self.store.write_patiently(move |txn| {
            for (at, seq) in &messages {
                let gone = at.to.session().is_some_and(|id| txn.session(id).is_err());
                if !gone {
                    txn.returned(at.to, at.id, *seq, REPLACED)?;
                }
            }
            Ok(())
        });
        written.await.is_ok()
    }

    /// Of what is out, what went with its conversation waits again.
    pub(super) async fn give_back_what_went(
        self: &Arc<Self>,
        record: &SessionRecord,
        out: &[&minder_proto::queue::Entry],
    ) {
        if self.memory().running.contains(&record.id) {
            return; // it is being typed
        }
        let gone = out.iter().filter(|e| is_gone_with_it(record, e.since));
        let gone: Vec<_> = gone.map(|e| (e.id, Party::Session(record.id))).collect();
        if !gone.is_empty() {
            self.give_back(gone).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_handed_goes_with_its_process_and_with_its_conversation() {
        let record = |process: serde_json::Value, why: &str| -> SessionRecord {
            serde_json::from_value(json!({
                "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
                "harness": "claude", "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": "idle",
                "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 1, "process": process,
                "bindings": [{"harness": "claude", "id": "c", "since": "2026-11-30T12:00:00Z", "why": why}],
            }))
            .unwrap()
        };
        let at = |text: &str| -> Stamp { text.parse().unwrap() };
        let ended = json!({"pid": 7, "start": 1, "boot": "b", "ended": "2026-11-30T14:00:00Z"});
        let lives = json!({"pid": 7, "start": 1, "boot": "b"});
        for (record, handed, gone) in [
            (record(ended.clone(), "startup"), "2026-11-30T13:00:00Z", true),
            // To whoever came after that process.
            (record(ended, "startup"), "2026-11-30T15:00:00Z", false),
            (record(lives.clone(), "startup"), "2026-11-30T13:00:00Z", false),
            (record(lives.clone(), "clear"), "2026-11-30T11:00:00Z", true),
            (record(lives, "compact"), "2026-11-30T11:00:00Z", false),
        ] {
            assert_eq!(is_gone_with_it(&record, at(handed)), gone, "{record:?} {handed}");
        }
    }
}
