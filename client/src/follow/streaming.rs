//! `watch stream`: every event of the followed sessions as it happens, in the order of time.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use minder_proto::error::exit;
use minder_proto::event::{Body, Line};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::Cursor;
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use minder_proto::state::StateSet;
use minder_proto::text::{fit, one_line};
use minder_proto::timeline;

use super::announce::{Announcement, is_unread};
use super::bell::{Bell, Woke};
use super::book::Book;
use super::keeper::Keeper;
use super::merge::Merge;
use super::news::Aside;
use super::opening::{Opening, forget_closed};
use super::place::Place;
use super::roster::{Joined, Roster};
use super::show::{Show, Shown, What};
use super::source::Source;
use super::start::{Arrival, Start};
use super::{Follower, card, lean, render, standing};
use crate::fault::CommandError;
use crate::printer::Printer;

/// Lines of one session that are read at a time.
const PIECE: usize = 256;

const NOTHING: Cursor = Cursor { seq: 0, offset: 0, segment: 0 };

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After this line of each session.
    Line(u64),
    /// So long ago.
    Ago(Duration),
}

/// What to stream.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// Selectors; none: every session but the caller.
    pub selectors: Vec<String>,
    /// Only moves to these states.
    pub states: Option<StateSet>,
    /// Where to start; from now on if it is not said.
    pub since: Option<Since>,
    /// The name under which the positions are kept; without one they are kept nowhere.
    pub name: Option<String>,
    /// Tell the named sessions nothing.
    pub no_announce: bool,
}

/// Sends an announcement by the ordinary send, with class `with-next`; the error is one line.
pub type Announce<'a> = &'a dyn Fn(&Announcement) -> Result<(), String>;

/// Streams until a signal, until nobody reads, or until every session that was named is gone.
pub fn stream(
    follower: &Follower,
    options: &StreamOptions,
    announce: Announce,
    printer: &mut Printer,
) -> Result<u8, CommandError> {
    let began = Stamp::now();
    let me = follower.identity.session();
    let mut roster = Roster::new(follower.home, me, &options.selectors)?;
    let source = Source::new(follower.home, Some(Bell::new(&follower.home.feed(), None, follower.backstop)));
    let keeper = Keeper::new(options.name.as_deref().map(|n| Place::named(follower.home, n)));
    let book = keeper.look();
    let read_before: Vec<SessionId> = book.follows.keys().copied().collect();
    let joined = roster.first(&read_before)?;
    let line = match options.since {
        Some(Since::Line(seq)) => Some(seq),
        Some(Since::Ago(_)) | None => None,
    };
    let mut streaming = Streaming {
        home: follower.home,
        options,
        show: Show { states: options.states },
        source,
        roster,
        keeper,
        book,
        // No notice stands for what a stream did not show.
        opening: Opening::new(follower.home, None, line),
        targets: HashMap::new(),
        grown: Vec::new(),
        merge: Merge::default(),
        began,
        kept: false,
        warned: false,
        slept: false,
        printer,
    };
    if !options.no_announce {
        for joined in joined.iter().filter(|j| j.named) {
            streaming.announce(follower, joined.id, announce);
        }
    }
    joined.iter().for_each(|j| streaming.open(j));
    streaming.run()
}

#[derive(Debug)]
struct Target {
    /// How far it was read.
    read: Cursor,
    /// How far it was shown.
    shown: Cursor,
    /// A stored position that was found wrong.
    wrong: Option<Cursor>,
    /// It appeared while it was followed, so that its birth is shown.
    new: bool,
    gone: bool,
}

struct Streaming<'a> {
    home: &'a Home,
    options: &'a StreamOptions,
    show: Show,
    source: Source,
    roster: Roster,
    keeper: Keeper,
    book: Book,
    opening: Opening<'a>,
    targets: HashMap<SessionId, Target>,
    /// Sessions in which something is to be read.
    grown: Vec<SessionId>,
    merge: Merge<(Option<Shown>, SessionId, Cursor)>,
    began: Stamp,
    kept: bool,
    warned: bool,
    slept: bool,
    printer: &'a mut Printer,
}

