//! Processes as Linux shows and holds them: `/proc`, pidfds.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Seen;

/// Makes this process the one that adopts what its descendants orphan. True where that is so from here on.
pub fn subreaper() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

/// One look at who is whose child.
pub struct Look {
    /// All there are, where the kernel lists nobody's children.
    parents: Option<Vec<(i32, i32)>>,
}

impl Look {
    pub fn new() -> Self {
        let own = std::process::id();
        let listed = std::fs::exists(format!("/proc/self/task/{own}/children")).unwrap_or(false);
        let all = || pids().filter_map(|pid| Some((pid, look(pid)?.ppid))).collect();
        Self { parents: (!listed).then(all) }
    }

    /// The children of a process; also those of its threads, where it has any.
    pub fn children(&self, of: i32, threads: bool) -> Vec<i32> {
        if let Some(parents) = &self.parents {
            return parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid).collect();
        }
        let mut found = Vec::new();
        let mut of_task = |task: &str| {
            let text =
                std::fs::read_to_string(format!("/proc/{of}/task/{task}/children")).unwrap_or_default();
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        };
        if threads {
            let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
            tasks.for_each(|task| task.file_name().to_str().map_or((), &mut of_task));
        } else {
            of_task(&of.to_string());
        }
        found
    }
}

/// Every process there is.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process is now.
pub fn look(pid: i32) -> Option<Seen> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// The name stands in brackets and may hold any byte; numbers follow.
fn parse(stat: &str) -> Option<Seen> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, command) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let ppid = fields.next()?.parse().ok()?;
    let threads = fields.nth(15)?.parse::<u32>().ok()? > 1;
    let start = fields.nth(1)?.parse().ok()?;
    // A first thread that has ended beside others that have not is no end.
    let ended = matches!(state, "Z" | "X") && !threads;
    Some(Seen { ppid, start, command: command.to_owned(), threads, ended })
}

/// Holds a process if it still is the one that was looked at.
fn hold(pid: i32, seen: &Seen) -> Option<OwnedFd> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    look(pid).is_some_and(|now| now.start == seen.start).then_some(fd)
}

/// Signals exactly this process; false if it is no more.
pub fn send(pid: i32, seen: &Seen, signal: i32) -> io::Result<bool> {
    let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    let Some(held) = hold(pid, seen) else { return Ok(false) };
    match pidfd_send_signal(held, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits for its end, at most so long.
pub fn await_end(pid: i32, seen: &Seen, patience: Duration) {
    if let Some(held) = hold(pid, seen) {
        let timeout = Timespec::try_from(patience).ok();
        let _ = poll(&mut [PollFd::new(&held, PollFlags::IN)], timeout.as_ref());
    }
}

/// Processes that have `NAME=VALUE` in their environment, this one left out.
pub fn marked(marker: &[u8]) -> BTreeSet<i32> {
    let own = nix::unistd::getpid().as_raw();
    pids().filter(|pid| *pid != own && has_marker(*pid, marker)).collect()
}

/// An environment can be long; it is read in pieces, and an entry that is no longer than the marker is kept of each.
fn has_marker(pid: i32, marker: &[u8]) -> bool {
    // What was looked at first and is the same afterwards is whose environment it was.
    let Some(before) = look(pid).filter(|seen| !seen.ended) else { return false };
    let Ok(mut file) = File::open(format!("/proc/{pid}/environ")) else { return false };
    let mut entry: Vec<u8> = Vec::with_capacity(marker.len() + 1);
    let mut piece = [0_u8; 4096];
    let mut found = false;
    while let Ok(read) = file.read(&mut piece) {
        if read == 0 || found {
            break;
        }
        for byte in &piece[..read] {
            if *byte == 0 {
                found |= entry == marker;
                entry.clear();
            } else if entry.len() <= marker.len() {
                entry.push(*byte);
            }
        }
    }
    found && look(pid).is_some_and(|now| now.start == before.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        let line = "42 (a) Z 7 (b)) S 12 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        let command = "a) Z 7 (b)".to_owned();
        assert_eq!(parse(line), Some(Seen { ppid: 12, start: 98765, command, threads: false, ended: false }));
        assert!(parse("42 (sh) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0").unwrap().ended);
        assert!(
            !parse("42 (sh) Z 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 5 0").unwrap().ended,
            "a thread lives"
        );
        assert_eq!(parse("nothing"), None);
    }

    #[test]
    fn f5_a_process_of_another_start_is_not_signalled() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let seen = look(pid).unwrap();
        let other = Seen { start: seen.start + 1, ..seen.clone() };
        assert!(!send(pid, &other, nix::libc::SIGKILL).unwrap());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "it ended because its input did");
        assert!(!send(pid, &seen, nix::libc::SIGKILL).unwrap());
    }
}
