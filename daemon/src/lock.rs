//! One daemon per store: an flock on `daemon.lock`, held for life, decides. What the file says is for people only.
//!
//! A second lock, `run/start.lock`, is held from before `daemon.lock` is tried until the daemon serves. So starts
//! that come together wait for one another in the kernel instead of looking again and again: who finds `daemon.lock`
//! taken while holding `start.lock` knows that its holder is past its start. Then it either listens, and the second
//! daemon is not needed; or it is on its way out, and the second one waits for that and takes over.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use nix::libc::O_NOFOLLOW;

use crate::folder::{self, FolderError, Wide};

/// How long a daemon waits for one that holds the lock and no longer listens: longer than its grace at a stop.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// Why the locks could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The store's folder is not fit.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A lock file cannot be opened or locked.
    #[error("{}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What came of trying to be the daemon of a store.
#[derive(Debug)]
pub enum Claim {
    /// This process is the daemon.
    Won {
        /// Held until the process ends.
        store: StoreLock,
        /// Held until this daemon serves.
        start: StartLock,
    },
    /// Another daemon serves this store.
    Serving(Holder),
    /// Another process holds the lock, listens on no socket, and did not let go in time.
    Silent(Holder),
}

/// The text of `daemon.lock`: what the holder wrote, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The holder's process id, in words if unknown.
    pub pid: String,
}

/// `daemon.lock`, held.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

/// `run/start.lock`, held.
#[derive(Debug)]
pub struct StartLock {
    _file: File,
}

/// Tries to become the daemon of the store in `root`, making its folder where it is missing. `listening` says whether
/// anything accepts on the store's socket. Blocks while another daemon starts, and up to `patience` while one ends.
pub fn claim(root: &Path, patience: Duration, listening: impl Fn() -> bool) -> Result<Claim, LockError> {
    folder::private(root, Wide::Correct)?;
    folder::private(&root.join("run"), Wide::Correct)?;
    let start = StartLock { _file: lock(&root.join("run/start.lock"))? };
    let path = root.join("daemon.lock");
    if let Some(file) = try_lock(&path)? {
        return won(&path, file, start);
    }
    if listening() {
        return Ok(Claim::Serving(holder(&path)));
    }
    match lock_within(&path, patience)? {
        Some(file) => won(&path, file, start),
        None => Ok(Claim::Silent(holder(&path))),
    }
}

fn won(path: &Path, mut file: File, start: StartLock) -> Result<Claim, LockError> {
    describe(&mut file).map_err(|source| LockError::Io { path: path.to_owned(), source })?;
    Ok(Claim::Won { store: StoreLock { _file: file }, start })
}

fn describe(file: &mut File) -> io::Result<()> {
    let (pid, since) = (std::process::id(), jiff::Timestamp::now());
    file.set_len(0)?;
    file.rewind()?;
    // By it a daemon of another machine on a shared disk is told from one of an earlier boot. Only Linux has one to read.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot = boot.lines().next().map(|id| format!("boot {id}\n")).unwrap_or_default();
    let version = minder_proto::VERSION;
    file.write_all(format!("pid {pid}\nsince {since:.0}\nversion {version}\n{boot}").as_bytes())
}

/// Who wrote the lock file.
pub fn holder(path: &Path) -> Holder {
    let mut text = String::new();
    // Bounded, since anybody of this user may have written it.
    let read = File::open(path).and_then(|f| f.take(512).read_to_string(&mut text));
    let pid = text.lines().find_map(|l| l.strip_prefix("pid ")).filter(|p| p.parse::<u32>().is_ok());
    Holder { pid: pid.filter(|_| read.is_ok()).map_or_else(|| "unknown".to_owned(), |p| format!("pid {p}")) }
}

fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(path)
}

/// Whether the open file still has that name: a lock on a file that was removed excludes nobody.
fn still_named(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn try_lock(path: &Path) -> Result<Option<File>, LockError> {
    let attempt = || loop {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) if still_named(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    };
    attempt().map_err(|source| LockError::Io { path: path.to_owned(), source })
}

fn lock(path: &Path) -> Result<File, LockError> {
    let attempt = || loop {
        let file = open(path)?;
        file.lock()?;
        if still_named(&file, path)? {
            return Ok(file);
        }
    };
    attempt().map_err(|source| LockError::Io { path: path.to_owned(), source })
}

/// Blocks for the lock on a thread of its own, since flock knows no deadline. On a timeout the thread is left behind;
/// the caller is about to exit, and a lock that comes too late is dropped unused.
fn lock_within(path: &Path, patience: Duration) -> Result<Option<File>, LockError> {
    let (give, take) = mpsc::channel();
    let name = path.to_owned();
    std::thread::spawn(move || give.send(lock(&name)));
    match take.recv_timeout(patience) {
        Ok(result) => result.map(Some),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(root: &Path, listening: bool) -> Claim {
        claim(root, Duration::ZERO, || listening).unwrap()
    }

    /// For a lock that was let go: another test may be starting a process just then, which has all locks of this one
    /// until it executes its program.
    fn soon(root: &Path) -> Claim {
        claim(root, Duration::from_secs(60), || false).unwrap()
    }

    #[test]
    fn one_wins_and_the_text_does_not_matter() {
        for text in ["", "pid 1\n", "not a pid\0\u{1F600}", &"x".repeat(10_000)] {
            let store = tempfile::tempdir().unwrap();
            std::fs::write(store.path().join("daemon.lock"), text).unwrap();
            let Claim::Won { store: held, start } = now(store.path(), false) else { panic!("{text:?}") };
            drop(start);
            let me = Holder { pid: format!("pid {}", std::process::id()) };
            assert!(matches!(now(store.path(), true), Claim::Serving(h) if h == me));
            assert!(matches!(now(store.path(), false), Claim::Silent(h) if h == me));
            drop(held);
            assert!(matches!(soon(store.path()), Claim::Won { .. }));
        }
    }

    #[test]
    fn a_second_start_waits_for_the_first_and_for_one_that_ends() {
        let store = tempfile::tempdir().unwrap();
        let root = store.path().to_owned();
        let Claim::Won { store: held, start } = now(&root, false) else { panic!() };
        let (tell, hear) = mpsc::channel();
        let second = std::thread::spawn(move || {
            claim(&root, Duration::from_secs(60), || {
                tell.send(()).unwrap();
                false
            })
            .unwrap()
        });
        // It is not past the start lock while the first holds it, and then waits for the store's.
        assert!(hear.try_recv().is_err());
        drop(start);
        hear.recv_timeout(Duration::from_secs(60)).unwrap();
        drop(held);
        assert!(matches!(second.join().unwrap(), Claim::Won { .. }));
    }

    #[test]
    fn a_lock_file_that_was_removed_excludes_nobody() {
        let store = tempfile::tempdir().unwrap();
        let path = store.path().join("daemon.lock");
        let stray = open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!still_named(&stray, &path).unwrap());
        stray.lock().unwrap();
        assert!(try_lock(&path).unwrap().is_some());
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_not_followed() {
        let store = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp/elsewhere-lock", store.path().join("daemon.lock")).unwrap();
        assert!(matches!(claim(store.path(), Duration::ZERO, || false), Err(LockError::Io { .. })));
    }
}
