//! Stand-ins for harnesses. [`run`] is a headless program that does what a script says, [`tui`] one in a terminal,
//! [`server`] one for several conversations. The rest here is one that runs
//! hooks: the program `fake`, installed under the harness's name, runs a command as
//! its child, with a payload on its standard input, and says what came of it. No model, no network, no clock of its
//! own: a test says what happens and when.
//!
//! It can leave standard input open behind the payload, kill a hook that takes too long, run several at once (a
//! waiter beside the others), and be started under another name, so that a hook's ancestors are not what they are
//! for a real one.

pub mod run;
pub mod server;
pub mod stage;
pub mod tui;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::isolate::Isolated;
use crate::process::Process;

/// One hook to run. Sent to the program as a line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Which answer belongs to it; set when it is sent.
    #[serde(default)]
    pub id: u64,
    /// A command line for `/bin/sh -c`, as harnesses run hooks.
    pub command: String,
    /// What it reads.
    pub payload: String,
    /// Whether its standard input stays open behind that until it ends.
    #[serde(default)]
    pub stdin_open: bool,
    /// Variables on top of the program's own.
    #[serde(default)]
    pub environment: HashMap<String, String>,
    /// When it is killed, in milliseconds.
    pub limit_ms: u64,
}

/// What a hook did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub id: u64,
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// From before its start to after its end.
    pub took_ms: u64,
}

/// A running `fake host`.
pub struct Host {
    child: Child,
    calls: ChildStdin,
    waiting: Arc<Mutex<HashMap<u64, Sender<Answer>>>>,
    last: u64,
    isolated: Arc<Isolated>,
}

/// A hook that was started.
pub struct Pending {
    answer: Receiver<Answer>,
    /// Where it leaves its process id.
    pid: PathBuf,
}

impl Host {
    /// Starts one under this name (`claude`, or one that is no harness's).
    pub fn start(isolated: &Arc<Isolated>, name: &str) -> Result<Self> {
        let folder = isolated.root().join("fake");
        std::fs::create_dir_all(&folder)?;
        let link = folder.join(name);
        if !link.exists() {
            symlink(isolated.program("fake")?, &link)?;
        }
        let mut command = isolated.command(link);
        command.arg("host").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("fake host")?;
        let calls = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let waiting: Arc<Mutex<HashMap<u64, Sender<Answer>>>> = Arc::default();
        let of = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in answers.lines().map_while(Result::ok) {
                let answer: Answer = serde_json::from_str(&line).expect("our own program writes answers");
                let asked = of.lock().unwrap_or_else(PoisonError::into_inner).remove(&answer.id);
                // A test that has ended does not wait for it any more.
                asked.map(|asked| asked.send(answer));
            }
            // Whoever still waits learns that there will be no answer.
            of.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
        Ok(Self { child, calls, waiting, last: 0, isolated: Arc::clone(isolated) })
    }

    /// The program's process, which a hook's ancestors lead to.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn process(&self) -> Result<Process> {
        Process::open(self.pid())?.context("the fake host has ended")
    }

    /// Starts a hook.
    pub fn begin(&mut self, mut call: Call) -> Result<Pending> {
        self.last += 1;
        call.id = self.last;
        // A command that ends in `exec`, as ours does, keeps the shell's number.
        let pid = self.isolated.root().join("fake").join(format!("{}-{}", self.pid(), call.id));
        call.command = format!("echo $$ >'{}'; {}", pid.display(), call.command);
        let (asked, answer) = channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(call.id, asked);
        writeln!(self.calls, "{}", serde_json::to_string(&call)?)?;
        Ok(Pending { answer, pid })
    }

    /// Runs a hook to its end.
    pub fn call(&mut self, call: Call) -> Result<Answer> {
        let limit = Duration::from_millis(call.limit_ms) + Duration::from_secs(30);
        self.begin(call)?.wait(limit)
    }
}

impl Pending {
    /// Waits for its end, at most `limit`.
    pub fn wait(&self, limit: Duration) -> Result<Answer> {
        match self.answer.recv_timeout(limit) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => bail!("the hook still runs after {limit:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("the fake host ended before its hook did"),
        }
    }

    /// True while it runs.
    pub fn runs(&self) -> bool {
        matches!(self.answer.try_recv(), Err(TryRecvError::Empty))
    }

    /// Its process, while it runs.
    pub fn process(&self, limit: Duration) -> Result<Process> {
        // Written with one call, whole.
        let pid = files::wait_for_text(&self.pid, limit, |text| text.trim().parse().ok())?;
        Process::open(pid)?.context("the hook has ended")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It has nothing to finish; what it started is ended with the surroundings.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
