//! `session wait`: the files, the lock and the clock around [`super::wait`].

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::event::{Body, Line};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::Cursor;
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::state::StateSet;
use minder_proto::timeline::{self, Gap};

use super::bell::{Bell, Woke};
use super::book::Book;
use super::filter::Filter;
use super::inbox::Inbox;
use super::keeper::Keeper;
use super::news::{Aside, News, Stand, Why};
use super::opening::{Opening, forget_closed, lost_line};
use super::place::Place;
use super::roster::{Joined, Roster};
use super::source::{Located, Source};
use super::standing;
use super::start::Start;
use super::wait::{End, Rules, Step, Tell, Wait};
use super::{Follower, Only, card, hint, render};
use crate::fault::CommandError;
use crate::printer::Printer;

/// Sessions that stand in the set already and are named at the start; of more only the number is said.
const NAMED_STANDING: usize = 10;

/// What to wait for.
#[derive(Clone, Debug)]
pub struct WaitOptions {
    /// Selectors; none: every session but the caller, and the caller's inbox.
    pub selectors: Vec<String>,
    /// The states waited for, if they were asked for.
    pub states: Option<StateSet>,
    /// How long; zero: look once.
    pub timeout: Duration,
    /// Sessions or messages alone.
    pub only: Option<Only>,
    /// Return a session that stands in the set already.
    pub or_already: bool,
    /// Start after this line.
    pub since: Option<u64>,
    /// Return when every session has had its event.
    pub each: bool,
    /// Go on without those that are gone.
    pub keep_going: bool,
    /// The name of the positions, for a caller without a record.
    pub name: Option<String>,
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self {
            selectors: Vec::new(),
            states: None,
            timeout: Duration::from_secs(20 * 60),
            only: None,
            or_already: false,
            since: None,
            each: false,
            keep_going: false,
            name: None,
        }
    }
}

/// Waits, and returns the exit code.
pub fn wait(follower: &Follower, options: &WaitOptions, printer: &mut Printer) -> Result<u8, CommandError> {
    let began = Stamp::now();
    let deadline = Instant::now().checked_add(options.timeout);
    if options.each && options.only == Some(Only::Inbox) {
        return Err(CommandError::usage("--each is for sessions, and --only inbox for messages"));
    }
    let me = follower.identity.session();
    let mut roster = Roster::new(follower.home, me, &options.selectors)?;
    let own = match &follower.identity {
        Identity::Session { id } => Some(follower.home.session(*id)),
        Identity::Operator => Some(follower.home.operator()),
        Identity::Unregistered { .. } => None,
    };
    // Mail does not end a wait that is for somebody.
    let inbox = match options.only {
        Some(Only::Inbox) => true,
        Some(Only::Sessions) => false,
        None => options.selectors.is_empty() && !options.each,
    };
    if options.only == Some(Only::Inbox) && own.is_none() {
        return Err(crate::context::unregistered());
    }
    let inbox = own.filter(|_| inbox).map(Inbox::new);
    let sessions = options.only != Some(Only::Inbox);
    let rules = Rules {
        filter: options.states.map_or(Filter::DEFAULT, Filter::asked),
        each: options.each,
        keep_going: options.keep_going,
        broad: sessions && roster.is_broad(),
        inbox: inbox.is_some(),
        deadline,
    };
    let bell = (!options.timeout.is_zero()).then(|| {
        // The feed names no line of the person's own log.
        let own = inbox.as_ref().filter(|_| me.is_none()).map(|i| i.dir().to_owned());
        Bell::new(&follower.home.feed(), own, follower.backstop)
    });
    let source = Source::new(follower.home, bell);
    let keeper = Keeper::new(Some(Place::of(follower.home, &follower.identity, options.name.as_deref())));
    let book = keeper.look();
    let read_before: Vec<SessionId> = book.follows.keys().copied().collect();
    let joined = roster.first(&read_before)?;
    let mut waiting = Waiting {
        home: follower.home,
        me,
        harness: follower.harness.as_deref(),
        rules,
        options,
        wait: Wait::new(rules),
        source,
        roster,
        inbox,
        keeper,
        book,
        opening: Opening::new(follower.home, me, options.since),
        began,
        kept: false,
        printer,
    };
    if sessions {
        waiting.first(&joined);
    }
    waiting.look_at_inbox();
    waiting.run()
}

