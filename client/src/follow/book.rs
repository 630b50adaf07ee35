//! A follower's positions as one file holds them (`cursors.json`), and the rules by which several waits of one
//! caller share it. Pure: bytes in, decisions and bytes out.

use std::collections::BTreeMap;

use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::stamp::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The form of the file that this build writes.
const VERSION: u64 = 1;
/// How many told events of one session are remembered, so that two waits at once tell each only once.
const TOLD_KEPT: usize = 16;

/// How far one session was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The position.
    #[serde(flatten)]
    pub cursor: Cursor,
    /// Lines that were told as events, newest last. A position alone cannot say whether what lies before it was
    /// told or only passed by another wait with another filter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<u64>,
}

impl Mark {
    /// A position with nothing told.
    pub fn at(cursor: Cursor) -> Self {
        Self { cursor, told: Vec::new() }
    }

    /// True if the line `seq` was told, or is older than what is remembered.
    pub fn was_told(&self, seq: u64) -> bool {
        let forgotten = self.told.len() >= TOLD_KEPT && self.told.first().is_some_and(|f| seq < *f);
        forgotten || self.told.contains(&seq)
    }

    fn tell(&mut self, seq: u64) {
        if let Err(i) = self.told.binary_search(&seq) {
            self.told.insert(i, seq);
        }
        let over = self.told.len().saturating_sub(TOLD_KEPT);
        self.told.drain(..over);
    }
}

/// What the file says of one session.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A position.
    Mark(Mark),
    /// Something that is no position.
    Damaged(Value),
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Book {
    /// By session.
    pub follows: BTreeMap<SessionId, Entry>,
    /// The highest line of the own timeline whose message was told.
    pub told: u64,
    /// When a follow of more than named sessions looked last: what was born later is new to this caller.
    pub swept: Option<Stamp>,
    /// When the whole file was found damaged: what is older and has no entry lost its position.
    pub lost: Option<Stamp>,
    /// A newer build's file: it is not written.
    pub foreign: bool,
    /// Something was changed since it was read.
    pub changed: bool,
    unknown: Map<String, Value>,
}

impl Book {
    /// Reads the file; `None` is an absent one. What cannot be read is lost as of `now`.
    pub fn parse(bytes: Option<&[u8]>, now: Stamp) -> Self {
        let Some(bytes) = bytes else { return Self::default() };
        let Ok(Value::Object(mut map)) = serde_json::from_slice(bytes) else {
            return Self { lost: Some(now), ..Self::default() };
        };
        if map.get("version").and_then(Value::as_u64).is_some_and(|v| v > VERSION) {
            return Self { lost: Some(now), foreign: true, ..Self::default() };
        }
        map.remove("version");
        let mut book = Self::default();
        match map.remove("follows") {
            None => {}
            Some(Value::Object(follows)) => {
                for (name, value) in follows {
                    let Ok(id) = name.parse() else { continue };
                    let entry = match Mark::deserialize(&value) {
                        Ok(mark) => Entry::Mark(mark),
                        Err(_) => Entry::Damaged(value),
                    };
                    book.follows.insert(id, entry);
                }
            }
            Some(_) => book.lost = Some(now),
        }
        book.told = map.remove("told").and_then(|v| v.as_u64()).unwrap_or(0);
        let mut stamp = |name: &str| map.remove(name).and_then(|v| serde_json::from_value(v).ok());
        book.swept = stamp("swept");
        book.lost = book.lost.or_else(|| stamp("lost"));
        book.unknown = map;
        book
    }

