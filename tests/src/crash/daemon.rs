//! A daemon that is the harness's child and is going to be killed.

use std::fs::File;
use std::io::{PipeReader, Read, pipe};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder_client::rpc::{Client, Endpoint, Start};
use minder_proto::layout::Home;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::isolate::Isolated;
use crate::process::Process;

/// Only what hangs takes longer.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A daemon of a store.
pub struct Daemon {
    child: Child,
    process: Process,
    home: Home,
}

/// What a start led to.
pub enum Settled {
    /// It serves.
    Serves(Daemon),
    /// It was killed on the way.
    Killed,
}

/// How a daemon is started.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// More in its environment.
    pub variables: Vec<(&'static str, String)>,
    /// Options of a `strace` that looks at its first thread.
    pub strace: Vec<String>,
}

impl How {
    /// With one more variable.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

/// Starts a daemon; it has not said yet how it went.
pub fn launch(isolated: &Isolated, how: &How) -> Result<Launched> {
    let plain = isolated.minderd()?;
    let mut command = if how.strace.is_empty() {
        plain
    } else {
        // As a grandchild, so that the daemon is a child of the harness as ever.
        let mut strace = isolated.command("strace");
        strace.args(["-D", "-qq", "-o", "/dev/null"]).args(&how.strace).arg("--").arg(plain.get_program());
        strace
    };
    command.envs(how.variables.iter().map(|(name, value)| (name, value)));
    let (ready, writer) = pipe()?;
    let log = File::options().create(true).append(true).open(isolated.root().join("daemon.log"))?;
    command.args(["--foreground", "--ready-fd", "1"]).stdin(Stdio::null()).stdout(writer).stderr(log);
    let child = command.spawn().with_context(|| format!("{command:?}"))?;
    // The writer's other end is the daemon's alone: its death ends the pipe.
    drop(command);
    let process = Process::open(child.id())?.context("a child that was not waited for has a pid")?;
    Ok(Launched { daemon: Daemon { child, process, home: Home::at(isolated.minder_home()) }, ready })
}

/// A daemon that was started.
pub struct Launched {
    daemon: Daemon,
    ready: PipeReader,
}

impl Launched {
    /// Waits until it serves or was killed.
    pub fn settle(mut self) -> Result<Settled> {
        let mut said = Vec::new();
        let deadline = Instant::now() + LIMIT;
        while !said.ends_with(b"\n") {
            if !self.says_more(deadline)? {
                bail!("the daemon does not say how its start went");
            }
            let mut byte = [0];
            if self.ready.read(&mut byte)? == 0 {
                break;
            }
            said.push(byte[0]);
        }
        if said == b"ready\n" {
            return Ok(Settled::Serves(self.daemon));
        }
        let status = self.daemon.ended()?;
        if status.signal() == Some(9) {
            return Ok(Settled::Killed);
        }
        bail!("the daemon does not serve: {}, {status}", String::from_utf8_lossy(&said).trim_end())
    }

    fn says_more(&self, deadline: Instant) -> Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(&self.ready, PollFlags::IN)];
        Ok(poll(&mut watched, Timespec::try_from(left).ok().as_ref())? > 0)
    }

    /// Kills it after a while, wherever it is then.
    pub fn kill_after(mut self, moment: Duration) -> Result<()> {
        self.daemon.process.wait(moment);
        self.daemon.process.signal(Signal::KILL);
        self.daemon.ended().map(drop)
    }
}

impl Daemon {
    /// A start that must lead to a daemon that serves.
    pub fn start(isolated: &Isolated, how: &How) -> Result<Self> {
        match launch(isolated, how)?.settle()? {
            Settled::Serves(daemon) => Ok(daemon),
            Settled::Killed => bail!("somebody killed the daemon at its start"),
        }
    }

    /// A client of its store.
    pub fn client(&self) -> Result<Client> {
        let socket = std::fs::read_link(self.home.socket_link())?;
        let endpoint = Endpoint::at(self.home.clone(), socket);
        Ok(Client::new(endpoint, Start::Never("the harness starts it")).patience(Some(LIMIT)))
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The thread that owns the store.
    pub fn owner(&self) -> Result<u32> {
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?;
            if std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == "store")
            {
                return Ok(task.file_name().to_string_lossy().parse()?);
            }
        }
        bail!("no thread of the daemon is called `store`")
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) -> Result<()> {
        self.process.signal(Signal::KILL);
        self.ended().map(drop)
    }

    /// Asks it to end, and kills it if it has not after this time. True if it was killed, by whomever.
    pub fn stop(mut self, patience: Duration) -> Result<bool> {
        self.process.signal(Signal::TERM);
        if !self.process.wait(patience) {
            self.process.signal(Signal::KILL);
        }
        let status = self.ended()?;
        if status.success() || status.signal() == Some(9) {
            return Ok(!status.success());
        }
        bail!("the daemon ended with {status}")
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> Result<ExitStatus> {
        if !self.process.wait(LIMIT) {
            bail!("the daemon does not end");
        }
        Ok(self.child.wait()?)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A `strace` at one thread, which injects what its options say.
pub struct Tracer {
    child: Child,
    process: Process,
}

impl Tracer {
    /// Comes back when the thread is looked at.
    pub fn attach(isolated: &Isolated, thread: u32, options: &[String]) -> Result<Self> {
        let mut command: Command = isolated.command("strace");
        command.args(["-qq", "-o", "/dev/null"]).args(options).args(["-p", &thread.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let process = Process::open(child.id())?.context("a child that was not waited for has a pid")?;
        let tracer = Self { child, process };
        let deadline = Instant::now() + LIMIT;
        let status = format!("/proc/{thread}/status");
        loop {
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let traced =
                text.lines().find_map(|l| l.strip_prefix("TracerPid:")).is_some_and(|t| t.trim() != "0");
            if traced {
                return Ok(tracer);
            }
            if tracer.process.wait(Duration::from_millis(1)) || Instant::now() > deadline {
                bail!("strace does not come to look at thread {thread}");
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It ends with what it looks at; else it is told to let go of it.
        if !self.process.wait(Duration::from_millis(1)) {
            self.process.signal(Signal::INT);
        }
        self.process.end(Duration::from_secs(5));
        let _ = self.child.wait();
    }
}
