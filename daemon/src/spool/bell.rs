//! The bell of the spool's folder: it rings when a file may have come. Where the system gives no bell, it rings at
//! intervals.

use std::time::Duration;

use crate::store::spool::Spool;

/// How often a folder without a bell is looked at.
const FLOOR: Duration = Duration::from_secs(5);

/// The bell.
pub struct Bell(Option<system::Watch>);

impl Bell {
    /// Hung up now: what comes after this rings.
    pub fn hang(spool: &Spool) -> Self {
        let watch = system::Watch::new(&spool.folder());
        let watch = watch.inspect_err(|error| {
            tracing::warn!(%error, "the spool has no bell; it is looked at every {FLOOR:?}");
        });
        Self(watch.ok())
    }

    /// Waits until something may have come.
    pub async fn rings(&mut self, spool: &Spool) {
        let Some(watch) = &self.0 else { return tokio::time::sleep(FLOOR).await };
        if watch.rings().await {
            return;
        }
        // Somebody took the folder away. A client would make it anew, and so do we, with a bell.
        match spool.make() {
            Ok(()) => *self = Self::hang(spool),
            Err(error) => {
                tracing::warn!(%error, "the spool cannot be made");
                self.0 = None;
            }
        }
    }
}

/// Linux: inotify.
#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::MaybeUninit;
    use std::path::Path;

    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;

    use crate::readable::Readable;

    pub struct Watch(Readable);

    impl Watch {
        pub fn new(folder: &Path) -> io::Result<Self> {
            let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            // A file is renamed into its place when it is whole; by a simpler hand it may be written there.
            let what = WatchFlags::MOVED_TO
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            add_watch(&inotify, folder, what)?;
            Ok(Self(Readable::new(inotify)?))
        }

        /// Waits for a change; false if it was the folder itself that went.
        pub async fn rings(&self) -> bool {
            let gone =
                ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
            self.0
                .until(|inotify| {
                    let mut buffer = [MaybeUninit::uninit(); 4096];
                    let mut events = Reader::new(inotify, &mut buffer);
                    let mut there = None;
                    loop {
                        match events.next() {
                            Ok(event) => {
                                there = Some(there.unwrap_or(true) && !event.events().intersects(gone));
                            }
                            Err(Errno::INTR) => {}
                            // All is read; any other error is no reason to stop looking.
                            Err(_) => return there,
                        }
                    }
                })
                .await
        }
    }
}

/// Elsewhere the system's own way is not used yet.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    pub struct Watch(Infallible);

    impl Watch {
        pub fn new(_folder: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub async fn rings(&self) -> bool {
            match self.0 {}
        }
    }
}
