//! The kernel's watch on the feed: its inode for what is written, its folder for a new feed in its place.

#[cfg(target_os = "linux")]
mod imp {
    use std::io::{self, ErrorKind};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::path::Path;

    use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};
    use nix::sys::statfs::{FsType, statfs};

    use super::Rung;

    /// File systems on which another machine or program may write without this kernel's knowledge.
    const DISTANT: [i64; 9] = [
        0x6969,      // NFS
        0x6573_5546, // FUSE
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB 2
        0x517b,      // SMB
        0x0102_1997, // 9P
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
        0x0bd0_0bd0, // Lustre
    ];

    /// A watch.
    #[derive(Debug)]
    pub struct Watch {
        inotify: Inotify,
        feed: Option<WatchDescriptor>,
        folder: WatchDescriptor,
        name: std::ffi::OsString,
        distant: bool,
    }

    impl Watch {
        /// Watches a feed, which need not be there yet, in a folder, which must; and `also` another folder.
        pub fn on(feed: &Path, also: Option<&Path>) -> io::Result<Self> {
            let folder = feed.parent().ok_or(ErrorKind::InvalidInput)?;
            let inotify = Inotify::init()?;
            let came = WatchMask::CREATE | WatchMask::MOVED_TO;
            let watched = inotify.watches().add(folder, came | WatchMask::ONLYDIR)?;
            if let Some(also) = also {
                // It may not be there; then nothing comes from it.
                let _ = inotify.watches().add(also, came | WatchMask::MODIFY | WatchMask::ONLYDIR);
            }
            let mut watch = Self {
                inotify,
                feed: None,
                folder: watched,
                name: feed.file_name().unwrap_or_default().to_owned(),
                distant: statfs(folder).is_ok_and(|s| is_distant(s.filesystem_type())),
            };
            watch.feed_again(feed)?;
            Ok(watch)
        }

        /// Watches the file that is the feed now.
        pub fn feed_again(&mut self, feed: &Path) -> io::Result<()> {
            let written = WatchMask::MODIFY | WatchMask::MOVE_SELF | WatchMask::DELETE_SELF;
            let old = self.feed.take();
            match self.inotify.watches().add(feed, written) {
                Ok(new) => {
                    if let Some(old) = old.filter(|old| *old != new) {
                        // Gone already where the old file was removed.
                        let _ = self.inotify.watches().remove(old);
                    }
                    self.feed = Some(new);
                    Ok(())
                }
                // The watch on its folder tells when it comes.
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                Err(e) => Err(e),
            }
        }

        /// True if a change may happen that the kernel does not tell.
        pub fn may_miss(&self) -> bool {
            self.distant
        }

        /// Takes all notices there are.
        pub fn read(&mut self) -> io::Result<Rung> {
            let mut buffer = [0; 4096];
            let mut rung = Rung::Nothing;
            let events = match self.inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Rung::Nothing),
                Err(e) => return Err(e),
            };
            for event in events {
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    return Ok(Rung::Lost);
                }
                // Other files of the store come and go in its folder.
                let foreign = event.wd == self.folder && event.name != Some(&self.name);
                if foreign || event.mask.contains(EventMask::IGNORED) {
                    continue;
                }
                let written = Some(&event.wd) == self.feed.as_ref() && event.mask == EventMask::MODIFY;
                rung = if written && rung != Rung::Other { Rung::Written } else { Rung::Other };
            }
            Ok(rung)
        }
    }

    impl AsFd for Watch {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.inotify.as_fd()
        }
    }

    fn is_distant(kind: FsType) -> bool {
        // Where the kernel's type is narrower it has a sign.
        DISTANT.contains(&(kind.0 & 0xffff_ffff))
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::path::Path;

    use super::Rung;

    /// No watch can be had here: the floor does all.
    #[derive(Debug)]
    pub enum Watch {}

    impl Watch {
        /// Always an error.
        pub fn on(_feed: &Path, _also: Option<&Path>) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Never called.
        pub fn feed_again(&mut self, _feed: &Path) -> io::Result<()> {
            match *self {}
        }

        /// Never called.
        pub fn may_miss(&self) -> bool {
            match *self {}
        }

        /// Never called.
        pub fn read(&mut self) -> io::Result<Rung> {
            match *self {}
        }
    }

    impl AsFd for Watch {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }
}

pub use imp::Watch;

/// What the notices say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Nothing that matters.
    Nothing,
    /// The feed was written, and nothing else.
    Written,
    /// Something else changed: another feed is there, or the other folder's files.
    Other,
    /// The kernel dropped notices.
    Lost,
}
