//! The few flags of `minderd`, read without a parser library: a service manager and the client are its users.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
minderd minds coding-agent sessions for one user. `minder` starts it when it is needed.

Usage: minderd [--foreground] [--ready-fd N]
       minderd --check|--repair [PATH] [--json]
       minderd shim [FOLDER|--serve]
       minderd start DOOR

      --foreground   log to standard error instead of the store's log file
      --ready-fd N   tell a starter on descriptor N: `ready`, or `error <exit code> <line>`
      --check        check the files of a store, and change nothing; also beside a running daemon
      --repair       set aside what cannot be read, and rebuild what can be; not beside a running daemon
      --json         print what a check finds, or a repair did, as one object
      --version      print the version and exit
      --help         print this and exit
      shim           mind the one turn whose folder that is, or this is started in; the daemon does it
      --serve        be the process of which the daemon's shims are copies; standard input is its socket
      start          become the program that the daemon says at that socket; tmux does it, in a window for a session

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
    /// Check a store's files.
    Check {
        /// The store, where it is not the usual one.
        path: Option<PathBuf>,
        /// Print one object.
        json: bool,
    },
    /// Repair a store's files.
    Repair {
        /// The store, where it is not the usual one.
        path: Option<PathBuf>,
        /// Print one object.
        json: bool,
    },
    /// Be the server of which shims are copies.
    Shims,
    /// Be the shim of the turn whose folder this is, or the one that this process is in.
    Shim(Option<PathBuf>),
    /// Become what the daemon says at this socket.
    Start(PathBuf),
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
    let (mut check, mut repair, mut json, mut path) = (false, false, None, None);
    let mut args = args.into_iter().peekable();
    if args.next_if(|arg| arg == "shim").is_some() {
        if args.next_if(|arg| arg == "--serve").is_some() {
            return args.next().map_or(Ok(Wish::Shims), |arg| Err(ArgsError::Unknown(arg)));
        }
        let folder = args.next_if(|arg| !arg.as_encoded_bytes().starts_with(b"-")).map(PathBuf::from);
        return args.next().map_or(Ok(Wish::Shim(folder)), |arg| Err(ArgsError::Unknown(arg)));
    }
    if args.next_if(|arg| arg == "start").is_some() {
        let door = args.next().map(PathBuf::from).filter(|_| args.peek().is_none());
        return door.map(Wish::Start).ok_or(ArgsError::Unknown("start".into()));
    }
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--foreground") => foreground = true,
            Some("--check") if !repair => check = true,
            Some("--repair") if !check => repair = true,
            Some("--json") => json = Some(arg),
            Some("--version" | "-V") => return Ok(Wish::Version),
            Some("--help" | "-h") => return Ok(Wish::Help),
            Some("--ready-fd") => {
                let number = args.next().and_then(|n| n.to_str()?.parse().ok()).filter(|n| *n >= 0);
                ready_fd = Some(number.ok_or(ArgsError::ReadyFd)?);
            }
            text if (check || repair)
                && path.is_none()
                && !text.is_some_and(|t| t.is_empty() || t.starts_with('-')) =>
            {
                path = Some(PathBuf::from(arg));
            }
            _ => return Err(ArgsError::Unknown(arg)),
        }
    }
    match json {
        _ if check => Ok(Wish::Check { path, json: json.is_some() }),
        _ if repair => Ok(Wish::Repair { path, json: json.is_some() }),
        Some(alone) => Err(ArgsError::Unknown(alone)),
        None => Ok(Wish::Run { foreground, ready_fd }),
    }
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
        assert_eq!(wish(&["shim"]), Ok(Wish::Shim(None)));
        assert_eq!(wish(&["shim", "--serve"]), Ok(Wish::Shims));
        assert_eq!(wish(&["shim", "/a"]), Ok(Wish::Shim(Some(PathBuf::from("/a")))));
        let check = |path: Option<&str>, json| Ok(Wish::Check { path: path.map(PathBuf::from), json });
        assert_eq!(wish(&["--check"]), check(None, false));
        assert_eq!(wish(&["--check", "/a", "--json"]), check(Some("/a"), true));
        assert_eq!(wish(&["--json", "--check"]), check(None, true));
        let repair = |path: Option<&str>, json| Ok(Wish::Repair { path: path.map(PathBuf::from), json });
        assert_eq!(wish(&["--repair"]), repair(None, false));
        assert_eq!(wish(&["--json", "--repair", "/a"]), repair(Some("/a"), true));
        for bad in [&["--ready-fd"][..], &["--ready-fd", "x"], &["--ready-fd", "-1"]] {
            assert_eq!(wish(bad), Err(ArgsError::ReadyFd), "{bad:?}");
        }
        for bad in [
            &["--daemon"][..],
            &["start"],
            &["shim", "x", "y"],
            &["shim", "--json"],
            &["shim", "--serve", "x"],
            &["--foreground", "shim"],
            &["--foreground=yes"],
            &[""],
            &["--json"],
            &["/a", "--check"],
            &["--check", "/a", "/b"],
            &["--check", ""],
            &["--check", "--repair"],
            &["--repair", "--check"],
        ] {
            assert!(matches!(wish(bad), Err(ArgsError::Unknown(_))), "{bad:?}");
        }
    }
}
