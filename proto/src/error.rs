//! The table of errors: every kind with its JSON-RPC code and the exit code that the client gives it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// Exit codes of `minder` and `minderd` (`cli.md`, "Exit codes").
pub mod exit {
    /// Done; for `wait`: an event was reached.
    pub const OK: u8 = 0;
    /// The answer is no: the deadline passed, not delivered yet.
    pub const NO: u8 = 1;
    /// Gone or not found.
    pub const GONE: u8 = 2;
    /// Refused by a rule.
    pub const REFUSED: u8 = 3;
    /// What was waited for ended badly.
    pub const FAILED: u8 = 4;
    /// Wrong usage.
    pub const USAGE: u8 = 64;
    /// The data given or found is broken.
    pub const DATA: u8 = 65;
    /// The daemon is needed and cannot be reached or started.
    pub const UNAVAILABLE: u8 = 69;
    /// A fault in minder.
    pub const SOFTWARE: u8 = 70;
    /// `minderd`: another daemon holds this store.
    pub const HELD: u8 = 73;
    /// Input or output failed.
    pub const IO: u8 = 74;
    /// Busy, try again.
    pub const BUSY: u8 = 75;
    /// Client and daemon, or build and store format, do not fit.
    pub const VERSION: u8 = 76;
    /// Another user's socket or store.
    pub const NOT_ALLOWED: u8 = 77;
    /// The configuration is wrong.
    pub const CONFIG: u8 = 78;
    /// Interrupted.
    pub const INTERRUPTED: u8 = 130;
}

/// Kinds of failure that the daemon answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No such session, message or watch.
    NotFound,
    /// It was there and is not any more.
    Gone,
    /// More than one thing fits.
    Ambiguous,
    /// The state is not what the caller asserted, or a key was used for something else.
    Conflict,
    /// A rule forbids it.
    Refused,
    /// Too much in flight; try again.
    Busy,
    /// Over a size limit.
    TooLarge,
    /// A queue or list is full.
    Full,
    /// Decided on an older state.
    StaleFence,
    /// Not the caller's.
    NotOwner,
    /// Client and daemon, or store, do not fit.
    Version,
    /// The disk refuses: nothing new is taken.
    ReadOnly,
    /// Not running, or going down.
    Unavailable,
    /// Taken back by somebody.
    Cancelled,
    /// Not in time.
    Deadline,
    /// The data found is broken.
    InvalidState,
    /// The parameters cannot be used (JSON-RPC's own -32602).
    InvalidParams,
    /// A fault in minder (JSON-RPC's own -32603).
    Internal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::NotFound,
        Self::Gone,
        Self::Ambiguous,
        Self::Conflict,
        Self::Refused,
        Self::Busy,
        Self::TooLarge,
        Self::Full,
        Self::StaleFence,
        Self::NotOwner,
        Self::Version,
        Self::ReadOnly,
        Self::Unavailable,
        Self::Cancelled,
        Self::Deadline,
        Self::InvalidState,
        Self::InvalidParams,
        Self::Internal,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Gone => "gone",
            Self::Ambiguous => "ambiguous",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::TooLarge => "too_large",
            Self::Full => "full",
            Self::StaleFence => "stale_fence",
            Self::NotOwner => "not_owner",
            Self::Version => "version",
            Self::ReadOnly => "read_only",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
            Self::InvalidState => "invalid_state",
            Self::InvalidParams => "invalid_params",
            Self::Internal => "internal",
        }
    }

    /// The JSON-RPC error code.
    pub fn code(self) -> i32 {
        match self {
            Self::NotFound => -32050,
            Self::Gone => -32051,
            Self::Ambiguous => -32052,
            Self::Conflict => -32053,
            Self::Refused => -32054,
            Self::Busy => -32055,
            Self::TooLarge => -32056,
            Self::Full => -32057,
            Self::StaleFence => -32058,
            Self::NotOwner => -32059,
            Self::Version => -32060,
            Self::ReadOnly => -32061,
            Self::Unavailable => -32062,
            Self::Cancelled => -32063,
            Self::Deadline => -32064,
            Self::InvalidState => -32065,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
        }
    }

    /// The client's exit code.
    pub fn exit(self) -> u8 {
        match self {
            Self::NotFound | Self::Gone => exit::GONE,
            Self::Ambiguous | Self::InvalidParams => exit::USAGE,
            Self::Conflict | Self::Refused | Self::NotOwner => exit::REFUSED,
            Self::Busy | Self::Full | Self::StaleFence => exit::BUSY,
            Self::TooLarge | Self::InvalidState => exit::DATA,
            Self::Version => exit::VERSION,
            Self::ReadOnly => exit::IO,
            Self::Unavailable => exit::UNAVAILABLE,
            Self::Cancelled | Self::Deadline => exit::NO,
            Self::Internal => exit::SOFTWARE,
        }
    }

    /// True if the same call may succeed later without a change by the caller.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Full | Self::StaleFence | Self::ReadOnly | Self::Unavailable | Self::Deadline
        )
    }
}

/// A failure as it goes over the wire: one line, lower case, with what stands in the way; a hint that helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which kind.
    pub kind: Kind,
    /// One line.
    pub message: String,
    /// The command that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The session concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Fault {
    /// A fault of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, session: None }
    }

    /// With the command that helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With a command that shows what stands in the way, where whoever made the fault knew none that helps.
    #[must_use]
    pub fn or_way_out(self) -> Self {
        let hint = match (&self.hint, self.kind, self.session) {
            // What is gone and no session is a message.
            (None, Kind::Gone, None) => "minder queue".to_owned(),
            (None, Kind::Conflict, Some(session)) => format!("minder show {}", session.short()),
            (None, Kind::NotFound | Kind::Gone | Kind::Conflict, _) => "minder ls".to_owned(),
            _ => return self,
        };
        self.hint(hint)
    }

    /// With the session concerned.
    #[must_use]
    pub fn about(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// The `data` member of a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultData {
    /// Which kind.
    pub kind: Kind,
    /// True if the same call may succeed later.
    pub retryable: bool,
    /// The command that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The session concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl From<&Fault> for FaultData {
    fn from(fault: &Fault) -> Self {
        Self {
            kind: fault.kind,
            retryable: fault.kind.is_retryable(),
            hint: fault.hint.clone(),
            session: fault.session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_go_on_is_shown_where_to_look() {
        let session: SessionId = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        for kind in [Kind::NotFound, Kind::Gone, Kind::Conflict] {
            for fault in [Fault::new(kind, "no"), Fault::new(kind, "no").about(session)] {
                assert!(
                    fault.clone().or_way_out().hint.is_some_and(|h| h.starts_with("minder ")),
                    "{fault:?}"
                );
                assert_eq!(fault.hint("better").or_way_out().hint.as_deref(), Some("better"));
            }
        }
        assert_eq!(
            Fault::new(Kind::Conflict, "no").about(session).or_way_out().hint.unwrap(),
            "minder show 5f1c2d4a"
        );
        assert_eq!(Fault::new(Kind::Busy, "no").or_way_out().hint, None);
    }

    #[test]
    fn every_kind_has_a_code_of_its_own_and_a_documented_exit() {
        let codes: std::collections::HashSet<_> = Kind::ALL.iter().map(|k| k.code()).collect();
        assert_eq!(codes.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            let ours = (-32099..=-32050).contains(&kind.code());
            assert!(ours || matches!(kind, Kind::InvalidParams | Kind::Internal), "{kind:?}");
            assert!(kind.exit() != 0);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
