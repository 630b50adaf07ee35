//! Folding `queue.jsonl`: from the changes of receipts to what waits and how far each message got.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use crate::event::{Class, Receipt};
use crate::id::MessageId;
use crate::record::{Brief, QueueLine};
use crate::stamp::Stamp;
use crate::whole;

/// The channel of news that the host of a primary has.
pub const HOST: &str = "host";

/// Reason of a `handed` for which no evidence can come: it is given once, and nobody waits for it.
pub const FINAL: &str = "final";

/// One message in a session's queue, or one that left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The message.
    pub id: MessageId,
    /// Its line in the recipient's timeline.
    pub seq: u64,
    /// When it may enter, who sent it, and where its line stands. Unknown only in a damaged ledger.
    pub brief: Option<Brief>,
    /// How far it got.
    pub receipt: Receipt,
    /// Why, where the receipt has a reason.
    pub reason: Option<String>,
    /// Since when the receipt is what it is.
    pub since: Stamp,
    /// When it was accepted.
    pub accepted: Stamp,
    /// Attempts so far.
    pub attempt: u32,
    /// The channel of the last attempt.
    pub channel: Option<String>,
}

impl Entry {
    /// When it may enter.
    pub fn class(&self) -> Class {
        self.brief.as_ref().map_or_else(Class::default, |b| b.class)
    }

    /// True for news that a host has: it keeps it for a drain, or has given it with a hand-back.
    pub fn is_of_host(&self) -> bool {
        self.channel.as_deref() == Some(HOST) && matches!(self.receipt, Receipt::Held | Receipt::Handed)
    }

    /// True for one that was given by a channel that shows no evidence.
    pub fn is_final(&self) -> bool {
        self.receipt == Receipt::Handed && self.reason.as_deref() == Some(FINAL)
    }
}

/// What one session's queue holds. Settled messages are forgotten: the timeline keeps their receipts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    by_seq: BTreeMap<u64, Entry>,
    seq_of: HashMap<MessageId, u64>,
}

impl Queue {
    /// Folds one line in. A line that contradicts what stands, so that a message would be two or two would be one, is
    /// damage: it changes nothing, and the answer is false.
    pub fn apply(&mut self, line: &QueueLine) -> bool {
        if line.r.is_settled() {
            if let Some(seq) = self.seq_of.remove(&line.id) {
                self.by_seq.remove(&seq);
            }
            return true;
        }
        let elsewhere = self.seq_of.get(&line.id).is_some_and(|seq| *seq != line.seq);
        if elsewhere || self.by_seq.get(&line.seq).is_some_and(|entry| entry.id != line.id) {
            return false;
        }
        let entry = self.by_seq.entry(line.seq).or_insert_with(|| Entry {
            id: line.id,
            seq: line.seq,
            brief: line.brief.clone(),
            receipt: line.r,
            reason: None,
            since: line.at,
            accepted: line.at,
            attempt: 0,
            channel: None,
        });
        entry.receipt = line.r;
        entry.reason.clone_from(&line.reason);
        entry.since = line.at;
        entry.attempt = line.attempt;
        if line.channel.is_some() {
            entry.channel.clone_from(&line.channel);
        }
        self.seq_of.insert(line.id, line.seq);
        true
    }

    /// The entry of a message that is not settled.
    pub fn get(&self, id: MessageId) -> Option<&Entry> {
        self.seq_of.get(&id).and_then(|seq| self.by_seq.get(seq))
    }

    /// What waits, in the order of acceptance.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.by_seq.values()
    }

    /// How many messages are not settled.
    pub fn len(&self) -> usize {
        self.by_seq.len()
    }

    /// True where no more than `most` may wait, and do. What was given for good takes nobody's place, nor does what a host
    /// keeps: it is no message that anybody sent.
    pub fn is_full(&self, most: usize) -> bool {
        let counts = |entry: &&Entry| !entry.is_final() && !entry.is_of_host();
        self.len() >= most && self.iter().filter(counts).count() >= most
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.by_seq.is_empty()
    }

    /// How many are held.
    pub fn held(&self) -> usize {
        self.iter().filter(|e| e.receipt == Receipt::Held).count()
    }

    /// The lines that say this queue and nothing more: what a rewrite of the ledger keeps.
    pub fn to_lines(&self) -> Vec<QueueLine> {
        let mut lines = Vec::with_capacity(self.len() * 2);
        for entry in self.iter() {
            let queued = QueueLine {
                at: entry.accepted,
                id: entry.id,
                seq: entry.seq,
                r: Receipt::Queued,
                reason: None,
                attempt: 0,
                channel: None,
                brief: entry.brief.clone(),
            };
            lines.push(queued.clone());
            let again = entry.since != entry.accepted || entry.reason.is_some() || entry.channel.is_some();
            if entry.receipt != Receipt::Queued || entry.attempt > 0 || again {
                lines.push(QueueLine {
                    at: entry.since,
                    r: entry.receipt,
                    reason: entry.reason.clone(),
                    attempt: entry.attempt,
                    channel: entry.channel.clone(),
                    brief: None,
                    ..queued
                });
            }
        }
        lines
    }
}

