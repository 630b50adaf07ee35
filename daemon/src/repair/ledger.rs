//! A ledger is written anew from the messages of its timeline and from what can be read of it.

use std::collections::{HashMap, HashSet};

use minder_proto::event::{Body, Receipt};
use minder_proto::id::MessageId;
use minder_proto::queue::Queue;
use minder_proto::record::{Brief, QueueLine};

use super::timeline::Placed;

/// What became of a ledger.
#[derive(Debug, Default)]
pub struct Mended {
    /// Its lines: what waits, and how far it got.
    pub bytes: Vec<u8>,
    /// Receipts that only the ledger knew: they belong into the timeline too.
    pub receipts: Vec<Body>,
    /// What was done, a few words each.
    pub done: Vec<String>,
}

/// Mends a ledger. `closed`: the timeline takes no more receipts.
pub fn mend(events: &[Placed], bytes: &[u8], closed: bool) -> Mended {
    let mut known: HashMap<MessageId, Vec<QueueLine>> = HashMap::new();
    for line in bytes.split(|b| *b == b'\n') {
        if let Ok(line) = serde_json::from_slice::<QueueLine>(line) {
            known.entry(line.id).or_default().push(line);
        }
    }
    let settled: HashSet<MessageId> = events
        .iter()
        .filter_map(|p| match &p.event.body {
            Body::Receipt { id, receipt, .. } if receipt.is_settled() => Some(*id),
            _ => None,
        })
        .collect();
    let mut mended = Mended::default();
    let mut queue = Queue::default();
    let (mut again, mut met) = (0, HashSet::new());
    for placed in events {
        let Body::Message(message) = &placed.event.body else { continue };
        met.insert(message.id);
        if settled.contains(&message.id) {
            continue;
        }
        let lines = known.get(&message.id).map(Vec::as_slice).unwrap_or_default();
        let last = lines.last().filter(|l| !(closed && l.r.is_settled()));
        if let Some(last) = last.filter(|l| l.r.is_settled()) {
            let (id, receipt, reason) = (message.id, last.r, last.reason.clone());
            mended.receipts.push(Body::Receipt { id, receipt, reason });
            continue;
        }
        again += usize::from(lines.is_empty());
        let brief = Brief {
            class: message.class,
            from: message.from,
            about: message.about.as_ref().filter(|a| a.notice.is_watch()).map(|a| a.session),
            segment: placed.segment,
            offset: placed.offset,
            expires: message.expires,
            hops: message.hops,
        };
        let first = QueueLine {
            at: lines.first().map_or(placed.event.at, |l| l.at),
            id: message.id,
            seq: placed.event.seq,
            r: Receipt::Queued,
            reason: None,
            attempt: 0,
            channel: None,
            brief: Some(brief),
        };
        queue.apply(&first);
        if let Some(last) = last {
            queue.apply(&QueueLine { seq: first.seq, brief: None, ..last.clone() });
        }
    }
    let lost = known
        .iter()
        .filter(|(id, lines)| !met.contains(*id) && lines.last().is_some_and(|l| !l.r.is_settled()));
    let lost = lost.count();
    for (n, what) in [
        (again, "only the timeline knew"),
        (lost, "whose text is lost left out"),
        (mended.receipts.len(), "settled here and not there, and now there too"),
    ] {
        if n > 0 {
            mended.done.push(format!("{n} message{} {what}", if n == 1 { "" } else { "s" }));
        }
    }
    for line in queue.to_lines() {
        serde_json::to_writer(&mut mended.bytes, &line).expect("a ledger line is plain data");
        mended.bytes.push(b'\n');
    }
    mended
}
