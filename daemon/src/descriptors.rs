//! The descriptors a process was born with, and how many it may have.
//!
//! The daemon holds a descriptor per bound process and per open timeline, so it takes all that the hard limit grants;
//! a child gets the old limit back, since programs that use `select` break above it.

use std::os::fd::RawFd;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// The limit on open descriptors as this process found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    soft: rlim_t,
    hard: rlim_t,
}

impl Limit {
    /// Raises the soft limit to the hard one and remembers what it was.
    pub fn raise() -> nix::Result<Self> {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        }
        Ok(Self { soft, hard })
    }

    /// Sets the remembered limit again. For a child between fork and exec: one system call, no allocation.
    pub fn restore(self) -> nix::Result<()> {
        setrlimit(Resource::RLIMIT_NOFILE, self.soft, self.hard)
    }

    /// The soft limit that was found.
    pub fn found(self) -> u64 {
        #[allow(clippy::useless_conversion, reason = "rlim_t is signed on some systems")]
        self.soft.try_into().unwrap_or(u64::MAX)
    }
}

/// Closes every descriptor above standard error but those in `keep`: a starter's pipes and sockets are none of the
/// daemon's, and held open for its life they would keep their readers waiting. Called once, before anything is opened.
pub fn close_inherited(keep: &[RawFd]) {
    for fd in open_descriptors() {
        if fd > 2 && !keep.contains(&fd) {
            // The one that listed the folder is closed already.
            let _ = nix::unistd::close(fd);
        }
    }
}

/// The numbers of this process's open descriptors.
fn open_descriptors() -> Vec<RawFd> {
    let place = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    let Ok(list) = std::fs::read_dir(place) else { return Vec::new() };
    list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_can_be_given_back() {
        let before = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let limit = Limit::raise().unwrap();
        assert_eq!(u128::from(limit.found()), u128::from(before.0));
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (before.1, before.1));
        limit.restore().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), before);
    }

    #[test]
    fn open_descriptors_are_seen() {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile().unwrap();
        assert!(open_descriptors().contains(&file.as_raw_fd()));
    }
}
