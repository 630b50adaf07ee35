//! What a store should be, in memory and in the plainest way: lists of lines, queues as maps, relations as vectors.
//! Sessions are numbered in the order of their birth, a message is named by its recipient and its line there.

use std::collections::BTreeMap;

use minder_proto::error::Kind;
use minder_proto::event::{Author, Class, NoticeKind, Receipt};
use minder_proto::record::{TitleSource, WatchSource};
use minder_proto::state::{State, StateSet};

use super::moves::{Act, CLOSED, Move, Pick, QUEUE_MAX, SESSIONS_MAX};

/// A session's number; none is the person.
pub type Party = Option<usize>;
/// A mutation with names.
pub type Named = Act<usize, Option<u64>>;

/// The whole store.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub sessions: Vec<Session>,
    pub operator: Inbox,
    /// What keys gave.
    pub keys: BTreeMap<u8, u64>,
    /// Who took which message.
    pub leases: BTreeMap<(Party, u64), Lease>,
    /// What the last move did, with names, and what must come of it.
    pub last: Last,
}

/// The last move.
#[derive(Clone, Debug, Default)]
pub enum Last {
    #[default]
    Nothing,
    Group(Vec<(Named, Outcome)>),
    /// The message that is given, and how many wait behind it.
    Take {
        party: Party,
        connection: u64,
        key: Option<&'static str>,
        given: Result<(Option<u64>, usize), Kind>,
    },
    Ack {
        party: Party,
        message: u64,
        outcome: Outcome,
    },
    Hangup(u64),
    Restart,
    Crash,
    PowerCut(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub connection: u64,
    pub key: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub open: bool,
    pub label: String,
    pub title: String,
    pub title_from: TitleSource,
    pub parent: Option<usize>,
    pub state: State,
    pub state_by: Author,
    pub state_seq: u64,
    pub turn_end: bool,
    pub note: Option<&'static str>,
    pub pid: Option<i32>,
    /// Oldest first, and whether it lives.
    pub bindings: Vec<(&'static str, bool)>,
    pub watchers: Vec<Watcher>,
    pub inbox: Inbox,
}

#[allow(clippy::struct_field_names, reason = "the field is the relation's own word")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    pub watcher: usize,
    pub sources: Vec<WatchSource>,
    pub states: StateSet,
}

#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Line 1 first.
    pub lines: Vec<Line>,
    /// By line.
    pub queue: BTreeMap<u64, Waiting>,
}

#[derive(Clone, Debug)]
pub struct Waiting {
    pub receipt: Receipt,
    pub reason: Option<&'static str>,
    pub attempt: u32,
    pub channel: Option<&'static str>,
    pub message: Message,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub from: From,
    pub about: Option<About>,
    pub body: Body,
    pub class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    Minder,
    Party(Party),
}

