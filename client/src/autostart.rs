//! Starting the daemon where none runs: in its own session, with nothing of the caller's but what locates the store.
//!
//! The starter holds one end of a pipe and reads one line from it, `ready` or `error <exit code> <line>`; it never
//! looks again and again. That the daemon is one, however many start it at once, is the daemon's own lock's business.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long a daemon may take until it serves: longer than it waits for one that ends.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// What marks the processes of a turn. A daemon that one of them started would be in the turn's tree and end with it, and
/// every other turn with the daemon.
pub const TURN: &str = "MINDER_TURN";

/// True inside a turn.
pub fn is_in_turn() -> bool {
    std::env::var_os(TURN).is_some_and(|turn| !turn.is_empty())
}

/// Why no daemon was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no program to start.
    #[error("minderd is neither beside minder nor on PATH (MINDER_DAEMON names another place)")]
    NoProgram,
    /// The program could not be executed.
    #[error("{}: {source}", program.display())]
    Execute {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The daemon said why it cannot serve.
    #[error("{line}")]
    Refused {
        /// Its exit code.
        code: u8,
        /// Its line.
        line: String,
    },
    /// The daemon ended and said nothing.
    #[error("minderd ended before it served; see `minder daemon logs`")]
    Died,
    /// It said nothing in time.
    #[error("minderd did not serve within {} s", .0.as_secs())]
    Late(Duration),
}

/// What is needed to start a daemon.
#[derive(Clone, Debug)]
pub struct Starter {
    /// The program.
    pub program: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may take until it serves.
    pub patience: Duration,
}

impl Starter {
    /// What this process's environment says.
    pub fn from_env() -> Result<Self, StartError> {
        let program = find_program().ok_or(StartError::NoProgram)?;
        let environment = std::env::vars_os().filter(|(name, _)| locates_the_store(name)).collect();
        Ok(Self { program, environment, patience: PATIENCE })
    }

    /// Starts the daemon and waits until it serves.
    pub fn start(&self) -> Result<(), StartError> {
        let failed = |source| StartError::Execute { program: self.program.clone(), source };
        let (reader, writer) = io::pipe().map_err(failed)?;
        self.spawn(Some(writer.into())).map_err(failed)?;
        match hear(reader, self.patience).map_err(failed)? {
            None => Err(StartError::Late(self.patience)),
            Some(said) => understand(&said),
        }
    }

    /// Starts the daemon and waits for nothing.
    pub fn start_unattended(&self) -> Result<(), StartError> {
        self.spawn(None).map_err(|source| StartError::Execute { program: self.program.clone(), source })
    }

    /// Runs the program as the grandchild of this process, the leader of nothing, in a session of its own, at `/`.
    #[allow(unsafe_code)]
    fn spawn(&self, ready: Option<Stdio>) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.current_dir("/").env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stderr(Stdio::null());
        match ready {
            Some(pipe) => command.args(["--ready-fd", "1"]).stdout(pipe),
            None => command.stdout(Stdio::null()),
        };
        let inherited = inherited_descriptors();
        // SAFETY: the closure runs between fork and exec and calls only what may be called there (setsid, fork, umask,
        // signal, fcntl, _exit); it allocates nothing and takes no lock. Its own fork's child goes on to the exec that follows.
        unsafe { command.pre_exec(move || detach(&inherited)) };
        let mut first = command.spawn()?;
        // Only the one in between, which has ended already.
        first.wait()?;
        Ok(())
    }
}

/// The last of the signals that a shell may have told its children to ignore.
const LAST_SIGNAL: libc::c_int = libc::SIGSYS;

/// Between fork and exec: leaves the caller's session and terminal for good, and keeps neither its descriptors nor its
/// umask and signal dispositions.
#[allow(unsafe_code)]
fn detach(inherited: &[RawFd]) -> io::Result<()> {
    // SAFETY: plain system calls without memory arguments; the process has one thread (it was just forked).
    unsafe {
        if libc::setsid() == -1 {
            return Err(io::Error::last_os_error());
        }
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            _ => libc::_exit(0),
        }
        // What a service manager would give it, since its own children get the same.
        libc::umask(0o022);
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        for fd in inherited {
            // Not closed: the pipe on which a failed exec is reported is among them. One that is gone is no error.
            libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

/// Descriptors that were open before, beyond the standard streams: a caller may have left them to us by mistake.
fn inherited_descriptors() -> Vec<RawFd> {
    let place = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let Ok(list) = std::fs::read_dir(place) else { return Vec::new() };
    list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|fd| *fd > 2).collect()
}

/// Everything the daemon says until it closes the pipe, or `None` if it has not by the deadline.
fn hear(mut pipe: PipeReader, patience: Duration) -> io::Result<Option<String>> {
    let deadline = Instant::now() + patience;
    let mut said = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut some = [0; 512];
        match pipe.read(&mut some)? {
            0 => return Ok(Some(String::from_utf8_lossy(&said).into_owned())),
            n if said.len() < 64 << 10 => said.extend_from_slice(&some[..n]),
            _ => {}
        }
    }
}

/// The meaning of what the daemon said.
fn understand(said: &str) -> Result<(), StartError> {
    let line = said.lines().next().unwrap_or_default();
    if line == "ready" {
        return Ok(());
    }
    let error = line.strip_prefix("error ").and_then(|rest| rest.split_once(' '));
    match error.and_then(|(code, line)| Some((code.parse().ok()?, line))) {
        Some((code, line)) => Err(StartError::Refused { code, line: line.to_owned() }),
        None => Err(StartError::Died),
    }
}

