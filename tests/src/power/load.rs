//! The load: a few sessions, each with a caller of its own, that watch each other, declare, write to each other, take
//! and acknowledge their mail, and open and close further sessions, until the daemon goes away or enough was answered.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minder_proto::caller;
use minder_proto::error::Kind;
use minder_proto::record::Channel;
use minder_proto::rpc::{self, Call};
use minder_proto::state::State;

use super::call::{Caller, Reply};
use super::dice::Dice;
use super::history::{Deed, End, Entry, History};

/// Sessions that speak at once.
pub const SESSIONS: usize = 5;

/// The label of one of them.
pub fn label(number: usize) -> String {
    format!("s{number}")
}

/// Makes the sessions and their watches: each watches the two after it.
pub fn prepare(home: &Path) -> History {
    let over = AtomicBool::new(false);
    let mut hand = Hand::new(home, 0, 0, &over);
    for number in 0..SESSIONS {
        hand.create(&label(number));
    }
    for number in 0..SESSIONS {
        for next in [1, 2] {
            hand.watch(&label(number), &label((number + next) % SESSIONS));
        }
    }
    History { callers: vec![hand.entries] }
}

/// Lets all of them speak until the daemon goes away or `limit` calls were answered. Once `enough` were answered, `then`
/// is done, once; what is answered after that counts as unanswered.
pub fn run(home: &Path, seed: u64, limit: usize, enough: usize, then: &(dyn Fn() + Sync)) -> History {
    let answered = AtomicUsize::new(0);
    let once = Once::new();
    let over = AtomicBool::new(false);
    let callers = std::thread::scope(|scope| {
        let speak = |number| {
            let (home, answered, once, over) = (home.to_owned(), &answered, &once, &over);
            scope.spawn(move || {
                let mut hand = Hand::new(&home, seed, number, over);
                while hand.alive && answered.load(Ordering::Relaxed) < limit {
                    let before = hand.told;
                    hand.anything();
                    let more = hand.told - before;
                    if answered.fetch_add(more, Ordering::Relaxed) + more >= enough {
                        once.call_once(|| {
                            over.store(true, Ordering::SeqCst);
                            then();
                        });
                    }
                }
                hand.entries
            })
        };
        let all: Vec<_> = (0..SESSIONS).map(speak).collect();
        all.into_iter().map(|t| t.join().expect("a caller does not panic")).collect()
    });
    History { callers }
}

/// Who makes the calls of one session.
struct Hand<'a> {
    over: &'a AtomicBool,
    caller: Option<Caller>,
    alive: bool,
    label: String,
    dice: Dice,
    entries: Vec<Entry>,
    told: usize,
    marks: u64,
    prefix: String,
}

impl<'a> Hand<'a> {
    fn new(home: &Path, seed: u64, number: usize, over: &'a AtomicBool) -> Self {
        let caller = Caller::to(home).ok();
        Self {
            over,
            alive: caller.is_some(),
            caller,
            label: label(number),
            dice: Dice::new(seed.wrapping_mul(97).wrapping_add(number as u64)),
            entries: Vec::new(),
            told: 0,
            marks: 0,
            prefix: format!("{seed:x}-{number}"),
        }
    }

    /// What no other call has.
    fn mark(&mut self) -> String {
        self.marks += 1;
        format!("m{}-{};", self.prefix, self.marks)
    }

    fn make<C: Call>(&mut self, call: &C, deed: Deed) -> Option<C::Answer> {
        let caller = self.caller.as_mut()?;
        let (number, reply) = caller.call(call);
        let (end, answer) = match reply {
            Reply::Done(answer) => (End::Told, Some(answer)),
            Reply::Refused(code, _) if code == i64::from(Kind::Unavailable.code()) => {
                // It goes down: nobody says whether it was done.
                self.alive = false;
                (End::Unknown, None)
            }
            Reply::Refused(code, text) if code == i64::from(Kind::ReadOnly.code()) => {
                assert!(text.contains('/'), "it says no path: {text}");
                (End::Refused, None)
            }
            Reply::Refused(code, text) => panic!("{}: {code}: {text}", C::METHOD),
            Reply::Lost => {
                self.alive = false;
                (End::Unknown, None)
            }
        };
        let end = if self.over.load(Ordering::SeqCst) { End::Unknown } else { end };
        self.told += usize::from(end == End::Told);
        self.entries.push(Entry { number, deed, end });
        answer
    }

