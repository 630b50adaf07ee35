//! A timeline is written anew from the lines of it that can be read: in order, each number once, and a note where
//! something is missing. What a note stands for is in the quarantine.

use std::collections::HashSet;

use minder_proto::event::{Body, Event, Line};
use minder_proto::id::MessageId;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::timeline::{LINE_MAX, sealed_name};

/// One segment as it is read: its name and its bytes.
pub type Segment = (String, Vec<u8>);

/// A line that is kept.
#[derive(Clone, Debug)]
struct Piece {
    seq: u64,
    raw: Vec<u8>,
    /// Nothing, for a line of a newer build.
    event: Option<Event>,
    /// In which of the segments it stands.
    origin: usize,
}

/// A line with the place at which it stands now.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The line.
    pub event: Event,
    /// The first `seq` of its segment.
    pub segment: u64,
    /// Where it begins there, in bytes.
    pub offset: u64,
}

/// What became of a timeline.
#[derive(Debug, Default)]
pub struct Mended {
    /// The segments as they should be, the active one last.
    pub segments: Vec<Segment>,
    /// Every line that this build knows.
    pub events: Vec<Placed>,
    /// The last number.
    pub last: u64,
    /// It ends with the line `closed`.
    pub closed: bool,
    /// What was done, a few words each.
    pub done: Vec<String>,
}

/// What else is known of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// False for the person's.
    pub of_session: bool,
    /// It lies in the trash, so that it should end with `closed`.
    pub in_trash: bool,
    /// The last number that was given, as far as the record knows.
    pub last_seq: u64,
}

/// Mends a timeline; `active` is the name of the active segment, which comes last.
pub fn mend(segments: &[Segment], active: &str, known: Known, now: Stamp) -> Mended {
    let mut work = Work { known, now, pieces: Vec::new(), done: Vec::new() };
    let torn_at_end = work.read(segments);
    work.order();
    work.walk(segments, active);
    work.end(torn_at_end, segments.len().saturating_sub(1));
    work.finish(segments, active)
}

struct Work {
    known: Known,
    now: Stamp,
    pieces: Vec<Piece>,
    done: Vec<String>,
}

