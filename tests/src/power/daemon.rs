//! A daemon of a run, on a store that lies anywhere; and the two programs that look at that store.

use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::isolate::Isolated;
use crate::process::{self, Process};

/// How long a start, an end or a check may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How daemons are started.
#[derive(Clone)]
pub struct Setup {
    /// Where everything but the store lies.
    pub isolated: Arc<Isolated>,
    /// The fault to be made, if any.
    pub fault: Option<String>,
    /// Where rebuilt states are kept that a daemon did not make good.
    pub keep: Option<PathBuf>,
}

impl Setup {
    /// The command for a daemon of the store in `home`: its files are sealed, rewritten and removed when they are
    /// short, so that a run sees it often.
    pub fn command(&self, home: &Path) -> Result<Command> {
        let mut command = self.isolated.minderd()?;
        command.env("MINDER_HOME", home).env("MINDER_SIZES", "small");
        command.envs(self.fault.iter().map(|fault| ("MINDER_FAULT", fault)));
        command.args(["--foreground", "--ready-fd", "1"]);
        Ok(command)
    }

    /// Starts one and waits until it serves.
    pub fn start(&self, home: &Path) -> Result<Daemon> {
        Daemon::start(self.command(home)?)
    }

    /// What `minderd --check` says of the store: nothing, if it is whole.
    pub fn check(&self, home: &Path) -> Result<Vec<String>> {
        let mut command = self.isolated.minderd()?;
        command.env("MINDER_HOME", home).arg("--check").arg(home);
        let out = process::run(&mut command, b"", LIMIT)?;
        if out.status.success() {
            return Ok(Vec::new());
        }
        let text = [out.stdout, out.stderr].concat();
        Ok(String::from_utf8_lossy(&text).lines().map(|l| format!("check: {l}")).collect())
    }
}

/// A daemon that is this process's child, or the child of a program that looks at it.
pub struct Daemon {
    child: Child,
    said: mpsc::Receiver<String>,
}

impl Daemon {
    /// Starts it by this command and waits until it serves. An error says what it said instead.
    pub fn start(mut command: Command) -> Result<Self> {
        let (ready, writer) = pipe()?;
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        drop(command);
        let said = lines(child.stderr.take().expect("piped"));
        let mut daemon = Self { child, said };
        let word = first_line(ready).context("it does not say how its start went")?;
        if word != "ready\n" {
            let status = daemon.child.wait()?;
            bail!("it does not start: {:?}, {status}: {}", word.trim_end(), daemon.log());
        }
        Ok(daemon)
    }

    /// Its process, or that of the program that looks at it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for an end that was caused elsewhere.
    pub fn ended(mut self) -> Result<()> {
        self.wait_for_end()
    }

    fn wait_for_end(&mut self) -> Result<()> {
        let process = Process::open(self.child.id())?.context("it was not waited for")?;
        if !process.wait(LIMIT) {
            bail!("it does not end: {}", self.log());
        }
        let status = self.child.wait()?;
        if !status.success() && status.signal() != Some(9) && status.code() != Some(137) {
            bail!("it ended with {status}: {}", self.log());
        }
        Ok(())
    }

    /// What it logged since the last look.
    pub fn log(&mut self) -> String {
        self.said.try_iter().map(|l| l + "\n").collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_line(from: PipeReader) -> Option<String> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let _ = BufReader::new(from).read_line(&mut said);
        let _ = give.send(said);
    });
    take.recv_timeout(LIMIT).ok()
}

fn lines(from: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                break;
            }
        }
    });
    take
}

/// Where a run's own files lie: in memory, where that is to be had, since their durability is of no interest.
pub fn scratch() -> Result<tempfile::TempDir> {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    Ok(tempfile::Builder::new().prefix("mp-").tempdir_in(place)?)
}
