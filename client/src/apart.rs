//! A piece of work in a process of its own that nobody of the caller's stands above. The daemon takes a process under a
//! harness for that harness's conversation; what the tour and a probe run is nobody's, also where an agent runs them.

#![allow(unsafe_code)]

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{self, SigHandler};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setpgid};

use crate::follow::{Signal, Signals};

/// How the work ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, and it said this.
    Said(String),
    /// It is gone and said nothing.
    Silent,
    /// Somebody asked this process to end, and so the work has ended before its time.
    Interrupted(Signal),
}

/// How the work knows whether it is still wanted.
#[derive(Debug)]
pub struct Wanted(PipeReader);

impl Wanted {
    /// False once whoever waits for the work has been asked to end, or has ended.
    pub fn still(&self) -> bool {
        // Nothing is ever written: it can only be closed.
        matches!(poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO), Ok(0))
    }
}

/// Does the work apart and waits for it. If this process has ended by the time it is done, `forsaken` is done too.
pub fn run(work: impl FnOnce(&Wanted) -> String, forsaken: impl FnOnce()) -> io::Result<Ended> {
    let mut signals = Signals::default();
    signals.hold_back()?;
    let (hearing, saying) = io::pipe()?;
    let (wanted, want) = io::pipe()?;
    // SAFETY: the client has one thread, so that the child finds no lock taken.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop((saying, wanted));
            waitpid(child, None)?;
            hear(hearing, want, &mut signals)
        }
        ForkResult::Child => {
            // SAFETY: as above.
            match unsafe { fork() } {
                Ok(ForkResult::Child) => {
                    drop((hearing, want));
                    signals.let_through();
                    alone(saying, &Wanted(wanted), work, forsaken)
                }
                Ok(ForkResult::Parent { .. }) | Err(_) => leave(),
            }
        }
    }
}

/// The whole life of the process apart.
fn alone(
    mut saying: PipeWriter,
    wanted: &Wanted,
    work: impl FnOnce(&Wanted) -> String,
    forsaken: impl FnOnce(),
) -> ! {
    // What is typed at the terminal is for the one who waits, and a terminal that stops writers of the background does
    // not stop this one.
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    // SAFETY: no handler is installed.
    let _ = unsafe { signal::signal(signal::Signal::SIGTTOU, SigHandler::SigIgn) };
    // What it panicked with has been told by the program's own hook.
    if let Ok(said) = catch_unwind(AssertUnwindSafe(|| work(wanted)))
        && saying.write_all(said.as_bytes()).is_err()
    {
        forsaken();
    }
    leave()
}

/// Ends this process, and touches nothing that it shares with the one it came from.
fn leave() -> ! {
    // SAFETY: it does not return and runs nothing of ours.
    unsafe { libc::_exit(0) }
}

/// Hears what the work says until it has ended.
fn hear(mut hearing: PipeReader, want: PipeWriter, signals: &mut Signals) -> io::Result<Ended> {
    let mut want = Some(want);
    let mut interrupted = None;
    let mut said = Vec::new();
    loop {
        let mut ready = vec![PollFd::new(hearing.as_fd(), PollFlags::POLLIN)];
        ready.extend(signals.as_fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let spoke = ready[0].any().unwrap_or(true);
        if let Some(signal) = signals.take() {
            interrupted = Some(signal);
            want = None;
        }
        let mut some = [0; 512];
        if spoke {
            match hearing.read(&mut some)? {
                0 => break,
                n => said.extend_from_slice(&some[..n]),
            }
        }
    }
    drop(want);
    Ok(match interrupted {
        Some(signal) => Ended::Interrupted(signal),
        None if said.is_empty() => Ended::Silent,
        None => Ended::Said(String::from_utf8_lossy(&said).into_owned()),
    })
}
