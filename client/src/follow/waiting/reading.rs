//! A wait's reading: where a session is taken up, its lines up to the next event, a position that was lost, an end.

use std::io;
use std::ops::ControlFlow;

use minder_proto::event::{Body, Line};
use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::snapshot;
use minder_proto::timeline::{self, Gap};

use super::Waiting;
use crate::follow::news::{Aside, News, Stand, Why};
use crate::follow::opening::lost_line;
use crate::follow::roster::Joined;
use crate::follow::source::Located;
use crate::follow::standing;
use crate::follow::start::Start;

impl Waiting<'_> {
    /// Starts to follow a session: finds its place and reads what came since. Returns how it stands.
    pub(super) fn open(&mut self, joined: &Joined) -> Option<Stand> {
        let id = joined.id;
        let nothing = Cursor { seq: 0, offset: 0, segment: 0 };
        let (located, end) = match self.source.read(id, |located| standing::end(&located.dir)) {
            Ok(found) => found,
            Err(e) => {
                self.wait.join(id, joined.named, nothing);
                if self.source.locate(id).is_none() {
                    self.gone(id, None);
                } else if e.kind() != io::ErrorKind::NotFound {
                    self.say(&Aside::Strange { session: id, what: format!("its timeline ({e})") });
                }
                return None;
            }
        };
        let start = self.opening.start(joined, &self.book);
        let from = match start {
            Start::At(cursor) => cursor,
            Start::After(0) => nothing,
            Start::After(seq) if seq == end.cursor.seq => end.cursor,
            Start::After(seq) if seq > end.cursor.seq && self.options.since.is_some() => {
                let text = format!("{} has only {} lines", self.who(id), end.cursor.seq);
                self.say(&Aside::Plain(text));
                end.cursor
            }
            Start::After(seq) => Cursor { seq, ..nothing },
            Start::End | Start::Lost => end.cursor,
        };
        self.wait.join(id, joined.named, from);
        if start == Start::Lost {
            self.gap(id, &located, None, end.cursor.seq);
        }
        if from != end.cursor || located.closed {
            self.read(id);
        }
        end.stand
    }

    /// How a session that stands in the set is news, unless this caller was told of the line that brought it there.
    pub(super) fn untold(&mut self, id: SessionId, why: Why) -> Option<News> {
        let located = self.source.locate(id)?;
        let news = standing::standing(&located.dir, id, self.rules.filter, why).ok().flatten()?;
        let told = self.book.mark(id).is_some_and(|m| m.was_told(news.edge));
        (!told).then_some(news)
    }

    /// Reads on in a session, up to its next event.
    pub(super) fn read(&mut self, id: SessionId) {
        // A folder that is moved to the trash between two looks is found at the next.
        for _ in 0..3 {
            if !self.wait.reads(id) {
                return;
            }
            let Some(located) = self.source.locate(id) else {
                self.gone(id, None);
                return;
            };
            match self.read_at(id, &located) {
                Ok(None) if located.closed => self.gone(id, None),
                Ok(None) => return,
                Ok(Some(gap)) => self.gap(id, &located, Some(gap.lost), gap.resumed),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    self.say(&Aside::Strange { session: id, what: format!("its timeline ({e})") });
                    return;
                }
            }
        }
    }

    pub(super) fn read_at(&mut self, id: SessionId, located: &Located) -> io::Result<Option<Gap>> {
        let Some(cursor) = self.wait.target(id).map(|t| t.cursor) else { return Ok(None) };
        let position = (cursor.seq > 0).then_some(cursor);
        let mut closed = None;
        let end = timeline::read_after(&located.dir, position, |item| {
            if self.wait.needs_past(id, &item) {
                let before = item.after.seq.saturating_sub(1);
                self.wait.past(id, standing::turn_ended(&located.dir, before).unwrap_or(false));
            }
            match self.wait.hear(id, &item) {
                Some(aside @ Aside::Closed { .. }) => closed = Some(aside),
                Some(aside) => self.say(&aside),
                None => {}
            }
            let last = matches!(&item.line, Line::Event(e) if matches!(e.body, Body::Closed { .. }));
            if self.wait.reads(id) && !last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if closed.is_some() {
            self.gone(id, closed);
        } else if end.gap.is_none() {
            self.wait.reached(id, end.cursor);
        }
        Ok(end.gap)
    }

    /// A position was lost: says how the session stands now, and makes that an event where it is waited for.
    pub(super) fn gap(&mut self, id: SessionId, located: &Located, lost: Option<u64>, resumed: u64) {
        let end = standing::end(&located.dir).ok();
        let now = end.as_ref().and_then(|e| e.stand.clone());
        self.say(&Aside::Gap { session: id, lost: lost.or_else(|| lost_line(&self.book, id)), resumed, now });
        let wrong = lost.and_then(|_| self.wait.target(id)).map(|t| t.cursor);
        let Some(end) = end else { return };
        self.wait.gap(id, wrong, end.cursor);
        if let Some(news) = self.untold(id, Why::Gap) {
            self.wait.offer(news);
        }
    }

    /// A session is gone.
    pub(super) fn gone(&mut self, id: SessionId, aside: Option<Aside>) {
        let (mut at, mut state, mut note) = match aside {
            Some(Aside::Closed { at, state, note, .. }) => (at, state, note),
            _ => (None, None, None),
        };
        if state.is_none() || at.is_none() {
            let stand = self.source.locate(id).and_then(|l| standing::end(&l.dir).ok()).and_then(|e| e.stand);
            let tombstone = snapshot::tombstone(self.home, id);
            state = state.or(stand.as_ref().map(|s| s.state)).or(tombstone.as_ref().map(|t| t.state));
            at = at.or(tombstone.as_ref().map(|t| t.at));
            note = note.or(tombstone.and_then(|t| t.note)).or(stand.and_then(|s| s.note));
        }
        if let Some(aside) = self.wait.gone(id, Aside::Closed { session: id, at, state, note }) {
            self.say(&aside);
        }
    }
}
