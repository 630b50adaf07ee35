//! `queue.jsonl`: what each line may say after the line before it, and how far each message got by it.

use std::collections::HashMap;

use minder_proto::event::Receipt;
use minder_proto::id::MessageId;
use minder_proto::record::QueueLine;

use super::finding::Sheet;
use super::lines;

/// One message as the ledger has it.
#[derive(Clone, Debug)]
pub struct Track {
    /// The number of its line in the timeline.
    pub seq: u64,
    /// First `seq` of the segment in which that line stands, and where it begins there.
    pub place: Option<(u64, u64)>,
    /// How far it got.
    pub receipt: Receipt,
    /// True if its `queued` line is there: a rewrite keeps only what is not settled, so that a late answer may stand
    /// alone.
    pub queued: bool,
    /// True once its line was met in the timeline.
    pub met: bool,
}

/// What does not fit of a message and its line in the timeline.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The number of its line.
    Seq(String),
    /// Where its line begins.
    Place(String),
}

/// A whole ledger.
#[derive(Debug, Default)]
pub struct Ledger {
    tracks: HashMap<MessageId, Track>,
}

impl Ledger {
    /// Reads a ledger; what is wrong in it is put on the sheet.
    pub fn read(bytes: &[u8], sheet: &mut Sheet) -> Self {
        let mut ledger = Self::default();
        let mut by_seq: HashMap<u64, MessageId> = HashMap::new();
        lines::each(bytes, sheet, |sheet, n, line: QueueLine| {
            if let Some(what) = ledger.follow(&line) {
                sheet.damage(format!("line {n}: {what}"));
            }
            if line.r == Receipt::Queued {
                let other = *by_seq.entry(line.seq).or_insert(line.id);
                if other != line.id {
                    sheet.damage(format!(
                        "line {n}: message {} has seq {}, which is that of message {other}",
                        line.id, line.seq
                    ));
                }
            }
        });
        ledger
    }

    /// Takes one line in; gives what is wrong with it.
    fn follow(&mut self, line: &QueueLine) -> Option<String> {
        let (id, r) = (line.id, line.r);
        let Some(track) = self.tracks.get_mut(&id) else {
            let place = line.brief.as_ref().map(|b| (b.segment, b.offset));
            let queued = r == Receipt::Queued;
            self.tracks.insert(id, Track { seq: line.seq, place, receipt: r, queued, met: false });
            return match r {
                Receipt::Queued if line.brief.is_none() => {
                    Some(format!("message {id} is queued without class, sender and place"))
                }
                Receipt::Queued | Receipt::Answered | Receipt::Returned => None,
                _ => Some(format!("message {id} is {r}, and was never queued")),
            };
        };
        let before = track.receipt;
        if before.is_settled() {
            let is_late = r == Receipt::Answered || before == Receipt::Seen && r == Receipt::Returned;
            if is_late {
                track.receipt = r;
                return None;
            }
            return Some(format!("message {id} is {r}, after it was {before}"));
        }
        track.receipt = r;
        if line.brief.is_some() {
            return Some(format!("message {id} is queued for a second time"));
        }
        (line.seq != track.seq)
            .then(|| format!("message {id} has seq {} here, and {} before", line.seq, track.seq))
    }

    /// One message.
    pub fn get(&self, id: MessageId) -> Option<&Track> {
        self.tracks.get(&id)
    }

    /// The line of a message was met in the timeline; gives what does not fit.
    pub fn meet(&mut self, id: MessageId, seq: u64, segment: u64, offset: u64) -> Option<Misfit> {
        let track = self.tracks.get_mut(&id)?;
        track.met = true;
        if !track.queued {
            return None;
        }
        if track.seq != seq {
            let what = format!("message {id} has seq {}, and is seq {seq} of the timeline", track.seq);
            return Some(Misfit::Seq(what));
        }
        track.place.filter(|place| *place != (segment, offset)).map(|(s, o)| {
            let there = if s == segment { String::new() } else { format!(" of segment {s}") };
            Misfit::Place(format!(
                "message {id} begins at byte {offset} of segment {segment}, not at byte {o}{there}"
            ))
        })
    }

