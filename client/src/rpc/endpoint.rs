//! Where the daemon's socket may be, and how a connection to it is made.

use std::io;
use std::iter::once_with;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use minder_proto::layout::Home;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use super::Unreachable;
use super::wire::Deadline;

/// The socket of one store's daemon.
#[derive(Clone, Debug)]
pub struct Endpoint {
    home: Home,
    /// `MINDER_SOCKET`: tried first.
    named: Option<PathBuf>,
    /// Runtime folders, tried after the link in the store.
    runtime: Vec<PathBuf>,
}

impl Endpoint {
    /// As the environment says.
    pub fn from_env(home: Home) -> Self {
        let folder = |v: Option<std::ffi::OsString>| v.map(PathBuf::from).filter(|p| p.is_absolute());
        let own = PathBuf::from(format!("/run/user/{}", nix::unistd::getuid()));
        let runtime = folder(std::env::var_os("XDG_RUNTIME_DIR")).into_iter().chain([own]).collect();
        Self { home, named: folder(std::env::var_os("MINDER_SOCKET")), runtime }
    }

    /// The socket at this path alone.
    pub fn at(home: Home, socket: PathBuf) -> Self {
        Self { home, named: Some(socket), runtime: Vec::new() }
    }

    /// The real path of the store that is meant.
    pub fn store(&self) -> PathBuf {
        self.home.real()
    }

    /// Where the socket may be, in the order in which it is tried. The later ones cost something to find out.
    pub fn places(&self) -> impl Iterator<Item = PathBuf> {
        // The link's target and not the link: a store's own path may be too long for a socket's address.
        let linked = || std::fs::read_link(self.home.socket_link()).ok();
        let in_runtime = || {
            let name = self.home.socket_name();
            self.runtime.iter().map(move |dir| dir.join("minder").join(&name))
        };
        (self.named.iter().cloned())
            .chain(once_with(linked).flatten())
            .chain(once_with(in_runtime).flatten())
            .chain(once_with(|| self.home.run().join("minder.sock")))
    }

    /// Connects to the first place where anybody listens. `None`: nobody does.
    pub(super) fn connect(&self, deadline: Deadline) -> Result<Option<UnixStream>, Unreachable> {
        for place in self.places() {
            match connect_to(&place, deadline) {
                Ok(stream) => {
                    check_peer(&stream, &place)?;
                    return Ok(Some(stream));
                }
                Err(errno) => {
                    if let Some(unreachable) = verdict(errno, place, deadline) {
                        return Err(unreachable);
                    }
                }
            }
        }
        Ok(None)
    }
}

/// What a failed connection means; `None`: nobody listens there. Only then may a daemon be started.
fn verdict(errno: Errno, place: PathBuf, deadline: Deadline) -> Option<Unreachable> {
    match errno {
        Errno::ENOENT | Errno::ECONNREFUSED | Errno::ENOTDIR | Errno::ENAMETOOLONG => None,
        Errno::EPERM => Some(Unreachable::Sandbox(place)),
        Errno::EACCES => Some(Unreachable::NotAllowed(place)),
        Errno::EAGAIN | Errno::ETIMEDOUT => Some(Unreachable::NotAnswering(deadline.granted())),
        error => Some(Unreachable::Io(place, error.into())),
    }
}

/// Connects within the deadline: a daemon that is frozen, with a full queue, would block a plain `connect` for ever.
fn connect_to(path: &Path, deadline: Deadline) -> nix::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    let stream = UnixStream::from(socket(AddressFamily::Unix, SockType::Stream, cloexec(), None)?);
    if cloexec().is_empty() {
        nix::fcntl::fcntl(&stream, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
    }
    loop {
        if let Some(left) = deadline.left().map_err(|_| Errno::ETIMEDOUT)? {
            let micros = i64::try_from(left.as_micros()).unwrap_or(i64::MAX).max(1);
            setsockopt(&stream, sockopt::SendTimeout, &TimeVal::microseconds(micros))?;
        }
        match connect(stream.as_raw_fd(), &address) {
            Ok(()) => return Ok(stream),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn cloexec() -> SockFlag {
    SockFlag::SOCK_CLOEXEC
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn cloexec() -> SockFlag {
    SockFlag::empty()
}

/// What is told to the daemon is for this user's daemon only.
fn check_peer(stream: &UnixStream, place: &Path) -> Result<(), Unreachable> {
    match peer_uid(stream) {
        Ok(uid) if uid == nix::unistd::geteuid().as_raw() => Ok(()),
        Ok(_) => Err(Unreachable::NotAllowed(place.to_owned())),
        Err(error) => Err(Unreachable::Io(place.to_owned(), error)),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(nix::sys::socket::getsockopt(stream, sockopt::PeerCredentials)?.uid())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(nix::unistd::getpeereid(stream)?.0.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_places() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let mut endpoint = Endpoint::at(home.clone(), "/x/named.sock".into());
        endpoint.runtime = vec!["/run/a".into(), "/run/b".into()];
        std::fs::create_dir(home.run()).unwrap();
        std::os::unix::fs::symlink("/y/live.sock", home.socket_link()).unwrap();
        let name = home.socket_name();
        let expected = [
            "/x/named.sock".into(),
            "/y/live.sock".into(),
            PathBuf::from(format!("/run/a/minder/{name}")),
            PathBuf::from(format!("/run/b/minder/{name}")),
            home.run().join("minder.sock"),
        ];
        assert_eq!(endpoint.places().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn only_where_nobody_listens_may_a_daemon_be_started() {
        let said = |errno| verdict(errno, "/s".into(), Deadline::within(None));
        for nobody in [Errno::ENOENT, Errno::ECONNREFUSED] {
            assert!(said(nobody).is_none(), "{nobody}");
        }
        assert!(matches!(said(Errno::EPERM), Some(Unreachable::Sandbox(_))));
        assert!(matches!(said(Errno::EACCES), Some(Unreachable::NotAllowed(_))));
        assert!(matches!(said(Errno::EAGAIN), Some(Unreachable::NotAnswering(None))));
        assert!(matches!(said(Errno::EMFILE), Some(Unreachable::Io(..))));
    }
}
