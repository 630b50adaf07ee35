//! Ends a whole tree of processes, with proof: everything below this process is stopped, and looked for again until
//! nothing new is found, killed and reaped; and that again until there is no child left. Who was stopped can fork no
//! more, and what a process orphans by its end becomes a child of this one, which is a subreaper. [`kill_marked`] finds
//! what is not below this process by the turn's marker in its environment: for a daemon whose shim is gone.
//!
//! A process is signalled only while it is held and is the one that was looked at.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use minder_proto::id::TurnId;
use minder_proto::turn::folder::Survivor;
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::start::MARKER;

pub use system::subreaper;

/// How long one look at a process that was killed lasts at most, before everything is looked at again.
const LOOK: Duration = Duration::from_millis(10);

/// What a kill came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were killed.
    pub killed: u32,
    /// What could not be killed.
    pub survivors: Vec<Survivor>,
}

/// A process as it was looked at; equal if it is the same and has the same parent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    ppid: i32,
    start: u64,
    command: String,
    /// It may have children of more threads than one.
    threads: bool,
    /// It has ended, and only its parent has not noticed.
    ended: bool,
}

/// Kills every process below this one. `ended` hears of each child that ends; whoever waits for one learns it there.
pub fn kill_below(within: Duration, mut ended: impl FnMut(WaitStatus)) -> Swept {
    let deadline = Instant::now() + within;
    let own = own_pid();
    let mut killed = BTreeSet::new();
    loop {
        if !reap(&mut ended) {
            return Swept { killed: count(&killed), survivors: Vec::new() };
        }
        let found = stop(&BTreeSet::new(), deadline);
        let left = kill(&found, &mut killed);
        if !reap(&mut ended) {
            return Swept { killed: count(&killed), survivors: Vec::new() };
        }
        // Nothing here that a kill of ours reaches: more of them change nothing.
        let hopeless = !found.is_empty() && left == found.values().filter(|s| !s.ended).count() && left > 0;
        if hopeless || Instant::now() >= deadline {
            let found = walk(own, &BTreeSet::new(), &mut |_, _| {});
            return survivors(found, &killed);
        }
        await_one(&found, deadline);
    }
}

/// Kills every process that carries the turn's marker, and everything below those.
pub fn kill_marked(turn: &TurnId, within: Duration) -> Swept {
    let deadline = Instant::now() + within;
    let marker = format!("{MARKER}={turn}").into_bytes();
    let mut killed = BTreeSet::new();
    loop {
        let marked = system::marked(&marker);
        let found = if marked.is_empty() { BTreeMap::new() } else { stop(&marked, deadline) };
        let found: BTreeMap<i32, Seen> = found.into_iter().filter(|(_, seen)| !seen.ended).collect();
        if found.is_empty() {
            return Swept { killed: count(&killed), survivors: Vec::new() };
        }
        let left = kill(&found, &mut killed);
        for (pid, seen) in &found {
            system::await_end(*pid, seen, deadline.saturating_duration_since(Instant::now()).min(LOOK));
        }
        if left == found.len() || Instant::now() >= deadline {
            let still = |(pid, seen): &(i32, Seen)| system::look(*pid).is_some_and(|s| s == *seen);
            return survivors(found.into_iter().filter(still).collect(), &killed);
        }
    }
}

/// Takes the status of every child that has ended; false if there is no child any more.
pub fn reap(ended: &mut impl FnMut(WaitStatus)) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Ok(status) => ended(status),
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends a signal to one child that nobody has waited for yet.
pub fn signal_child(pid: i32, signal: i32) {
    // A child's pid is its own until it is waited for, which only this process does.
    if let Ok(signal) = nix::sys::signal::Signal::try_from(signal) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
    }
}

/// Stops what is found, looks again, until a look finds nothing new.
fn stop(seeds: &BTreeSet<i32>, deadline: Instant) -> BTreeMap<i32, Seen> {
    let own = own_pid();
    let mut all: BTreeMap<i32, Seen> = BTreeMap::new();
    loop {
        let mut news = false;
        let found = walk(own, seeds, &mut |pid, seen: &Seen| {
            if all.get(&pid) != Some(seen) && !seen.ended {
                news |= all.get(&pid).is_none_or(|known| known.start != seen.start);
                let _ = system::send(pid, seen, nix::libc::SIGSTOP);
            }
        });
        all.extend(found);
        if !news || Instant::now() >= deadline {
            return all;
        }
    }
}

/// Kills them; says how many that is not allowed for.
fn kill(found: &BTreeMap<i32, Seen>, killed: &mut BTreeSet<(i32, u64)>) -> usize {
    let mut refused = 0;
    for (pid, seen) in found.iter().filter(|(_, seen)| !seen.ended) {
        match system::send(*pid, seen, nix::libc::SIGKILL) {
            Ok(true) => drop(killed.insert((*pid, seen.start))),
            Ok(false) => {}
            Err(_) => refused += 1,
        }
    }
    refused
}

/// The processes below `own`, or the `seeds` and those below them, each told as soon as it is found: parents first.
fn walk(own: i32, seeds: &BTreeSet<i32>, told: &mut impl FnMut(i32, &Seen)) -> BTreeMap<i32, Seen> {
    let look = system::Look::new();
    let mut found = BTreeMap::new();
    let mut open: Vec<(i32, Option<i32>)> = if seeds.is_empty() {
        look.children(own, false).into_iter().map(|pid| (pid, Some(own))).collect()
    } else {
        seeds.iter().map(|pid| (*pid, None)).collect()
    };
    while let Some((pid, parent)) = open.pop() {
        if pid == own || found.contains_key(&pid) {
            continue;
        }
        let Some(seen) = system::look(pid) else { continue };
        // Another process may have the pid by now. One that moved is found where it is now.
        if parent.is_some_and(|parent| seen.ppid != parent && seen.ppid != own) {
            continue;
        }
        told(pid, &seen);
        let threads = seen.threads;
        found.insert(pid, seen);
        open.extend(look.children(pid, threads).into_iter().map(|child| (child, Some(pid))));
    }
    found
}

/// Waits a little for the first that still is.
fn await_one(found: &BTreeMap<i32, Seen>, deadline: Instant) {
    let patience = deadline.saturating_duration_since(Instant::now()).min(LOOK);
    if let Some((pid, seen)) = found.iter().find(|(_, seen)| !seen.ended) {
        system::await_end(*pid, seen, patience);
    }
}

fn survivors(found: BTreeMap<i32, Seen>, killed: &BTreeSet<(i32, u64)>) -> Swept {
    let alive: Vec<(i32, Seen)> = found.into_iter().filter(|(_, seen)| !seen.ended).collect();
    let gone = killed.iter().filter(|k| !alive.iter().any(|(pid, seen)| (*pid, seen.start) == **k));
    let killed = u32::try_from(gone.count()).unwrap_or(u32::MAX);
    let name = |(pid, seen): (i32, Seen)| Survivor { pid, start: seen.start, command: seen.command };
    Swept { killed, survivors: alive.into_iter().map(name).collect() }
}

fn count(killed: &BTreeSet<(i32, u64)>) -> u32 {
    u32::try_from(killed.len()).unwrap_or(u32::MAX)
}

fn own_pid() -> i32 {
    nix::unistd::getpid().as_raw()
}
