//! What to do with a queue in front of a conversation: pure.

use minder_proto::event::{Class, Receipt};
use minder_proto::hold::Hold;
use minder_proto::id::MessageId;
use minder_proto::queue::Entry;

use crate::delivery::rules::{Boundary, Entry as May, UNKNOWN, is_kept, may_enter};

/// How a conversation is, as its server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// Nothing runs.
    Idle,
    /// This turn runs.
    Runs(String),
    /// A dialog or a question is open.
    Asks,
    /// This server does not hold it.
    Elsewhere,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Start a turn with this message.
    Start(MessageId),
    /// Give it to this turn.
    Steer(MessageId, String),
    /// Wait for this.
    Hold(Hold),
    /// Nothing of this channel's waits.
    Rest,
}

/// What was sent by this channel and has no evidence yet.
pub fn in_doubt<'a>(channel: &str, queue: impl IntoIterator<Item = &'a Entry>) -> Vec<MessageId> {
    let sent =
        |e: &&Entry| e.channel.as_deref() == Some(channel) && (e.receipt == Receipt::Handed || is_unknown(e));
    queue.into_iter().filter(sent).map(|e| e.id).collect()
}

/// Whether there is anything to do for a server: something to send, or to look for.
pub fn is_wanted(channel: &str, queue: &[Entry]) -> bool {
    !in_doubt(channel, queue).is_empty() || next(queue, &Conversation::Idle) != Move::Rest
}

/// True for what was sent and of which it is not known whether it was taken.
pub fn is_unknown(entry: &Entry) -> bool {
    entry.receipt == Receipt::Held && entry.reason.as_deref() == Some(UNKNOWN)
}

/// Decides. `queue` has no entry any more that the conversation was seen to have.
pub fn next<'a>(queue: impl IntoIterator<Item = &'a Entry>, conversation: &Conversation) -> Move {
    let waiting: Vec<&Entry> =
        queue.into_iter().filter(|e| e.receipt != Receipt::Handed && !is_kept(e)).collect();
    // What only goes along starts nothing.
    let starts = |class: Class| may_enter(class, Boundary::Idle) == May::Yes;
    let Some(head) = waiting.first().filter(|_| waiting.iter().any(|e| starts(e.class()))) else {
        return Move::Rest;
    };
    match conversation {
        Conversation::Elsewhere => Move::Hold(Hold::Offline),
        Conversation::Asks => Move::Hold(Hold::Dialog),
        Conversation::Idle => Move::Start(head.id),
        Conversation::Runs(turn) => {
            let enters = |e: &&&Entry| may_enter(e.class(), Boundary::ToolDone) == May::Yes;
            // What was sent to a turn that runs may still be on its way: only its end tells, for it and for all behind it.
            match waiting.iter().find(|e| is_unknown(e) || enters(e)) {
                Some(entry) if !is_unknown(entry) => Move::Steer(entry.id, turn.clone()),
                _ => Move::Hold(Hold::Busy),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::id::Party;
    use minder_proto::record::Brief;
    use minder_proto::stamp::Stamp;

    use super::*;

    fn entry(class: Class, receipt: Receipt, reason: Option<&str>) -> Entry {
        let at = Stamp::now();
        let brief = Brief {
            class,
            from: Party::Operator,
            about: None,
            segment: 1,
            offset: 0,
            expires: None,
            hops: 0,
        };
        Entry {
            id: MessageId::now(),
            seq: 1,
            brief: Some(brief),
            receipt,
            reason: reason.map(str::to_owned),
            since: at,
            accepted: at,
            attempt: 0,
            channel: Some("codex".to_owned()),
        }
    }

    #[test]
    fn a_message_joins_the_turn_that_runs_or_starts_one_and_nothing_answers_a_dialog() {
        let now = entry(Class::Now, Receipt::Queued, None);
        let turn_end = entry(Class::TurnEnd, Receipt::Held, Some("busy"));
        let along = entry(Class::WithNext, Receipt::Queued, None);
        let runs = Conversation::Runs("t1".to_owned());
        assert_eq!(next([&now], &Conversation::Idle), Move::Start(now.id));
        assert_eq!(next([&now], &runs), Move::Steer(now.id, "t1".to_owned()));
        assert_eq!(next([&now], &Conversation::Asks), Move::Hold(Hold::Dialog));
        assert_eq!(next([&now], &Conversation::Elsewhere), Move::Hold(Hold::Offline));
        assert_eq!(next([&turn_end], &runs), Move::Hold(Hold::Busy));
        assert_eq!(next([&turn_end, &now], &runs), Move::Steer(now.id, "t1".to_owned()));
        assert_eq!(next([&turn_end, &now], &Conversation::Idle), Move::Start(turn_end.id));
        assert_eq!(next([&along], &Conversation::Idle), Move::Rest);
        assert_eq!(next([&along, &now], &Conversation::Idle), Move::Start(along.id));
        assert_eq!(next([], &Conversation::Idle), Move::Rest);
        // What a hook has handed over, or what only goes along, is no reason to ask a server.
        let hooked = Entry { channel: Some("hook".to_owned()), ..entry(Class::Now, Receipt::Handed, None) };
        assert!(!is_wanted("codex", &[hooked, along.clone()]));
        assert!(is_wanted("codex", &[along, now]));
    }

    #[test]
    fn what_may_have_been_taken_is_not_sent_while_its_turn_runs() {
        let sent = entry(Class::Now, Receipt::Held, Some(UNKNOWN));
        let handed = entry(Class::Now, Receipt::Handed, None);
        assert_eq!(in_doubt("codex", [&sent, &handed]), [sent.id, handed.id]);
        assert_eq!(next([&sent], &Conversation::Runs("t".to_owned())), Move::Hold(Hold::Busy));
        assert_eq!(
            next([&sent], &Conversation::Idle),
            Move::Start(sent.id),
            "the thread was read and does not have it"
        );
        assert_eq!(next([&handed], &Conversation::Idle), Move::Rest);
        // Wherever it stands in the queue.
        let runs = Conversation::Runs("t".to_owned());
        let turn_end = entry(Class::TurnEnd, Receipt::Held, Some("busy"));
        let now = entry(Class::Now, Receipt::Queued, None);
        assert_eq!(next([&turn_end, &sent], &runs), Move::Hold(Hold::Busy));
        assert_eq!(next([&turn_end, &sent, &now], &runs), Move::Hold(Hold::Busy));
        assert_eq!(next([&now, &sent], &runs), Move::Steer(now.id, "t".to_owned()), "it is before it");
        assert_eq!(in_doubt("codex", [&entry(Class::Now, Receipt::Held, Some("dialog"))]), []);
    }
}
