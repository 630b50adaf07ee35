//! Where the tour plays: a folder with a home and a store of its own, and the environment that its commands see.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::TempDir;

use crate::fault::CommandError;
use crate::process::Process;

/// How long one command may take. All of them together take less.
const LIMIT: Duration = Duration::from_secs(8);
/// The longest folder below which a socket's address surely fits into what the system allows.
const LONGEST: usize = 40;
/// What a command sees of the caller's environment: where programs are, and how people write here. Nothing that says
/// who calls, and nothing that leads to the caller's own store, terminal or settings.
const KEPT: [&str; 8] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "LC_TIME", "TZ", "USER", "MINDER_DAEMON"];

/// The folder, and what is in it.
#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    path: OsString,
}

impl Stage {
    /// Makes the folder.
    pub fn make() -> Result<Self, CommandError> {
        let failed = |what: &Path, e: &io::Error| CommandError::io(what.display(), e);
        let temp = Some(std::env::temp_dir()).filter(|t| t.as_os_str().len() <= LONGEST);
        let temp = temp.unwrap_or_else(|| PathBuf::from("/tmp"));
        let folder = tempfile::Builder::new().prefix("minder-tour.").tempdir_in(&temp);
        let folder = folder.map_err(|e| failed(&temp, &e))?;
        for name in ["home", "run", "bin"] {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).map_err(|e| failed(&place, &e))?;
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700))
                .map_err(|e| failed(&place, &e))?;
        }
        // This very program is what `minder` means in there, whatever it is called here.
        let program = std::env::current_exe().map_err(|e| failed(Path::new("minder"), &e))?;
        let bin = folder.path().join("bin");
        symlink(&program, bin.join("minder")).map_err(|e| failed(&bin, &e))?;
        let beside = program.parent().map(Path::to_owned);
        let found = std::env::var_os("PATH").unwrap_or_default();
        let all = [bin].into_iter().chain(beside).chain(std::env::split_paths(&found));
        let path = std::env::join_paths(all).map_err(|e| CommandError::usage(format!("PATH: {e}")))?;
        Ok(Self { folder, path })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The store. It is made by the daemon.
    pub fn home(&self) -> Home {
        Home::at(self.folder().join("store"))
    }

    /// Starts a line of shell.
    pub fn start(&self, line: &str) -> io::Result<Running> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("/bin/sh");
        // Where it can be, the program is the shell's own process: to end the one is to end the other.
        let exec = if line.starts_with("minder ") { "exec " } else { "" };
        command.arg("-c").arg(format!("{exec}{line}")).current_dir(self.folder().join("home"));
        command.env_clear().envs(self.environment());
        // Both streams into one pipe: what was printed comes in the order in which it was.
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn()?;
        Ok(Running { process: Process::open(child.id()), child, reader, said: Vec::new(), ended: false })
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let kept = KEPT.iter().filter(|name| **name != "PATH");
        let kept = kept.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let own =
            |name: &str, place: &str| (OsString::from(name), self.folder().join(place).into_os_string());
        let mut environment: Vec<_> = kept.collect();
        environment.extend([
            own("HOME", "home"),
            own("MINDER_HOME", "store"),
            own("XDG_RUNTIME_DIR", "run"),
            (OsString::from("PATH"), self.path.clone()),
        ]);
        environment
    }

    /// Ends the daemon, if one runs.
    pub fn stop_daemon(&self) -> Result<(), String> {
        let failed = |e: io::Error| format!("minder daemon stop: {e}");
        let ran = self.start("minder daemon stop").and_then(Running::end).map_err(failed)?;
        if ran.exit == 0 { Ok(()) } else { Err(format!("minder daemon stop: {}", ran.text.trim_end())) }
    }

    /// Ends the daemon and removes the folder.
    pub fn clear(&self) -> Result<(), String> {
        self.stop_daemon()?;
        let folder = self.folder();
        std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
    }

    /// Lets the folder be.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// A line of shell that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    process: Option<Process>,
    reader: PipeReader,
    said: Vec<u8>,
    ended: bool,
}

/// A line of shell that ended.
#[derive(Debug)]
pub struct Ran {
    /// What it printed on both streams.
    pub text: String,
    /// Its exit code, as a shell tells it.
    pub exit: i32,
    /// When its output ended.
    pub at: Stamp,
}

impl Running {
    /// Reads until it has printed what is asked for. False if it ended before, or the time is up.
    pub fn until(&mut self, printed: impl Fn(&str) -> bool) -> io::Result<bool> {
        let deadline = Instant::now() + LIMIT;
        while !printed(&self.text()) {
            if !self.hear(deadline)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All that it has printed so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }

    /// Waits for its end. An error if its time is up; it is ended then.
    pub fn end(mut self) -> io::Result<Ran> {
        let deadline = Instant::now() + LIMIT;
        while self.hear(deadline)? {}
        let at = Stamp::now();
        let left = deadline.saturating_duration_since(Instant::now());
        if !self.ended || self.process.as_ref().is_some_and(|p| !p.wait(left)) {
            let limit = format!("it did not end within {} s", LIMIT.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, limit));
        }
        let status = self.child.wait()?;
        let exit = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        Ok(Ran { text: self.text(), exit, at })
    }

    /// Ends it.
    fn stop(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(|_| ())
    }

    /// Reads what there is, waiting for it. False at the end of the output, or of the time.
    fn hear(&mut self, deadline: Instant) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(0) => return Ok(false),
                Ok(_) => break,
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut some = [0; 4096];
        let read = self.reader.read(&mut some)?;
        self.ended = read == 0;
        self.said.extend_from_slice(&some[..read]);
        Ok(!self.ended)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended and was waited for is not signalled.
        let _ = self.stop();
    }
}
