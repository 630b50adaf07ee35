//! The clients: each does one thing again and again, and keeps what it was told. A step is one call or a few; it ends
//! early where the daemon goes away.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use minder_client::rpc::{CallError, Client};
use minder_proto::caller::Caller;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::rpc::{self, Call, Spooled};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use uuid::Uuid;

use super::Findings;
use super::history::History;

/// How a call ended.
pub enum Outcome<T> {
    /// It was answered.
    Told(T),
    /// Nobody knows: the daemon went away.
    Lost,
    /// It was not taken, and may be made again later.
    Busy,
}

/// Calls; a refusal that is no matter of the moment is an error.
pub fn call<C: Call>(client: &mut Client, call: &C) -> Result<Outcome<C::Answer>> {
    match client.call(call) {
        Ok(answer) => Ok(Outcome::Told(answer)),
        Err(CallError::Unreachable(_)) => Ok(Outcome::Lost),
        Err(error) if error.exit_code() == 69 => Ok(Outcome::Lost),
        Err(error) if error.exit_code() == 75 => Ok(Outcome::Busy),
        Err(error) => Err(anyhow!("{}: {error}", C::METHOD)),
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There may be another.
    More,
    /// There is nothing to do now.
    Idle,
    /// The daemon has gone.
    Gone,
}

/// The answer of a call, or the end of the step.
macro_rules! told {
    ($outcome:expr) => {
        match $outcome {
            Outcome::Told(answer) => answer,
            Outcome::Lost => return Ok(Step::Gone),
            Outcome::Busy => return Ok(Step::Idle),
        }
    };
}

/// A session that somebody speaks for.
#[derive(Clone, Debug)]
pub struct Agent {
    /// It.
    pub id: SessionId,
    /// The conversation by which its shell is known.
    pub conversation: String,
}

impl Agent {
    /// What the program sends along in its shell.
    pub fn caller(&self) -> Option<Caller> {
        let vars = BTreeMap::from([("CLAUDE_CODE_SESSION_ID".to_owned(), self.conversation.clone())]);
        Some(Caller { vars, ..Caller::default() })
    }
}

/// Sends messages, to each receiver in turn. Every other one has a key and is sent again until it is accepted.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Who it is.
    pub agent: Agent,
    /// Its name in what it says.
    pub name: String,
    /// What it said to each receiver.
    pub to: Vec<(Agent, History)>,
    /// Whom it spoke to last.
    turn: usize,
    /// A long tail for its messages, so that files grow.
    pub padding: usize,
}

impl Sender {
    /// One that has said nothing.
    pub fn new(agent: Agent, name: String, receivers: &[Agent], padding: usize) -> Self {
        let to = receivers.iter().map(|r| (r.clone(), History::default())).collect();
        Self { agent, name, to, turn: 0, padding }
    }

    /// Sends one.
    pub fn step(&mut self, client: &mut Client, findings: &mut Findings) -> Result<Step> {
        let again = self.to[self.turn].1.again().cloned();
        let repeated = again.is_some();
        let (mark, key) = if let Some(said) = again {
            (said.mark, said.key)
        } else {
            self.turn = (self.turn + 1) % self.to.len();
            let n = self.to[self.turn].1.number();
            let mark = format!("{} {} {n}", self.name, self.turn);
            let key = n.is_multiple_of(2).then(|| mark.clone());
            self.to[self.turn].1.begin(mark.clone(), key.clone());
            (mark, key)
        };
        let (receiver, history) = &mut self.to[self.turn];
        let body = format!("{mark}\n{}", "x".repeat(self.padding));
        let to = Some(receiver.id.to_string());
        let send = rpc::Send { caller: self.agent.caller(), to, body, key, ..rpc::Send::default() };
        match call(client, &send)? {
            Outcome::Told(answer) => {
                if answer.duplicate && !repeated {
                    findings.add(format!("{mark:?} was called a duplicate and was said once"));
                }
                history.told(Some(answer.seq));
                Ok(Step::More)
            }
            Outcome::Lost => Ok(Step::Gone),
            Outcome::Busy => {
                // Not taken: but what was repeated may have been, the first time.
                if !repeated {
                    history.refused();
                }
                Ok(Step::Idle)
            }
        }
    }
}