/// Folds a whole ledger; lines that do not parse, or contradict others, are counted, not fatal.
pub fn fold(bytes: &[u8]) -> (Queue, usize) {
    let (mut queue, mut bad) = (Queue::default(), 0);
    for line in bytes.split(|b| *b == b'\n') {
        bad += usize::from(!fold_line(&mut queue, line));
    }
    (queue, bad)
}

/// Folds the ledger in a file of any size.
pub fn fold_file(path: &Path) -> io::Result<(Queue, usize)> {
    let (mut queue, mut bad) = (Queue::default(), 0);
    whole::lines(path, |line| bad += usize::from(!fold_line(&mut queue, line)))?;
    Ok((queue, bad))
}

fn fold_line(queue: &mut Queue, line: &[u8]) -> bool {
    line.is_empty() || serde_json::from_slice::<QueueLine>(line).is_ok_and(|line| queue.apply(&line))
}

/// The receipts one message went through, from a whole ledger.
pub fn history(bytes: &[u8], id: MessageId) -> Vec<QueueLine> {
    bytes
        .split(|b| *b == b'\n')
        .filter_map(|l| serde_json::from_slice::<QueueLine>(l).ok())
        .filter(|l| l.id == id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Party;

    fn line(id: MessageId, seq: u64, r: Receipt, attempt: u32) -> QueueLine {
        QueueLine {
            at: Stamp::from_millis(1_000 + i64::from(attempt)),
            id,
            seq,
            r,
            reason: (r == Receipt::Held).then(|| "busy".to_owned()),
            attempt,
            channel: None,
            brief: (r == Receipt::Queued && attempt == 0).then_some(Brief {
                class: Class::TurnEnd,
                from: Party::Operator,
                about: None,
                segment: 1,
                offset: 77,
                expires: None,
                hops: 0,
            }),
        }
    }

    #[test]
    fn what_was_given_for_good_takes_nobodys_place() {
        let (a, b) = (MessageId::now(), MessageId::now());
        let mut queue = Queue::default();
        queue.apply(&line(a, 1, Receipt::Queued, 0));
        queue.apply(&line(b, 2, Receipt::Queued, 0));
        assert!(queue.is_full(2) && !queue.is_full(3));
        queue.apply(&line(a, 1, Receipt::Handed, 1));
        assert!(queue.is_full(2), "evidence may come");
        let given = QueueLine { reason: Some(FINAL.to_owned()), ..line(a, 1, Receipt::Handed, 1) };
        queue.apply(&given);
        assert!(!queue.is_full(2) && queue.is_full(1));
    }

    #[test]
    fn a_rewrite_folds_to_the_same_queue() {
        let (a, b, c) = (MessageId::now(), MessageId::now(), MessageId::now());
        let mut queue = Queue::default();
        for l in [
            line(a, 3, Receipt::Queued, 0),
            line(b, 5, Receipt::Queued, 0),
            line(c, 6, Receipt::Queued, 0),
            line(a, 3, Receipt::Held, 1),
            line(b, 5, Receipt::Handed, 1),
            line(b, 5, Receipt::Seen, 1),
            line(c, 6, Receipt::Queued, 2),
            // Held and let go again, before any attempt: since when it waits is kept.
            line(a, 3, Receipt::Held, 2),
            QueueLine { at: Stamp::from_millis(9_000), ..line(a, 3, Receipt::Queued, 0) },
        ] {
            assert!(queue.apply(&l));
        }
        assert_eq!(queue.iter().map(|e| e.id).collect::<Vec<_>>(), [a, c]);
        assert_eq!((queue.len(), queue.held()), (2, 0));
        assert_eq!(queue.get(b), None);
        let mut again = Queue::default();
        queue.to_lines().iter().for_each(|l| assert!(again.apply(l)));
        assert_eq!(again, queue);
    }

    #[test]
    fn what_settles_one_message_takes_no_other_one_along() {
        let (a, b) = (MessageId::now(), MessageId::now());
        let mut queue = Queue::default();
        assert!(queue.apply(&line(a, 3, Receipt::Queued, 0)));
        assert!(!queue.apply(&line(b, 3, Receipt::Queued, 0)), "there is one message at a place");
        assert!(!queue.apply(&line(a, 4, Receipt::Held, 1)), "and a message is at one place");
        assert!(queue.apply(&line(b, 3, Receipt::Seen, 1)));
        assert_eq!(queue.iter().map(|e| (e.id, e.receipt)).collect::<Vec<_>>(), [(a, Receipt::Queued)]);
    }

    #[test]
    fn a_bad_line_hides_nothing_else() {
        let a = MessageId::now();
        let mut text = b"garbage\n".to_vec();
        text.extend(serde_json::to_vec(&line(a, 3, Receipt::Queued, 0)).unwrap());
        text.extend(b"\n{\"at\":");
        let (queue, bad) = fold(&text);
        assert_eq!((queue.len(), bad), (1, 2));
    }
}
