//! Processes as `ps` shows them, where there is neither `/proc` nor a handle on a process nor a subreaper: what leaves
//! its group and its parent is found by the marker alone, where the system shows environments.

use std::collections::BTreeSet;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Seen;

/// There is none.
pub fn subreaper() -> bool {
    false
}

/// One look at who is whose child.
pub struct Look {
    parents: Vec<(i32, i32)>,
}

impl Look {
    pub fn new() -> Self {
        let pair = |line: String| {
            let mut numbers = line.split_ascii_whitespace().map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        };
        Self { parents: ps(&["-A", "-o", "pid=,ppid="]).into_iter().filter_map(pair).collect() }
    }

    /// The children of a process.
    pub fn children(&self, of: i32, _threads: bool) -> Vec<i32> {
        self.parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid).collect()
    }
}

/// What a process is now; its start as a number that differs between two of one pid.
pub fn look(pid: i32) -> Option<Seen> {
    let line = ps(&["-o", "ppid=,stat=,lstart=,comm=", "-p", &pid.to_string()]).into_iter().next()?;
    let mut words = line.split_ascii_whitespace();
    let ppid = words.next()?.parse().ok()?;
    let ended = words.next()?.starts_with('Z');
    let start = words.by_ref().take(5).flat_map(str::bytes);
    let start = start.fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let command = words.collect::<Vec<_>>().join(" ");
    let command = command.rsplit('/').next().unwrap_or_default().to_owned();
    Some(Seen { ppid, start, command, threads: false, ended })
}

/// Signals this process; false if it is no more.
pub fn send(pid: i32, seen: &Seen, signal: i32) -> io::Result<bool> {
    if look(pid).is_none_or(|now| now.start != seen.start) {
        return Ok(false);
    }
    let signal = Signal::try_from(signal)?;
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives it a moment.
pub fn await_end(_pid: i32, _seen: &Seen, patience: Duration) {
    std::thread::sleep(patience);
}

/// Processes that have `NAME=VALUE` in their environment, this one left out.
pub fn marked(marker: &[u8]) -> BTreeSet<i32> {
    let own = nix::unistd::getpid().as_raw();
    let marker = String::from_utf8_lossy(marker).into_owned();
    let pid = |line: String| {
        let mut words = line.split_ascii_whitespace();
        let pid = words.next()?.parse().ok().filter(|pid| *pid != own)?;
        words.any(|word| word == marker).then_some(pid)
    };
    ps(&["-A", "-E", "-ww", "-o", "pid=,command="]).into_iter().filter_map(pid).collect()
}

fn ps(arguments: &[&str]) -> Vec<String> {
    let out = Command::new("/bin/ps").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
