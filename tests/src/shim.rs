//! A turn's shim without a daemon: the folder that a daemon would make, the shim started in it, its news, its result.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder_proto::id::TurnId;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::{Found, Limits, News, Order, PROMPT, Purpose, RESULT, SPEC, Spec};
use minder_proto::turn::names::Trigger;
use minder_proto::turn::policy::{self, Asked};

use crate::files;
use crate::isolate::Isolated;
use crate::process::{self, Process};

/// A turn that runs this program in a fresh directory, with the windows that are the default.
pub fn spec(isolated: &Isolated, argv: &[&str]) -> Result<Spec> {
    let turn = TurnId::now();
    let windows =
        policy::resolve("command", Asked::default(), None, |_| None, &minder_proto::config::Turn::default());
    Ok(Spec {
        turn,
        seat: "test".to_owned(),
        adapter: "command".to_owned(),
        session: None,
        event_type: None,
        purpose: Purpose::Caller,
        empty_is_silent: false,
        by: None,
        asked: Stamp::now(),
        boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        heal: None,
        dir: isolated.project(&turn.to_string())?.display().to_string(),
        prompt: false,
        policy: windows.policy,
        rules: None,
        stderr_is_progress: false,
        cancel_signal: None,
        budget_signal: 15,
        limits: Limits::default(),
    })
}

/// A turn that runs `fake run` with this script. Its record is [`Shim::record`].
pub fn fake(isolated: &Isolated, script: &str) -> Result<Spec> {
    let mut spec = spec(isolated, &[])?;
    let folder = isolated.root().join("scripts");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(spec.turn.to_string());
    std::fs::write(&file, format!("record {}\n{script}", record(isolated, &spec).display()))?;
    let program = isolated.program("fake")?.display().to_string();
    spec.argv = vec![program, "run".to_owned(), file.display().to_string()];
    Ok(spec)
}

/// Where the fake harness of this turn writes what it did and saw.
pub fn record(isolated: &Isolated, spec: &Spec) -> PathBuf {
    isolated.root().join(format!("{}.record", spec.turn))
}

/// A shim that was started.
pub struct Shim {
    child: Child,
    process: Process,
    link: BufReader<UnixStream>,
    folder: PathBuf,
    spec: Spec,
    isolated: Arc<Isolated>,
}

impl Shim {
    /// Starts one; `prompt` is the standard input of the harness.
    pub fn start(isolated: &Arc<Isolated>, mut spec: Spec, prompt: Option<&[u8]>) -> Result<Self> {
        let folder = isolated.root().join("turns").join(spec.turn.to_string());
        std::fs::create_dir_all(&folder)?;
        if let Some(prompt) = prompt {
            std::fs::write(folder.join(PROMPT), prompt)?;
            spec.prompt = true;
        }
        std::fs::write(folder.join(SPEC), serde_json::to_vec(&spec)?)?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = isolated.command(isolated.program("minderd")?);
        command.arg("shim").current_dir(&folder).stdin(OwnedFd::from(theirs));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let process = Process::open(child.id())?.context("a child that was not waited for")?;
        Ok(Self { child, process, link: BufReader::new(ours), folder, spec, isolated: Arc::clone(isolated) })
    }

    /// The turn's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The shim's own process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What the fake harness wrote down.
    pub fn record(&self) -> PathBuf {
        record(&self.isolated, &self.spec)
    }

    /// Waits for a line of the record with this `what`.
    pub fn wait_record(&self, limit: Duration, what: &str) -> Result<serde_json::Value> {
        files::wait_for_lines(&self.record(), limit, |lines| {
            lines.iter().find(|line| line["what"] == what).cloned()
        })
    }

    /// Says how it should end.
    pub fn order(&mut self, why: Trigger) -> Result<()> {
        say(self.link.get_mut(), why)
    }

    /// Ends the connection that it was started with, as a daemon that dies does.
    pub fn hang_up(&mut self) -> Result<()> {
        Ok(self.link.get_ref().shutdown(std::net::Shutdown::Both)?)
    }

    /// The next that it tells.
    pub fn news(&mut self, limit: Duration) -> Result<News> {
        self.link.get_ref().set_read_timeout(Some(limit))?;
        let mut line = String::new();
        if self.link.read_line(&mut line).context("the shim says nothing")? == 0 {
            bail!("the shim is gone");
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Waits until the turn is settled, and for what was found.
    pub fn result(&mut self, limit: Duration) -> Result<Found> {
        while !matches!(self.news(limit)?, News::Settled { .. }) {}
        self.found()
    }

    /// The result that is there.
    pub fn found(&self) -> Result<Found> {
        Ok(serde_json::from_slice(&std::fs::read(self.folder.join(RESULT))?)?)
    }

    /// The harness's standard output as it was kept.
    pub fn stdout(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.folder.join(minder_proto::turn::folder::STDOUT))?)
    }

    /// Processes that still are in the turn's directory, whatever they made of their environment.
    pub fn left(&self) -> Vec<Process> {
        let dir = Path::new(&self.spec.dir);
        let there = |process: &Process| {
            std::fs::read_link(format!("/proc/{}/cwd", process.pid())).is_ok_and(|cwd| cwd == dir)
        };
        process::find(there)
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        // What the shim has not ended, a test that failed must not leave behind.
        self.process.signal(rustix::process::Signal::KILL);
        let _ = self.child.wait();
        for _ in 0..100 {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            for process in left {
                process.signal(rustix::process::Signal::KILL);
            }
        }
    }
}

/// Says an order on a connection to a shim.
pub fn say(link: &mut UnixStream, why: Trigger) -> Result<()> {
    let mut line = serde_json::to_vec(&Order::End { why })?;
    line.push(b'\n');
    Ok(link.write_all(&line)?)
}
