//! Followers: programs that read files alone, over every crash of the daemon. A stream that runs all the time, and two
//! waits of one caller at once.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use minder_proto::id::SessionId;
use minder_proto::trial;
use rustix::process::Signal;
use serde_json::Value;

use crate::isolate::Isolated;
use crate::process::Process;

type Told = BTreeMap<String, Vec<u64>>;

/// A `watch stream`.
pub struct Stream {
    child: Child,
    process: Process,
    told: Arc<(Mutex<Told>, Condvar)>,
}

impl Stream {
    /// From the beginning of these sessions' timelines.
    pub fn start(isolated: &Isolated, sessions: &[SessionId], fault: Option<&str>) -> Result<Self> {
        let mut command = isolated.minder()?;
        command.envs(fault.map(|fault| (trial::FAULT, fault)));
        command.args(["watch", "stream", "--json", "--no-announce", "--states", "all", "--since", "0"]);
        command.args(sessions.iter().map(SessionId::to_string));
        let log =
            std::fs::File::options().create(true).append(true).open(isolated.root().join("stream.log"))?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let process = Process::open(child.id())?.context("a child that was not waited for has a pid")?;
        let told = Arc::new((Mutex::new(Told::new()), Condvar::new()));
        let (out, shared) = (child.stdout.take().context("it is piped")?, Arc::clone(&told));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
                if let (Some(session), Some(seq), Some("state")) =
                    (line["session"].as_str(), line["seq"].as_u64(), line["event"].as_str())
                {
                    let mut told = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                    told.entry(session.to_owned()).or_default().push(seq);
                }
                shared.1.notify_all();
            }
        });
        Ok(Self { child, process, told })
    }

    /// Waits until it has told this line of this session; false if it does not.
    pub fn tells(&self, session: SessionId, line: u64, limit: Duration) -> bool {
        let (session, deadline) = (session.to_string(), Instant::now() + limit);
        let mut told = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if told.get(&session).is_some_and(|lines| lines.contains(&line)) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            told = self.told.1.wait_timeout(told, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What it has told of a session.
    pub fn told(&self, session: SessionId) -> Vec<u64> {
        let told = self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.get(&session.to_string()).cloned().unwrap_or_default()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// What the waits of one session told, by session.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// The lines.
    pub told: Told,
}

/// Whose waits they are, and for whom.
pub struct Waiter<'a> {
    /// Where.
    pub isolated: &'a Isolated,
    /// The conversation by which its shell is known.
    pub conversation: &'a str,
    /// What is waited for.
    pub sessions: Vec<SessionId>,
    /// What is made wrong in the program.
    pub fault: Option<&'static str>,
}

impl Waiter<'_> {
    /// Two at once, each for half of the sessions and one more. They have looked, and wait, when this comes back.
    pub fn two(&self, patience: &str) -> Result<[Waiting; 2]> {
        let half = self.sessions.len() / 2;
        Ok([self.wait(&self.sessions[..=half], patience)?, self.wait(&self.sessions[half..], patience)?])
    }

    fn wait(&self, sessions: &[SessionId], patience: &str) -> Result<Waiting> {
        let mut command = self.isolated.minder()?;
        command.env("CLAUDE_CODE_SESSION_ID", self.conversation);
        command.envs(self.fault.map(|fault| (trial::FAULT, fault)));
        command.args(["wait", "--json", "--only", "sessions", "--timeout", patience]);
        command.args(sessions.iter().map(SessionId::to_string));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let process = Process::open(child.id())?.context("a child that was not waited for has a pid")?;
        // Before it sleeps it has a word for an agent; it has looked by then, or it has ended.
        let mut errors = BufReader::new(child.stderr.take().context("it is piped")?);
        errors.read_line(&mut String::new())?;
        Ok(Waiting { child, process, errors })
    }
}

/// A `wait` that runs.
pub struct Waiting {
    child: Child,
    process: Process,
    errors: BufReader<ChildStderr>,
}

impl Waiting {
    /// True if it has ended, or does within a moment.
    pub fn has_ended(&self) -> bool {
        self.process.wait(Duration::from_millis(10))
    }

    /// What it told: a line of a session, or nothing.
    fn end(mut self) -> Result<Option<(String, u64)>> {
        ensure!(self.process.wait(super::daemon::LIMIT), "a wait does not end");
        let mut out = String::new();
        self.child.stdout.take().context("it is piped")?.read_to_string(&mut out)?;
        let code = self.child.wait()?.code();
        if code == Some(1) && out.is_empty() {
            return Ok(None);
        }
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors)?;
        ensure!(code == Some(0), "a wait ended with {code:?}: {errors}");
        let line: Value = serde_json::from_str(&out)?;
        ensure!(line["gap"] != true, "a wait lost its position: {line}");
        match (line["session"].as_str(), line["seq"].as_u64()) {
            (Some(session), Some(seq)) => Ok(Some((session.to_owned(), seq))),
            _ => bail!("a wait printed {line}"),
        }
    }
}

impl Waits {
    /// Takes what two waits told; true if they told anything.
    pub fn take(&mut self, two: [Waiting; 2]) -> Result<bool> {
        let mut any = false;
        for waiting in two {
            if let Some((session, line)) = waiting.end()? {
                any = true;
                self.told.entry(session).or_default().push(line);
            }
        }
        Ok(any)
    }

    /// Two at once, as often as there is something to tell.
    pub fn drain(&mut self, waiter: &Waiter<'_>) -> Result<()> {
        while self.take(waiter.two("0")?)? {}
        Ok(())
    }
}
