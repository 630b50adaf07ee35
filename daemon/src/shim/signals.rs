//! Signals to the shim, as bytes in a pipe that its loop reads. Those that nobody handles have their default effect
//! again, whatever the daemon was started with, so that the harness finds them so too.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// The writing end, for the handler.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// What was signalled since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// A child has ended.
    pub child: bool,
    /// Somebody wants the end.
    pub end: u32,
}

/// The reading end.
#[derive(Debug)]
pub struct Signals {
    pipe: OwnedFd,
    _bell: OwnedFd,
}

impl Signals {
    /// Takes the signals over. Called once.
    pub fn take() -> io::Result<Self> {
        let (pipe, bell) = nix::unistd::pipe()?;
        for end in [&pipe, &bell] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        BELL.store(bell.as_raw_fd(), Ordering::Relaxed);
        for signal in Signal::iterator() {
            let handler = match signal {
                Signal::SIGKILL | Signal::SIGSTOP => continue,
                Signal::SIGCHLD | Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP => {
                    SigHandler::Handler(ring)
                }
                // A program ignores the end of a reader and sees the error instead.
                Signal::SIGPIPE => SigHandler::SigIgn,
                _ => SigHandler::SigDfl,
            };
            let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
            // SAFETY: the handler makes one system call that a handler may make, and reads an atomic.
            unsafe { sigaction(signal, &action) }?;
        }
        SigSet::empty().thread_set_mask()?;
        Ok(Self { pipe, _bell: bell })
    }

    /// Becomes readable with a signal.
    pub fn fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.pipe)
    }

    /// What came since the last look.
    pub fn heard(&self) -> Heard {
        let mut heard = Heard::default();
        let mut bytes = [0_u8; 64];
        while let Ok(read) = nix::unistd::read(&self.pipe, &mut bytes) {
            if read == 0 {
                break;
            }
            for byte in &bytes[..read] {
                match i32::from(*byte) {
                    libc::SIGCHLD => heard.child = true,
                    libc::SIGTERM | libc::SIGINT => heard.end += 1,
                    _ => {}
                }
            }
        }
        heard
    }
}

extern "C" fn ring(signal: i32) {
    let errno = nix::errno::Errno::last_raw();
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: the descriptor is open for as long as the process lives, the byte is there during the call; a full pipe is
    // no error, since it is heard all the same.
    unsafe { libc::write(BELL.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    nix::errno::Errno::set_raw(errno);
}
