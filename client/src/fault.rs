//! How a command fails: a kind, the exit code of the contract, one line, and the command that helps. It is
//! shown as one line on standard error, or with `--json` as one object there with the exit code in it.

use std::borrow::Cow;
use std::io;

use minder_proto::config::ConfigError;
use minder_proto::error::{Fault, exit};
use minder_proto::id::SessionId;
use minder_proto::layout::LayoutError;
use minder_proto::selector::SelectorError;
use minder_proto::snapshot::ReadError;
use minder_proto::text::one_line;
use serde::Serialize;

use crate::hooks::HooksError;

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// A word for programs: a kind of the socket's errors, or one of the client's own.
    pub kind: Cow<'static, str>,
    /// The exit code.
    pub exit: u8,
    /// One line: what was asked and what stands in the way.
    pub message: String,
    /// The command that helps.
    pub hint: Option<String>,
    /// The session concerned.
    pub session: Option<SessionId>,
    /// True if the same command may succeed later without a change.
    pub retryable: bool,
    /// True where nobody reads any more: the exit code says it all.
    pub silent: bool,
    /// More about it for programs.
    pub detail: Option<Box<serde_json::Map<String, serde_json::Value>>>,
}

/// The form of a failure with `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    error: &'a str,
    kind: &'a str,
    exit: u8,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    #[serde(flatten)]
    detail: Option<&'a serde_json::Map<String, serde_json::Value>>,
}

impl CommandError {
    /// A failure of this kind.
    pub fn new(kind: &'static str, exit: u8, message: impl Into<String>) -> Self {
        Self {
            kind: Cow::Borrowed(kind),
            exit,
            message: message.into(),
            hint: None,
            session: None,
            retryable: false,
            silent: false,
            detail: None,
        }
    }

    /// The command line cannot be used (64).
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", exit::USAGE, message)
    }

    /// The answer is no (1).
    pub fn no(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new("no", exit::NO, message) }
    }

    /// Not there, or not any more (2).
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", exit::GONE, message)
    }

    /// A rule forbids it (3).
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new("refused", exit::REFUSED, message)
    }

    /// What was given or found is broken (65).
    pub fn data(message: impl Into<String>) -> Self {
        Self::new("invalid_data", exit::DATA, message)
    }

    /// The daemon is needed and does not answer (69).
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new("unavailable", exit::UNAVAILABLE, message) }
    }

    /// A fault in minder (70).
    pub fn software(message: impl Into<String>) -> Self {
        Self::new("internal", exit::SOFTWARE, message)
    }

    /// Input or output failed (74); `what` names the file or stream.
    pub fn io(what: impl std::fmt::Display, error: &io::Error) -> Self {
        Self::new("io", exit::IO, format!("{what}: {error}"))
    }

    /// The reader of standard output has gone away: not a failure of ours.
    pub fn nobody_reads() -> Self {
        Self { silent: true, ..Self::new("broken_pipe", exit::OK, "nobody reads the output") }
    }

    /// With the command that helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With the members of an object, for programs; the failure's own win over those of the same name.
    #[must_use]
    pub fn detail(mut self, object: &impl Serialize) -> Self {
        if let Ok(serde_json::Value::Object(mut map)) = serde_json::to_value(object) {
            for own in ["error", "kind", "exit", "retryable", "hint", "session"] {
                map.shift_remove(own);
            }
            self.detail = Some(Box::new(map));
        }
        self
    }

    /// The line for people.
    pub fn to_line(&self) -> String {
        let message = one_line(&self.message);
        match &self.hint {
            Some(hint) => format!("minder: {message}: {}", one_line(hint)),
            None => format!("minder: {message}"),
        }
    }

    /// The object for programs.
    pub fn to_json(&self) -> String {
        let shown = Shown {
            error: &self.message,
            kind: &self.kind,
            exit: self.exit,
            retryable: self.retryable,
            hint: self.hint.as_deref(),
            session: self.session,
            detail: self.detail.as_deref(),
        };
        serde_json::to_string(&shown).expect("strings and numbers are always JSON")
    }
}

impl From<Fault> for CommandError {
    fn from(fault: Fault) -> Self {
        Self {
            kind: Cow::Borrowed(fault.kind.as_str()),
            exit: fault.kind.exit(),
            message: fault.message,
            hint: fault.hint,
            session: fault.session,
            retryable: fault.kind.is_retryable(),
            silent: false,
            detail: None,
        }
    }
}

impl From<SelectorError> for CommandError {
    fn from(error: SelectorError) -> Self {
        let message = error.to_string();
        match error {
            SelectorError::NotFound(_) => Self::not_found(message),
            SelectorError::Ambiguous { .. } => Self::new("ambiguous", exit::USAGE, message),
            SelectorError::Bad { .. } | SelectorError::NoCaller(_) => Self::usage(message),
        }
    }
}

impl From<ReadError> for CommandError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound(id) => {
                Self { session: Some(id), ..Self::not_found(format!("no session {id}")) }
            }
            ReadError::Corrupt { .. } => Self::data(error.to_string()).hint("minder store check"),
            ReadError::Io { path, error } => Self::io(path.display(), &error),
        }
    }
}

impl From<LayoutError> for CommandError {
    fn from(error: LayoutError) -> Self {
        Self::new("config", exit::CONFIG, error.to_string())
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::new("config", exit::CONFIG, error.to_string())
    }
}

impl From<HooksError> for CommandError {
    fn from(error: HooksError) -> Self {
        let kind = match &error {
            HooksError::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return Self::nobody_reads(),
            HooksError::Usage(_) => "usage",
            HooksError::Refused(_) => "refused",
            HooksError::NotFound(_) => "not_found",
            HooksError::Broken { .. } | HooksError::NoSettings { .. } => "invalid_data",
            HooksError::Changed { .. } => "busy",
            HooksError::OwnPath(_) => "internal",
            HooksError::Io { .. } | HooksError::Output(_) => "io",
        };
        let retryable = matches!(error, HooksError::Changed { .. });
        Self { retryable, ..Self::new(kind, error.exit_code(), error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::error::Kind;

    use super::*;

    #[test]
    fn a_failure_is_one_line_or_one_object_with_the_code_in_it() {
        let fault =
            Fault::new(Kind::Refused, "this conversation is not registered, so it cannot speak\x1b[2J")
                .hint("minder new");
        let error = CommandError::from(fault);
        assert_eq!(
            error.to_line(),
            "minder: this conversation is not registered, so it cannot speak\\x1b[2J: minder new"
        );
        let json: serde_json::Value = serde_json::from_str(&error.to_json()).unwrap();
        assert_eq!((json["exit"].as_u64(), json["kind"].as_str()), (Some(3), Some("refused")));
        assert!(!error.to_json().contains('\n'));
    }

    #[test]
    fn every_kind_of_the_socket_keeps_its_word_and_its_code() {
        for kind in Kind::ALL {
            let error = CommandError::from(Fault::new(kind, "x"));
            assert_eq!(error.exit, kind.exit());
            assert_eq!(serde_json::to_value(kind).unwrap(), *error.kind);
        }
    }
}
