//! What is asked of the runner, and what it tells the queue of a session whose turn is over.

use std::collections::BTreeMap;
use std::sync::Arc;

use minder_proto::id::{MessageId, SessionId, TurnId};
use minder_proto::rpc::Settled;
use minder_proto::turn::folder::Purpose;
use minder_proto::turn::policy::Asked;
use uuid::Uuid;

use super::adapter::Message;
use super::hold::Caller;

/// A turn to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its id. The same one again is the same turn.
    pub turn: TurnId,
    /// Whose log gets the line.
    pub seat: String,
    /// The adapter.
    pub adapter: String,
    /// The session whose turn it is.
    pub session: Option<SessionId>,
    /// The session that asks for it, where one does.
    pub by: Option<SessionId>,
    /// A word for what brought it about.
    pub event_type: Option<String>,
    /// Who names the outcome of a run that succeeds.
    pub purpose: Purpose,
    /// Where who asks is.
    pub caller: Caller,
    /// An empty reply of a plain program has its outcome, `silent`, without anybody's word.
    pub empty_is_silent: bool,
    /// Windows that were asked for.
    pub policy: Asked,
    /// The session's own budget, in milliseconds.
    pub budget_ms: Option<u64>,
    /// What the harness is asked.
    pub input: Input,
    /// The program and its arguments for `command`, further arguments for the others.
    pub argv: Vec<String>,
    /// The harness's own id of the conversation that is gone on with.
    pub conversation: Option<String>,
    /// The id that a new conversation gets, where the harness takes one.
    pub fresh: Uuid,
    /// The working directory.
    pub dir: String,
    /// The caller's variables, all of them: the child gets what it may have.
    pub env: BTreeMap<String, String>,
}

/// What the harness is asked.
#[derive(Clone, Debug, Default)]
pub enum Input {
    /// Nothing.
    #[default]
    None,
    /// One prompt.
    Text(String),
    /// The messages of a queue.
    Messages(Vec<Message>),
}

/// A turn of a session's queue is settled. Whoever hears of it says `finish`, also where it failed; until then the same is
/// told again after each start of the daemon.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The turn.
    pub turn: TurnId,
    /// The session.
    pub session: Option<SessionId>,
    /// The messages that it was given.
    pub messages: Vec<MessageId>,
    /// How it ended; without an outcome while a success waits for its `finish`.
    pub settled: Arc<Settled>,
    /// The answer was empty or said that there is nothing to say.
    pub silent: bool,
    /// A usage limit that it met.
    pub limit: Option<super::adapter::Limit>,
    /// The login is missing, expired or refused.
    pub login: bool,
    /// Another process has the conversation.
    pub in_use: bool,
    /// The messages that the harness says it has done with, also where the turn failed. Empty for one that does not say.
    pub taken: Vec<MessageId>,
    /// The harness had all of them already, from a turn whose end was lost, and its model was asked nothing.
    pub repeated: bool,
}