/// Declares, back and forth. Every other declaration has a key.
#[derive(Clone, Debug)]
pub struct Declarer {
    /// Who it is.
    pub agent: Agent,
    /// Its name in what it says.
    pub name: String,
    /// Its notes.
    pub moves: History,
    /// Who watches it.
    pub watchers: Vec<SessionId>,
}

impl Declarer {
    /// One that has said nothing.
    pub fn new(agent: Agent, name: String) -> Self {
        Self { agent, name, moves: History::default(), watchers: Vec::new() }
    }

    /// Declares once.
    pub fn step(&mut self, client: &mut Client) -> Result<Step> {
        let (mark, key) = match self.moves.again().cloned() {
            Some(said) => (said.mark, said.key),
            None => {
                let n = self.moves.number();
                let mark = format!("{} {n}", self.name);
                let key = n.is_multiple_of(2).then(|| mark.clone());
                self.moves.begin(mark.clone(), key.clone());
                (mark, key)
            }
        };
        let declare = rpc::Declare {
            caller: self.agent.caller(),
            session: None,
            state: state_of(&mark),
            note: Some(mark),
            only_if: None,
            key,
        };
        let answer = told!(call(client, &declare)?);
        self.moves.told(answer.seq);
        Ok(Step::More)
    }
}

/// The state that a note goes with: odd ones ask for somebody.
fn state_of(mark: &str) -> State {
    let n: u64 = mark.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a mark ends in its number");
    if n.is_multiple_of(2) { State::Working } else { State::Review }
}

/// Takes what comes, and acknowledges it.
#[derive(Clone, Debug)]
pub struct Taker {
    /// Who it is.
    pub agent: Agent,
    /// What it was told is acknowledged.
    pub acked: BTreeSet<MessageId>,
    /// What it may have acknowledged.
    pub open: Option<MessageId>,
    /// The line of the newest message that it was given.
    newest: u64,
}

impl Taker {
    /// One that has taken nothing.
    pub fn new(agent: Agent) -> Self {
        Self { agent, acked: BTreeSet::new(), open: None, newest: 0 }
    }

    /// Takes one and acknowledges it.
    pub fn step(&mut self, client: &mut Client, findings: &mut Findings) -> Result<Step> {
        if let Some(id) = self.open {
            let ack = rpc::Ack { caller: self.agent.caller(), id: id.to_string(), key: None };
            told!(call(client, &ack)?);
            self.acked.insert(id);
            self.open = None;
        }
        let take = rpc::Take { caller: self.agent.caller(), key: None };
        let Some(taken) = told!(call(client, &take)?).message else { return Ok(Step::Idle) };
        if self.acked.contains(&taken.id) {
            findings.add(format!("message {} was given after it was acknowledged", taken.id));
        }
        if taken.seq < self.newest {
            findings
                .add(format!("message {} of line {} came after line {}", taken.id, taken.seq, self.newest));
        }
        self.newest = taken.seq;
        self.open = Some(taken.id);
        let ack = rpc::Ack { caller: self.agent.caller(), id: taken.id.to_string(), key: None };
        told!(call(client, &ack)?);
        self.acked.insert(taken.id);
        self.open = None;
        Ok(Step::More)
    }
}

/// Leaves messages in the spool, whether a daemon serves or not.
#[derive(Clone, Debug)]
pub struct Spooler {
    /// Who it is.
    pub agent: Agent,
    /// Its name in what it says.
    pub name: String,
    /// To whom.
    pub receiver: Agent,
    /// What it left.
    pub left: History,
}

