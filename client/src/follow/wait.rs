//! What a wait does next. Pure: it hears lines, messages and the clock, and says what to tell, how long to sleep and
//! what to end with. Reading, locking and printing are around it (`waiting.rs`).

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use minder_proto::id::SessionId;
use minder_proto::record::Cursor;
use minder_proto::stamp::Stamp;
use minder_proto::timeline::Item;

use super::filter::Filter;
use super::news::{Aside, Letter, News, Why};
use super::track::{Heard, Track};

/// What is waited for, and how it ends.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The states.
    pub filter: Filter,
    /// Return when every session has had its event.
    pub each: bool,
    /// End because of gone sessions only when none is left.
    pub keep_going: bool,
    /// Sessions may join.
    pub broad: bool,
    /// Messages are waited for.
    pub inbox: bool,
    /// When to give up; none for never.
    pub deadline: Option<Instant>,
}

/// One followed session.
#[derive(Debug)]
pub struct Target {
    named: bool,
    track: Track,
    standing: Standing,
    /// How far it was read: to right before a pending event.
    pub cursor: Cursor,
    /// A stored position that was found wrong, and that `cursor` replaces.
    pub wrong: Option<Cursor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is read on.
    Read,
    /// An event of this time waits to be told.
    Pending(Stamp),
    /// It had its event (`each`); what follows is left for the next wait.
    Had,
    /// It is closed.
    Gone,
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Tell {
    /// A session's move.
    News(Box<News>),
    /// A message.
    Letter(Letter),
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Tell these in this order, and report each with [`Wait::told`] or [`Wait::refused`].
    Tell(Vec<Tell>),
    /// Sleep, at most until then.
    Sleep(Option<Instant>),
    /// End.
    End(End),
}

/// What a wait ends with.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// What was waited for has been told.
    Told {
        /// A session went to `error`, which was not asked for.
        alarm: bool,
    },
    /// The time is up.
    Deadline,
    /// These sessions are gone.
    Gone(Vec<Aside>),
}

/// A wait.
#[derive(Debug)]
pub struct Wait {
    rules: Rules,
    targets: HashMap<SessionId, Target>,
    pending: BTreeMap<(Stamp, SessionId), Box<News>>,
    letter: Option<Letter>,
    /// Targets that are read or have an event pending.
    left: usize,
    /// Targets that had their event.
    had: usize,
    /// Named targets that are gone.
    gone: Vec<Aside>,
    told: bool,
    alarm: bool,
}