impl Streaming<'_> {
    fn run(&mut self) -> Result<u8, CommandError> {
        loop {
            self.catch_up()?;
            if !self.targets.is_empty() && !self.roster.is_broad() && self.targets.values().all(|t| t.gone) {
                let message = "every session that was named is closed";
                return Err(CommandError::new("gone", exit::GONE, message));
            }
            if !std::mem::replace(&mut self.slept, true) {
                self.begin();
                lean::give_back();
            }
            let Some(bell) = &mut self.source.bell else { return Ok(exit::OK) };
            match bell
                .sleep(None, Some(self.printer.descriptor()))
                .map_err(|e| CommandError::io("cannot wait", &e))?
            {
                Woke::Signal(signal) => return Ok(signal.exit()),
                Woke::Unread => return Ok(exit::OK),
                woke => self.look(woke),
            }
        }
    }

    /// Says to a person that it follows now: until something moves nothing else would be there.
    fn begin(&mut self) {
        if self.printer.look().terminal && !self.printer.is_json() {
            let following = match self.targets.values().filter(|t| !t.gone).count() {
                1 => "1 session".to_owned(),
                n => format!("{n} sessions"),
            };
            self.say(&format!("following {following}, Ctrl-C ends it"));
        }
    }

    /// Reads and shows what there is, a piece of each session at a time.
    fn catch_up(&mut self) -> Result<(), CommandError> {
        let mut any = false;
        let mut wanted = std::mem::take(&mut self.grown);
        while !wanted.is_empty() {
            for id in wanted {
                let more = self.read(id);
                self.merge.read(id, more);
            }
            any |= self.print()?;
            wanted = self.merge.wanted();
        }
        any |= self.print()?;
        if any || !std::mem::replace(&mut self.kept, true) {
            self.keep();
        }
        Ok(())
    }

    /// Prints what is ready, and flushes. What was flushed is shown.
    fn print(&mut self) -> Result<bool, CommandError> {
        let ready = self.merge.ready();
        if ready.is_empty() {
            return Ok(false);
        }
        self.source.awake();
        let (now, home) = (Stamp::now(), self.home);
        let known = std::cell::RefCell::new(HashMap::new());
        let names =
            |id: SessionId| known.borrow_mut().entry(id).or_insert_with(|| card::names(home, id)).clone();
        for shown in ready.iter().filter_map(|(shown, ..)| shown.as_ref()) {
            if self.printer.is_json() {
                self.printer.object(&shown.object(&names, now))?;
            } else {
                // On a terminal one event is one row; the whole note is in `show`.
                let line = shown.line(&names, now);
                let columns = self.printer.look().columns;
                self.printer.line(columns.map_or(line.clone(), |columns| fit(&line, columns)))?;
            }
        }
        self.printer.flush()?;
        for (_, id, cursor) in ready {
            if let Some(target) = self.targets.get_mut(&id) {
                target.shown = cursor;
            }
        }
        Ok(true)
    }

    fn announce(&mut self, follower: &Follower, id: SessionId, announce: Announce) {
        if !self.home.session(id).is_dir() || is_unread(self.home, &follower.identity, id) {
            return;
        }
        if let Err(why) = announce(&Announcement::new(self.home, &follower.identity, id)) {
            let who = render::who(id, &|id| card::names(self.home, id));
            self.say(&format!("{who} was not told that you follow it: {why}"));
        }
    }

    /// Starts to follow a session.
    fn open(&mut self, joined: &Joined) {
        let id = joined.id;
        let mut target = Target {
            read: NOTHING,
            shown: NOTHING,
            wrong: None,
            new: joined.arrival == Arrival::Appeared,
            gone: false,
        };
        let located = self.source.locate(id);
        if let Some(located) = &located
            && joined.arrival != Arrival::Appeared
        {
            let end = standing::end(&located.dir).map_or(NOTHING, |e| e.cursor);
            let start = match self.options.since {
                Some(Since::Ago(ago)) => {
                    let since = Stamp::now().minus(ago);
                    Start::At(first_since(&located.dir, since).unwrap_or(NOTHING))
                }
                _ => self.opening.start(joined, &self.book),
            };
            target.new = start == Start::After(0) && self.options.since.is_none();
            target.read = match start {
                Start::At(cursor) => cursor,
                Start::After(0) => NOTHING,
                Start::After(seq) => Cursor { seq: seq.min(end.seq), ..NOTHING },
                Start::End | Start::Lost => end,
            };
            if start == Start::Lost {
                self.gap(id, &located.dir, None, end);
            }
            target.shown = target.read;
        }
        self.targets.insert(id, target);
        self.grown.push(id);
    }

    /// Reads the next piece of a session; true if there is more.
    fn read(&mut self, id: SessionId) -> bool {
        for _ in 0..3 {
            let Some(target) = self.targets.get(&id).filter(|t| !t.gone) else { return false };
            let (from, new) = (target.read, target.new);
            let Some(located) = self.source.locate(id) else {
                self.gone(id);
                return false;
            };
            let mut left = PIECE;
            let mut closed = false;
            // For a line that does not say its time.
            let mut at = Stamp::now();
            let show = self.show;
            let merge = &mut self.merge;
            let result = timeline::read_after(&located.dir, (from.seq > 0).then_some(from), |item| {
                if let Line::Event(event) = &item.line {
                    at = event.at;
                    closed |= matches!(event.body, Body::Closed { .. });
                }
                let shown = show.pick(id, item.line, at, new);
                merge.push(id, at, (shown, id, item.after));
                left -= 1;
                if left == 0 || closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            match result {
                Ok(end) if end.gap.is_some() => {
                    self.gap(id, &located.dir, Some(from.seq), end.cursor);
                }
                Ok(end) => {
                    if let Some(target) = self.targets.get_mut(&id) {
                        target.read = end.cursor;
                        target.gone = closed;
                    }
                    if left > 0 && located.closed && !closed {
                        self.gone(id);
                    }
                    return left == 0 && !closed;
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    self.say(&format!("{}: {e}", located.dir.display()));
                    return false;
                }
            }
        }
        false
    }

    /// The position in a session was lost.
    fn gap(&mut self, id: SessionId, dir: &Path, lost: Option<u64>, resumed: Cursor) {
        let now = standing::end(dir).ok().and_then(|e| e.stand);
        let what = What::Aside(Aside::Gap { session: id, lost, resumed: resumed.seq, now });
        let at = Stamp::now();
        if let Some(target) = self.targets.get_mut(&id) {
            target.wrong = target.wrong.or(Some(target.read));
            target.read = resumed;
        }
        let shown = Shown { session: id, at, what };
        self.merge.push(id, at, (Some(shown), id, resumed));
    }

    /// A session is gone without a last line that could be read.
    fn gone(&mut self, id: SessionId) {
        let Some(target) = self.targets.get_mut(&id) else { return };
        if std::mem::replace(&mut target.gone, true) {
            return;
        }
        let line = snapshot::tombstone(self.home, id);
        let at = line.as_ref().map_or_else(Stamp::now, |l| l.at);
        let (state, note) = (line.as_ref().map(|l| l.state), line.and_then(|l| l.note));
        let what = What::Aside(Aside::Closed { session: id, at: Some(at), state, note });
        let shown = Shown { session: id, at, what };
        let cursor = target.read;
        self.merge.push(id, at, (Some(shown), id, cursor));
    }

    fn look(&mut self, woke: Woke) {
        let grown = self.source.grown(woke);
        for id in grown.sessions {
            if self.targets.contains_key(&id) {
                self.grown.push(id);
            } else if let Some(joined) = self.roster.consider(id) {
                self.open(&joined);
            }
        }
        if grown.all {
            for (id, target) in &self.targets {
                if !target.gone && self.source.has_moved(*id, target.read) {
                    self.grown.push(*id);
                }
            }
            for joined in self.roster.again() {
                self.open(&joined);
            }
        }
    }

    /// Keeps how far was shown, where a name was given.
    fn keep(&mut self) {
        if !self.keeper.keeps() {
            return;
        }
        let mut held = self.keeper.hold();
        for (id, target) in &self.targets {
            if target.gone {
                held.book.forget(*id);
            } else {
                held.book.advance(*id, target.shown, target.wrong);
            }
        }
        if self.roster.is_broad() {
            held.book.swept_at(self.began);
        }
        let targets = &self.targets;
        forget_closed(self.home, &mut held.book, |id| targets.contains_key(&id));
        if held.book.changed
            && let Err(e) = self.keeper.keep(held)
            && !std::mem::replace(&mut self.warned, true)
        {
            self.say(&format!("the position could not be kept, so this will be shown again: {e}"));
        }
    }

    fn say(&mut self, text: &str) {
        self.source.awake();
        self.printer.tell(one_line(text));
    }
}

/// The position before the first line that is not older than `since`.
fn first_since(dir: &Path, since: Stamp) -> io::Result<Cursor> {
    let mut before = NOTHING;
    timeline::read_back(dir, |item| match &item.line {
        Line::Event(event) if event.at < since => {
            before = item.after;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(before)
}
