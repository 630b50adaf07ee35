//! Where the reading of a session starts. Pure.

use std::time::Duration;

use minder_proto::record::Cursor;
use minder_proto::stamp::Stamp;

use super::book::Entry;

/// A session may be born this long before it can be seen: its commit is on its way to the disk.
const BIRTH: Duration = Duration::from_secs(5);

/// How a session came to be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was there when the follow began, and somebody named it.
    Named,
    /// It was there when the follow began, and a broad selection took it in.
    Swept,
    /// It appeared while the follow ran.
    Appeared,
    /// It was there and came to match while the follow ran; this had been its last line.
    Entered(u64),
}

/// What is known of a session when its reading starts.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The line to start after, if the caller said so.
    pub since: Option<u64>,
    /// What the caller's file of positions says of it.
    pub entry: Option<&'a Entry>,
    /// How it came to be followed.
    pub arrival: Arrival,
    /// For the caller's own child: the newest of its lines that a notice has shown the caller, 0 for none.
    pub child: Option<u64>,
    /// When it was born, where known.
    pub born: Option<Stamp>,
    /// When a broad follow of this caller looked last.
    pub swept: Option<Stamp>,
    /// When this caller's whole file was found damaged.
    pub lost: Option<Stamp>,
}

/// Where reading starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a stored position.
    At(Cursor),
    /// After this line, which exists or is 0.
    After(u64),
    /// At the end of its log.
    End,
    /// The position was lost: at the end of its log, and that is said.
    Lost,
}

/// Decides where reading starts.
pub fn start(facts: &Facts) -> Start {
    if let Some(seq) = facts.since {
        return Start::After(seq);
    }
    match facts.entry {
        Some(Entry::Mark(mark)) if mark.cursor.offset > 0 => return Start::At(mark.cursor),
        Some(Entry::Mark(mark)) => return Start::After(mark.cursor.seq),
        Some(Entry::Damaged(_)) => return Start::Lost,
        None => {}
    }
    match facts.arrival {
        Arrival::Appeared => return Start::After(0),
        Arrival::Entered(seq) => return Start::After(seq),
        Arrival::Named | Arrival::Swept => {}
    }
    if facts.lost.is_some_and(|lost| facts.born.is_none_or(|born| born <= lost)) {
        return Start::Lost;
    }
    if let Some(shown) = facts.child {
        return Start::After(shown);
    }
    let appeared = |swept: Stamp| facts.born.is_some_and(|born| born > swept.minus(BIRTH));
    if facts.arrival == Arrival::Swept && facts.swept.is_some_and(appeared) {
        // Between two waits: the loop of a supervisor loses nothing.
        return Start::After(0);
    }
    Start::End
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::follow::book::Mark;
    use crate::follow::samples::{after, at};

    #[test]
    fn where_reading_starts() {
        let none = Facts {
            since: None,
            entry: None,
            arrival: Arrival::Named,
            child: None,
            born: None,
            swept: None,
            lost: None,
        };
        let mark = Entry::Mark(Mark::at(after(4)));
        let sent = Entry::Mark(Mark::at(Cursor { seq: 4, offset: 0, segment: 0 }));
        let damaged = Entry::Damaged(Value::Null);
        let swept = Facts { arrival: Arrival::Swept, swept: Some(at(50)), ..none.clone() };
        for (why, facts, expected) in [
            ("any other: the end", none.clone(), Start::End),
            (
                "a stored position wins",
                Facts { entry: Some(&mark), child: Some(2), ..none.clone() },
                Start::At(after(4)),
            ),
            ("sent to: after that message", Facts { entry: Some(&sent), ..none.clone() }, Start::After(4)),
            (
                "since wins over all",
                Facts { since: Some(1), entry: Some(&mark), ..none.clone() },
                Start::After(1),
            ),
            (
                "a damaged entry is lost",
                Facts { entry: Some(&damaged), child: Some(2), ..none.clone() },
                Start::Lost,
            ),
            ("a child: after what was shown", Facts { child: Some(2), ..none.clone() }, Start::After(2)),
            ("a child never shown: all of it", Facts { child: Some(0), ..none.clone() }, Start::After(0)),
            ("appeared: all of it", Facts { arrival: Arrival::Appeared, ..none.clone() }, Start::After(0)),
            (
                "appeared, read before",
                Facts { arrival: Arrival::Appeared, entry: Some(&mark), ..none.clone() },
                Start::At(after(4)),
            ),
            ("came to match", Facts { arrival: Arrival::Entered(7), ..none.clone() }, Start::After(7)),
            ("born before the last look: the end", Facts { born: Some(at(44)), ..swept.clone() }, Start::End),
            ("born since: all of it", Facts { born: Some(at(46)), ..swept.clone() }, Start::After(0)),
            (
                "born since, but named: the end",
                Facts { born: Some(at(60)), arrival: Arrival::Named, ..swept.clone() },
                Start::End,
            ),
            (
                "no look before: the end",
                Facts { born: Some(at(60)), swept: None, ..swept.clone() },
                Start::End,
            ),
            (
                "the file was damaged",
                Facts { born: Some(at(3)), lost: Some(at(5)), child: Some(0), ..none.clone() },
                Start::Lost,
            ),
            (
                "born after the damage",
                Facts { born: Some(at(6)), lost: Some(at(5)), ..none.clone() },
                Start::End,
            ),
            ("birth unknown, damage", Facts { lost: Some(at(5)), ..none.clone() }, Start::Lost),
        ] {
            assert_eq!(start(&facts), expected, "{why}");
        }
    }
}
