//! Lines and positions for the tests of this folder.

use minder_proto::event::{Author, Body, Event, Line, Transition};
use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::timeline::Item;

/// A declaration.
pub fn moved(from: State, to: State) -> Transition {
    Transition {
        from,
        to,
        note: None,
        by: Author::Agent,
        cause: None,
        turn: None,
        turn_end: false,
        text: None,
        proof: None,
    }
}

/// The position after line `seq`, where every line has 100 bytes.
pub fn after(seq: u64) -> Cursor {
    Cursor { seq, offset: seq * 100, segment: u64::from(seq > 0) }
}

/// A line as a reader meets it; `seq` is also its second.
pub fn item(seq: u64, body: Body) -> Item {
    let event = Event { seq, at: at(seq), body };
    Item { line: Line::Event(Box::new(event)), after: after(seq) }
}

/// The stamp of line `seq`.
pub fn at(seq: u64) -> Stamp {
    Stamp::from_millis(1_800_000_000_000 + seq.cast_signed() * 1_000)
}

/// A state line as a reader meets it.
pub fn state(seq: u64, from: State, to: State) -> Item {
    item(seq, Body::State(moved(from, to)))
}

/// The end of a turn with nothing declared.
pub fn turn_end(seq: u64) -> Item {
    item(seq, Body::State(Transition { turn_end: true, ..moved(State::Working, State::Idle) }))
}

/// Session number `n`.
pub fn session(n: u8) -> SessionId {
    SessionId::from_bytes([n; 16])
}