    /// The file's text.
    pub fn to_bytes(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Shown<'a> {
            Mark(&'a Mark),
            Damaged(&'a Value),
        }
        #[derive(Serialize)]
        struct File<'a> {
            version: u64,
            follows: BTreeMap<&'a SessionId, Shown<'a>>,
            told: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            swept: Option<Stamp>,
            #[serde(skip_serializing_if = "Option::is_none")]
            lost: Option<Stamp>,
            #[serde(flatten)]
            unknown: &'a Map<String, Value>,
        }
        let follows = self.follows.iter().map(|(id, entry)| {
            let shown = match entry {
                Entry::Mark(mark) => Shown::Mark(mark),
                Entry::Damaged(value) => Shown::Damaged(value),
            };
            (id, shown)
        });
        let file = File {
            version: VERSION,
            follows: follows.collect(),
            told: self.told,
            swept: self.swept,
            lost: self.lost,
            unknown: &self.unknown,
        };
        let mut bytes = serde_json::to_vec(&file).expect("positions are always JSON");
        bytes.push(b'\n');
        bytes
    }

    /// The position of a session, if there is one that can be read.
    pub fn mark(&self, id: SessionId) -> Option<&Mark> {
        match self.follows.get(&id)? {
            Entry::Mark(mark) => Some(mark),
            Entry::Damaged(_) => None,
        }
    }

    /// Claims the event at line `seq` of a session: false if another wait of this caller told it.
    pub fn claim(&mut self, id: SessionId, seq: u64) -> bool {
        if self.mark(id).is_some_and(|m| m.was_told(seq)) {
            return false;
        }
        self.changed = true;
        let at = Cursor { seq: 0, offset: 0, segment: 0 };
        match self.follows.entry(id).or_insert_with(|| Entry::Mark(Mark::at(at))) {
            Entry::Mark(mark) => mark.tell(seq),
            damaged @ Entry::Damaged(_) => {
                let mut mark = Mark::at(at);
                mark.tell(seq);
                *damaged = Entry::Mark(mark);
            }
        }
        true
    }

    /// Claims the message at line `seq` of the own timeline: false if another wait of this caller told it.
    pub fn claim_letter(&mut self, seq: u64) -> bool {
        let fresh = seq > self.told;
        self.changed |= fresh;
        self.told = self.told.max(seq);
        fresh
    }

    /// Moves a session's position on, never back; but one that was found wrong (`wrong`), and still stands as
    /// it was found, is replaced.
    pub fn advance(&mut self, id: SessionId, cursor: Cursor, wrong: Option<Cursor>) {
        match self.follows.get_mut(&id) {
            Some(Entry::Mark(mark)) => {
                let replaced = wrong.is_some_and(|w| mark.cursor.seq == w.seq);
                // The same line in another place: the file was rewritten.
                if mark.cursor != cursor && (replaced || cursor.seq >= mark.cursor.seq) {
                    mark.cursor = cursor;
                    self.changed = true;
                }
                return;
            }
            Some(damaged @ Entry::Damaged(_)) => *damaged = Entry::Mark(Mark::at(cursor)),
            None => {
                self.follows.insert(id, Entry::Mark(Mark::at(cursor)));
            }
        }
        self.changed = true;
    }

    /// Drops a session's entry.
    pub fn forget(&mut self, id: SessionId) {
        self.changed |= self.follows.remove(&id).is_some();
    }

    /// Notes the place of a message that was sent to a session which has no position yet.
    pub fn note_sent(&mut self, id: SessionId, seq: u64) -> bool {
        let fresh = !self.follows.contains_key(&id);
        if fresh {
            self.advance(id, Cursor { seq, offset: 0, segment: 0 }, None);
        }
        fresh
    }