fn plural(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

fn is_note(event: Option<&Event>, words: &[&str]) -> bool {
    event.is_some_and(|e| matches!(&e.body, Body::Note { what, .. } if words.contains(&what.as_str())))
}

impl Work {
    fn note(&self, seq: u64, text: &str, origin: usize) -> Piece {
        let body = Body::Note { what: "repaired".to_owned(), text: text.to_owned() };
        let event = Event { seq, at: self.now, body };
        let raw = serde_json::to_vec(&event).expect("an event is plain data");
        Piece { seq, raw, event: Some(event), origin }
    }

    /// Takes every line that can be read. Says whether the last thing that was read was none.
    fn read(&mut self, segments: &[Segment]) -> bool {
        let (mut bad, mut last_bad) = (0, false);
        for (origin, (_, bytes)) in segments.iter().enumerate() {
            // A line that only lacks its newline is whole.
            for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                let parsed = if line.len() < LINE_MAX { Line::parse(line) } else { Line::Torn };
                let seq = parsed.seq().filter(|seq| *seq > 0);
                last_bad = seq.is_none();
                let event = match parsed {
                    Line::Event(event) => Some(*event),
                    Line::Unknown { .. } | Line::Torn => None,
                };
                match seq {
                    Some(seq) => self.pieces.push(Piece { seq, raw: line.to_vec(), event, origin }),
                    None => bad += 1,
                }
            }
        }
        if bad > 0 {
            self.done.push(format!("{} that cannot be read left out", plural(bad, "line")));
        }
        last_bad
    }

    fn order(&mut self) {
        if !self.pieces.is_sorted_by_key(|p| p.seq) {
            self.pieces.sort_by_key(|p| p.seq);
            self.done.push("lines put in the order of their numbers".to_owned());
        }
        let before = self.pieces.len();
        self.pieces.dedup_by_key(|p| p.seq);
        let gone = before - self.pieces.len();
        if gone > 0 {
            self.done.push(format!("{} with a number given before left out", plural(gone, "line")));
        }
        let mut origin = 0;
        for piece in &mut self.pieces {
            origin = piece.origin.max(origin);
            piece.origin = origin;
        }
    }

    /// Line by line: holes get a note, and what contradicts what stands before it is mended.
    fn walk(&mut self, segments: &[Segment], active: &str) {
        let pieces = std::mem::take(&mut self.pieces);
        let said = ["gap", "torn", "repaired"];
        let explained = pieces.iter().any(|p| is_note(p.event.as_ref(), &said));
        let last = pieces.last().map_or(0, |p| p.seq);
        let mut next: Option<u64> = None;
        let mut standing: Option<State> = None;
        let mut gaps = false;
        let (mut waiting, mut met) = (HashSet::<MessageId>::new(), HashSet::<MessageId>::new());
        for mut piece in pieces {
            let mended = is_note(piece.event.as_ref(), &["torn", "repaired"]);
            let expected = next.unwrap_or(1);
            if piece.seq > expected {
                let begins = next.is_none();
                let settled = begins && (explained || segments[piece.origin].0 != active);
                gaps = true;
                standing = None;
                if !mended && !settled {
                    let missing = if expected == piece.seq - 1 {
                        format!("line {expected}")
                    } else {
                        format!("lines {expected} to {}", piece.seq - 1)
                    };
                    self.done.push(format!("a note for {missing}, missing"));
                    let note =
                        self.note(piece.seq - 1, &format!("{missing} cannot be read any more"), piece.origin);
                    self.pieces.push(note);
                }
            }
            if mended {
                gaps = true;
                standing = None;
            }
            next = Some(piece.seq.saturating_add(1));
            let wrong =
                piece.event.as_ref().and_then(|event| self.wrong(event, last, gaps, &mut waiting, &mut met));
            if let Some(what) = wrong {
                self.done.push(format!("line {}, {what}, replaced by a note", piece.seq));
                piece = self.note(piece.seq, &format!("here stood {what}"), piece.origin);
                // Nobody can say what it left out.
                gaps = true;
                standing = None;
            }
            self.follow(&mut piece, &mut standing);
            self.pieces.push(piece);
        }
    }

    /// What is wrong with a line, given those before it.
    fn wrong(
        &self,
        event: &Event,
        last: u64,
        gaps: bool,
        waiting: &mut HashSet<MessageId>,
        met: &mut HashSet<MessageId>,
    ) -> Option<&'static str> {
        match &event.body {
            Body::Created { .. } if event.seq != 1 => Some("a second arrival"),
            Body::Closed { .. } if event.seq != last => Some("an end that was none"),
            Body::Message(message) => {
                waiting.insert(message.id);
                (!met.insert(message.id)).then_some("a message for the second time")
            }
            Body::Receipt { id, receipt, .. } if receipt.is_settled() => {
                let waited = waiting.remove(id);
                (!waited && *receipt != minder_proto::event::Receipt::Answered && !gaps)
                    .then_some("a receipt of a message that did not wait")
            }
            Body::Created { .. } => None,
            body => {
                let mended =
                    matches!(body, Body::Note { what, .. } if ["torn", "repaired"].contains(&what.as_str()));
                (event.seq == 1 && self.known.of_session && !mended).then_some("no arrival")
            }
        }
    }

    /// The chain of states: a line that says it comes from elsewhere than where the one before it led.
    fn follow(&mut self, piece: &mut Piece, standing: &mut Option<State>) {
        match piece.event.as_mut().map(|e| &mut e.body) {
            Some(Body::Created { state, .. }) => *standing = Some(*state),
            Some(Body::State(line)) => {
                if let Some(before) = standing.filter(|s| *s != line.from) {
                    self.done.push(format!("line {}: from {} and not from {}", piece.seq, before, line.from));
                    line.from = before;
                    let mut value: serde_json::Value =
                        serde_json::from_slice(&piece.raw).expect("it was read as an event");
                    value["from"] = serde_json::to_value(before).expect("a state is a word");
                    piece.raw = serde_json::to_vec(&value).expect("it was JSON before");
                }
                *standing = Some(line.to);
            }
            _ => {}
        }
    }

    /// What is missing at the end: numbers that were given, or the line `closed`.
    fn end(&mut self, torn: bool, origin: usize) {
        let last = self.pieces.last().map_or(0, |p| p.seq);
        let is_end = |p: &Piece| p.event.as_ref().is_some_and(|e| matches!(e.body, Body::Closed { .. }));
        let closed = self.pieces.last().is_some_and(is_end);
        let given = self.known.last_seq;
        if !closed && (given > last || torn && last > 0 || self.pieces.is_empty() && self.known.of_session) {
            let seq = given.max(last + 1);
            let note = self.note(seq, "lines at the end cannot be read any more", origin);
            self.done.push("a note for what is missing at the end".to_owned());
            self.pieces.push(note);
        }
        if self.known.in_trash && !closed {
            let seq = self.pieces.last().map_or(0, |p| p.seq) + 1;
            let by = minder_proto::event::Author::Minder;
            let event = Event { seq, at: self.now, body: Body::Closed { note: None, by } };
            let raw = serde_json::to_vec(&event).expect("an event is plain data");
            self.pieces.push(Piece { seq, raw, event: Some(event), origin });
            self.done.push("the line `closed` added".to_owned());
        }
    }

    fn finish(self, segments: &[Segment], active: &str) -> Mended {
        let mut mended = Mended { done: self.done, ..Mended::default() };
        let count = segments.len().max(1);
        for origin in 0..count {
            let pieces: Vec<&Piece> = self.pieces.iter().filter(|p| p.origin == origin).collect();
            let is_active =
                origin + 1 == count && segments.get(origin).is_none_or(|(name, _)| name == active);
            let Some(first) = pieces.first().map(|p| p.seq) else {
                if is_active && !mended.segments.is_empty() {
                    mended.segments.push((active.to_owned(), Vec::new()));
                }
                continue;
            };
            let name = if is_active { active.to_owned() } else { sealed_name(first) };
            let mut bytes = Vec::new();
            for piece in pieces {
                if let Some(event) = piece.event.clone() {
                    mended.events.push(Placed { event, segment: first, offset: bytes.len() as u64 });
                }
                bytes.extend_from_slice(&piece.raw);
                bytes.push(b'\n');
            }
            mended.segments.push((name, bytes));
        }
        mended.last = self.pieces.last().map_or(0, |p| p.seq);
        mended.closed = mended
            .events
            .last()
            .is_some_and(|p| p.event.seq == mended.last && matches!(p.event.body, Body::Closed { .. }));
        mended
    }
}
