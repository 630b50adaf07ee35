//! The waiter: one call that ends when something may enter an idle session. It outlives restarts of the daemon,
//! and ends with its harness, or before the harness's own limit for it.

use std::time::{Duration, Instant};

use minder_proto::layout::Home;
use minder_proto::rpc::{Call, HookAnswer, HookEnv, HookWait};
use serde_json::Value;
use uuid::Uuid;

use super::{environment, input, payload};
use crate::folder_watch::FolderWatch;
use crate::process::Process;
use crate::rpc::{CallError, Client, Endpoint, Start};

/// How long the input may take; nobody waits for this one.
const INPUT: Duration = Duration::from_secs(10);
/// The waiter's whole life: below the 2,000,000 s after which the harness would kill it.
const LIFE: Duration = Duration::from_secs(1_900_000);
/// A socket that was just made may not be listened to yet: after a change it is tried again this soon, each once.
const SETTLING: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(200), Duration::from_secs(2)];
/// After a refusal that may pass, the daemon is asked again this much later.
const AGAIN: Duration = Duration::from_secs(1);

/// Waits. `None`: there is nothing to say, and the harness goes on as if nobody had waited.
pub fn serve(harness: String) -> Option<HookAnswer> {
    let env = environment(&harness);
    if is_in_the_way(&env) {
        return None;
    }
    let end = Instant::now() + LIFE;
    let payload = payload::parse(&input::read(std::io::stdin(), Instant::now() + INPUT)?)?;
    let home = Home::from_env().ok()?;
    let owner = env.pid.and_then(|pid| u32::try_from(pid).ok()).and_then(Process::open);
    let wait = HookWait { harness, payload: Value::Object(payload), env, resume: Uuid::now_v7().to_string() };
    let mut settling = [].iter();
    loop {
        // Begun before the call, so that a daemon that comes up between the two is not missed.
        let endpoint = Endpoint::from_env(home.clone());
        let places: Vec<_> = endpoint.places().collect();
        let folders: Vec<_> = places.iter().filter_map(|p| p.parent()).chain([home.root()]).collect();
        let watch = FolderWatch::new(&folders);
        let left = end.checked_duration_since(Instant::now()).filter(|l| !l.is_zero())?;
        let mut client = Client::new(endpoint, Start::Never("a waiter starts none"));
        match client.call_method(HookWait::METHOD, &wait, Some(left)) {
            Ok(answer) => return Some(answer),
            // Until a daemon is there again, or the harness is not.
            Err(CallError::Unreachable(_)) => {
                let limit = settling.next().map_or(left, |l: &Duration| left.min(*l));
                if watch?.wait(owner.as_ref().and_then(Process::descriptor), Some(limit)) {
                    settling = SETTLING.iter();
                }
            }
            Err(CallError::Refused(fault)) if fault.kind.is_retryable() => std::thread::sleep(AGAIN),
            Err(_) => return None,
        }
        if owner.as_ref().is_some_and(|o| o.wait(Duration::ZERO)) {
            return None;
        }
    }
}

/// True where a waiter would hold up its harness, or is not needed: in a run that nobody sits at a hook is waited
/// for, and in a supervised turn the runner delivers.
fn is_in_the_way(env: &HookEnv) -> bool {
    env.turn.is_some() || env.attended == Some(false) || env.entrypoint.as_deref() == Some("sdk-cli")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_never_holds_up_a_run_that_nobody_sits_at() {
        let plain = HookEnv { entrypoint: Some("cli".into()), attended: Some(true), ..HookEnv::default() };
        assert!(!is_in_the_way(&plain) && !is_in_the_way(&HookEnv::default()));
        for held_up in [
            HookEnv { turn: Some("t".into()), ..plain.clone() },
            HookEnv { attended: Some(false), ..plain.clone() },
            HookEnv { entrypoint: Some("sdk-cli".into()), ..plain },
        ] {
            assert!(is_in_the_way(&held_up));
        }
    }
}
