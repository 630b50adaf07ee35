//! What the callers of a run know: every call that changes the store, in the order in which each caller made it, and
//! how it ended. The store is compared with nothing else.

use minder_proto::id::{MessageId, SessionId};

/// One call of one caller.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The call's number on the wire.
    pub number: u64,
    /// What it was.
    pub deed: Deed,
    /// How it ended, as its caller knows.
    pub end: End,
}

/// A change that was asked for. Notes and bodies begin with a mark that no other call has.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A session with this label was made.
    Create {
        /// Its label.
        label: String,
        /// Its id, where it was answered.
        id: Option<SessionId>,
    },
    /// This session watches that one for all states.
    Watch {
        /// Label of who watches.
        watcher: String,
        /// Label of who is watched.
        target: String,
    },
    /// A state was declared.
    Declare {
        /// Label of whose.
        label: String,
        /// The note.
        note: String,
    },
    /// A message was sent.
    Send {
        /// Label of the sender.
        from: String,
        /// Label of the recipient.
        to: String,
        /// What its body begins with.
        mark: String,
        /// Its id, where it was answered.
        id: Option<MessageId>,
    },
    /// A message was acknowledged.
    Ack {
        /// The message.
        id: MessageId,
    },
    /// A session was closed.
    Close {
        /// Its label.
        label: String,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was answered: it happened.
    Told,
    /// It was refused: it never happens.
    Refused,
    /// Nobody answered: it happened once or not at all.
    Unknown,
}

/// All callers' calls, each caller's in its order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// A list for each caller.
    pub callers: Vec<Vec<Entry>>,
}

impl History {
    /// Every entry.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.callers.iter().flatten()
    }

    /// How many calls were answered.
    pub fn told(&self) -> usize {
        self.entries().filter(|e| e.end == End::Told).count()
    }

    /// Adds what further callers did.
    pub fn extend(&mut self, more: Self) {
        self.callers.resize(self.callers.len().max(more.callers.len()), Vec::new());
        for (mine, theirs) in self.callers.iter_mut().zip(more.callers) {
            mine.extend(theirs);
        }
    }

    /// The same as it was known when only the calls that `known` says had been answered.
    pub fn as_of(&self, known: impl Fn(u64) -> bool) -> Self {
        let mut then = self.clone();
        for entry in then.callers.iter_mut().flatten() {
            if !known(entry.number) {
                entry.end = End::Unknown;
            }
        }
        then
    }
}
