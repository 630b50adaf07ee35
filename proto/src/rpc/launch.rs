//! `session.launch`, `session.relaunch`: sessions whose process minder starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::id::{MessageId, SessionId};
use crate::record::Channel;

/// Where a harness is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Place {
    /// In a new window of a tmux server.
    Tmux {
        /// The server's socket.
        socket: String,
        /// A pane of the session that gets the window; one that tmux chooses where absent.
        #[serde(default)]
        beside: Option<String>,
    },
    /// Nowhere: each message is a supervised turn.
    Headless,
}

/// `session.launch`: registers a session, then starts its harness. Answers when the process runs or could not be
/// started; what becomes of it later is said as a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The label; derived from the folder where absent.
    #[serde(default)]
    pub label: Option<String>,
    /// The title.
    #[serde(default)]
    pub title: Option<String>,
    /// The harness; the caller's, else the only one that is installed, where absent and `argv` names no program.
    #[serde(default)]
    pub harness: Option<String>,
    /// The working directory; the caller's where absent.
    #[serde(default)]
    pub dir: Option<String>,
    /// How messages get in; what suits the harness where absent.
    #[serde(default)]
    pub channel: Option<Channel>,
    /// A selector for the parent; a calling session is the parent where absent.
    #[serde(default)]
    pub parent: Option<String>,
    /// A session its operator talks to.
    #[serde(default)]
    pub primary: bool,
    /// Where.
    pub place: Place,
    /// Further arguments of the harness; without one the program and its arguments.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Its first message.
    #[serde(default)]
    pub body: Option<String>,
    /// The caller's environment, of which the process is given what it may have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Idempotency key.
    #[serde(default)]
    pub key: Option<String>,
}

/// Answer to `session.launch` and `session.relaunch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchAnswer {
    /// The session.
    pub id: SessionId,
    /// Its label.
    pub label: String,
    /// Its title.
    pub title: String,
    /// Its harness, where one is known.
    #[serde(default)]
    pub harness: Option<String>,
    /// The message that the text became.
    #[serde(default)]
    pub message: Option<MessageId>,
    /// The conversation that is gone on with.
    #[serde(default)]
    pub resumed: Option<String>,
    /// What to know of it beside that.
    #[serde(default)]
    pub note: Option<String>,
    /// Why it could not be started.
    #[serde(default)]
    pub failed: Option<String>,
    /// True if the key gave an earlier result.
    #[serde(default)]
    pub duplicate: bool,
}

impl Call for Launch {
    const METHOD: &'static str = "session.launch";
    const LONG: bool = true;
    type Answer = LaunchAnswer;
}

/// `session.relaunch`: a new process for a session, which goes on with its newest conversation, by its exact id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relaunch {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session.
    pub session: String,
    /// Begin a new conversation.
    #[serde(default)]
    pub fresh: bool,
    /// Where; the tmux server that it was launched in last where absent.
    #[serde(default)]
    pub place: Option<Place>,
    /// The caller's environment, of which the process is given what it may have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Call for Relaunch {
    const METHOD: &'static str = "session.relaunch";
    const LONG: bool = true;
    type Answer = LaunchAnswer;
}
