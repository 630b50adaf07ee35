//! The way to the daemon: JSON-RPC over HTTP/1.1 on a Unix socket, synchronous, with the standard library and
//! serde_json alone.
//!
//! [`endpoint`] knows where the socket may be, `wire` speaks HTTP on one connection, and [`Client`] puts them together: it finds the daemon, starts it where that is wanted, and asks again where a connection was closed before
//! the daemon had read the request, and only there.

pub mod endpoint;
mod error;
mod wire;

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use minder_proto::rpc::Call;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use endpoint::Endpoint;
pub use error::{CallError, Unreachable};

use crate::autostart::{StartError, Starter, TURN};
use error::WireFault;
use wire::{Deadline, Head, Wire, WireError};

/// How long an ordinary call may take.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How often a request is sent again, or a daemon started, before the client gives up.
const ATTEMPTS: u32 = 4;
/// How long a call inside a turn waits for a daemon that somebody else starts.
const COMES_BACK: Duration = Duration::from_secs(60);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);

/// What to do where no daemon listens.
#[derive(Clone, Debug)]
pub enum Start {
    /// Start the one that the environment leads to, and wait until it serves.
    Found,
    /// Start this one, and wait until it serves.
    This(Starter),
    /// Start none, and wait so long for one that comes: inside a turn, whose end would be the end of what it started.
    Await(Duration),
    /// Start none; the text says why, in the end of a sentence.
    Never(&'static str),
}

impl Start {
    /// Start one, unless `MINDER_NO_AUTOSTART` is set or this is a turn.
    pub fn from_env() -> Self {
        let (never, turn) = (std::env::var_os("MINDER_NO_AUTOSTART"), std::env::var_os(TURN));
        Self::of(never.as_deref(), turn.as_deref())
    }

    fn of(never: Option<&OsStr>, turn: Option<&OsStr>) -> Self {
        if never.is_some_and(|v| !v.is_empty() && v != "0") {
            Self::Never("MINDER_NO_AUTOSTART is set")
        } else if turn.is_some_and(|v| !v.is_empty()) {
            Self::Await(COMES_BACK)
        } else {
            Self::Found
        }
    }

    fn start(&self) -> Result<(), Unreachable> {
        match self {
            Self::Found => Ok(Starter::from_env()?.start()?),
            Self::This(starter) => Ok(starter.start()?),
            Self::Await(_) => Err(Unreachable::InTurn),
            Self::Never(why) => Err(Unreachable::NotRunning(why)),
        }
    }
}

/// A connection to the daemon of one store, made at the first call.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    start: Start,
    patience: Option<Duration>,
    checked: bool,
    wire: Option<Wire>,
    last_id: u64,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<WireFault>,
    id: Option<u64>,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(endpoint: Endpoint, start: Start) -> Self {
        Self { endpoint, start, patience: Some(PATIENCE), checked: true, wire: None, last_id: 0 }
    }

    /// Grants each call this long in all; `None` grants it any time.
    #[must_use]
    pub fn patience(mut self, patience: Option<Duration>) -> Self {
        self.patience = patience;
        self
    }

    /// Does not say which protocol and store are meant: for `daemon.status` and `daemon.stop`, which must reach a
    /// daemon of any version.
    #[must_use]
    pub fn unchecked(mut self) -> Self {
        self.checked = false;
        self
    }

    /// Calls the method that the parameters name, and reads its answer. A long call may take any time.
    pub fn call<C: Call>(&mut self, call: &C) -> Result<C::Answer, CallError> {
        self.call_watched(call, &mut |_| {})
    }

    /// As [`Client::call`]; while the answer is waited for, `waiting` has what becomes readable when it comes.
    pub fn call_watched<C: Call>(
        &mut self,
        call: &C,
        waiting: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<C::Answer, CallError> {
        let patience = if C::LONG { None } else { self.patience };
        self.ask(C::METHOD, call, patience, waiting)
    }

    /// Calls a method by its name, as for a request that was written down earlier.
    pub fn call_method<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Option<Duration>,
    ) -> Result<R, CallError> {
        self.ask(method, params, patience, &mut |_| {})
    }

    fn ask<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Option<Duration>,
        waiting: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<R, CallError> {
        self.last_id += 1;
        let id = self.last_id;
        let request = Request { jsonrpc: "2.0", id, method, params };
        let body = serde_json::to_vec(&request)
            .map_err(|e| CallError::Broken(format!("the request cannot be written: {e}")))?;
        let answer = self.exchange(&body, patience, waiting)?;
        read(&answer, id)
    }

    /// Connects, if it is not connected; starts the daemon, if that is wanted.
    pub fn connect(&mut self) -> Result<(), Unreachable> {
        self.connected(self.patience).map(drop)
    }

