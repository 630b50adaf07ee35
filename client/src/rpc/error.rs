//! What can go wrong on the way to the daemon and back, and the exit code that each gives.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::wire::WireError;
use crate::autostart::StartError;

/// No answer could be had.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// Nobody listens, and none was started.
    #[error("no daemon is running, and {0}")]
    NotRunning(&'static str),
    /// Connecting is not permitted at all, as in a harness's sandbox. No daemon is started then.
    #[error("connecting to {} is not permitted here (a sandbox)", .0.display())]
    Sandbox(PathBuf),
    /// The socket is another user's.
    #[error("{} is another user's socket", .0.display())]
    NotAllowed(PathBuf),
    /// The daemon is there and says nothing.
    #[error("the daemon is not answering{}", waited(*.0))]
    NotAnswering(Option<Duration>),
    /// A daemon was needed and did not come up.
    #[error("no daemon could be started: {0}")]
    Start(#[from] StartError),
    /// The daemon took the request and ended before it answered: whether it was done is not known.
    #[error("the daemon ended before it answered")]
    Lost,
    /// The system said no.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

fn waited(granted: Option<Duration>) -> String {
    granted.map_or_else(String::new, |d| format!(" ({} ms)", d.as_millis()))
}

impl Unreachable {
    /// The client's exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotAllowed(_) => 77,
            // The daemon's own reason, where it is one of the store's or the configuration's.
            Self::Start(StartError::Refused { code: code @ (70 | 74 | 76 | 77 | 78), .. }) => *code,
            _ => 69,
        }
    }
}

/// The error object of an answer.
#[derive(Clone, Debug, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// Its code.
    pub code: i32,
    /// One line.
    pub message: String,
    /// More of it.
    #[serde(default)]
    pub data: serde_json::Value,
}

/// A call did not give a result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There was no answer.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The answer is an error.
    #[error(transparent)]
    Rpc(RpcError),
    /// What came is no answer: a fault in minder, or something else listens there.
    #[error("{0}")]
    Fault(String),
}

impl From<WireError> for CallError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Late(granted) => Self::Unreachable(Unreachable::NotAnswering(granted)),
            WireError::Unread | WireError::Lost => Self::Unreachable(Unreachable::Lost),
            WireError::Broken(what) => Self::Fault(what),
            WireError::Io(error) => Self::Fault(format!("the connection to the daemon: {error}")),
        }
    }
}
