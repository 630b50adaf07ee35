//! Why a message waits, and what ends the waiting: the words for the reasons that receipts carry.

use minder_proto::event::{Class, Receipt};
use minder_proto::queue::Entry;
use minder_proto::record::Channel;

/// A receipt with its reason: `held(busy)`, `seen`.
pub fn receipt(receipt: Receipt, reason: Option<&str>) -> String {
    match reason {
        // The evidence of a `seen`, and what answered, are for the ledger.
        Some(reason) if !matches!(receipt, Receipt::Seen | Receipt::Answered) => {
            format!("{receipt}({reason})")
        }
        _ => receipt.to_string(),
    }
}

/// What lifts a hold, as the end of "goes on with …".
pub fn lifted_by(reason: &str) -> &'static str {
    // A reason may say more in brackets: `usage-limit(2026-12-01T03:10Z)`.
    match reason.split('(').next().unwrap_or(reason) {
        "busy" => "the end of the turn that runs",
        "dialog" => "an answer to the dialog that is open",
        "draft" => "the person's own text sent or taken away",
        "not-ready" => "its harness being up",
        "offline" => "its harness running again",
        "compacting" => "the end of the compaction",
        "capacity" => "a free place",
        "usage-limit" => "the reset of the usage limit",
        "auth" => "a new login",
        "posture" => "its host's word",
        "circuit" => "a probe that succeeds",
        "no-wake-path" => "its next prompt: nothing wakes this session by itself",
        "copy-mode" => "its pane leaving copy mode",
        "wrong-process" => "its harness being back in its pane",
        "unknown" => "its harness being readable again",
        "not-submitted" => "the person sending what was typed",
        "differs" => "its composer being empty",
        _ => "the end of what the reason says",
    }
}

/// What a message that is not settled waits for.
pub fn waits_for(entry: &Entry, channel: Option<&Channel>) -> String {
    match (entry.receipt, &entry.reason) {
        (Receipt::Held, Some(reason)) => lifted_by(reason).to_owned(),
        (Receipt::Handed, _) => "evidence that it was read; without it, it is given again".to_owned(),
        _ => match (entry.class(), channel) {
            (Class::WithNext, _) => "whatever it is given next".to_owned(),
            (_, Some(Channel::Mailbox)) => "minder inbox take in that session".to_owned(),
            (_, None) => "minder inbox in a person's shell".to_owned(),
            (Class::NextTool, _) => "the end of its next tool call".to_owned(),
            (Class::TurnEnd, _) => "the end of its turn".to_owned(),
            (Class::Idle, _) => "it being idle".to_owned(),
            (Class::Now, _) => "its next boundary".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_with_an_until_is_lifted_as_the_reason_is() {
        assert_eq!(lifted_by("usage-limit(2026-12-01T03:10Z)"), lifted_by("usage-limit"));
        assert_eq!(receipt(Receipt::Held, Some("busy")), "held(busy)");
        assert_eq!(receipt(Receipt::Seen, Some("ack")), "seen");
        assert_eq!(receipt(Receipt::Answered, Some("turn 6")), "answered");
        assert_eq!(receipt(Receipt::Dead, Some("expired")), "dead(expired)");
    }
}
