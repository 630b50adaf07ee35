//! Signals that end a follower while it sleeps: it then keeps what it has read. Awake, they end it as they end any
//! program, so that a write to a reader that does not read can be interrupted.

/// A signal that asks this process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// From the keyboard.
    Interrupt,
    /// From whoever minds this process.
    Terminate,
    /// Its terminal went.
    Hangup,
}

impl Signal {
    /// What a shell would call the exit of a process that it ended.
    pub fn exit(self) -> u8 {
        match self {
            Self::Interrupt => minder_proto::error::exit::INTERRUPTED,
            Self::Terminate => 128 + 15,
            Self::Hangup => 128 + 1,
        }
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};

    use nix::libc;
    use nix::sys::signal::{SigSet, Signal as Number};
    use nix::sys::signalfd::{SfdFlags, SignalFd};

    use super::Signal;

    /// The signals, as a file while they are held back.
    #[derive(Debug, Default)]
    pub struct Signals {
        file: Option<(SignalFd, SigSet)>,
        held: bool,
    }

    impl Signals {
        /// Holds them back until they are taken or let through.
        pub fn hold_back(&mut self) -> io::Result<()> {
            if self.held {
                return Ok(());
            }
            if let Some((_, set)) = &self.file {
                set.thread_block()?;
            } else {
                let set = those_that_end();
                set.thread_block()?;
                let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
                self.file = Some((SignalFd::with_flags(&set, flags)?, set));
            }
            self.held = true;
            Ok(())
        }

        /// Lets them act.
        pub fn let_through(&mut self) {
            if let Some((_, set)) = &self.file
                && self.held
                && set.thread_unblock().is_ok()
            {
                self.held = false;
            }
        }

        /// Takes one that came.
        pub fn take(&mut self) -> Option<Signal> {
            let info = self.file.as_mut()?.0.read_signal().ok()??;
            match Number::try_from(info.ssi_signo.cast_signed()).ok()? {
                Number::SIGINT => Some(Signal::Interrupt),
                Number::SIGTERM => Some(Signal::Terminate),
                Number::SIGHUP => Some(Signal::Hangup),
                _ => None,
            }
        }

        /// The file that is ready when one came.
        pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            self.file.as_ref().map(|(file, _)| file.as_fd())
        }
    }

    /// Those that end this process: not what whoever started it has set to be ignored (`nohup`).
    fn those_that_end() -> SigSet {
        [Number::SIGINT, Number::SIGTERM, Number::SIGHUP].into_iter().filter(|n| !is_ignored(*n)).collect()
    }

    #[allow(unsafe_code)]
    fn is_ignored(signal: Number) -> bool {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: nothing is set; what is set is written to memory that is there, and all of whose bytes are a value.
        unsafe {
            let asked = libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr());
            asked == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;
    use std::os::fd::BorrowedFd;

    use super::Signal;

    /// Signals end a follower at once here; what it would have kept is told again.
    #[derive(Debug, Default)]
    pub struct Signals;

    impl Signals {
        /// Does nothing.
        pub fn hold_back(&mut self) -> io::Result<()> {
            Ok(())
        }

        /// Does nothing.
        pub fn let_through(&mut self) {}

        /// None comes.
        pub fn take(&mut self) -> Option<Signal> {
            None
        }

        /// There is none.
        pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }
}

pub use imp::Signals;