    fn create(&mut self, label: &str) -> bool {
        let create = rpc::Create {
            label: Some(label.to_owned()),
            channel: Some(Channel::Mailbox),
            dir: Some("/".to_owned()),
            ..rpc::Create::default()
        };
        let answer = self.make(&create, Deed::Create { label: label.to_owned(), id: None });
        let Some(answer) = answer else { return false };
        if let Some(Entry { deed: Deed::Create { id, .. }, .. }) = self.entries.last_mut() {
            *id = Some(answer.id);
        }
        let bind = rpc::Set {
            session: answer.id.to_string(),
            harness: Some("claude".to_owned()),
            harness_id: Some(conversation(label)),
            ..rpc::Set::default()
        };
        // The binding is no deed that is compared; a session without it cannot speak.
        let Some(caller) = &mut self.caller else { return false };
        match caller.call(&bind).1 {
            Reply::Done(_) => true,
            Reply::Refused(..) | Reply::Lost => {
                self.alive = false;
                false
            }
        }
    }

    fn watch(&mut self, watcher: &str, target: &str) {
        let watch = rpc::WatchAdd {
            caller: speaker(watcher),
            sessions: target.to_owned(),
            states: Some("all".parse().expect("a word for all states")),
        };
        self.make(&watch, Deed::Watch { watcher: watcher.to_owned(), target: target.to_owned() });
    }

    /// A few calls, as the dice say.
    fn anything(&mut self) {
        match self.dice.below(10) {
            0..=3 => self.declare(),
            4..=6 => self.send(),
            7 | 8 => self.read_mail(),
            _ => self.passing_session(),
        }
    }

    fn declare(&mut self) {
        let states = [State::Working, State::Review, State::Asking, State::Done, State::Idle];
        let state = states[self.dice.below(states.len())];
        let mark = self.mark();
        let note = mark.clone() + &self.padding(300);
        let call = rpc::Declare {
            caller: speaker(&self.label),
            session: None,
            state,
            note: Some(note.clone()),
            only_if: None,
            key: Some(mark),
        };
        self.make(&call, Deed::Declare { label: self.label.clone(), note });
    }

    fn send(&mut self) {
        let to = label(self.dice.below(SESSIONS));
        self.send_to(&to);
    }

    fn send_to(&mut self, to: &str) {
        let mark = self.mark();
        // Some longer than a block, few longer than many.
        let most = *self.dice.one_of(&[60, 60, 700, 6_000]);
        let body = mark.clone() + &self.padding(most);
        let call = rpc::Send {
            caller: speaker(&self.label),
            to: Some(to.to_owned()),
            body,
            key: Some(mark.clone()),
            ..rpc::Send::default()
        };
        let deed = Deed::Send { from: self.label.clone(), to: to.to_owned(), mark, id: None };
        let answer = self.make(&call, deed);
        if let (Some(answer), Some(Entry { deed: Deed::Send { id, .. }, .. })) =
            (answer, self.entries.last_mut())
        {
            *id = Some(answer.id);
        }
    }

    fn read_mail(&mut self) {
        for _ in 0..12 {
            let Some(caller) = self.caller.as_mut().filter(|_| self.alive) else { return };
            let take = rpc::Take { caller: speaker(&self.label), key: None };
            let taken = match caller.call(&take).1 {
                Reply::Done(answer) => answer.message,
                Reply::Refused(..) => return,
                Reply::Lost => {
                    self.alive = false;
                    return;
                }
            };
            let Some(taken) = taken else { return };
            let ack = rpc::Ack { caller: speaker(&self.label), id: taken.id.to_string(), key: None };
            self.make(&ack, Deed::Ack { id: taken.id });
        }
    }

    /// A session that comes, gets a letter, and is closed.
    fn passing_session(&mut self) {
        let label = format!("p{}-{}", self.prefix, self.marks);
        self.marks += 1;
        if self.create(&label) {
            self.send_to(&label);
            if self.alive {
                let close = rpc::Close { session: label.clone(), ..rpc::Close::default() };
                self.make(&close, Deed::Close { label });
            }
        }
    }

    fn padding(&mut self, most: usize) -> String {
        "x".repeat(self.dice.below(most))
    }
}

fn conversation(label: &str) -> String {
    format!("conversation-of-{label}")
}

/// What the program sends along in a session's shell.
#[allow(clippy::unnecessary_wraps, reason = "it is a call's field as it is")]
fn speaker(label: &str) -> Option<caller::Caller> {
    let vars = BTreeMap::from([("CLAUDE_CODE_SESSION_ID".to_owned(), conversation(label))]);
    Some(caller::Caller { vars, ..caller::Caller::default() })
}