#[derive(Clone, Debug, PartialEq)]
pub struct About {
    pub session: usize,
    pub seq: u64,
    pub notice: NoticeKind,
    pub from: Option<State>,
    pub to: Option<State>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Text(&'static str),
    /// The sender is told that these were not delivered.
    Undelivered {
        to: Party,
        title: String,
        why: &'static str,
        letters: Vec<(u64, Body)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Created { label: String, title: String, parent: Option<usize>, state: State },
    State { from: State, to: State, note: Option<&'static str>, by: Author, turn_end: bool },
    Message(Message),
    Receipt { message: u64, receipt: Receipt, reason: &'static str },
    Binding(&'static str),
    Record { what: &'static str, from: Value, to: Value },
    Closed { note: Option<&'static str>, by: Author },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Session(Option<usize>),
}

/// What a mutation answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Declared(Option<u64>),
    Set(usize),
    /// For each target whether it stood already.
    Watched(Vec<bool>),
    /// For each target whether there was a watch, and the notices that are dead with it.
    Cancelled(Vec<(bool, usize)>),
    Sent(u64),
    Closed {
        dead: usize,
        recalled: usize,
    },
    Done,
    Fault(Kind),
}

impl Reference {
    /// What the move makes of the store.
    pub fn go(mut self, next: &Move) -> Self {
        self.last = match next {
            Move::Group(acts) => {
                let before = self.clone();
                // Names are given before the group: what it creates is not known to the rest of it.
                let named: Vec<Named> = acts.iter().filter_map(|act| before.name(act)).collect();
                let done = named.into_iter().map(|act| {
                    let outcome = self.act(&act);
                    (act, outcome)
                });
                Last::Group(done.collect())
            }
            Move::Take { party, connection, key } => match self.party(*party) {
                Some(party) => {
                    let given = self.take(party, *connection, *key);
                    Last::Take { party, connection: *connection, key: *key, given }
                }
                None => Last::Nothing,
            },
            Move::Ack { party, message } => {
                let party = self.party(*party);
                match party.and_then(|party| Some((party, self.any_message(party, *message)?))) {
                    Some((party, message)) => {
                        let outcome = self.ack(party, message);
                        Last::Ack { party, message, outcome }
                    }
                    None => Last::Nothing,
                }
            }
            Move::Hangup { connection } => {
                self.hang_up(|lease| lease.connection == *connection);
                Last::Hangup(*connection)
            }
            Move::Restart | Move::Crash | Move::PowerCut(_) => {
                self.hang_up(|_| true);
                match next {
                    Move::PowerCut(seed) => Last::PowerCut(*seed),
                    Move::Crash => Last::Crash,
                    _ => Last::Restart,
                }
            }
        };
        self
    }

    /// The numbers of open sessions.
    pub fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.sessions.len()).filter(|n| self.sessions[*n].open)
    }

    fn is_open(&self, session: usize) -> bool {
        self.sessions[session].open
    }

    pub fn inbox(&self, party: Party) -> &Inbox {
        party.map_or(&self.operator, |session| &self.sessions[session].inbox)
    }

    fn inbox_mut(&mut self, party: Party) -> &mut Inbox {
        match party {
            Some(session) => &mut self.sessions[session].inbox,
            None => &mut self.operator,
        }
    }

    // Names.

    fn pick(&self, pick: Pick) -> Option<usize> {
        let closed = (0..self.sessions.len()).filter(|n| !self.is_open(*n));
        let among: Vec<usize> = if pick >= CLOSED { closed.collect() } else { self.open().collect() };
        let among = if among.is_empty() { self.open().collect() } else { among };
        (!among.is_empty()).then(|| among[usize::from(pick) % among.len()])
    }

    fn party(&self, pick: Option<Pick>) -> Option<Party> {
        pick.map_or(Some(None), |pick| self.pick(pick).map(Some))
    }

    fn waiting(&self, party: Party, pick: Pick) -> Option<u64> {
        let queue = &self.inbox(party).queue;
        queue.keys().nth(usize::from(pick) % queue.len().max(1)).copied()
    }

    /// Any message that a party ever had.
    fn any_message(&self, party: Party, pick: Pick) -> Option<u64> {
        let lines = self.inbox(party).lines.iter().zip(1..);
        let all: Vec<u64> =
            lines.filter(|(l, _)| matches!(l, Line::Message(_))).map(|(_, seq)| seq).collect();
        (!all.is_empty()).then(|| all[usize::from(pick) % all.len()])
    }

    fn name(&self, act: &Act<Pick, Pick>) -> Option<Named> {
        let optional = |pick: &Option<Pick>| pick.map_or(Some(None), |pick| self.pick(pick).map(Some));
        let several = |picks: &[Pick]| picks.iter().map(|pick| self.pick(*pick)).collect::<Option<Vec<_>>>();
        Some(match act {
            Act::Create { label, title, parent } => {
                if self.open().count() >= SESSIONS_MAX {
                    return None;
                }
                let parent = parent.and_then(|pick| self.pick(pick));
                Act::Create { label: *label, title: *title, parent }
            }
            Act::Declare { session, to, note, by, turn_end } => Act::Declare {
                session: self.pick(*session)?,
                to: *to,
                note: *note,
                by: *by,
                turn_end: *turn_end,
            },
            Act::Set { session, label, title, parent, conversation } => Act::Set {
                session: self.pick(*session)?,
                label: *label,
                title: *title,
                parent: optional(parent)?,
                conversation: *conversation,
            },
            Act::Process { session, pid } => Act::Process { session: self.pick(*session)?, pid: *pid },
            Act::Watch { watcher, targets, states } => {
                Act::Watch { watcher: self.pick(*watcher)?, targets: several(targets)?, states: *states }
            }
            Act::Cancel { watcher, targets } => {
                Act::Cancel { watcher: self.pick(*watcher)?, targets: several(targets)? }
            }
            Act::Send { from, to, body, class, key } => {
                Act::Send { from: optional(from)?, to: optional(to)?, body, class: *class, key: *key }
            }
            Act::Hold { party, message } => {
                let party = optional(party)?;
                Act::Hold { party, message: self.waiting(party, *message) }
            }
            Act::Bury { party, message } => {
                let party = optional(party)?;
                Act::Bury { party, message: self.waiting(party, *message) }
            }
            Act::Close { session, note, by, recall } => {
                Act::Close { session: self.pick(*session)?, note: *note, by: *by, recall: *recall }
            }
            Act::Refused(act) => Act::Refused(Box::new(self.name(act)?)),
        })
    }

    // Mutations.

    /// Does it wholly or not at all.
    fn act(&mut self, act: &Named) -> Outcome {
        let before = self.clone();
        let outcome = match self.try_act(act) {
            Ok(outcome) => outcome,
            Err(kind) => Outcome::Fault(kind),
        };
        if matches!(outcome, Outcome::Fault(_)) {
            *self = before;
        }
        outcome
    }

    fn try_act(&mut self, act: &Named) -> Result<Outcome, Kind> {
        match act {
            Act::Create { label, title, parent } => self.create(*label, *title, *parent),
            Act::Declare { session, to, note, by, turn_end } => {
                self.declare(*session, *to, *note, *by, *turn_end).map(Outcome::Declared)
            }
            Act::Set { session, label, title, parent, conversation } => {
                self.set(*session, *label, *title, *parent, *conversation).map(Outcome::Set)
            }
            Act::Process { session, pid } => {
                self.expect_open(*session)?;
                self.sessions[*session].pid = *pid;
                Ok(Outcome::Done)
            }
            Act::Watch { watcher, targets, states } => self.watch(*watcher, targets, *states),
            Act::Cancel { watcher, targets } => self.cancel(*watcher, targets),
            Act::Send { from, to, body, class, key } => {
                let message =
                    Message { from: From::Party(*from), about: None, body: Body::Text(body), class: *class };
                let seq = self.post(*to, message)?;
                if let Some(key) = key {
                    self.keys.insert(*key, seq);
                }
                Ok(Outcome::Sent(seq))
            }
            Act::Hold { party, message } => {
                self.expect_party(*party)?;
                if let Some(waiting) = message.and_then(|m| self.inbox_mut(*party).queue.get_mut(&m))
                    && waiting.receipt != Receipt::Handed
                {
                    waiting.receipt = Receipt::Held;
                    waiting.reason = Some("busy");
                    waiting.channel = Some("hook");
                }
                Ok(Outcome::Done)
            }
            Act::Bury { party, message } => {
                self.expect_party(*party)?;
                if let Some(waiting) = message.and_then(|m| self.inbox(*party).queue.get(&m)) {
                    let dead = vec![(message.expect("it was found"), waiting.message.clone())];
                    self.settle(*party, dead[0].0, Receipt::Dead, "expired");
                    self.tell_senders(*party, &dead, "its time was over");
                }
                Ok(Outcome::Done)
            }
            Act::Close { session, note, by, recall } => self.close(*session, *note, *by, *recall),
            Act::Refused(act) => self.try_act(act).and(Err(Kind::Refused)),
        }
    }

    fn expect_open(&self, session: usize) -> Result<(), Kind> {
        if self.is_open(session) { Ok(()) } else { Err(Kind::Gone) }
    }

    fn expect_party(&self, party: Party) -> Result<(), Kind> {
        party.map_or(Ok(()), |session| self.expect_open(session))
    }

    fn labelled(&self, label: &str) -> Option<usize> {
        self.open().find(|n| self.sessions[*n].label == label)
    }

    fn create(
        &mut self,
        label: Option<&'static str>,
        title: Option<&'static str>,
        parent: Option<usize>,
    ) -> Result<Outcome, Kind> {
        if label.is_some_and(|label| self.labelled(label).is_some()) {
            return Err(Kind::Conflict);
        }
        if let Some(parent) = parent {
            self.expect_open(parent)?;
        }
        let free = || {
            let numbered = (2..).map(|n| format!("w-{n}"));
            ["w".to_owned()].into_iter().chain(numbered).find(|l| self.labelled(l).is_none())
        };
        let title_from = match (title, label) {
            (Some(_), _) => TitleSource::Given,
            (None, Some(_)) => TitleSource::Label,
            (None, None) => TitleSource::None,
        };
        let label = label.map_or_else(|| free().expect("numbers do not end"), str::to_owned);
        let title = title.map_or_else(|| label.clone(), str::to_owned);
        let watcher = parent.map(|watcher| Watcher {
            watcher,
            sources: vec![WatchSource::Parent],
            states: StateSet::WATCH,
        });
        let created =
            Line::Created { label: label.clone(), title: title.clone(), parent, state: State::Idle };
        self.sessions.push(Session {
            open: true,
            label,
            title,
            title_from,
            parent,
            state: State::Idle,
            state_by: Author::Minder,
            state_seq: 1,
            turn_end: false,
            note: None,
            pid: None,
            bindings: Vec::new(),
            watchers: watcher.into_iter().collect(),
            inbox: Inbox { lines: vec![created], queue: BTreeMap::new() },
        });
        Ok(Outcome::Created)
    }

    fn declare(
        &mut self,
        session: usize,
        to: State,
        note: Option<&'static str>,
        by: Author,
        turn_end: bool,
    ) -> Result<Option<u64>, Kind> {
        self.expect_open(session)?;
        let s = &mut self.sessions[session];
        if s.state == to && s.note == note && (s.turn_end || !turn_end) {
            if by == Author::Agent && s.turn_end {
                (s.turn_end, s.state_by) = (false, by);
            }
            return Ok(None);
        }
        let from = s.state;
        (s.state, s.note, s.state_by, s.turn_end) = (to, note, by, turn_end);
        s.inbox.lines.push(Line::State { from, to, note, by, turn_end });
        s.state_seq = s.inbox.lines.len() as u64;
        let (seq, watchers) = (s.state_seq, s.watchers.clone());
        let (here, gone): (Vec<_>, Vec<_>) = watchers.into_iter().partition(|w| self.is_open(w.watcher));
        for watcher in &here {
            if watcher.states.contains(to, turn_end) {
                let about = About { session, seq, notice: NoticeKind::State, from: Some(from), to: Some(to) };
                self.notify(watcher.watcher, about, Class::Now);
            }
        }
        if !gone.is_empty() {
            self.sessions[session].watchers = here;
        }
        Ok(Some(seq))
    }

    fn set(
        &mut self,
        session: usize,
        label: Option<&'static str>,
        title: Option<&'static str>,
        parent: Option<usize>,
        conversation: Option<&'static str>,
    ) -> Result<usize, Kind> {
        self.expect_open(session)?;
        let old = self.sessions[session].clone();
        let mut lines = 0;
        let mut record = |this: &mut Self, what, from, to| {
            lines += 1;
            this.sessions[session].inbox.lines.push(Line::Record { what, from, to });
        };
        if let Some(label) = label.filter(|l| *l != old.label) {
            if self.labelled(label).is_some() {
                return Err(Kind::Conflict);
            }
            let s = &mut self.sessions[session];
            label.clone_into(&mut s.label);
            if s.title_from != TitleSource::Given {
                (s.title, s.title_from) = (label.to_owned(), TitleSource::Label);
            }
            record(self, "label", Value::Text(old.label.clone()), Value::Text(label.to_owned()));
        }
        if let Some(title) = title.filter(|t| *t != old.title) {
            let s = &mut self.sessions[session];
            (s.title, s.title_from) = (title.to_owned(), TitleSource::Given);
            record(self, "title", Value::Text(old.title.clone()), Value::Text(title.to_owned()));
        }
        if let Some(parent) = parent.filter(|p| Some(*p) != old.parent) {
            self.set_parent(session, parent, old.parent)?;
            record(self, "parent", Value::Session(old.parent), Value::Session(Some(parent)));
        }
        if let Some(conversation) = conversation {
            lines += 1;
            match self.bound(conversation) {
                Some(other) if other != session => return Err(Kind::Conflict),
                Some(_) => {}
                None => {
                    let s = &mut self.sessions[session];
                    s.bindings.iter_mut().for_each(|b| b.1 = false);
                    s.bindings.push((conversation, true));
                    s.inbox.lines.push(Line::Binding(conversation));
                }
            }
        }
        Ok(lines)
    }

    /// The open session that a conversation is bound to.
    pub fn bound(&self, conversation: &str) -> Option<usize> {
        self.open().find(|n| self.sessions[*n].bindings.contains(&(conversation, true)))
    }

    fn set_parent(&mut self, session: usize, parent: usize, old: Option<usize>) -> Result<(), Kind> {
        let mut above = Some(parent);
        while let Some(next) = above {
            if next == session {
                return Err(Kind::Refused);
            }
            self.expect_open(next)?;
            above = self.sessions[next].parent.filter(|p| self.is_open(*p));
        }
        let s = &mut self.sessions[session];
        s.parent = Some(parent);
        for watcher in s.watchers.iter_mut().filter(|w| Some(w.watcher) == old) {
            watcher.sources.retain(|source| *source != WatchSource::Parent);
        }
        s.watchers.retain(|w| !w.sources.is_empty());
        match s.watchers.iter_mut().find(|w| w.watcher == parent) {
            Some(w) if !w.sources.contains(&WatchSource::Parent) => w.sources.push(WatchSource::Parent),
            Some(_) => {}
            None => s.watchers.push(Watcher {
                watcher: parent,
                sources: vec![WatchSource::Parent],
                states: StateSet::WATCH,
            }),
        }
        Ok(())
    }

    fn watch(
        &mut self,
        watcher: usize,
        targets: &[usize],
        states: Option<StateSet>,
    ) -> Result<Outcome, Kind> {
        self.expect_open(watcher)?;
        let mut stood = Vec::new();
        for target in targets {
            if *target == watcher {
                if targets.len() == 1 {
                    return Err(Kind::Refused);
                }
                continue;
            }
            self.expect_open(*target)?;
            let s = &mut self.sessions[*target];
            let already = match s.watchers.iter_mut().find(|w| w.watcher == watcher) {
                Some(w) => {
                    let before = w.clone();
                    if !w.sources.contains(&WatchSource::Manual) {
                        w.sources.push(WatchSource::Manual);
                    }
                    w.states = states.unwrap_or(w.states);
                    *w == before
                }
                None => {
                    let states = states.unwrap_or(StateSet::WATCH);
                    s.watchers.push(Watcher { watcher, sources: vec![WatchSource::Manual], states });
                    false
                }
            };
            stood.push(already);
            if already {
                continue;
            }
            let asked = s.watchers.iter().find(|w| w.watcher == watcher).expect("it watches now").states;
            let news = s.state.is_actionable() || s.turn_end;
            let now = news && asked.contains(s.state, s.turn_end);
            let class = if now { Class::Now } else { Class::WithNext };
            let (seq, to) = (s.state_seq, Some(s.state));
            let about = About { session: *target, seq, notice: NoticeKind::Snapshot, from: None, to };
            self.notify(watcher, about, class);
        }
        Ok(Outcome::Watched(stood))
    }

    fn cancel(&mut self, watcher: usize, targets: &[usize]) -> Result<Outcome, Kind> {
        self.expect_open(watcher)?;
        let mut rows = Vec::new();
        for target in targets {
            self.expect_open(*target)?;
            let watchers = &mut self.sessions[*target].watchers;
            let before = watchers.len();
            watchers.retain(|w| w.watcher != watcher);
            let was = watchers.len() < before;
            let about = |w: &Waiting| {
                let watched = w.message.about.as_ref().filter(|a| a.notice.is_watch());
                watched.is_some_and(|a| a.session == *target)
            };
            let queue = &self.sessions[watcher].inbox.queue;
            let dead: Vec<u64> = queue.iter().filter(|(_, w)| about(w)).map(|(seq, _)| *seq).collect();
            for seq in &dead {
                self.settle(Some(watcher), *seq, Receipt::Dead, "cancelled");
            }
            rows.push((was, dead.len()));
        }
        Ok(Outcome::Cancelled(rows))
    }

    fn close(
        &mut self,
        session: usize,
        note: Option<&'static str>,
        by: Author,
        recall: bool,
    ) -> Result<Outcome, Kind> {
        self.expect_open(session)?;
        let queue = &self.sessions[session].inbox.queue;
        let dead: Vec<(u64, Message)> = queue.iter().map(|(seq, w)| (*seq, w.message.clone())).collect();
        for (seq, _) in &dead {
            self.settle(Some(session), *seq, Receipt::Dead, "closed");
        }
        self.tell_senders(Some(session), &dead, "it was closed");
        let mut recalled = 0;
        if recall {
            let parties: Vec<Party> = self.open().map(Some).chain([None]).collect();
            for party in parties {
                let own = |w: &Waiting| {
                    w.receipt != Receipt::Handed && w.message.from == From::Party(Some(session))
                };
                let queue = &self.inbox(party).queue;
                let own: Vec<u64> = queue.iter().filter(|(_, w)| own(w)).map(|(seq, _)| *seq).collect();
                recalled += own.len();
                own.iter().for_each(|seq| self.settle(party, *seq, Receipt::Dead, "recalled"));
            }
        }
        let s = &mut self.sessions[session];
        s.inbox.lines.push(Line::Closed { note, by });
        s.open = false;
        let (seq, from, watchers) = (s.inbox.lines.len() as u64, Some(s.state), s.watchers.clone());
        for watcher in watchers.iter().map(|w| w.watcher).filter(|w| *w != session) {
            if self.is_open(watcher) {
                let about = About { session, seq, notice: NoticeKind::Closed, from, to: None };
                self.notify(watcher, about, Class::Now);
            }
        }
        Ok(Outcome::Closed { dead: dead.len(), recalled })
    }

    // Messages.

    fn post(&mut self, to: Party, message: Message) -> Result<u64, Kind> {
        self.expect_party(to)?;
        let inbox = self.inbox_mut(to);
        if message.from != From::Minder && inbox.queue.len() >= QUEUE_MAX {
            return Err(Kind::Full);
        }
        inbox.lines.push(Line::Message(message.clone()));
        let seq = inbox.lines.len() as u64;
        let waiting = Waiting { receipt: Receipt::Queued, reason: None, attempt: 0, channel: None, message };
        inbox.queue.insert(seq, waiting);
        Ok(seq)
    }

    fn notify(&mut self, to: usize, about: About, class: Class) {
        let message = Message { from: From::Minder, about: Some(about), body: Body::Text(""), class };
        self.post(Some(to), message).expect("whoever is told is open, and notices are not refused");
    }

    fn settle(&mut self, party: Party, message: u64, receipt: Receipt, reason: &'static str) {
        let inbox = self.inbox_mut(party);
        inbox.queue.remove(&message).expect("what waits can be settled");
        inbox.lines.push(Line::Receipt { message, receipt, reason });
        self.leases.remove(&(party, message));
    }

    fn tell_senders(&mut self, to: Party, messages: &[(u64, Message)], why: &'static str) {
        let mut by_sender: BTreeMap<usize, Vec<(u64, Body)>> = BTreeMap::new();
        for (seq, message) in messages {
            if let From::Party(Some(sender)) = message.from {
                by_sender.entry(sender).or_default().push((*seq, message.body.clone()));
            }
        }
        for (sender, letters) in by_sender {
            if !self.is_open(sender) || Some(sender) == to {
                continue;
            }
            let title = to.map_or_else(|| "the person".to_owned(), |s| self.sessions[s].title.clone());
            let about = to.map(|session| About {
                session,
                seq: 0,
                notice: NoticeKind::DeadLetter,
                from: None,
                to: None,
            });
            let body = Body::Undelivered { to, title, why, letters };
            let message = Message { from: From::Minder, about, body, class: Class::Now };
            self.post(Some(sender), message).expect("it is open, and minder is not refused");
        }
    }

    // The mailbox.

    fn take(
        &mut self,
        party: Party,
        connection: u64,
        key: Option<&'static str>,
    ) -> Result<(Option<u64>, usize), Kind> {
        self.expect_party(party)?;
        let mut own = self.leases.iter().filter(|((p, _), _)| *p == party);
        let same = own.find(|(_, lease)| key.is_some() && lease.key == key).map(|((_, seq), _)| *seq);
        let queue = &mut self.inbox_mut(party).queue;
        let free: Vec<u64> =
            queue.iter().filter(|(_, w)| w.receipt != Receipt::Handed).map(|(seq, _)| *seq).collect();
        let Some(seq) = same.or_else(|| free.first().copied()) else { return Ok((None, 0)) };
        let waiting = queue.get_mut(&seq).expect("a lease is of a message that waits");
        if waiting.receipt != Receipt::Handed {
            waiting.receipt = Receipt::Handed;
            waiting.reason = None;
            waiting.attempt += 1;
            waiting.channel = Some("mailbox");
        }
        self.leases.insert((party, seq), Lease { connection, key });
        Ok((Some(seq), free.iter().filter(|other| **other != seq).count()))
    }

    fn ack(&mut self, party: Party, message: u64) -> Outcome {
        if let Err(kind) = self.expect_party(party) {
            return Outcome::Fault(kind);
        }
        if self.inbox(party).queue.contains_key(&message) {
            self.settle(party, message, Receipt::Seen, "ack");
        }
        Outcome::Done
    }

    fn hang_up(&mut self, ends: impl Fn(&Lease) -> bool) {
        let ended: Vec<(Party, u64)> =
            self.leases.iter().filter(|(_, lease)| ends(lease)).map(|(at, _)| *at).collect();
        for (party, seq) in ended {
            self.leases.remove(&(party, seq));
            if let Some(waiting) = self.inbox_mut(party).queue.get_mut(&seq) {
                waiting.receipt = Receipt::Queued;
                waiting.reason = None;
            }
        }
    }
}