impl Wait {
    /// A wait for nobody yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            targets: HashMap::new(),
            pending: BTreeMap::new(),
            letter: None,
            left: 0,
            had: 0,
            gone: Vec::new(),
            told: false,
            alarm: false,
        }
    }

    /// Follows a session from a position.
    pub fn join(&mut self, id: SessionId, named: bool, cursor: Cursor) {
        let target = Target { named, track: Track::default(), standing: Standing::Read, cursor, wrong: None };
        if self.targets.insert(id, target).is_none() {
            self.left += 1;
        }
    }

    /// A followed session.
    pub fn target(&self, id: SessionId) -> Option<&Target> {
        self.targets.get(&id)
    }

    /// All followed sessions.
    pub fn targets(&self) -> impl Iterator<Item = (SessionId, &Target)> {
        self.targets.iter().map(|(id, target)| (*id, target))
    }

    /// True if the session is to be read on.
    pub fn reads(&self, id: SessionId) -> bool {
        self.targets.get(&id).is_some_and(|t| t.standing == Standing::Read)
    }

    /// True if what this line is depends on the state line before it, which is then told with [`Self::past`].
    pub fn needs_past(&self, id: SessionId, item: &Item) -> bool {
        self.targets.get(&id).is_some_and(|t| t.track.needs_past(item, self.rules.filter))
    }

    /// Tells whether the newest state line before what comes next was a `turn_end`.
    pub fn past(&mut self, id: SessionId, turn_end: bool) {
        if let Some(target) = self.targets.get_mut(&id) {
            target.track.past(turn_end);
        }
    }

    /// Hears one line. Returns what to say of it; afterwards [`Self::reads`] says whether to read on.
    pub fn hear(&mut self, id: SessionId, item: &Item) -> Option<Aside> {
        let target = self.targets.get_mut(&id)?;
        match target.track.hear(id, target.cursor, item, self.rules.filter) {
            Heard::News(news) => {
                self.offer(*news);
                None
            }
            Heard::Aside(aside) | Heard::Closed(aside) => {
                target.cursor = item.after;
                Some(aside)
            }
            Heard::Nothing => {
                target.cursor = item.after;
                None
            }
        }
    }

    /// A session is gone: it was closed, or its folder is not there. Returns what to say of it now.
    pub fn gone(&mut self, id: SessionId, aside: Aside) -> Option<Aside> {
        let target = self.targets.get_mut(&id)?;
        if target.standing != Standing::Read {
            return None;
        }
        target.standing = Standing::Gone;
        self.left -= 1;
        if target.named {
            self.gone.push(aside.clone());
        }
        // One that ends the wait is said then.
        (!target.named || self.rules.keep_going).then_some(aside)
    }

    /// The position in a session was lost (`wrong`, where there was one). Reading goes on at `resumed`.
    pub fn gap(&mut self, id: SessionId, wrong: Option<Cursor>, resumed: Cursor) {
        if let Some(target) = self.targets.get_mut(&id) {
            target.wrong = target.wrong.or(wrong);
            target.track = Track::default();
            target.cursor = resumed;
        }
    }

    /// A reading ended here. The same line may lie in another place by now.
    pub fn reached(&mut self, id: SessionId, cursor: Cursor) {
        if let Some(target) = self.targets.get_mut(&id)
            && target.cursor.seq == cursor.seq
            && cursor.offset > 0
        {
            target.cursor = cursor;
        }
    }

    /// The followed sessions that were read to their end and are gone.
    pub fn heard_gone(&self) -> impl Iterator<Item = SessionId> {
        self.targets.iter().filter(|(_, t)| t.standing == Standing::Gone).map(|(id, _)| *id)
    }

    /// An event to tell. One whose position was lost is still to be found by the next wait, if it is not told by
    /// this one.
    pub fn offer(&mut self, news: News) {
        let Some(target) = self.targets.get_mut(&news.session) else { return };
        if target.standing == Standing::Read {
            if news.why == Why::Gap {
                target.cursor = news.before;
            }
            target.standing = Standing::Pending(news.at);
            self.pending.insert((news.at, news.session), Box::new(news));
        }
    }

    /// The oldest message that was not told yet.
    pub fn letter(&mut self, letter: Option<Letter>) {
        self.letter = letter.filter(|_| self.rules.inbox);
    }

    /// What to do next.
    pub fn next(&self, now: Instant) -> Step {
        let mut tell: Vec<Tell> = Vec::new();
        if self.rules.each || !self.told {
            tell.extend(self.pending.values().cloned().map(Tell::News));
            if let Some(letter) = &self.letter {
                let place = self.pending.keys().take_while(|(at, _)| *at <= letter.at).count();
                tell.insert(place, Tell::Letter(letter.clone()));
            }
            tell.truncate(if self.rules.each { usize::MAX } else { 1 });
        }
        if !tell.is_empty() {
            return Step::Tell(tell);
        }
        if let Some(end) = self.end() {
            return Step::End(end);
        }
        match self.rules.deadline {
            Some(deadline) if now >= deadline => Step::End(End::Deadline),
            deadline => Step::Sleep(deadline),
        }
    }

    fn end(&self) -> Option<End> {
        if self.told && !self.rules.each {
            return Some(End::Told { alarm: self.alarm });
        }
        if !self.gone.is_empty() && !self.rules.keep_going {
            return Some(End::Gone(self.gone.clone()));
        }
        if self.left > 0 || self.rules.inbox || self.targets.is_empty() {
            return None;
        }
        if self.had > 0 {
            return Some(End::Told { alarm: self.alarm });
        }
        // Others may come to match a broad selection.
        (!self.rules.broad).then(|| End::Gone(self.gone.clone()))
    }

    /// An event was told: its session's position is after it.
    pub fn told(&mut self, tell: &Tell) {
        self.told = true;
        match tell {
            Tell::News(news) => {
                self.alarm |= self.rules.filter.alarms(news.to);
                self.settle(news, if self.rules.each { Standing::Had } else { Standing::Read });
            }
            Tell::Letter(_) => self.letter = None,
        }
    }

    /// An event had been told by another wait of the same caller.
    pub fn refused(&mut self, tell: &Tell) {
        match tell {
            Tell::News(news) => self.settle(news, Standing::Read),
            Tell::Letter(_) => self.letter = None,
        }
    }

    fn settle(&mut self, news: &News, standing: Standing) {
        let Some(target) = self.targets.get_mut(&news.session) else { return };
        if let Standing::Pending(at) = target.standing {
            self.pending.remove(&(at, news.session));
        }
        if news.after.seq > target.cursor.seq {
            target.cursor = news.after;
        }
        target.track.told();
        target.standing = standing;
        if standing == Standing::Had {
            self.left -= 1;
            self.had += 1;
        }
    }
}

#[cfg(test)]
mod contest;
#[cfg(test)]
mod tests;
