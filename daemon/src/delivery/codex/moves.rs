//! What to do with a queue in front of a thread: pure.

use minder_proto::event::{Class, Receipt};
use minder_proto::hold::Hold;
use minder_proto::id::MessageId;
use minder_proto::queue::Entry;

use crate::delivery::rules::{Boundary, Entry as May, UNKNOWN, may_enter};

/// The channel, in ledgers.
pub const CHANNEL: &str = "codex";

/// How a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thread {
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

/// What was sent and has no evidence yet.
pub fn in_doubt<'a>(queue: impl IntoIterator<Item = &'a Entry>) -> Vec<MessageId> {
    let sent =
        |e: &&Entry| e.channel.as_deref() == Some(CHANNEL) && (e.receipt == Receipt::Handed || is_unknown(e));
    queue.into_iter().filter(sent).map(|e| e.id).collect()
}

/// Whether there is anything to do for a server: something to send, or to look for.
pub fn is_wanted(queue: &[Entry]) -> bool {
    !in_doubt(queue).is_empty() || next(queue, &Thread::Idle) != Move::Rest
}

/// True for what was sent and of which it is not known whether it was taken.
pub fn is_unknown(entry: &Entry) -> bool {
    entry.receipt == Receipt::Held && entry.reason.as_deref() == Some(UNKNOWN)
}

/// Decides. `queue` has no entry any more of which the thread was seen to have it.
pub fn next<'a>(queue: impl IntoIterator<Item = &'a Entry>, thread: &Thread) -> Move {
    let waiting: Vec<&Entry> = queue.into_iter().filter(|e| e.receipt != Receipt::Handed).collect();
    // What only goes along starts nothing.
    let starts = |class: Class| may_enter(class, Boundary::Idle) == May::Yes;
    let Some(head) = waiting.first().filter(|_| waiting.iter().any(|e| starts(e.class()))) else {
        return Move::Rest;
    };
    match thread {
        Thread::Elsewhere => Move::Hold(Hold::Offline),
        Thread::Asks => Move::Hold(Hold::Dialog),
        Thread::Idle => Move::Start(head.id),
        // What was sent to a turn that runs may still be on its way: only its end tells.
        Thread::Runs(_) if is_unknown(head) => Move::Hold(Hold::Busy),
        Thread::Runs(turn) => {
            match waiting.iter().find(|e| may_enter(e.class(), Boundary::ToolDone) == May::Yes) {
                Some(entry) => Move::Steer(entry.id, turn.clone()),
                None => Move::Hold(Hold::Busy),
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
        let brief = Brief { class, from: Party::Operator, about: None, segment: 1, offset: 0, expires: None };
        Entry {
            id: MessageId::now(),
            seq: 1,
            brief: Some(brief),
            receipt,
            reason: reason.map(str::to_owned),
            since: at,
            accepted: at,
            attempt: 0,
            channel: Some(CHANNEL.to_owned()),
        }
    }

    #[test]
    fn a_message_joins_the_turn_that_runs_or_starts_one_and_nothing_answers_a_dialog() {
        let now = entry(Class::Now, Receipt::Queued, None);
        let turn_end = entry(Class::TurnEnd, Receipt::Held, Some("busy"));
        let along = entry(Class::WithNext, Receipt::Queued, None);
        let runs = Thread::Runs("t1".to_owned());
        assert_eq!(next([&now], &Thread::Idle), Move::Start(now.id));
        assert_eq!(next([&now], &runs), Move::Steer(now.id, "t1".to_owned()));
        assert_eq!(next([&now], &Thread::Asks), Move::Hold(Hold::Dialog));
        assert_eq!(next([&now], &Thread::Elsewhere), Move::Hold(Hold::Offline));
        assert_eq!(next([&turn_end], &runs), Move::Hold(Hold::Busy));
        assert_eq!(next([&turn_end, &now], &runs), Move::Steer(now.id, "t1".to_owned()));
        assert_eq!(next([&turn_end, &now], &Thread::Idle), Move::Start(turn_end.id));
        assert_eq!(next([&along], &Thread::Idle), Move::Rest);
        assert_eq!(next([&along, &now], &Thread::Idle), Move::Start(along.id));
        assert_eq!(next([], &Thread::Idle), Move::Rest);
        // What a hook has handed over, or what only goes along, is no reason to ask a server.
        let hooked = Entry { channel: Some("hook".to_owned()), ..entry(Class::Now, Receipt::Handed, None) };
        assert!(!is_wanted(&[hooked, along.clone()]));
        assert!(is_wanted(&[along, now]));
    }

    #[test]
    fn what_may_have_been_taken_is_not_sent_while_its_turn_runs() {
        let sent = entry(Class::Now, Receipt::Held, Some(UNKNOWN));
        let handed = entry(Class::Now, Receipt::Handed, None);
        assert_eq!(in_doubt([&sent, &handed]), [sent.id, handed.id]);
        assert_eq!(next([&sent], &Thread::Runs("t".to_owned())), Move::Hold(Hold::Busy));
        assert_eq!(
            next([&sent], &Thread::Idle),
            Move::Start(sent.id),
            "the thread was read and does not have it"
        );
        assert_eq!(next([&handed], &Thread::Idle), Move::Rest);
        assert_eq!(in_doubt([&entry(Class::Now, Receipt::Held, Some("dialog"))]), []);
    }
}