    /// Every message, in the order of their lines.
    pub fn tracks(&self) -> Vec<(MessageId, &Track)> {
        let mut all: Vec<_> = self.tracks.iter().map(|(id, t)| (*id, t)).collect();
        all.sort_unstable_by_key(|(id, t)| (t.seq, *id));
        all
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use minder_proto::event::Class;
    use minder_proto::id::Party;
    use minder_proto::queue::Queue;
    use minder_proto::record::Brief;
    use minder_proto::stamp::Stamp;

    use super::*;

    fn id(n: u8) -> MessageId {
        format!("0199c2d4-90c3-7f0e-8a17-c2b67be21c{n:02x}").parse().unwrap()
    }

    fn line(n: u8, r: Receipt) -> QueueLine {
        QueueLine {
            at: Stamp::from_millis(1),
            id: id(n),
            seq: n.into(),
            r,
            reason: None,
            attempt: 0,
            channel: None,
            brief: None,
        }
    }

    fn queued(n: u8) -> QueueLine {
        let brief = Brief {
            class: Class::Now,
            from: Party::Operator,
            about: None,
            segment: 1,
            offset: 0,
            expires: None,
            hops: 0,
        };
        QueueLine { brief: Some(brief), ..line(n, Receipt::Queued) }
    }

    fn wrong(lines: &[QueueLine]) -> String {
        let mut bytes = Vec::new();
        for line in lines {
            bytes.extend(serde_json::to_vec(line).unwrap());
            bytes.push(b'\n');
        }
        let mut sheet = Sheet::new("queue.jsonl");
        Ledger::read(&bytes, &mut sheet);
        sheet.finish().into_iter().map(|f| f.what + "\n").collect()
    }

    #[test]
    fn what_a_daemon_writes_is_legal() {
        use Receipt::{Answered, Dead, Handed, Held, Queued, Returned, Seen};
        let mut lines = vec![queued(1), queued(2), queued(3), queued(4), queued(5)];
        for (n, r) in [
            (1, Held),
            (1, Held),
            (1, Handed),
            (1, Queued), // given back
            (2, Seen),
            (1, Handed),
            (1, Handed),
            (1, Seen),
            (3, Dead),
            (1, Answered),
            (1, Answered),
            (4, Answered),
            (5, Seen),
            (5, Returned), // its conversation was replaced
            (8, Returned), // the same, its other lines gone with a rewrite
            (9, Answered), // its other lines went with a rewrite
        ] {
            lines.push(line(n, r));
        }
        // Where its line stands is not known any more to whoever answers what is settled.
        lines.push(QueueLine { seq: 0, ..line(2, Answered) });
        assert_eq!(wrong(&lines), "");
        let mut queue = Queue::default();
        [queued(1), line(1, Held), queued(2)].iter().for_each(|l| assert!(queue.apply(l)));
        queue.apply(&QueueLine { attempt: 3, ..line(2, Queued) });
        assert_eq!(wrong(&queue.to_lines()), "", "a rewritten one too");
    }

    #[test]
    fn what_no_daemon_writes_is_named() {
        use Receipt::{Dead, Handed, Held, Queued, Returned, Seen};
        expect![[r"
            line 2: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c02 is queued without class, sender and place
            line 3: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c03 is seen, and was never queued
            line 4: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c01 is queued for a second time
            line 6: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c01 is held, after it was seen
            line 9: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c05 is returned, after it was dead
            line 10: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c04 has seq 2, which is that of message 0199c2d4-90c3-7f0e-8a17-c2b67be21c02
            line 11: message 0199c2d4-90c3-7f0e-8a17-c2b67be21c04 has seq 4 here, and 2 before
        "]]
        .assert_eq(&wrong(&[
            queued(1),
            line(2, Queued),
            line(3, Seen),
            queued(1),
            line(1, Seen),
            line(1, Held),
            queued(5),
            line(5, Dead),
            line(5, Returned),
            QueueLine { seq: 2, ..queued(4) },
            line(4, Handed),
        ]));
    }
}