    /// Notes when all sessions were looked at.
    pub fn swept_at(&mut self, when: Stamp) {
        // An older one than could be said errs on the safe side and is not worth a write of its own.
        self.changed |= self.swept.is_none();
        self.swept = self.swept.max(Some(when));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::samples::{after, at, session};

    #[test]
    fn the_file_has_the_form_of_the_contract_and_reads_back() {
        let mut book = Book::default();
        book.advance(session(1), after(3), None);
        let text = String::from_utf8(book.to_bytes()).unwrap();
        let id = session(1);
        assert_eq!(
            text,
            format!(
                "{{\"version\":1,\"follows\":{{\"{id}\":{{\"seq\":3,\"offset\":300,\"segment\":1}}}},\"told\":0}}\n"
            )
        );
        book.claim(session(1), 3);
        book.swept_at(at(1));
        book.claim_letter(7);
        assert_eq!(Book { changed: true, ..Book::parse(Some(&book.to_bytes()), at(9)) }, book);
        let proto: minder_proto::record::Cursors = serde_json::from_slice(&book.to_bytes()).unwrap();
        assert_eq!((proto.follows[&id], proto.told), (after(3), 7));
    }

    #[test]
    fn damage_keeps_to_itself() {
        for garbage in ["", "\0\0", "[]", "{\"follows\":7}", "not json"] {
            let book = Book::parse(Some(garbage.as_bytes()), at(5));
            assert_eq!((book.lost, book.follows.len()), (Some(at(5)), 0), "{garbage:?}");
        }
        let (one, two) = (session(1), session(2));
        let text = format!(
            r#"{{"version":1,"follows":{{"{one}":{{"seq":3,"offset":9,"segment":1}},"{two}":"x","y":1}},"told":4,"mood":1}}"#
        );
        let mut book = Book::parse(Some(text.as_bytes()), at(5));
        assert_eq!((book.mark(one).map(|m| m.cursor.seq), book.mark(two), book.lost), (Some(3), None, None));
        assert!(matches!(book.follows[&two], Entry::Damaged(_)));
        let again = String::from_utf8(book.to_bytes()).unwrap();
        assert!(again.contains(&format!("\"{two}\":\"x\"")) && again.contains("\"mood\":1"), "{again}");
        book.advance(two, after(8), None);
        assert_eq!(book.mark(two).map(|m| m.cursor), Some(after(8)));
    }

    #[test]
    fn a_newer_form_is_not_taken_for_ours() {
        let book = Book::parse(Some(br#"{"version":2,"follows":{}}"#), at(5));
        assert!(book.foreign && book.lost.is_some());
    }

    #[test]
    fn positions_move_on_and_only_a_wrong_one_moves_back() {
        let one = session(1);
        for (stored, ours, wrong, result) in [
            (Some(after(5)), after(7), None, after(7)),
            (Some(after(7)), after(5), None, after(7)),
            (None, after(5), None, after(5)),
            (Some(after(90)), after(5), Some(after(90)), after(5)),
            // Another wait replaced it meanwhile.
            (Some(after(6)), after(5), Some(after(90)), after(6)),
        ] {
            let mut book = Book::default();
            if let Some(stored) = stored {
                book.advance(one, stored, None);
            }
            book.advance(one, ours, wrong);
            assert_eq!(book.mark(one).unwrap().cursor, result, "{stored:?} {ours:?} {wrong:?}");
        }
    }

    #[test]
    fn an_event_is_told_once_and_one_that_was_only_passed_is_told() {
        let one = session(1);
        let mut book = Book::default();
        // Another wait read past line 5 and told nothing of it.
        book.advance(one, after(7), None);
        assert!(book.claim(one, 5) && !book.claim(one, 5));
        // It told line 9 with another filter; line 8 is still there for us.
        assert!(book.claim(one, 9) && book.claim(one, 8) && !book.claim(one, 9));
        for seq in 10..100 {
            assert!(book.claim(one, seq) && !book.claim(one, seq));
        }
        assert_eq!(book.mark(one).unwrap().told.len(), TOLD_KEPT);
        assert!(!book.claim(one, 5), "what is forgotten counts as told");
        assert!(book.claim_letter(3) && !book.claim_letter(3) && !book.claim_letter(2));
    }

    #[test]
    fn the_place_of_a_message_is_noted_only_where_there_is_none() {
        let mut book = Book::default();
        assert!(book.note_sent(session(1), 4) && !book.note_sent(session(1), 9));
        assert_eq!(book.mark(session(1)).unwrap().cursor.seq, 4);
    }
}
