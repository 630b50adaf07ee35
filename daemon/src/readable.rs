//! Waiting until a descriptor of ours is readable: a pidfd, an inotify. The one place that hands a descriptor to the
//! runtime by itself.

#![allow(unsafe_code)]

use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that can be waited for.
#[derive(Debug)]
pub struct Readable(AsyncFd<OwnedFd>);

impl Readable {
    /// Takes a descriptor. To be called within a runtime.
    pub fn new(descriptor: OwnedFd) -> std::io::Result<Self> {
        // SAFETY: an `OwnedFd` is open for as long as it lives and is always the same descriptor; it is moved into the
        // `AsyncFd`, and nothing here takes it out or replaces it.
        let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        registered.map(Self).map_err(|error| error.into_parts().1)
    }

    /// The descriptor.
    pub fn get(&self) -> &OwnedFd {
        self.0.get_ref()
    }

    /// Waits until it is readable and `look` finds something; readiness may be told in vain.
    pub async fn until<T>(&self, mut look: impl FnMut(&OwnedFd) -> Option<T>) -> T {
        loop {
            // An error says that the runtime goes down, and with it whoever waits here.
            let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
            if let Some(found) = look(self.get()) {
                return found;
            }
            ready.clear_ready();
        }
    }
}
