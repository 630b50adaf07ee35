//! Why the daemon ends before it serves, and the exit code that says so.

use std::fmt;

use minder_proto::error::exit;

/// One line for people and the exit code that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Failure {
    /// The exit code, of `minder_proto::error::exit`.
    pub code: u8,
    /// What happened, in one line.
    pub line: String,
}

impl Failure {
    /// A failure whose text is cut to one line.
    pub fn new(code: u8, what: impl fmt::Display) -> Self {
        let text = what.to_string();
        let line =
            text.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ");
        Self { code, line }
    }

    /// An input/output error of something that is named.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(exit::IO, format_args!("{what}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let failure = Failure::new(exit::CONFIG, "config.toml:3: no\n  such key\r\n");
        assert_eq!(failure.to_string(), "config.toml:3: no; such key");
        assert_eq!(failure.code, 78);
    }
}