impl Spooler {
    /// One that has left nothing.
    pub fn new(agent: Agent, name: String, receiver: Agent) -> Self {
        Self { agent, name, receiver, left: History::default() }
    }

    /// Leaves one.
    pub fn step(&mut self, home: &Home) -> Result<Step> {
        let mark = format!("{} 0 {}", self.name, self.left.number());
        self.left.begin(mark.clone(), None);
        let send = rpc::Send {
            caller: self.agent.caller(),
            to: Some(self.receiver.id.to_string()),
            body: format!("{mark}\n"),
            ..rpc::Send::default()
        };
        let method = rpc::Send::METHOD.to_owned();
        let left = Spooled { method, params: serde_json::to_value(&send)?, at: Stamp::now() };
        minder_client::spool::put(home, Uuid::now_v7(), &left)?;
        self.left.told(None);
        Ok(Step::More)
    }
}

/// How far a session that is to be closed has come.
#[derive(Clone, Debug, Default)]
pub struct Closing {
    /// It, once its birth was told.
    pub id: Option<SessionId>,
    /// It is watched.
    pub watched: bool,
    /// The message that waits for it when it is closed.
    pub letter: bool,
    /// Its close was begun.
    pub begun: bool,
    /// Its close was told.
    pub closed: bool,
}

/// Registers sessions, has them watched, sends them a message, and closes them.
#[derive(Clone, Debug)]
pub struct Closer {
    /// Who watches them and sends them messages.
    pub agent: Agent,
    /// Its name in labels.
    pub name: String,
    /// The sessions so far; the last one may be under way. The number is that of the label.
    pub sessions: Vec<(u64, Closing)>,
}

impl Closer {
    /// One that has closed nothing.
    pub fn new(agent: Agent, name: String) -> Self {
        Self { agent, name, sessions: Vec::new() }
    }

    /// The label of the session of this number.
    pub fn label(&self, n: u64) -> String {
        format!("{}-{n}", self.name)
    }

    /// From a birth to a close, or as far as the daemon lives.
    pub fn step(&mut self, client: &mut Client) -> Result<Step> {
        let n = match self.sessions.last() {
            Some((n, last)) if !last.closed => *n,
            last => {
                let n = last.map_or(1, |(n, _)| n + 1);
                self.sessions.push((n, Closing::default()));
                n
            }
        };
        let label = self.label(n);
        let caller = self.agent.caller();
        let (_, now) = self.sessions.last_mut().expect("one was added above");
        let id = if let Some(id) = now.id {
            id
        } else {
            let create = rpc::Create {
                label: Some(label.clone()),
                channel: Some(minder_proto::record::Channel::Mailbox),
                dir: Some("/".to_owned()),
                key: Some(label.clone()),
                ..rpc::Create::default()
            };
            let id = told!(call(client, &create)?).id;
            now.id = Some(id);
            id
        };
        if !now.watched {
            let watch = rpc::WatchAdd { caller: caller.clone(), sessions: id.to_string(), states: None };
            told!(call(client, &watch)?);
            now.watched = true;
        }
        if !now.letter {
            let (to, key) = (Some(id.to_string()), Some(format!("letter {label}")));
            let send = rpc::Send { caller, to, body: format!("letter {label}"), key, ..rpc::Send::default() };
            told!(call(client, &send)?);
            now.letter = true;
        }
        now.begun = true;
        let close = rpc::Close { session: id.to_string(), note: Some(label), ..rpc::Close::default() };
        match client.call(&close) {
            Ok(_) => {}
            Err(error) if matches!(error, CallError::Unreachable(_)) || error.exit_code() == 69 => {
                return Ok(Step::Gone);
            }
            Err(error) if error.exit_code() == 75 => return Ok(Step::Idle),
            // It was, the time before.
            Err(error) if error.exit_code() == 2 => {}
            Err(error) => return Err(anyhow!("session.close: {error}")),
        }
        now.closed = true;
        Ok(Step::More)
    }
}
