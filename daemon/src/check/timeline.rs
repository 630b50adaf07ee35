//! A timeline, line by line: its numbers, its segments, the chain of its states, and its messages against the
//! ledger. What is kept of it is what waits, so that a million lines take no more memory than ten.

use std::collections::HashMap;
use std::io::{self, BufRead};

use minder_proto::event::{Body, Event, Line, Receipt};
use minder_proto::id::MessageId;
use minder_proto::state::State;

use super::finding::{Finding, Sheet};
use super::ledger::{Ledger, Misfit};
use super::lines::{self, Next};

/// The last declaration that a timeline knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: State,
    /// Its line.
    pub seq: u64,
    /// What was said with it.
    pub note: Option<String>,
}

/// What a timeline came to.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Lines that were read.
    pub lines: u64,
    /// The last line's number.
    pub last: u64,
    /// The segments: first `seq`, and length in bytes.
    pub segments: Vec<(u64, u64)>,
    /// The state it ends in, where it is known.
    pub standing: Option<Standing>,
    /// True if it was closed.
    pub closed: bool,
    /// Messages whose ids are not later than one before them: another of the same id may be among the others.
    pub suspects: Vec<MessageId>,
}

/// Judges one timeline, segment after segment.
pub struct Judge<'a> {
    ledger: &'a mut Ledger,
    /// What the timeline shows of the ledger.
    ledger_sheet: Sheet,
    /// False for the person, who has no record and no state.
    of_session: bool,
    found: Vec<Finding>,
    end: End,
    /// The number that the next line should have.
    next: Option<u64>,
    /// The first number, where it is not 1 and nothing said yet why.
    begins_late: Option<(String, u64)>,
    /// Lines that cannot be read and that no note has owned up to yet.
    torn: Option<Torn>,
    /// True once lines are missing, so that what they said is not known.
    gaps: bool,
    /// Messages that wait, by their lines.
    waiting: HashMap<MessageId, u64>,
    /// Messages that do not begin where the ledger says: how many, and what is said of the first.
    moved: (u64, Option<String>),
    latest: Option<MessageId>,
}

/// Lines that cannot be read, one after the other.
#[derive(Clone, Copy)]
struct Torn {
    first: usize,
    last: usize,
    count: u64,
}

/// Where a line stands.
struct Spot {
    number: usize,
    segment: u64,
    offset: u64,
}

impl<'a> Judge<'a> {
    /// Before the first segment. The ledger's file is named with what the timeline shows of it.
    pub fn new(ledger_file: &str, ledger: &'a mut Ledger, of_session: bool) -> Self {
        Self {
            ledger,
            ledger_sheet: Sheet::new(ledger_file),
            of_session,
            found: Vec::new(),
            end: End::default(),
            next: None,
            begins_late: None,
            torn: None,
            gaps: false,
            waiting: HashMap::new(),
            moved: (0, None),
            latest: None,
        }
    }

    /// Reads one segment; `named` is the number that its name says, for a sealed one.
    pub fn segment(&mut self, file: &str, named: Option<u64>, mut reader: impl BufRead) -> io::Result<()> {
        let mut sheet = Sheet::new(file);
        let mut buffer = Vec::new();
        let mut spot = Spot { number: 0, segment: named.or(self.next).unwrap_or(1), offset: 0 };
        let mut begun = false;
        let read = loop {
            let (next, passed) = match lines::next(&mut reader, &mut buffer) {
                Ok(next) => next,
                Err(error) => break Err(error),
            };
            spot.number += 1;
            let line = match next {
                Next::Line if buffer.is_empty() => None,
                Next::Line => Some(Line::parse(&buffer)),
                Next::Endless => Some(Line::Torn),
                Next::End(rest) => {
                    lines::open_end(rest).into_iter().for_each(|what| sheet.damage(what));
                    spot.offset += passed;
                    break Ok(());
                }
            };
            if let Some(line) = line {
                if !begun && let Some(seq) = line.seq() {
                    match named {
                        Some(named) if named != seq => {
                            sheet.damage(format!(
                                "its name says that it begins with seq {named}, and it begins with seq {seq}"
                            ));
                        }
                        None if spot.number == 1 => spot.segment = seq,
                        _ => {}
                    }
                }
                begun |= line.seq().is_some();
                self.line(&mut sheet, &spot, file, named.is_some(), line);
            }
            spot.offset += passed;
        };
        self.own_up(&mut sheet);
        if named.is_some() && !begun {
            sheet.damage("a sealed segment without a line");
        }
        self.end.segments.push((spot.segment, spot.offset));
        self.found.extend(sheet.finish());
        read
    }

    fn line(&mut self, sheet: &mut Sheet, spot: &Spot, file: &str, sealed: bool, line: Line) {
        self.end.lines += 1;
        let Some(seq) = line.seq() else {
            let torn = self.torn.unwrap_or(Torn { first: spot.number, last: spot.number, count: 0 });
            self.torn = Some(Torn { last: spot.number, count: torn.count + 1, ..torn });
            return;
        };
        let note = match &line {
            Line::Event(event) => match &event.body {
                Body::Note { what, .. } => what.as_str(),
                _ => "",
            },
            _ => "",
        };
        // The note says that what is missing or unreadable before it is known and was lost.
        let mended = matches!(note, "torn" | "repaired");
        let torn = if mended { self.torn.take().map_or(0, |t| t.count) } else { self.own_up(sheet) };
        match self.next {
            None if seq != 1 => {
                self.gaps = true;
                self.begins_late = (!sealed && !mended).then(|| (file.to_owned(), seq));
            }
            Some(next) if seq > next => {
                self.gaps = true;
                self.end.standing = None;
                if !mended && seq - next > torn {
                    sheet.damage(format!("line {}: seq {seq} follows seq {}", spot.number, next - 1));
                }
            }
            Some(next) if seq < next => {
                sheet.damage(format!("line {}: seq {seq} follows seq {}", spot.number, next - 1));
                if let Line::Event(event) = &line
                    && let Body::Message(message) = &event.body
                {
                    self.end.suspects.push(message.id);
                }
                return;
            }
            None if self.of_session && !mended && !is_arrival(&line) => {
                sheet.damage("line 1 is not the arrival");
            }
            _ => {}
        }
        if note == "gap" || mended {
            self.begins_late = None;
        }
        if mended {
            // It may stand in the place of what is missing.
            self.gaps = true;
            self.end.standing = None;
        }
        if self.end.closed {
            sheet.damage(format!("line {}: it stands after the line `closed`", spot.number));
        }
        self.next = Some(seq.saturating_add(1));
        if let Line::Event(event) = line {
            self.event(sheet, spot, *event);
        }
    }

