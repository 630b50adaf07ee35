//! Gathers what is known of a session when its reading starts, no more than the rules ask for.

use std::cell::OnceCell;
use std::collections::HashMap;

use minder_proto::id::SessionId;
use minder_proto::layout::Home;

use super::book::{Book, Entry};
use super::card;
use super::inbox;
use super::roster::Joined;
use super::start::{Arrival, Facts, Start, start};

/// What the starts of one follower's readings have in common.
#[derive(Debug)]
pub struct Opening<'a> {
    home: &'a Home,
    me: Option<SessionId>,
    since: Option<u64>,
    shown: OnceCell<HashMap<SessionId, u64>>,
}

impl<'a> Opening<'a> {
    /// For a follow by `me`, if a session follows, which starts after line `since`, if that was asked for.
    pub fn new(home: &'a Home, me: Option<SessionId>, since: Option<u64>) -> Self {
        Self { home, me, since, shown: OnceCell::new() }
    }

    /// Where the reading of a session starts.
    pub fn start(&self, joined: &Joined, book: &Book) -> Start {
        let entry = book.follows.get(&joined.id);
        let mut facts = Facts {
            since: self.since,
            entry,
            arrival: joined.arrival,
            child: None,
            born: None,
            swept: book.swept,
            lost: book.lost,
        };
        let at_start = matches!(joined.arrival, Arrival::Named | Arrival::Swept);
        let asks = self.since.is_none() && entry.is_none() && at_start;
        if asks && (self.me.is_some() || book.swept.is_some() || book.lost.is_some()) {
            let card = card::open(self.home, joined.id);
            facts.born = card.as_ref().map(|c| c.created);
            if let Some(me) = self.me.filter(|me| card.and_then(|c| c.parent) == Some(*me)) {
                let shown =
                    self.shown.get_or_init(|| inbox::shown(&self.home.session(me)).unwrap_or_default());
                facts.child = Some(shown.get(&joined.id).copied().unwrap_or(0));
            }
        }
        start(&facts)
    }
}

/// The line up to which a session was read, by what its entry says, for the words of a gap.
pub fn lost_line(book: &Book, id: SessionId) -> Option<u64> {
    match book.follows.get(&id) {
        Some(Entry::Mark(mark)) => Some(mark.cursor.seq),
        _ => None,
    }
}

/// Drops the entries of sessions that are closed and of which nothing is left to be read.
pub fn forget_closed(home: &Home, book: &mut Book, followed: impl Fn(SessionId) -> bool) {
    let Ok(open) = minder_proto::snapshot::ids(home) else { return };
    let open: std::collections::HashSet<SessionId> = open.into_iter().collect();
    let closed: Vec<(SessionId, u64)> = book
        .follows
        .keys()
        .filter(|id| !open.contains(id) && !followed(**id))
        .map(|id| (*id, lost_line(book, *id).unwrap_or(0)))
        .collect();
    for (id, seq) in closed {
        let end = minder_proto::timeline::tail(&home.trashed(id));
        if end.is_err() || end.is_ok_and(|end| end.seq <= seq) {
            book.forget(id);
        }
    }
}
