//! Processes that fork without becoming another program: the quickest there are, and the hardest to hunt. They end by
//! themselves after [`LIFE`], so that a test that fails does not leave them to its machine.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use nix::libc;

/// How long any process of `fake` lives at most where it forks on and on.
const LIFE: Duration = Duration::from_secs(60);
/// How long one that was bred lives if nobody ends it.
const BRED_MS: i32 = 50;

/// Forks a child every `gap`; each hangs for a moment and ends.
pub fn breed(gap: Duration) -> ! {
    let end = Instant::now() + LIFE;
    let gap = millis(gap);
    // SAFETY: who ignores this signal has no dead children to wait for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    while Instant::now() < end {
        // SAFETY: the child makes system calls only, and ends.
        if unsafe { libc::fork() } == 0 {
            pass(BRED_MS);
            // SAFETY: it runs nothing of the parent's.
            unsafe { libc::_exit(0) };
        }
        pass(gap);
    }
    std::process::exit(0)
}

/// Forks and ends, and the child does the same, on and on: one process that never has the same pid for long.
pub fn hop(gap: Duration) -> ! {
    let end = Instant::now() + LIFE;
    let gap = millis(gap);
    while Instant::now() < end {
        // SAFETY: parent and child make system calls only; the parent ends.
        if unsafe { libc::fork() } != 0 {
            // SAFETY: it runs nothing of the child's.
            unsafe { libc::_exit(0) };
        }
        pass(gap);
    }
    // SAFETY: as above.
    unsafe { libc::_exit(0) };
}

fn millis(gap: Duration) -> i32 {
    i32::try_from(gap.as_millis()).unwrap_or(i32::MAX)
}

fn pass(ms: i32) {
    if ms > 0 {
        // SAFETY: no descriptors, so nothing is read.
        unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
    }
}
