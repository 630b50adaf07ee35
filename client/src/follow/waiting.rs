//! `session wait`: the files, the lock and the clock around [`super::wait`].

mod reading;
mod telling;

use std::time::{Duration, Instant};

use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::Cursor;
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::state::StateSet;

use super::bell::{Bell, Woke};
use super::book::Book;
use super::filter::Filter;
use super::inbox::Inbox;
use super::keeper::Keeper;
use super::news::{Aside, Why};
use super::opening::Opening;
use super::place::Place;
use super::roster::{Joined, Roster};
use super::source::Source;
use super::wait::{End, Rules, Step, Wait};
use super::{Follower, Only, card, hint, lean, render};
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
                        } else if self.printer.look().terminal {
                            let long = long(self.options.timeout);
                            self.say(&Aside::Plain(format!("waiting up to {long}, Ctrl-C ends it")));
                        }
                        lean::give_back();
                    }
                    let Some(bell) = &mut self.source.bell else { continue };
                    match bell.sleep(until, None).map_err(|e| CommandError::io("cannot wait", &e))? {
                        Woke::Signal(signal) => {
                            self.keep();
                            return Ok(signal.exit());
                        }
                        woke => self.look(woke),
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

    /// Looks at what grew.
    fn look(&mut self, woke: Woke) {
        let grown = self.source.grown(woke);
        for id in grown.sessions {
            if Some(id) == self.me {
                self.look_at_inbox();
            }
            self.look_at(id);
        }
        if grown.all {
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
        let persons = self.me.is_none() && (woke == Woke::Rung || self.source.is_blind());
        if grown.all || grown.operator || persons {
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

    fn end(&mut self, end: End) -> Result<u8, CommandError> {
        self.source.awake();
        match end {
            End::Told { alarm } => Ok(if alarm { exit::FAILED } else { exit::OK }),
            End::Deadline => {
                self.keep();
                let timeout = self.options.timeout;
                Err(CommandError::no(if timeout.is_zero() {
                    "nothing new".to_owned()
                } else {
                    format!("nothing in {}", long(timeout))
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

/// How long a wait is.
fn long(timeout: Duration) -> String {
    match timeout.as_millis() {
        millis @ 0..1_000 => format!("{millis}ms"),
        _ => short_age(timeout),
    }
}
