//! Processes that a test started or caused: waiting for their end and ending them, by pidfd only, so that a
//! reused pid is never hit. Linux.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, held by pidfd.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    fd: OwnedFd,
}

impl Process {
    /// The process that has this pid now; `None` if there is none. What is read of it afterwards
    /// ([`Self::exe`] and the like) is its own as long as it has not ended.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => Ok(Some(Self { pid, fd })),
            Err(Errno::SRCH | Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file it executes, also if that was replaced or deleted since; `None` if it ended or is not ours.
    pub fn exe(&self) -> Option<PathBuf> {
        let target = std::fs::read_link(self.proc("exe")).ok()?;
        let bytes = target.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        Some(PathBuf::from(OsStr::from_bytes(bytes)))
    }

    /// Its command name as the kernel has it, at most 15 bytes.
    pub fn comm(&self) -> Option<String> {
        Some(std::fs::read_to_string(self.proc("comm")).ok()?.trim_end().to_owned())
    }

    pub fn arguments(&self) -> Option<Vec<String>> {
        let raw = std::fs::read(self.proc("cmdline")).ok()?;
        let raw = raw.strip_suffix(b"\0").unwrap_or(&raw);
        Some(raw.split(|b| *b == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect())
    }

    /// True if it was started with `NAME=VALUE` in its environment.
    pub fn has_variable(&self, name: &str, value: &OsStr) -> bool {
        let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
        // Within an exec there is nothing to read yet; a program with an empty environment looks the same.
        for _ in 0..100 {
            let Ok(raw) = std::fs::read(self.proc("environ")) else { return false };
            if !raw.is_empty() || self.exe().is_none() {
                return raw.split(|b| *b == 0).any(|entry| entry == wanted);
            }
            std::thread::yield_now();
        }
        false
    }

    /// True if it holds a file below this folder open.
    pub fn holds_file_below(&self, folder: &std::path::Path) -> bool {
        let Ok(entries) = std::fs::read_dir(self.proc("fd")) else { return false };
        entries.flatten().any(|e| std::fs::read_link(e.path()).is_ok_and(|target| target.starts_with(folder)))
    }

    /// Sends a signal; true if the process was still there.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.fd, signal).is_ok()
    }

    /// Waits for its end, at most `limit`; true if it has ended.
    pub fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::new(&self.fd, PollFlags::IN)];
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut watched, timeout.as_ref()) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends it: SIGTERM, and SIGKILL if it is still there after `grace`. True if it has ended.
    pub fn end(&self, grace: Duration) -> bool {
        self.signal(Signal::TERM);
        self.wait(grace) || {
            self.signal(Signal::KILL);
            self.wait(Duration::from_secs(5))
        }
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.pid))
    }
}

/// Every process there is that can be looked at and that `wanted` says yes to. This test's own is left out.
pub fn find(wanted: impl Fn(&Process) -> bool) -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| Process::open(pid).ok()?).filter(|process| wanted(process)).collect()
}

/// Runs a program to its end with this on its standard input. At `limit` it is killed, and the error shows
/// what it had printed. An output that stays open after the program's end counts as not ended too: a
/// detached child must not hold its caller's output.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<Output> {
    run_with(command, input, Run { limit, stdin_open: false })
}

/// How a program is run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// When it is killed.
    pub limit: Duration,
    /// Whether its standard input stays open behind what it is given, until it has ended.
    pub stdin_open: bool,
}

/// The same as [`run`], in other ways too.
pub fn run_with(command: &mut Command, input: &[u8], how: Run) -> io::Result<Output> {
    let limit = how.limit;
    let deadline = Instant::now() + limit;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = Process::open(child.id())?.expect("a child that was not waited for has a pid");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let (ended, end) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        // A program may end without reading its input.
        let _ = stdin.write_all(&input);
        if how.stdin_open {
            // The other side is dropped at the end.
            let _ = end.recv();
        }
    });
    let stdout = read_all(child.stdout.take().expect("piped"));
    let stderr = read_all(child.stderr.take().expect("piped"));

    let mut late = if process.wait(limit) { None } else { Some("still runs") };
    if late.is_some() {
        process.signal(Signal::KILL);
    }
    let status = child.wait()?;
    drop(ended);
    let mut collect = |chunks: &mpsc::Receiver<Vec<u8>>| {
        let mut all = Vec::new();
        loop {
            // Of a program that was killed, what is there already is taken.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
            match chunks.recv_timeout(left) {
                Ok(chunk) => all.extend(chunk),
                Err(mpsc::RecvTimeoutError::Disconnected) => return all,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    late.get_or_insert("has ended, but something holds its output open");
                    return all;
                }
            }
        }
    };
    let (stdout, stderr) = (collect(&stdout), collect(&stderr));
    if let Some(what) = late {
        let shown = [&stdout, &stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let error = format!("{command:?} {what} after {limit:?}; it printed {shown:?}");
        return Err(io::Error::new(io::ErrorKind::TimedOut, error));
    }
    Ok(Output { status, stdout, stderr })
}

/// Reads to the end on a thread of its own.
fn read_all(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (chunks, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if chunks.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_gets_its_input_and_gives_its_output() {
        let out = run(&mut sh("cat; echo err >&2; exit 3"), b"hello", Duration::from_secs(10)).unwrap();
        assert_eq!(
            (&out.stdout[..], &out.stderr[..], out.status.code()),
            (&b"hello"[..], &b"err\n"[..], Some(3))
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_shows_what_it_printed() {
        let error =
            run(&mut sh("echo started; exec sleep 1000"), b"", Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("still runs"), "{error}");
        assert!(error.to_string().contains("started"), "{error}");
    }

    #[test]
    fn a_child_left_on_the_output_is_reported() {
        let error = run(&mut sh("sleep 3 & echo over"), b"", Duration::from_millis(500)).unwrap_err();
        assert!(error.to_string().contains("holds its output open"), "{error}");
    }

    #[test]
    fn a_process_is_found_by_its_environment_and_ended() {
        // It ends by itself, too, when its input does.
        let mut command = sh("echo up; read -r line");
        command.env("RIG_PROCESS_TEST", "x1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        assert!(!process.wait(Duration::ZERO));
        let found = find(|p| p.has_variable("RIG_PROCESS_TEST", OsStr::new("x1")));
        assert_eq!(found.iter().map(Process::pid).collect::<Vec<_>>(), [child.id()]);
        assert!(process.end(Duration::from_secs(5)));
        child.wait().unwrap();
        assert!(Process::open(child.id()).unwrap().is_none());
        assert_eq!(process.exe(), None);
    }
}
