//! Waiting until something changes in a folder, without looking again and again.

use std::path::Path;
use std::time::Duration;

/// A watch on folders, begun when it is made: what happens between that and [`FolderWatch::wait`] is not missed.
#[derive(Debug)]
pub struct FolderWatch(imp::Watch);

impl FolderWatch {
    /// Watches those of the folders that are there. `None` if none is, or none can be watched.
    pub fn new(folders: &[&Path]) -> Option<Self> {
        imp::Watch::new(folders).map(Self)
    }

    /// Returns when something changed, `other` became readable, or the time is over: then with false.
    pub fn wait(&self, other: Option<std::os::fd::BorrowedFd<'_>>, limit: Option<Duration>) -> bool {
        self.0.wait(other, limit)
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::os::fd::{AsFd, BorrowedFd};
    use std::path::Path;
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

    #[derive(Debug)]
    pub struct Watch(Inotify);

    impl Watch {
        pub fn new(folders: &[&Path]) -> Option<Self> {
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
            let changes = AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_DELETE_SELF
                | AddWatchFlags::IN_ONLYDIR;
            let watched = folders.iter().filter(|f| inotify.add_watch(**f, changes).is_ok()).count();
            (watched > 0).then_some(Self(inotify))
        }

        pub fn wait(&self, other: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> bool {
            // A limit that is longer than the call can take ends sooner; callers look and wait again.
            let timeout =
                limit.map_or(PollTimeout::NONE, |l| PollTimeout::try_from(l).unwrap_or(PollTimeout::MAX));
            let mut watched = vec![PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            watched.extend(other.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            // Interrupted is as good as woken: the caller looks.
            let woken = poll(&mut watched, timeout) != Ok(0);
            let _ = self.0.read_events();
            woken
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::os::fd::BorrowedFd;
    use std::path::Path;
    use std::time::Duration;

    /// Here callers look four times a second.
    #[derive(Debug)]
    pub struct Watch;

    impl Watch {
        pub fn new(folders: &[&Path]) -> Option<Self> {
            folders.iter().any(|f| f.is_dir()).then_some(Self)
        }

        pub fn wait(&self, _other: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> bool {
            let floor = Duration::from_millis(250);
            std::thread::sleep(limit.map_or(floor, |l| l.min(floor)));
            limit.is_none_or(|l| l > floor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_between_the_watch_and_the_wait_is_not_missed() {
        let dir = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(&[dir.path(), Path::new("/nonexistent/folder")]).unwrap();
        std::fs::write(dir.path().join("x"), "x").unwrap();
        assert!(watch.wait(None, None));
        assert!(!watch.wait(None, Some(Duration::ZERO)));
        assert!(FolderWatch::new(&[Path::new("/nonexistent/folder")]).is_none());
    }
}
