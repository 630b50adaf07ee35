//! One event: told to the daemon within the time that a harness should wait, or left in the spool.

use std::time::{Duration, Instant};

use minder_proto::error::Kind;
use minder_proto::layout::Home;
use minder_proto::rpc::{Call, HookAnswer, HookEvent, Spooled};
use minder_proto::stamp::Stamp;
use serde_json::Value;
use uuid::Uuid;

use super::{above, environment, input, payload, trace};
use crate::autostart::Starter;
use crate::rpc::{CallError, Client, Endpoint, Start, Unreachable};
use crate::spool;

/// Until then the input is read and the call is answered, of the 300 ms that a harness may be held up: what is left
/// is for the spool.
const BUDGET: Duration = Duration::from_millis(250);
/// What the call gets at least, where the reading took long.
const LEAST: Duration = Duration::from_millis(20);

/// Tells the event. `None`: nothing to print.
pub fn serve(harness: String) -> Option<HookAnswer> {
    let deadline = Instant::now() + BUDGET;
    let payload = payload::parse(&input::read(std::io::stdin(), deadline)?)?;
    let home = Home::from_env().ok()?;
    // One for the request and its spool file, made before the call: whichever the daemon meets first, it applies
    // the event once.
    let key = Uuid::now_v7();
    let mut env = environment(&harness);
    let probe = trace::Trace::wanted(&home, &harness, &payload);
    if probe.is_some() {
        // In a probe the turn's hooks are what is asked about; elsewhere the runner speaks for it.
        env.turn = None;
    }
    let event = HookEvent { harness, payload: Value::Object(payload), env, key: key.to_string() };
    let left = deadline.saturating_duration_since(Instant::now()).max(LEAST);
    let endpoint = Endpoint::from_env(home.clone());
    let mut client = Client::new(endpoint, Start::Never("a hook waits for none")).patience(Some(left));
    let answer = client.call(&event);
    if let Some(probe) = probe {
        probe.note(key, answer.is_ok());
    }
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            let fate = fate(&error);
            if fate != Fate::Drop {
                let mut event = event;
                // By the time that it is read nobody sees any more who ran this.
                event.env.pid = event.env.pid.or_else(above::who_runs_this);
                // Where even this fails nobody is left to tell.
                let _ = spool::put(&home, key, &spooled(&event)?);
            }
            if fate == Fate::SpoolAndStart && is_start_wanted() {
                let _ = Starter::from_env().and_then(|starter| starter.start_unattended());
            }
            None
        }
    }
}

fn spooled(event: &HookEvent) -> Option<Spooled> {
    let params = serde_json::to_value(event).ok()?;
    Some(Spooled { method: HookEvent::METHOD.to_owned(), params, at: Stamp::now() })
}

/// What becomes of an event that was not answered.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// Left for the daemon that is started now.
    SpoolAndStart,
    /// Left for the daemon that there is, or will be.
    Spool,
    /// The daemon does not want it.
    Drop,
}

fn fate(error: &CallError) -> Fate {
    match error {
        CallError::Unreachable(Unreachable::NotRunning(_)) => Fate::SpoolAndStart,
        // Somebody else's daemon: what happens here is not for it, and is not lost.
        CallError::Unreachable(_) | CallError::Broken(_) => Fate::Spool,
        CallError::Refused(fault) if fault.kind == Kind::Version || fault.kind.is_retryable() => Fate::Spool,
        CallError::Refused(_) => Fate::Drop,
    }
}

fn is_start_wanted() -> bool {
    matches!(Start::from_env(), Start::Found)
}

#[cfg(test)]
mod tests {
    use minder_proto::error::Fault;

    use super::*;

    #[test]
    fn what_a_daemon_may_still_want_is_kept_for_it() {
        let refused = |kind| fate(&CallError::Refused(Fault::new(kind, "no")));
        assert_eq!(refused(Kind::Version), Fate::Spool);
        assert_eq!(refused(Kind::Unavailable), Fate::Spool);
        assert_eq!(refused(Kind::ReadOnly), Fate::Spool);
        assert_eq!(refused(Kind::InvalidParams), Fate::Drop);
        assert_eq!(refused(Kind::Refused), Fate::Drop);
        assert_eq!(fate(&CallError::Unreachable(Unreachable::Sandbox("/s".into()))), Fate::Spool);
        assert_eq!(fate(&CallError::Unreachable(Unreachable::NotAnswering(None))), Fate::Spool);
        assert_eq!(fate(&CallError::Unreachable(Unreachable::NotRunning("x"))), Fate::SpoolAndStart);
    }
}
