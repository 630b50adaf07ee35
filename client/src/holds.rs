//! Why a message waits, and what ends the waiting: receipts and what is not settled, in words.

use minder_proto::event::{Class, Receipt};
pub use minder_proto::hold::lifted_by;
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

/// What a message that is not settled waits for.
pub fn waits_for(entry: &Entry, channel: Option<&Channel>) -> String {
    match (entry.receipt, &entry.reason) {
        (Receipt::Held, Some(reason)) => lifted_by(reason).to_owned(),
        (Receipt::Handed, _) => "evidence that it was read; without it, it is given again".to_owned(),
        _ => match (entry.class(), channel) {
            (Class::WithNext, _) => "whatever it is given next".to_owned(),
            (_, Some(Channel::Mailbox)) => "minder inbox take in that session".to_owned(),
            (_, None) => "minder inbox in a person's shell".to_owned(),
            (_, Some(Channel::Headless { .. })) => {
                "its next turn, some time after one that failed".to_owned()
            }
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
    fn a_receipt_carries_its_reason_where_that_is_for_people() {
        assert_eq!(receipt(Receipt::Held, Some("busy")), "held(busy)");
        assert_eq!(receipt(Receipt::Seen, Some("ack")), "seen");
        assert_eq!(receipt(Receipt::Answered, Some("turn 6")), "answered");
        assert_eq!(receipt(Receipt::Dead, Some("expired")), "dead(expired)");
    }
}
