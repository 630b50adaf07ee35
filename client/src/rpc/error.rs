//! What can go wrong on the way to the daemon and back, and the exit code that each gives.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use minder_proto::error::{Fault, FaultData, Kind, exit};
use serde::Deserialize;

use super::wire::WireError;
use crate::autostart::StartError;

/// No answer could be had.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// Nobody listens, and none was started.
    #[error("no daemon is running, and {0}")]
    NotRunning(&'static str),
    /// Nobody listens, and this is a turn: none is started there, and none came.
    #[error("no daemon is running, and a turn does not start it")]
    InTurn,
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
            Self::NotAllowed(_) => exit::NOT_ALLOWED,
            // The daemon's own reason, where it is one of the store's or the configuration's.
            Self::Start(StartError::Refused {
                code: code @ (exit::SOFTWARE | exit::IO | exit::VERSION | exit::NOT_ALLOWED | exit::CONFIG),
                ..
            }) => *code,
            _ => exit::UNAVAILABLE,
        }
    }
}

/// The error object of an answer, as it comes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct WireFault {
    pub(super) code: i32,
    message: String,
    #[serde(default)]
    data: serde_json::Value,
}

impl From<WireFault> for Fault {
    fn from(wire: WireFault) -> Self {
        if let Ok(data) = serde_json::from_value::<FaultData>(wire.data) {
            return Self { kind: data.kind, message: wire.message, hint: data.hint, session: data.session };
        }
        // The server library's own errors have a code alone.
        match wire.code {
            // A method that the daemon does not have, of a protocol that it speaks: it is an older build.
            -32_601 => Self::new(Kind::Version, "the daemon does not know this method: it is an older build")
                .hint("minder daemon restart"),
            -32_602 => Self::new(Kind::InvalidParams, wire.message),
            -32_009 => Self::new(Kind::Busy, wire.message),
            -32_007 | -32_008 | -32_010 | -32_011 => Self::new(Kind::TooLarge, wire.message),
            code => match Kind::ALL.into_iter().find(|kind| kind.code() == code) {
                Some(kind) => Self::new(kind, wire.message),
                None => Self::new(Kind::Internal, format!("{} ({code})", wire.message)),
            },
        }
    }
}

/// A call did not give a result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There was no answer.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The daemon refused it, or failed.
    #[error(transparent)]
    Refused(#[from] Fault),
    /// What came is no answer: a fault in minder, or something else listens there.
    #[error("{0}")]
    Broken(String),
}

impl CallError {
    /// The client's exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable(error) => error.exit_code(),
            Self::Refused(fault) => fault.kind.exit(),
            Self::Broken(_) => exit::SOFTWARE,
        }
    }
}

impl From<WireError> for CallError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Late(granted) => Self::Unreachable(Unreachable::NotAnswering(granted)),
            WireError::Unread | WireError::Lost => Self::Unreachable(Unreachable::Lost),
            WireError::Broken(what) => Self::Broken(what),
            WireError::Io(error) => Self::Broken(format!("the connection to the daemon: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(json: serde_json::Value) -> Fault {
        serde_json::from_value::<WireFault>(json).unwrap().into()
    }

    #[test]
    fn every_kind_comes_through_and_so_do_foreign_codes() {
        for kind in Kind::ALL {
            let sent = Fault::new(kind, "no").hint("minder ls");
            let data = FaultData::from(&sent);
            assert_eq!(fault(serde_json::json!({"code": kind.code(), "message": "no", "data": data})), sent);
            assert_eq!(fault(serde_json::json!({"code": kind.code(), "message": "no"})).kind, kind);
        }
        for (code, kind) in [
            (-32_601, Kind::Version),
            (-32_007, Kind::TooLarge),
            (-32_009, Kind::Busy),
            (-32_700, Kind::Internal),
            (-32_000, Kind::Internal),
        ] {
            let found = fault(serde_json::json!({"code": code, "message": "no", "data": "some text"}));
            assert_eq!(found.kind, kind, "{code}");
        }
    }

    #[test]
    fn a_daemon_that_would_not_start_gives_its_own_code() {
        let refused =
            |code| Unreachable::Start(StartError::Refused { code, line: String::new() }).exit_code();
        assert_eq!([70, 74, 76, 77, 78].map(refused), [70, 74, 76, 77, 78]);
        // Not what the caller did, and nothing it could look up.
        assert_eq!([73, 64, 1].map(refused), [69; 3]);
        assert_eq!(Unreachable::Sandbox("/s".into()).exit_code(), 69);
        assert_eq!(Unreachable::NotAllowed("/s".into()).exit_code(), 77);
    }
}
