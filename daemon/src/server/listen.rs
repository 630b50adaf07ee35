//! The socket itself: how it comes to be, who may remove it, and how it is found.
//!
//! It is bound under umask 077 in a private folder, and only where nothing answers at its path. The folder is locked
//! while a path is checked, bound or removed, so that of two daemons with one path neither can take the other's away.
//! A socket that a service manager passed in is never removed.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use minder_proto::PROTOCOL;
use minder_proto::error::exit;
use minder_proto::layout::SOCKET_PATH_MAX;
use minder_proto::rpc::{Call, Hello};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::{Mode, UtimensatFlags, umask, utimensat};
use nix::sys::time::TimeSpec;

use crate::exit::Failure;
use crate::folder::{self, FolderError, Wide};
use crate::lock::StoreLock;

/// How long whatever answers at our path may take to say what it is.
const ASK: Duration = Duration::from_millis(300);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The path does not fit into a socket's address.
    #[error("the socket's path has {} bytes, the limit is {SOCKET_PATH_MAX}: {} (set MINDER_SOCKET or XDG_RUNTIME_DIR to a shorter one)", .0.as_os_str().len(), .0.display())]
    TooLong(PathBuf),
    /// Its folder is not fit.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A link, or somebody else's socket, is in its place.
    #[error("{} is {what}: refused", path.display())]
    NotOurs {
        /// The socket's path.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// A file that is no socket is in its place.
    #[error("{} is no socket and stands where the socket belongs", .0.display())]
    NotASocket(PathBuf),
    /// Something answers there.
    #[error("{} is taken: {other} answers there, this daemon's store is {}", path.display(), store.display())]
    Taken {
        /// The socket's path.
        path: PathBuf,
        /// Who answers.
        other: String,
        /// Our store.
        store: PathBuf,
    },
    /// What was passed in is no listening Unix socket.
    #[error("the socket that was passed in does not listen: {0}")]
    BadPassed(io::Error),
    /// The system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        let code = match &error {
            ListenError::Folder(e) if e.is_refusal() => exit::NOT_ALLOWED,
            ListenError::NotOurs { .. } => exit::NOT_ALLOWED,
            ListenError::Folder(_) | ListenError::Io { .. } => exit::IO,
            ListenError::TooLong(_)
            | ListenError::NotASocket(_)
            | ListenError::Taken { .. }
            | ListenError::BadPassed(_) => exit::CONFIG,
        };
        Self::new(code, error)
    }
}

/// Which file is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode {
    dev: u64,
    ino: u64,
}

impl From<&Metadata> for Inode {
    fn from(m: &Metadata) -> Self {
        Self { dev: m.dev(), ino: m.ino() }
    }
}

/// A listening socket. Dropped, it is removed, if it is ours and still the one at its path.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    /// Where it is; a passed one may have no name.
    path: Option<PathBuf>,
    /// The file that we bound; `None` for a passed one.
    ours: Option<Inode>,
    /// The symbolic link that names it.
    link: Option<PathBuf>,
}

impl Socket {
    /// Binds `path` for the daemon that holds the lock of `store`.
    pub fn bind(path: &Path, wide: Wide, store: &Path, _held: &StoreLock) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Io { path: path.to_owned(), source };
        if path.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(ListenError::TooLong(path.to_owned()));
        }
        let _locked = lock_folder(path, wide)?;
        make_way(path, store)?;
        let listener = {
            let _mask = Umask::private();
            UnixListener::bind(path).map_err(failed)?
        };
        let made = path.symlink_metadata().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, path: Some(path.to_owned()), ours: Some(Inode::from(&made)), link: None })
    }

    /// Takes over a socket that a service manager bound.
    pub fn passed(listener: UnixListener) -> Result<Self, ListenError> {
        let listens = nix::sys::socket::getsockopt(&listener, nix::sys::socket::sockopt::AcceptConn);
        if listens != Ok(true) {
            return Err(ListenError::BadPassed(listens.err().unwrap_or(Errno::EINVAL).into()));
        }
        listener.set_nonblocking(true).map_err(ListenError::BadPassed)?;
        let address = listener.local_addr().map_err(ListenError::BadPassed)?;
        Ok(Self { path: address.as_pathname().map(Path::to_owned), listener, ours: None, link: None })
    }

    /// Writes the symbolic link by which clients find the socket.
    pub fn publish(&mut self, link: &Path) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let fresh = link.with_extension("new");
        match std::fs::remove_file(&fresh) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        symlink(path, &fresh)?;
        std::fs::rename(&fresh, link)?;
        self.link = Some(link.to_owned());
        Ok(())
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| "an unnamed socket".to_owned(), |p| p.display().to_string())
    }

    /// Whether a service manager passed it in.
    pub fn is_passed(&self) -> bool {
        self.ours.is_none()
    }

    /// Another handle on the listening socket.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Makes it as young as now, if it is ours: cleaners of temporary folders remove what is old.
    pub fn refresh(&self) {
        let Some(path) = self.path.as_ref().filter(|p| self.is_at(p)) else { return };
        let now = TimeSpec::UTIME_NOW;
        if let Err(error) = utimensat(nix::fcntl::AT_FDCWD, path, &now, &now, UtimensatFlags::NoFollowSymlink)
        {
            tracing::warn!("{}: its age cannot be refreshed: {error}", path.display());
        }
    }

    /// Removes it, if it is ours and still the one at its path, and the link that names it.
    pub fn remove(self) {
        drop(self);
    }

    fn is_at(&self, path: &Path) -> bool {
        self.ours.is_some() && path.symlink_metadata().ok().map(|m| Inode::from(&m)) == self.ours
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| self.ours.is_some()) else { return };
        let locked = lock_folder(path, Wide::Tolerate);
        if self.is_at(path) {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::warn!("{}: not removed: {error}", path.display());
            }
        } else {
            tracing::warn!("{} is not this daemon's any more: left alone", path.display());
        }
        if let Some(link) = self.link.as_ref().filter(|l| std::fs::read_link(l).is_ok_and(|to| to == *path)) {
            let _ = std::fs::remove_file(link);
        }
        drop(locked);
    }
}

