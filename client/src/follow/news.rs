//! What a follower has to say: an event that was waited for, and what is seen beside.

use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::Cursor;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

/// Why a session is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It entered the set.
    Edge,
    /// It stands in the set already, and that was asked for (`--or-already`).
    Standing,
    /// The position in its timeline was lost, and it stands in the set.
    Gap,
}

/// A session's move that a wait returns.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    /// The session.
    pub session: SessionId,
    /// Why.
    pub why: Why,
    /// The line in its timeline.
    pub seq: u64,
    /// When that was accepted.
    pub at: Stamp,
    /// The states since the position the wait began at; the last is `to`.
    pub states: Vec<State>,
    /// The state before; none for one that stands since its birth.
    pub from: Option<State>,
    /// The state.
    pub to: State,
    /// What was said with it.
    pub note: Option<String>,
    /// The last answer of the turn that ended.
    pub answer: Option<String>,
    /// The position before the line that entered the set.
    pub before: Cursor,
    /// The position after the line.
    pub after: Cursor,
    /// The `seq` of the line that entered the set: by it an event is told only once.
    pub edge: u64,
}

/// A message that a wait returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its line in the caller's own timeline.
    pub seq: u64,
    /// The message.
    pub id: MessageId,
    /// Who sent it.
    pub from: Party,
    /// For a notice: the session it is about.
    pub about: Option<SessionId>,
    /// When it was accepted.
    pub at: Stamp,
}

/// What is said on the way, beside the events.
#[derive(Clone, Debug, PartialEq)]
pub enum Aside {
    /// A state line that does not count.
    Moved {
        /// The session.
        session: SessionId,
        /// Its line.
        seq: u64,
        /// When.
        at: Stamp,
        /// Before.
        from: State,
        /// Now.
        to: State,
        /// What was said with it.
        note: Option<String>,
    },
    /// A session was seen for the first time since it exists.
    Arrived {
        /// The session.
        session: SessionId,
        /// Its line.
        seq: u64,
        /// When.
        at: Stamp,
        /// Its first state.
        state: State,
    },
    /// It was closed.
    Closed {
        /// The session.
        session: SessionId,
        /// When, where known.
        at: Option<Stamp>,
        /// The state it stood in, where known.
        state: Option<State>,
        /// What was said last.
        note: Option<String>,
    },
    /// A line that this build cannot read.
    Strange {
        /// The session.
        session: SessionId,
        /// What it is: an unknown kind, or damage.
        what: String,
    },
    /// A note in the timeline for its readers.
    Remark {
        /// The session.
        session: SessionId,
        /// Its text.
        text: String,
    },
    /// The position was lost.
    Gap {
        /// The session.
        session: SessionId,
        /// Up to which line it had been read; none if even that is lost.
        lost: Option<u64>,
        /// Where reading goes on.
        resumed: u64,
        /// How it stands now, where that is known.
        now: Option<Stand>,
    },
    /// It stands in the set already.
    Already {
        /// The session.
        session: SessionId,
        /// How it stands.
        stand: Stand,
        /// This caller was told so.
        told: bool,
    },
    /// An event went to another wait of the same caller.
    Elsewhere {
        /// The session, or none for a message.
        session: Option<SessionId>,
    },
    /// Anything else.
    Plain(String),
}

/// A state that stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Stand {
    /// The line that says so.
    pub seq: u64,
    /// When it was accepted.
    pub at: Stamp,
    /// The state.
    pub state: State,
    /// The state before, where a line says it.
    pub from: Option<State>,
    /// True if a turn ended with nothing declared.
    pub turn_end: bool,
    /// What was said with it.
    pub note: Option<String>,
    /// The last answer of the turn that ended.
    pub answer: Option<String>,
}
