//! A limit on the size of files (`ulimit -f`) is an error of the write that goes beyond it, and not the end of the
//! daemon.

#![allow(unsafe_code)]

use nix::libc::c_int;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// From now on such a write fails as one to a full disk does. What this process starts has the signal as it is: a
/// handler, unlike being ignored, is not inherited.
pub fn is_an_error() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, so it may interrupt anything.
    unsafe { sigaction(Signal::SIGXFSZ, &action) }.map(|_| ())
}

extern "C" fn nothing(_: c_int) {}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    #[test]
    fn a_write_beyond_the_limit_fails_and_nobody_dies() {
        super::is_an_error().unwrap();
        let file = tempfile::tempfile().unwrap();
        let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        // Far beyond what any other test of this process writes.
        let limit = 1 << 40;
        setrlimit(Resource::RLIMIT_FSIZE, limit, hard).unwrap();
        let error = file.write_at(b"x", limit).unwrap_err();
        setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EFBIG));
    }
}
