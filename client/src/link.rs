//! A call to the daemon as commands make it: typed, with its failures as commands tell them.

use std::time::Duration;

use minder_proto::caller::Caller;
use minder_proto::layout::Home;
use minder_proto::rpc::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::autostart::StartError;
use crate::fault::CommandError;
use crate::rpc::{CallError, Client, Endpoint, PATIENCE, Start, Unreachable};

/// How often a keyed call is made again after the daemon ended in the middle of it.
const AGAIN: u32 = 4;

/// A connection to the daemon of the caller's store.
#[derive(Debug)]
pub struct Link {
    client: Client,
}

/// Nobody has been told: no daemon runs, and none can be started from here.
#[derive(Debug)]
pub struct Absent {
    /// As a failure, for a caller who needs an answer.
    pub error: CommandError,
}

impl Link {
    /// The daemon, which is started at the first call if none runs and that is wanted.
    pub fn starting(home: &Home) -> Self {
        Self { client: Client::new(Endpoint::from_env(home.clone()), Start::from_env()) }
    }

    /// A daemon that runs; none is started. Each call gets this long.
    pub fn running(home: &Home, patience: Duration) -> Self {
        let start = Start::Never("none is started for this");
        Self { client: Client::new(Endpoint::from_env(home.clone()), start).patience(Some(patience)) }
    }

    /// As [`Link::running`], and whatever its version and store are.
    pub fn of_any_version(home: &Home, patience: Duration) -> Self {
        let Self { client } = Self::running(home, patience);
        Self { client: client.unchecked() }
    }

    /// Makes a call.
    pub fn call<C: Call>(&mut self, call: &C) -> Result<C::Answer, CommandError> {
        self.call_or_absent(call)?.map_err(|absent| absent.error)
    }

    /// Makes a call, and says apart from other failures that there is nobody to make it to.
    pub fn call_or_absent<C: Call>(&mut self, call: &C) -> Result<Result<C::Answer, Absent>, CommandError> {
        match self.try_call(call) {
            Ok(answer) => Ok(Ok(answer)),
            Err(CallError::Unreachable(why)) if is_absence(&why) => {
                Ok(Err(Absent { error: unreachable(&why) }))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Makes a call that carries a key, and makes it again if the daemon ended in the middle: what the first one
    /// did is then found by the key.
    pub fn call_keyed<C: Call>(&mut self, call: &C) -> Result<Result<C::Answer, Absent>, CommandError> {
        let mut left = AGAIN;
        loop {
            match self.try_call(call) {
                Err(CallError::Unreachable(Unreachable::Lost)) if left > 0 => left -= 1,
                Ok(answer) => return Ok(Ok(answer)),
                Err(CallError::Unreachable(why)) if is_absence(&why) => {
                    return Ok(Err(Absent { error: unreachable(&why) }));
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Makes a call whose answer is read as something else than this version's.
    pub fn call_method<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, CallError> {
        self.client.call_method(method, params, Some(PATIENCE))
    }

    /// Makes a call once, with its failure as it came.
    pub fn try_call<C: Call>(&mut self, call: &C) -> Result<C::Answer, CallError> {
        self.client.call(call)
    }
}

/// True if nobody took the call and nobody will: it may be left in the spool.
fn is_absence(why: &Unreachable) -> bool {
    matches!(why, Unreachable::NotRunning(_) | Unreachable::Sandbox(_) | Unreachable::Start(_))
}

/// The failure of a call, in the words and codes of the contract.
pub fn failed(error: CallError) -> CommandError {
    match error {
        CallError::Unreachable(why) => unreachable(&why),
        CallError::Refused(fault) => fault.into(),
        CallError::Broken(what) => CommandError::software(what),
    }
}

/// The failure of a call that nobody took.
pub fn unreachable(why: &Unreachable) -> CommandError {
    let error = CommandError { exit: why.exit_code(), ..CommandError::unavailable(why.to_string()) };
    match why {
        Unreachable::NotRunning(_) => error.hint("minder daemon start"),
        Unreachable::NotAnswering(_) | Unreachable::Lost => error.hint("minder daemon status"),
        Unreachable::Start(StartError::Late(_)) => error.hint("minder daemon logs"),
        _ => error,
    }
}

/// The caller, as every call carries it.
pub fn as_caller(caller: &Caller) -> Option<Caller> {
    Some(caller.clone())
}