struct Waiting<'a> {
    home: &'a Home,
    me: Option<SessionId>,
    harness: Option<&'a str>,
    rules: Rules,
    options: &'a WaitOptions,
    wait: Wait,
    source: Source,
    roster: Roster,
    inbox: Option<Inbox>,
    keeper: Keeper,
    /// The positions as they were found at the start.
    book: Book,
    opening: Opening<'a>,
    began: Stamp,
    /// The places of new sessions were kept.
    kept: bool,
    printer: &'a mut Printer,
}

impl Waiting<'_> {
    fn run(&mut self) -> Result<u8, CommandError> {
        loop {
            match self.wait.next(Instant::now()) {
                Step::Tell(tell) => self.tell(&tell)?,
                Step::End(end) => return self.end(end),
                Step::Sleep(until) => {
                    if self.source.bell.is_none() {
                        return self.end(End::Deadline);
                    }
                    if !self.kept {
                        // What happens from here on is found by the next wait, however this one ends.
                        self.keep();
                        if let Some(line) = hint::background(self.harness, &self.options.selectors) {
                            self.say(&Aside::Plain(line));
                        }
                    }
                    let Some(bell) = &mut self.source.bell else { continue };
                    match bell.sleep(until, None).map_err(|e| CommandError::io("cannot wait", &e))? {
                        Woke::Signal(signal) => {
                            self.keep();
                            return Ok(signal.exit());
                        }
                        Woke::Rung { lost } => self.look(true, lost),
                        Woke::Time | Woke::Unread => self.look(false, false),
                    }
                }
            }
        }
    }

    /// The sessions that are there at the start.
    fn first(&mut self, joined: &[Joined]) {
        let mut standing = 0;
        for joined in joined {
            let Some(stand) = self.open(joined) else { continue };
            let id = joined.id;
            if !self.wait.reads(id) || !self.rules.filter.holds(stand.state, stand.turn_end) {
                continue;
            }
            if !self.options.or_already && standing >= NAMED_STANDING {
                standing += 1;
                continue;
            }
            let untold = self.untold(id, Why::Standing);
            let told = untold.is_none();
            if let Some(news) = untold.filter(|_| self.options.or_already) {
                self.wait.offer(news);
                continue;
            }
            standing += 1;
            if standing <= NAMED_STANDING {
                self.say(&Aside::Already { session: id, stand, told });
            }
        }
        if standing > NAMED_STANDING {
            let more = standing - NAMED_STANDING;
            self.say(&Aside::Plain(format!("{more} more stand in a state that is waited for: minder ls")));
        }
        if joined.is_empty() && !self.options.selectors.is_empty() {
            self.say(&Aside::Plain(format!("no session matches {} yet", self.options.selectors.join(" "))));
        }
    }

    /// Starts to follow a session: finds its place and reads what came since. Returns how it stands.
    fn open(&mut self, joined: &Joined) -> Option<Stand> {
        let id = joined.id;
        let nothing = Cursor { seq: 0, offset: 0, segment: 0 };
        let Some(located) = self.source.locate(id) else {
            self.wait.join(id, joined.named, nothing);
            self.gone(id, None);
            return None;
        };
        let end = match standing::end(&located.dir) {
            Ok(end) => end,
            Err(e) => {
                if e.kind() != io::ErrorKind::NotFound {
                    self.say(&Aside::Strange { session: id, what: format!("its timeline ({e})") });
                }
                self.wait.join(id, joined.named, nothing);
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
    fn untold(&mut self, id: SessionId, why: Why) -> Option<News> {
        let located = self.source.locate(id)?;
        let news = standing::standing(&located.dir, id, self.rules.filter, why).ok().flatten()?;
        let told = self.book.mark(id).is_some_and(|m| m.was_told(news.edge));
        (!told).then_some(news)
    }

    /// Reads on in a session, up to its next event.
    fn read(&mut self, id: SessionId) {
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

    fn read_at(&mut self, id: SessionId, located: &Located) -> io::Result<Option<Gap>> {
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
    fn gap(&mut self, id: SessionId, located: &Located, lost: Option<u64>, resumed: u64) {
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
    fn gone(&mut self, id: SessionId, aside: Option<Aside>) {
        let (mut at, mut state, mut note) = match aside {
            Some(Aside::Closed { at, state, note, .. }) => (at, state, note),
            _ => (None, None, None),
        };
        if state.is_none() || at.is_none() {
            let stand = self.source.locate(id).and_then(|l| standing::end(&l.dir).ok()).and_then(|e| e.stand);
            let tombstone = minder_proto::snapshot::tombstone(self.home, id);
            state = state.or(stand.as_ref().map(|s| s.state)).or(tombstone.as_ref().map(|t| t.state));
            at = at.or(tombstone.as_ref().map(|t| t.at));
            note = note.or(tombstone.and_then(|t| t.note)).or(stand.and_then(|s| s.note));
        }
        if let Some(aside) = self.wait.gone(id, Aside::Closed { session: id, at, state, note }) {
            self.say(&aside);
        }
    }

    /// Looks at what grew; at everything if the kernel dropped notices.
    fn look(&mut self, rung: bool, lost: bool) {
        let grown = self.source.grown();
        for id in grown.sessions {
            if Some(id) == self.me {
                self.look_at_inbox();
            }
            self.look_at(id);
        }
        if grown.all || lost {
            let ids: Vec<(SessionId, Cursor)> = self.wait.targets().map(|(id, t)| (id, t.cursor)).collect();
            for (id, cursor) in ids {
                if self.wait.reads(id) && self.source.has_moved(id, cursor) {
                    self.read(id);
                }
            }
            if self.rules.broad {
                for joined in self.roster.again() {
                    self.open(&joined);
                }
            }
        }
        // What rang may have been the person's own folder.
        let persons = self.me.is_none() && (rung || self.source.is_blind());
        if grown.all || lost || grown.operator || persons {
            self.look_at_inbox();
        }
    }

    fn look_at(&mut self, id: SessionId) {
        if self.wait.target(id).is_some() {
            self.read(id);
        } else if self.rules.broad
            && let Some(joined) = self.roster.consider(id)
        {
            self.open(&joined);
        }
    }

    fn look_at_inbox(&mut self) {
        let told = self.book.told;
        if let Some(inbox) = &mut self.inbox {
            match inbox.due(told) {
                Ok(letter) => self.wait.letter(letter),
                Err(e) => {
                    let text = format!("{}: {e}", inbox.dir().display());
                    self.say(&Aside::Plain(text));
                }
            }
        }
    }

    /// Tells events: takes the lock, reads again, prints and flushes, then writes. Killed in between, they are told
    /// again; told by another wait of this caller meanwhile, they are not.
    fn tell(&mut self, tell: &[Tell]) -> Result<(), CommandError> {
        self.source.awake();
        let mut held = self.keeper.hold();
        let again = self.options.since.is_some();
        let (mut told, mut refused) = (Vec::new(), Vec::new());
        for tell in tell {
            let fresh = match tell {
                Tell::News(news) => held.book.claim(news.session, news.edge) || again,
                Tell::Letter(letter) => held.book.claim_letter(letter.seq),
            };
            if !fresh {
                let session = match tell {
                    Tell::News(news) => Some(news.session),
                    Tell::Letter(_) => None,
                };
                self.wait.refused(tell);
                refused.extend(session);
                self.say(&Aside::Elsewhere { session });
                continue;
            }
            let (now, home) = (Stamp::now(), self.home);
            let names = |id| card::names(home, id);
            match (tell, self.printer.is_json()) {
                (Tell::News(news), true) => self.printer.object(&render::news_object(news, &names, now)),
                (Tell::News(news), false) => self.printer.line(render::news_lines(news, &names, now)),
                (Tell::Letter(letter), true) => {
                    self.printer.object(&render::letter_object(letter, &names, now))
                }
                (Tell::Letter(letter), false) => self.printer.line(render::letter_line(letter, &names)),
            }
            .map_err(untold)?;
            told.push(tell);
        }
        self.book.told = held.book.told;
        let told_none = told.is_empty();
        if !told.is_empty() {
            self.printer.flush().map_err(untold)?;
            told.into_iter().for_each(|t| self.wait.told(t));
            self.write(held);
        }
        if told_none || self.options.each {
            // What another wait told lies before what is there now.
            refused.into_iter().for_each(|id| self.read(id));
            self.look_at_inbox();
        }
        Ok(())
    }

    /// Keeps how far was read.
    fn keep(&mut self) {
        let held = self.keeper.hold();
        self.write(held);
    }

    fn write(&mut self, mut held: super::keeper::Held) {
        self.kept = true;
        for (id, target) in self.wait.targets() {
            held.book.advance(id, target.cursor, target.wrong);
        }
        for id in self.wait.heard_gone() {
            held.book.forget(id);
        }
        if self.rules.broad {
            held.book.swept_at(self.began);
        }
        let wait = &self.wait;
        forget_closed(self.home, &mut held.book, |id| wait.target(id).is_some());
        if held.book.changed
            && let Err(e) = self.keeper.keep(held)
        {
            self.say(&Aside::Plain(format!(
                "the position could not be kept, so this will be told again: {e}"
            )));
        }
    }

    fn end(&mut self, end: End) -> Result<u8, CommandError> {
        self.source.awake();
        match end {
            End::Told { alarm } => Ok(if alarm { exit::FAILED } else { exit::OK }),
            End::Deadline => {
                self.keep();
                let timeout = self.options.timeout;
                Err(CommandError::no(match timeout.as_millis() {
                    0 => "nothing new".to_owned(),
                    millis @ 1..1_000 => format!("nothing in {millis}ms"),
                    _ => format!("nothing in {}", short_age(timeout)),
                }))
            }
            End::Gone(gone) => {
                self.keep();
                let (now, home) = (Stamp::now(), self.home);
                let names = |id| card::names(home, id);
                let lines: Vec<String> = gone.iter().map(|a| render::aside_line(a, &names, now)).collect();
                let error = CommandError::new("gone", exit::GONE, lines.join("; "));
                Err(match gone.as_slice() {
                    [aside @ Aside::Closed { session, .. }] => {
                        CommandError { session: Some(*session), ..error }
                            .detail(&render::aside_object(aside, &names, now))
                    }
                    _ => error,
                })
            }
        }
    }

    fn who(&self, id: SessionId) -> String {
        render::who(id, &|id| card::names(self.home, id))
    }

    fn say(&mut self, aside: &Aside) {
        let (now, home) = (Stamp::now(), self.home);
        let names = |id| card::names(home, id);
        self.source.awake();
        if self.printer.is_json() {
            // What cannot be shown beside is no failure of the wait.
            let _ = self.printer.tell_object(&render::aside_object(aside, &names, now));
        } else {
            self.printer.tell(render::aside_line(aside, &names, now));
        }
    }
}

/// An event that could not be printed was not told, also where nobody reads: the exit is no event's.
fn untold(error: CommandError) -> CommandError {
    CommandError { exit: exit::IO, ..error }
}