/// Opens the folder of the socket and locks it. Where a file system knows no locks on folders, the check that nothing
/// answers has to do.
fn lock_folder(path: &Path, wide: Wide) -> Result<File, FolderError> {
    let folder = folder::private(path.parent().unwrap_or(Path::new("/")), wide)?;
    if let Err(error) = folder.lock() {
        tracing::debug!("{}: no lock on its folder: {error}", path.display());
    }
    Ok(folder)
}

/// Removes a socket of this user's on which nobody listens; anything else at the path is an error that names it.
fn make_way(path: &Path, store: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Io { path: path.to_owned(), source };
    let not_ours = |what| ListenError::NotOurs { path: path.to_owned(), what };
    let found = match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    if found.is_symlink() {
        return Err(not_ours("a symbolic link".to_owned()));
    }
    if found.uid() != nix::unistd::geteuid().as_raw() {
        return Err(not_ours(format!("of uid {}", found.uid())));
    }
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match reach(path) {
        Reached::Nobody => std::fs::remove_file(path).map_err(failed),
        Reached::Somebody(stream) => Err(ListenError::Taken {
            path: path.to_owned(),
            other: stream.and_then(|s| ask(s).ok()).unwrap_or_else(|| "another program".to_owned()),
            store: store.to_owned(),
        }),
        Reached::Failed(e) => Err(failed(e)),
    }
}

/// Who is behind a socket's path.
#[derive(Debug)]
pub enum Reached {
    /// Nobody listens, or there is no socket.
    Nobody,
    /// Somebody listens; without a stream, their queue is full.
    Somebody(Option<UnixStream>),
    /// It cannot be told.
    Failed(io::Error),
}

/// Connects without ever waiting.
pub fn reach(path: &Path) -> Reached {
    let attempt = || -> nix::Result<UnixStream> {
        let address = UnixAddr::new(path)?;
        let stream =
            UnixStream::from(socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None)?);
        nix::fcntl::fcntl(&stream, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        stream.set_nonblocking(true).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0)))?;
        connect(stream.as_raw_fd(), &address)?;
        Ok(stream)
    };
    match attempt() {
        Ok(stream) if is_orphaned(&stream) => Reached::Nobody,
        Ok(stream) => Reached::Somebody(Some(stream)),
        Err(Errno::EAGAIN | Errno::EINPROGRESS) => Reached::Somebody(None),
        Err(Errno::ECONNREFUSED | Errno::ENOENT | Errno::ENOTDIR) => Reached::Nobody,
        Err(error) => Reached::Failed(error.into()),
    }
}

/// True if who listens has ended. Its socket may live for a moment more: in a child that it was starting when it died,
/// which has all its descriptors until it becomes another program.
#[cfg(target_os = "linux")]
fn is_orphaned(stream: &UnixStream) -> bool {
    use crate::identity::has_ended;
    use nix::sys::socket::getsockopt;
    use nix::sys::socket::sockopt::PeerCredentials;

    // What is of another process namespace has no number here.
    getsockopt(stream, PeerCredentials).is_ok_and(|who| who.pid() > 0 && has_ended(who.pid()))
}

/// Where the system does not tell, who accepts is there.
#[cfg(not(target_os = "linux"))]
fn is_orphaned(_: &UnixStream) -> bool {
    false
}

/// Asks a daemon which store it serves.
fn ask(mut stream: UnixStream) -> io::Result<String> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ASK))?;
    stream.set_write_timeout(Some(ASK))?;
    let hello = Hello { client: "minderd".to_owned(), protocol: [PROTOCOL, PROTOCOL] };
    let call =
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": Hello::METHOD, "params": hello}).to_string();
    let length = call.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: minder\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{call}"
    )?;
    let mut answer = String::new();
    stream.take(64 << 10).read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body: serde_json::Value = serde_json::from_str(body)?;
    let text = |name: &str| body["result"][name].as_str().map(str::to_owned);
    let store = text("store").ok_or(io::ErrorKind::InvalidData)?;
    Ok(format!("the daemon of the store {store}"))
}

/// The process's umask at 077 for as long as this lives.
struct Umask(Mode);

impl Umask {
    fn private() -> Self {
        Self(umask(Mode::from_bits_truncate(0o077)))
    }
}

impl Drop for Umask {
    fn drop(&mut self) {
        umask(self.0);
    }
}
