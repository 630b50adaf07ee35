//! Asking the kernel about one process: whether it still is, and a handle that becomes readable when it ends.

use minder_proto::record::Process;
use rustix::process::Signal;

/// What is known of a process.
#[derive(Debug)]
pub enum Look {
    /// It is there.
    Lives(Handle),
    /// It has ended. A process with its pid is another one.
    Ended,
    /// The kernel does not tell, and why.
    Unknown(String),
}

/// Looks for exactly this process.
pub fn look(process: &Process) -> Look {
    match crate::identity::boot_id() {
        Some(boot) if boot != process.boot => Look::Ended,
        Some(_) => system::look(process),
        None => Look::Unknown("the kernel names no boot".to_owned()),
    }
}

/// True if exactly this process runs.
pub fn is_alive(process: &Process) -> bool {
    matches!(look(process), Look::Lives(_))
}

/// Waits for the end of exactly this process; for ever where the kernel does not tell.
pub async fn ended(process: &Process) {
    match look(process) {
        Look::Ended => {}
        Look::Lives(handle) => match handle.watch() {
            Ok(watched) => watched.ended().await,
            Err(_) => std::future::pending().await,
        },
        Look::Unknown(_) => std::future::pending().await,
    }
}

/// Signals exactly this process, if it runs.
pub fn signal(process: &Process, signal: Signal) {
    if let Look::Lives(handle) = look(process) {
        handle.signal(signal);
    }
}

pub use system::Handle;

/// Linux: pidfd.
#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;

    use minder_proto::record::Process;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Look;
    use crate::readable::Readable;

    /// A process, held so that its pid cannot become another's unnoticed.
    #[derive(Debug)]
    pub struct Handle(OwnedFd);

    impl Handle {
        /// A wait for its end. To be made within a runtime.
        pub fn watch(self) -> io::Result<Watched> {
            Readable::new(self.0).map(Watched)
        }

        /// Signals it; nothing where it has ended by now.
        pub fn signal(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.0, signal);
        }
    }

    /// True if a process has ended, even if nobody has taken its exit status yet.
    fn has_ended(handle: &OwnedFd) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)).is_ok_and(|n| n > 0)
    }

    /// The wait for the end of a process.
    #[derive(Debug)]
    pub struct Watched(Readable);

    impl Watched {
        /// Comes back when it has ended.
        pub async fn ended(self) {
            self.0.until(|handle| has_ended(handle).then_some(())).await;
        }
    }

    pub fn look(process: &Process) -> Look {
        let Some(pid) = Some(process.pid).filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
            return Look::Ended;
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Handle(fd),
            // The second: it is a thread of some process now.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Look::Ended,
            Err(error) => return Look::Unknown(format!("pidfd_open: {error}")),
        };
        // Looked at after it is held: a later owner of the pid has a later start.
        let found = crate::identity::process_of(process.pid);
        if found.as_ref().is_some_and(|found| !found.is(process)) || has_ended(&handle.0) {
            return Look::Ended;
        }
        match found {
            Some(_) => Look::Lives(handle),
            None => Look::Unknown("/proc does not show it".to_owned()),
        }
    }
}

/// Elsewhere the system's own calls are not used yet.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::convert::Infallible;
    use std::io;

    use minder_proto::record::Process;

    use super::Look;

    /// There is none.
    #[derive(Debug)]
    pub struct Handle(Infallible);

    impl Handle {
        /// Never called.
        pub fn watch(self) -> io::Result<Watched> {
            match self.0 {}
        }

        /// Never called.
        pub fn signal(&self, _signal: rustix::process::Signal) {
            match self.0 {}
        }
    }

    /// There is none.
    #[derive(Debug)]
    pub struct Watched(Infallible);

    impl Watched {
        /// Never called.
        pub async fn ended(self) {
            match self.0 {}
        }
    }

    pub fn look(_process: &Process) -> Look {
        Look::Unknown("this system is not asked".to_owned())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn child() -> (Child, Process) {
        // Ends when its input does.
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = crate::identity::process_of(i32::try_from(child.id()).unwrap()).unwrap();
        (child, process)
    }

    fn shown(process: &Process) -> &'static str {
        match look(process) {
            Look::Lives(_) => "lives",
            Look::Ended => "ended",
            Look::Unknown(_) => "unknown",
        }
    }

    #[test]
    fn a_process_is_that_pid_of_that_start_in_that_boot() {
        let (mut child, process) = child();
        assert_eq!(shown(&process), "lives");
        assert_eq!(shown(&Process { start: process.start + 1, ..process.clone() }), "ended");
        assert_eq!(shown(&Process { boot: "another".into(), ..process.clone() }), "ended");
        for nobody in [0, -1, i32::MIN, i32::MAX] {
            assert_eq!(shown(&Process { pid: nobody, ..process.clone() }), "ended");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Look::Lives(handle) = look(&process) else { panic!("it lives") };
            let ended = handle.watch().unwrap().ended();
            drop(child.stdin.take());
            tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.unwrap();
        });
        assert_eq!(shown(&process), "ended", "although nobody has taken its exit status");
        child.wait().unwrap();
        assert_eq!(shown(&process), "ended");
    }

    #[test]
    fn a_thread_is_no_process() {
        let (give, take) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            give.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = wait.recv();
        });
        let tid = take.recv().unwrap();
        let own = crate::identity::process_of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert_eq!(shown(&Process { pid: tid, start: own.start, ..own }), "ended");
        drop(end);
        thread.join().unwrap();
    }
}
