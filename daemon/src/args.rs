//! The four flags of `minderd`, read without a parser library: a service manager and the client are its users.

use std::ffi::OsString;
use std::os::fd::RawFd;

/// What `--help` prints.
pub const HELP: &str = "\
minderd minds coding-agent sessions for one user. `minder` starts it when it is needed.

Usage: minderd [--foreground] [--ready-fd N]

      --foreground   log to standard error instead of the store's log file
      --ready-fd N   tell a starter on descriptor N: `ready`, or `error <exit code> <line>`
      --version      print the version and exit
      --help         print this and exit

The store is $MINDER_HOME, else $XDG_STATE_HOME/minder. A second daemon of one store exits 73.
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Be the daemon.
    Run {
        /// Log to standard error.
        foreground: bool,
        /// Where a starter waits to hear how it went.
        ready_fd: Option<RawFd>,
    },
    /// Print the version.
    Version,
    /// Print the help.
    Help,
}

/// A command line that cannot be understood (exit 64).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// No such flag.
    #[error("unknown argument {0:?}; see minderd --help")]
    Unknown(OsString),
    /// `--ready-fd` without a descriptor's number.
    #[error("--ready-fd needs the number of an open descriptor")]
    ReadyFd,
}

/// Reads the arguments after the program's name. `--help` wins over everything, as long as what stands before it is valid.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Wish, ArgsError> {
    let (mut foreground, mut ready_fd) = (false, None);
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--foreground") => foreground = true,
            Some("--version" | "-V") => return Ok(Wish::Version),
            Some("--help" | "-h") => return Ok(Wish::Help),
            Some("--ready-fd") => {
                let number = args.next().and_then(|n| n.to_str()?.parse().ok()).filter(|n| *n >= 0);
                ready_fd = Some(number.ok_or(ArgsError::ReadyFd)?);
            }
            _ => return Err(ArgsError::Unknown(arg)),
        }
    }
    Ok(Wish::Run { foreground, ready_fd })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(args: &[&str]) -> Result<Wish, ArgsError> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn flags_are_read_and_others_refused() {
        assert_eq!(wish(&[]), Ok(Wish::Run { foreground: false, ready_fd: None }));
        assert_eq!(
            wish(&["--foreground", "--ready-fd", "3"]),
            Ok(Wish::Run { foreground: true, ready_fd: Some(3) })
        );
        assert_eq!(wish(&["--foreground", "--help"]), Ok(Wish::Help));
        assert_eq!(wish(&["--version"]), Ok(Wish::Version));
        for bad in [&["--ready-fd"][..], &["--ready-fd", "x"], &["--ready-fd", "-1"]] {
            assert_eq!(wish(bad), Err(ArgsError::ReadyFd), "{bad:?}");
        }
        for bad in [&["--daemon"][..], &["start"], &["--foreground=yes"], &[""]] {
            assert!(matches!(wish(bad), Err(ArgsError::Unknown(_))), "{bad:?}");
        }
    }
}