    /// Sends one request and returns the body of its answer.
    fn exchange(
        &mut self,
        body: &[u8],
        patience: Option<Duration>,
        waiting: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Vec<u8>, CallError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let wire = self.connected(patience)?;
            // The time that a start took is not the call's.
            match wire.exchange(body, Deadline::within(patience), waiting) {
                Ok((answer, again)) => {
                    if !again {
                        self.wire = None;
                    }
                    return Ok(answer);
                }
                Err(WireError::Unread) if attempt < ATTEMPTS => self.wire = None,
                Err(error) => {
                    self.wire = None;
                    return Err(error.into());
                }
            }
        }
    }

    fn connected(&mut self, patience: Option<Duration>) -> Result<&mut Wire, Unreachable> {
        if self.wire.as_mut().is_some_and(Wire::was_closed) {
            self.wire = None;
        }
        let wire = match self.wire.take() {
            Some(wire) => wire,
            None => self.connect_anew(patience)?,
        };
        Ok(self.wire.insert(wire))
    }

    fn connect_anew(&self, patience: Option<Duration>) -> Result<Wire, Unreachable> {
        let mut starts = 0;
        let until = match self.start {
            Start::Await(within) => Some(Instant::now() + within),
            _ => None,
        };
        loop {
            // Anew each time: what a start took is not the call's.
            if let Some(wire) = self.connect_to_one(Deadline::within(patience))? {
                return Ok(wire);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if let Some(left) = left.filter(|left| !left.is_zero()) {
                std::thread::sleep(left.min(LOOK));
                continue;
            }
            // It came up and was gone again, as in the middle of a restart.
            if starts == ATTEMPTS {
                return Err(Unreachable::NotRunning("it ended each time it was started"));
            }
            match self.start.start() {
                Ok(()) => starts += 1,
                // It is on its way and may listen already: then the call waits there as long as it would anywhere.
                Err(Unreachable::Start(late @ StartError::Late(_))) => {
                    let wire = self.connect_to_one(Deadline::within(patience))?;
                    return wire.ok_or(Unreachable::Start(late));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A connection to the daemon that listens; `None`: none does.
    fn connect_to_one(&self, deadline: Deadline) -> Result<Option<Wire>, Unreachable> {
        let Some(stream) = self.endpoint.connect(deadline)? else { return Ok(None) };
        // Only now: a store's real path is known once the store is there.
        let head = if self.checked { Head::of(&self.endpoint.store()) } else { Head::bare() };
        Ok(Some(Wire::new(stream, head)))
    }
}

/// Reads the answer to the request with this id.
fn read<R: DeserializeOwned>(answer: &[u8], id: u64) -> Result<R, CallError> {
    let broken = |e: serde_json::Error| CallError::Broken(format!("the answer cannot be read: {e}"));
    // No body at all, or `null`, is the result `null`.
    if answer.trim_ascii().is_empty() || answer.trim_ascii() == b"null" {
        return serde_json::from_str("null").map_err(broken);
    }
    let answer: Answer<'_> = serde_json::from_slice(answer).map_err(broken)?;
    if let Some(error) = answer.error {
        return Err(CallError::Refused(error.into()));
    }
    if answer.id != Some(id) {
        return Err(CallError::Broken(format!(
            "the answer is to another request ({:?}, not {id})",
            answer.id
        )));
    }
    serde_json::from_str(answer.result.map_or("null", RawValue::get)).map_err(broken)
}

#[cfg(test)]
mod tests {
    use minder_proto::error::Kind;

    use super::*;

    #[test]
    fn a_turn_starts_no_daemon_and_waits_for_one() {
        let of = |never: &str, turn: Option<&str>| Start::of(Some(never.as_ref()), turn.map(AsRef::as_ref));
        assert!(matches!(of("", Some("01a")), Start::Await(COMES_BACK)));
        assert!(matches!((of("0", Some("")), of("", None)), (Start::Found, Start::Found)));
        assert!(matches!(of("1", Some("01a")), Start::Never(_)));
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let endpoint = Endpoint::at(minder_proto::layout::Home::at(dir.path()), socket.clone());
        let connect = |within| Client::new(endpoint.clone(), Start::Await(within)).connect();
        assert!(matches!(connect(Duration::ZERO), Err(Unreachable::InTurn)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| connect(COMES_BACK));
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            listener.accept().unwrap();
            waits.join().unwrap().unwrap();
        });
    }

    #[test]
    fn answers_are_read_strictly() {
        assert_eq!(read::<u32>(br#"{"jsonrpc":"2.0","id":7,"result":5}"#, 7).unwrap(), 5);
        assert_eq!(read::<Option<u32>>(b"null", 7).unwrap(), None);
        assert_eq!(read::<Option<u32>>(b" \n", 7).unwrap(), None);
        read::<()>(br#"{"jsonrpc":"2.0","id":7,"result":null}"#, 7).unwrap();
        for broken in [
            &b"{"[..],
            b"<html>",
            br#"{"jsonrpc":"2.0","id":8,"result":5}"#,
            br#"{"jsonrpc":"2.0","id":7,"result":"five"}"#,
        ] {
            assert!(matches!(read::<u32>(broken, 7), Err(CallError::Broken(_))), "{broken:?}");
        }
        let refused = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
        assert!(matches!(read::<u32>(refused, 7), Err(CallError::Refused(f)) if f.kind == Kind::Internal));
    }
}
