//! Counting what a program asks of the kernel.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use minder_tests::process::Process;
use rustix::process::Signal;

use crate::world::LIMIT;

/// A command that runs `command` under `strace -f` with these options, which writes what it saw to `log`.
pub fn traced(command: &Command, options: &[&str], log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq"]).args(options).arg("-o").arg(log).arg("--");
    strace.arg(command.get_program()).args(command.get_args());
    strace.env_clear();
    for (name, value) in command.get_envs() {
        strace.env(name, value.expect("the environment of a test's command is set, not inherited"));
    }
    if let Some(dir) = command.get_current_dir() {
        strace.current_dir(dir);
    }
    strace
}

/// A `strace` that looks at a process which ran before.
pub struct Attached {
    child: Child,
    process: Process,
}

impl Attached {
    /// Comes back when every thread is looked at.
    pub fn new(strace: &mut Command, pid: u32) -> Self {
        let child = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("strace is installed");
        let process = Process::open(child.id()).unwrap().unwrap();
        let attached = Self { child, process };
        let deadline = Instant::now() + LIMIT;
        while !all_traced(pid) {
            assert!(!attached.process.wait(Duration::from_millis(2)), "strace has ended");
            assert!(Instant::now() < deadline, "strace does not come to look");
        }
        attached
    }

    /// Lets go of it; everything seen is in the log.
    pub fn detach(mut self) {
        self.process.signal(Signal::INT);
        assert!(self.process.wait(LIMIT));
        self.child.wait().unwrap();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Not killed: what it looks at would stay stopped.
        self.process.end(Duration::from_secs(5));
        let _ = self.child.wait();
    }
}

fn all_traced(pid: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks.flatten().all(|task| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let tracer = status.lines().find_map(|l| l.strip_prefix("TracerPid:"));
        tracer.is_some_and(|t| t.trim() != "0")
    })
}
