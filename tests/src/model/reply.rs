//! Playing an answer: the pauses of a script between the request and the words, the same for all wire formats.

use std::collections::HashSet;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::Value;

use super::script::Step;

/// What a wire format has to write: pauses, then one of an answer's ends.
pub struct Answer<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// A rough count of the request's tokens.
    pub input_tokens: usize,
    pub pauses: &'a [Step],
    pub end: End<'a>,
    pub pauser: &'a Pauser<'a>,
}

/// How an answer ends on the wire. Statuses and hangs never reach a wire format.
pub enum End<'a> {
    Say(&'a str),
    Tool {
        name: &'a str,
        input: &'a Value,
    },
    /// Begin, then drop the connection.
    Cut,
}

/// Named gates that a test opens.
#[derive(Default)]
pub struct Gates {
    state: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    open: HashSet<String>,
    /// Who waits at which gate: the other end hangs up when this one is dropped.
    waiting: Vec<(String, UnixStream)>,
    /// The model ends: whoever waits gives up.
    over: bool,
}

impl Gates {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(&self, name: &str) {
        let mut state = self.lock();
        state.open.insert(name.to_owned());
        state.waiting.retain(|(gate, _)| gate != name);
    }

    pub fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        state.waiting.clear();
    }

    fn over(&self) -> bool {
        self.lock().over
    }

    /// What hangs up when the gate opens; nothing if there is no need to wait.
    fn wait_at(&self, name: &str) -> io::Result<Option<UnixStream>> {
        let mut state = self.lock();
        if state.over {
            return Err(gone());
        }
        if state.open.contains(name) {
            return Ok(None);
        }
        let (here, there) = UnixStream::pair()?;
        state.waiting.push((name.to_owned(), there));
        Ok(Some(here))
    }
}

/// The client closed its side. Its next request, sent early, is not that.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

/// Waits on behalf of one connection. Every wait ends with an error if the client goes away.
pub struct Pauser<'a> {
    pub connection: &'a TcpStream,
    pub gates: &'a Gates,
}

impl Pauser<'_> {
    /// Plays one pause. `word` is called once a second of a drip.
    pub fn play(&self, step: &Step, mut word: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        match step {
            Step::Wait(seconds) => self.until(Instant::now() + seconds_of(*seconds)),
            Step::Drip(seconds) => {
                let end = Instant::now() + seconds_of(*seconds);
                while Instant::now() < end {
                    word()?;
                    self.until(end.min(Instant::now() + Duration::from_secs(1)))?;
                }
                Ok(())
            }
            Step::Gate(name) => match self.gates.wait_at(name)? {
                Some(gate) => self.watch(Some(&gate), None),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Comes back only when the client goes away or the model ends.
    pub fn forever(&self) -> io::Error {
        self.watch(None, None).err().unwrap_or_else(gone)
    }

    fn until(&self, end: Instant) -> io::Result<()> {
        self.watch(None, Some(end))
    }

    /// Waits until the gate opens or the time has come, whatever there is of them.
    fn watch(&self, gate: Option<&UnixStream>, end: Option<Instant>) -> io::Result<()> {
        loop {
            let mut watched = vec![PollFd::new(self.connection, CLOSED)];
            watched.extend(gate.map(|gate| PollFd::new(gate, PollFlags::IN)));
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut watched, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if !watched[0].revents().is_empty() || self.gates.over() {
                return Err(gone());
            }
            let opened = watched.get(1).is_some_and(|gate| !gate.revents().is_empty());
            if opened || end.is_some_and(|end| Instant::now() >= end) {
                return Ok(());
            }
        }
    }
}

fn seconds_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client closed the connection")
}