    fn event(&mut self, sheet: &mut Sheet, spot: &Spot, event: Event) {
        let (n, seq) = (spot.number, event.seq);
        match event.body {
            Body::Created { state, .. } => {
                if seq != 1 {
                    sheet.damage(format!("line {n}: a second arrival"));
                }
                self.end.standing = Some(Standing { state, seq, note: None });
            }
            Body::State(line) => {
                let from = line.from;
                let before = self.end.standing.as_ref().map(|s| s.state).filter(|s| *s != from);
                if let Some(before) = before {
                    sheet.damage(format!("line {n}: from {from}, and the state before it is {before}"));
                }
                self.end.standing = Some(Standing { state: line.to, seq, note: line.note });
            }
            Body::Message(message) => {
                let id = message.id;
                if self.latest.is_some_and(|l| id <= l) {
                    self.end.suspects.push(id);
                }
                self.latest = self.latest.max(Some(id));
                self.waiting.insert(id, seq);
                match self.ledger.meet(id, seq, spot.segment, spot.offset) {
                    Some(Misfit::Seq(what)) => self.ledger_sheet.damage(what),
                    // Where bytes were moved, all that follow have moved.
                    Some(Misfit::Place(what)) => {
                        self.moved.0 += 1;
                        self.moved.1.get_or_insert(what);
                    }
                    None => {}
                }
            }
            Body::Receipt { id, receipt, .. } if receipt.is_settled() => {
                let waited = self.waiting.remove(&id).is_some();
                let late = matches!(receipt, Receipt::Answered | Receipt::Returned);
                if !waited && !late && !self.gaps {
                    sheet.damage(format!("line {n}: {receipt} for message {id}, which does not wait"));
                }
            }
            Body::Closed { .. } => self.end.closed = true,
            _ => {}
        }
    }

    /// Lines that cannot be read and that nothing has owned up to are damage; gives how many there were.
    fn own_up(&mut self, sheet: &mut Sheet) -> u64 {
        let Some(torn) = self.torn.take() else { return 0 };
        if torn.count == 1 {
            sheet.damage(format!("line {} cannot be read", torn.first));
        } else {
            sheet.damage(format!("lines {} to {} cannot be read", torn.first, torn.last));
        }
        torn.count
    }

    /// After the last segment: what waits against what the ledger says.
    pub fn finish(mut self) -> (Vec<Finding>, End) {
        if let Some((file, first)) = self.begins_late.take() {
            let mut sheet = Sheet::new(file);
            sheet.damage(format!("it begins with seq {first}, and no note says why"));
            self.found.extend(sheet.finish());
        }
        self.end.last = self.next.map_or(0, |n| n - 1);
        let mut sheet = self.ledger_sheet;
        let mut waiting: Vec<(u64, MessageId)> = self.waiting.iter().map(|(id, seq)| (*seq, *id)).collect();
        waiting.sort_unstable();
        if let (count, Some(what)) = self.moved {
            let more = if count > 1 { format!("; {} more have moved", count - 1) } else { String::new() };
            sheet.damage(format!("{what}{more}"));
        }
        for (seq, id) in waiting {
            match self.ledger.get(id) {
                None => {
                    sheet.damage(format!("message {id}, seq {seq} of the timeline, waits and is not here"));
                }
                Some(track) if track.receipt.is_settled() => sheet.damage(format!(
                    "message {id} is {} here, and the timeline has no receipt of it",
                    track.receipt
                )),
                Some(_) => {}
            }
        }
        for (id, track) in self.ledger.tracks().into_iter().filter(|(_, t)| t.queued) {
            let open = !track.receipt.is_settled();
            if !track.met && (open || !self.gaps) {
                let seq = track.seq;
                sheet.damage(format!("message {id} is not in the timeline, where it should be seq {seq}"));
            } else if track.met && open && !self.waiting.contains_key(&id) {
                sheet.damage(format!("message {id} is {} here, and settled in the timeline", track.receipt));
            }
        }
        self.found.extend(sheet.finish());
        (self.found, self.end)
    }
}

/// A line of a kind that this build does not know may be one.
fn is_arrival(line: &Line) -> bool {
    match line {
        Line::Event(event) => matches!(event.body, Body::Created { .. }),
        Line::Unknown { .. } => true,
        Line::Torn => false,
    }
}

/// Counts the lines of these messages in one segment.
pub fn count(mut reader: impl BufRead, counts: &mut HashMap<MessageId, Vec<u64>>) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        match lines::next(&mut reader, &mut buffer)?.0 {
            Next::Line => {}
            Next::Endless => continue,
            Next::End(_) => return Ok(()),
        }
        if let Line::Event(event) = Line::parse(&buffer)
            && let Body::Message(message) = &event.body
            && let Some(lines) = counts.get_mut(&message.id)
        {
            lines.push(event.seq);
        }
    }
}
