//! Another process, held so that it cannot be mistaken for a later one with the same number: to wait for its end.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A process that was alive when this was made.
#[derive(Debug)]
pub struct Process(imp::Held);

impl Process {
    /// The process that has this number now.
    pub fn open(pid: u32) -> Option<Self> {
        imp::Held::open(pid).map(Self)
    }

    /// A descriptor that is readable once it has ended, where the system has such a thing.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.descriptor()
    }

    /// Waits for its end, at most this long; true if it has ended.
    pub fn wait(&self, limit: Duration) -> bool {
        self.0.wait(limit)
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    #[derive(Debug)]
    pub struct Held(OwnedFd);

    impl Held {
        pub fn open(pid: u32) -> Option<Self> {
            let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
            pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
        }

        #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
        pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        pub fn wait(&self, limit: Duration) -> bool {
            let deadline = Instant::now() + limit;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let timeout = Timespec::try_from(left).ok();
                match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], timeout.as_ref()) {
                    Ok(0) => return false,
                    Ok(_) => return true,
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::os::fd::BorrowedFd;
    use std::time::{Duration, Instant};

    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    /// Here the number alone says which, and the wait looks often.
    #[derive(Debug)]
    pub struct Held(Pid);

    impl Held {
        pub fn open(pid: u32) -> Option<Self> {
            let pid = Pid::from_raw(i32::try_from(pid).ok()?);
            kill(pid, None).is_ok().then_some(Self(pid))
        }

        pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        pub fn wait(&self, limit: Duration) -> bool {
            let deadline = Instant::now() + limit;
            while kill(self.0, None).is_ok() {
                if Instant::now() >= deadline {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        assert!(!process.wait(Duration::ZERO));
        drop(child.stdin.take());
        let reaper = std::thread::spawn(move || child.wait());
        assert!(process.wait(Duration::from_secs(10)));
        reaper.join().unwrap().unwrap();
    }
}