/// The daemon's program: `MINDER_DAEMON`; else `minderd` beside this program; else on `PATH`.
pub fn find_program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("MINDER_DAEMON").filter(|v| !v.is_empty()) {
        // Made absolute, since the daemon is started at `/`.
        return std::path::absolute(named).ok();
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("minderd")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter(|d| d.is_absolute()).map(|d| d.join("minderd"));
    beside.into_iter().chain(on_path).find(|p| is_program(p))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// What a daemon may know of the shell that happened to start it: where things are, and nothing else.
fn locates_the_store(name: &OsStr) -> bool {
    const NAMES: [&str; 9] = [
        "HOME",
        "PATH",
        "USER",
        "LANG",
        "TZ",
        "MINDER_HOME",
        "MINDER_SOCKET",
        "MINDER_CONFIG",
        "MINDER_TURN_LOG_DIR",
    ];
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name)
        || name
            .strip_prefix("XDG_")
            .is_some_and(|n| ["_HOME", "_DIR", "_DIRS"].iter().any(|e| n.ends_with(e)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_said_is_understood() {
        assert!(understand("ready\n").is_ok());
        assert!(matches!(understand("error 77 /x is a link: refused\n"),
            Err(StartError::Refused { code: 77, line }) if line == "/x is a link: refused"));
        for nothing in ["", "read", "error", "error x y", "error 77", "error 300 y"] {
            assert!(matches!(understand(nothing), Err(StartError::Died)), "{nothing:?}");
        }
    }

    #[test]
    fn the_environment_is_a_short_list() {
        for passed in [
            "HOME",
            "PATH",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "XDG_CONFIG_DIRS",
            "MINDER_HOME",
            "TZ",
            "MINDER_TURN_LOG_DIR",
        ] {
            assert!(locates_the_store(passed.as_ref()), "{passed}");
        }
        for kept in
            ["XDG_SESSION_ID", "ANTHROPIC_API_KEY", "MINDER_TOKEN", "MINDER_SESSION", "TMUX", "NOTIFY_SOCKET"]
        {
            assert!(!locates_the_store(kept.as_ref()), "{kept}");
        }
    }

    pub(crate) fn starter(dir: &Path, script: &str) -> Starter {
        use std::os::unix::fs::PermissionsExt;
        let program = dir.join("minderd");
        // Written under another name and moved, so that no descriptor for writing is open when it is executed.
        std::fs::write(dir.join("new"), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(dir.join("new"), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::rename(dir.join("new"), &program).unwrap();
        Starter {
            program,
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/h".into())],
            patience: PATIENCE,
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_daemon_stands_alone() {
        use std::os::fd::AsRawFd;
        let dir = tempfile::tempdir().unwrap();
        let seen = dir.path().join("seen");
        // A descriptor that a careless caller left open for us.
        let file = std::fs::File::create(dir.path().join("left-open")).unwrap();
        let left = nix::unistd::dup(&file).unwrap();
        let number = left.as_raw_fd();
        assert!(number > 2);
        let script = format!(
            "{{ cat /proc/$$/stat; pwd; env | tr '\\n' ' '; echo; umask; grep SigIgn /proc/$$/status; \
             readlink /proc/$$/fd/{number}; }} >{0} 2>&1; echo ready",
            seen.display()
        );
        let umask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o027));
        starter(dir.path(), &script).start().unwrap();
        nix::sys::stat::umask(umask);
        drop(left);
        let seen = std::fs::read_to_string(seen).unwrap();
        let lines: Vec<_> = seen.lines().collect();
        let stat: Vec<_> = lines[0].rsplit_once(')').unwrap().1.split_whitespace().collect();
        let (pid, parent, session, tty) = (lines[0].split(' ').next().unwrap(), stat[1], stat[3], stat[4]);
        assert_ne!(parent, std::process::id().to_string(), "not our child");
        assert_ne!(session, pid, "not the leader of its session, so that it can never get a terminal");
        assert_ne!(session, nix::unistd::getsid(None).unwrap().to_string(), "not in our session");
        assert_eq!(tty, "0", "without a terminal");
        assert_eq!(lines[1], "/");
        let env: Vec<_> =
            lines[2].split_whitespace().filter(|v| !v.starts_with("PWD=") && !v.starts_with("_=")).collect();
        assert_eq!(
            env.iter().filter(|v| !v.starts_with("OLDPWD") && !v.starts_with("SHLVL")).count(),
            2,
            "{env:?}"
        );
        assert_eq!(lines[3], "0022");
        // Signals up to the last; those above belong to the C library.
        let ignored = u64::from_str_radix(lines[4].strip_prefix("SigIgn:\t").unwrap(), 16).unwrap();
        assert_eq!(ignored & ((1 << LAST_SIGNAL) - 1), 0, "{ignored:x}");
        assert_eq!(lines.get(5), None, "descriptor {number} was closed: {seen}");
    }

    #[test]
    fn a_start_that_fails_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let refused = starter(dir.path(), "echo 'error 78 config.toml:3: no such key'").start();
        assert!(matches!(refused, Err(StartError::Refused { code: 78, .. })), "{refused:?}");
        let died = starter(dir.path(), "exit 1").start();
        assert!(matches!(died, Err(StartError::Died)), "{died:?}");
        let absent =
            Starter { program: dir.path().join("nothing"), environment: Vec::new(), patience: PATIENCE };
        assert!(matches!(absent.start(), Err(StartError::Execute { .. })));
    }

    #[test]
    fn one_that_says_nothing_is_not_waited_for_for_ever() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(hear(reader, Duration::from_millis(20)).unwrap().is_none());
        drop(writer);
    }
}
