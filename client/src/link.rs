//! A call to the daemon as commands make it: typed, with its failures as commands tell them.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use minder_proto::caller::Caller;
use minder_proto::error::exit;
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
    /// What there is to say of it besides that none runs.
    pub reason: Option<String>,
}

impl Absent {
    fn of(why: &Unreachable) -> Self {
        let reason = match why {
            Unreachable::Start(error) => Some(error.to_string()),
            _ => None,
        };
        Self { error: unreachable(why), reason }
    }
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

    /// Connects, and starts the daemon where that is wanted.
    pub fn connect(&mut self) -> Result<(), Unreachable> {
        self.client.connect()
    }

    /// Makes a call once; while its answer is waited for, `waiting` has what becomes readable when it comes.
    pub fn try_watched<C: Call>(
        &mut self,
        call: &C,
        waiting: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<C::Answer, CallError> {
        self.client.call_watched(call, waiting)
    }

    /// True if a daemon listens.
    pub fn is_answered(&mut self) -> bool {
        self.client.connect().is_ok()
    }

    /// Makes a call.
    pub fn call<C: Call>(&mut self, call: &C) -> Result<C::Answer, CommandError> {
        self.call_or_absent(call)?.map_err(|absent| absent.error)
    }

    /// Makes a call, and says apart from other failures that there is nobody to make it to.
    pub fn call_or_absent<C: Call>(&mut self, call: &C) -> Result<Result<C::Answer, Absent>, CommandError> {
        match self.try_call(call) {
            Ok(answer) => Ok(Ok(answer)),
            Err(CallError::Unreachable(why)) if is_absence(&why) => Ok(Err(Absent::of(&why))),
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
                    return Ok(Err(Absent::of(&why)));
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

/// True if nobody took the call and nobody will: it may be left in the spool. A daemon that is late comes yet.
fn is_absence(why: &Unreachable) -> bool {
    match why {
        Unreachable::NotRunning(_) | Unreachable::InTurn | Unreachable::Sandbox(_) => true,
        Unreachable::Start(error) => !matches!(error, StartError::Late(_)),
        _ => false,
    }
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
    let (exit, unavailable) = (why.exit_code(), CommandError::unavailable(why.to_string()));
    // What a start was refused for does not pass by itself.
    let error = CommandError { exit, retryable: exit == exit::UNAVAILABLE, ..unavailable };
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

#[cfg(test)]
mod tests {
    use minder_proto::rpc::Declare;
    use minder_proto::state::State;

    use super::*;
    use crate::autostart::Starter;
    use crate::autostart::tests::starter;

    fn declare(start: Start) -> Result<Option<Absent>, CommandError> {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::at(Home::at(dir.path()), dir.path().join("s.sock"));
        let declare = Declare {
            caller: None,
            session: None,
            state: State::Done,
            note: None,
            only_if: None,
            key: Some("k".into()),
        };
        let link = || Link { client: Client::new(endpoint.clone(), start.clone()) };
        let keyed = link().call_keyed(&declare).map(Result::err);
        let plain = link().call_or_absent(&declare).map(Result::err);
        assert_eq!(format!("{keyed:?}"), format!("{plain:?}"));
        keyed
    }

    #[test]
    fn a_daemon_that_is_late_is_not_an_absent_one() {
        let dir = tempfile::tempdir().unwrap();
        // It is on its way, and nobody waits for it.
        let late = Starter { patience: Duration::ZERO, ..starter(dir.path(), "exec sleep 10") };
        let error = declare(Start::This(late)).unwrap_err();
        assert_eq!((error.exit, error.hint.as_deref()), (69, Some("minder daemon logs")), "{error}");
    }

    #[test]
    fn who_is_absent_for_a_reason_says_it() {
        let absent = |start| declare(start).unwrap().unwrap();
        assert_eq!(absent(Start::Await(Duration::ZERO)).error.exit, 69);
        let none = absent(Start::Never("this is a test"));
        assert_eq!((none.error.exit, none.reason), (69, None));
        let dir = tempfile::tempdir().unwrap();
        let refused = absent(Start::This(starter(dir.path(), "echo 'error 78 config.toml:3: no such key'")));
        assert_eq!(
            (refused.error.exit, refused.reason.as_deref(), refused.error.retryable),
            (78, Some("config.toml:3: no such key"), false)
        );
        let nowhere = Starter { program: dir.path().join("none"), ..starter(dir.path(), "") };
        let missing = absent(Start::This(nowhere));
        assert!(missing.error.exit == 69 && missing.reason.is_some_and(|r| r.contains("No such file")));
    }
}
