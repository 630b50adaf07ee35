//! Why the daemon ends before it serves, and the exit code that says so (`sysexits.h`, plus 73 for a second daemon).

use std::fmt;

/// The exit codes of `minderd`. Units list [`Code::Taken`] under `RestartPreventExitStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// An unknown flag.
    Usage = 64,
    /// A fault in minder.
    Fault = 70,
    /// Another daemon holds this store.
    Taken = 73,
    /// Input/output: a full disk, no permission on the store.
    Io = 74,
    /// The store's format is newer than this build.
    Version = 76,
    /// Another user's socket or store.
    NotAllowed = 77,
    /// The configuration is wrong.
    Config = 78,
}

/// One line for people and the exit code that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What happened, in one line.
    pub line: String,
}

impl Failure {
    /// A failure whose text is cut to one line.
    pub fn new(code: Code, what: impl fmt::Display) -> Self {
        let text = what.to_string();
        let line =
            text.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ");
        Self { code, line }
    }

    /// An input/output error of something that is named.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Code::Io, format_args!("{what}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::new(Code::Config, "config.toml:3: no\n  such key\r\n");
        assert_eq!(failure.to_string(), "config.toml:3: no; such key");
        assert_eq!(failure.code as u8, 78);
    }
}
