//! Who is at the other end of a connection, as the kernel says it.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;

use crate::identity::Ancestry;

/// For how long what was seen of a peer when it connected is what is seen of it.
const FRESH: Duration = Duration::from_millis(50);

/// The process that connected. Every method finds it in the request's extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its user, always this process's own.
    pub uid: u32,
    /// Its process id at the time it connected, where the system tells it.
    pub pid: Option<i32>,
    /// The connection, counted from 1 since the daemon started.
    pub conn: u64,
    seen: Arc<Mutex<Option<(Instant, Ancestry)>>>,
}

impl Peer {
    /// Looks at who it is, while its request is still on its way.
    pub fn look(&self) {
        *self.seen() = Some((Instant::now(), Ancestry::of(self.pid)));
    }

    /// Its process and what is above it.
    pub fn ancestry(self) -> Ancestry {
        let seen = self.seen().take();
        let fresh = seen.filter(|(at, _)| at.elapsed() < FRESH);
        fresh.map_or_else(|| Ancestry::of(self.pid), |(_, ancestry)| ancestry)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Ancestry)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets only this process's own user in.
#[derive(Debug)]
pub struct Door {
    own: u32,
    turned_away: Mutex<HashSet<u32>>,
}

impl Door {
    /// A door for the user that this process runs as.
    pub fn new() -> Self {
        Self { own: nix::unistd::geteuid().as_raw(), turned_away: Mutex::default() }
    }

    /// The peer of a connection of which nothing has been read yet; `None` for another user's, who is told nothing.
    pub fn check(&self, stream: &UnixStream, conn: u64) -> io::Result<Option<Peer>> {
        let cred = stream.peer_cred()?;
        if cred.uid() == self.own {
            return Ok(Some(Peer { uid: cred.uid(), pid: cred.pid(), conn, seen: Arc::default() }));
        }
        // Once for each user, or any of them could fill the log.
        let mut known = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(cred.uid()) {
            tracing::warn!(uid = cred.uid(), pid = cred.pid(), "a connection of another user was refused");
        }
        Ok(None)
    }
}

impl Default for Door {
    fn default() -> Self {
        Self::new()
    }
}
