//! Children whose end somebody waits for. One thread reaps them all, so it tells here what became of each.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

#[derive(Debug, Default)]
pub struct Children {
    /// Of those that have ended: their exit codes; none for one that a signal ended.
    ended: Mutex<HashMap<u32, Option<i32>>>,
    more: Condvar,
}

impl Children {
    /// This one has ended.
    pub fn ended(&self, child: u32, code: Option<i32>) {
        self.ended.lock().expect("nobody panics with it").insert(child, code);
        self.more.notify_all();
    }

    /// The exit code of a child that leads a process group of its own; after the limit the group is killed.
    pub fn wait(&self, child: u32, limit: Duration) -> Option<i32> {
        let end = Instant::now() + limit;
        let mut killed = false;
        let mut ended = self.ended.lock().expect("nobody panics with it");
        loop {
            if let Some(code) = ended.remove(&child) {
                return code;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() && !killed {
                killed = true;
                // It may have ended by itself.
                let _ = killpg(Pid::from_raw(child.cast_signed()), Signal::SIGKILL);
            }
            let left = if killed { Duration::from_secs(10) } else { left };
            ended = self.more.wait_timeout(ended, left).expect("nobody panics with it").0;
        }
    }
}
