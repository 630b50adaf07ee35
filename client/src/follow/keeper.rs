//! Keeps the file of positions: reads it, and changes it under its lock. Where it cannot be kept nothing fails:
//! what was told is told again.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use minder_proto::stamp::Stamp;
use minder_proto::{trial, whole};

use super::book::Book;
use super::place::{Place, leftovers};

/// How long another follower of the same caller may hold the lock: it prints under it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The keeper of one caller's positions; with no place, of none.
#[derive(Debug)]
pub struct Keeper {
    place: Option<Place>,
}

/// The positions, under their lock where that could be had.
#[derive(Debug)]
pub struct Held {
    /// What the file says now.
    pub book: Book,
    lock: io::Result<Option<File>>,
}

impl Keeper {
    /// Keeps the positions at a place.
    pub fn new(place: Option<Place>) -> Self {
        Self { place }
    }

    /// True if positions are kept.
    pub fn keeps(&self) -> bool {
        self.place.is_some()
    }

    /// What the file says, without its lock.
    pub fn look(&self) -> Book {
        let bytes = self.place.as_ref().map_or(Ok(None), |p| read(&p.file));
        let book = match bytes {
            Ok(bytes) => Book::parse(bytes.as_deref(), Stamp::now()),
            // There and not to be read: as good as damaged.
            Err(_) => Book::parse(Some(b""), Stamp::now()),
        };
        if trial::fault("cursor-not-merged") {
            static FIRST: OnceLock<Book> = OnceLock::new();
            return FIRST.get_or_init(|| book).clone();
        }
        book
    }

    /// Takes the lock, and reads again.
    pub fn hold(&self) -> Held {
        let lock = self.place.as_ref().map_or(Ok(None), |p| take(p).map(Some));
        Held { book: self.look(), lock }
    }

    /// Writes what was changed, and lets the lock go. The error says why it could not be kept.
    pub fn keep(&self, held: Held) -> io::Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        let lock = held.lock?;
        if held.book.foreign {
            return Err(io::Error::other(format!("{} is of a newer minder", place.file.display())));
        }
        // One name, guarded by the lock: nothing is left over of a follower that was killed here.
        let new = place.file.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&held.book.to_bytes())?;
        drop(file);
        // Not synced: after a power cut an older position tells something again.
        std::fs::rename(&new, &place.file)?;
        if place.passing {
            for path in leftovers(place) {
                let _ = std::fs::remove_file(path);
            }
        }
        drop(lock);
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match whole::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn take(place: &Place) -> io::Result<File> {
    let open = || OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&place.lock);
    let file = match open() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            make_folder(place)?;
            open()?
        }
        other => other?,
    };
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(e),
            Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => {
                return Err(io::Error::other("another wait of this caller holds its positions"));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
    }
}

/// Makes the folder of followers and of passing files. A session's folder and the store are the daemon's.
fn make_folder(place: &Place) -> io::Result<()> {
    let Some(dir) = place.file.parent() else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    if place.passing {
        return builder.recursive(true).create(dir);
    }
    if dir.file_name().is_none_or(|n| n != "followers") {
        return Err(io::ErrorKind::NotFound.into());
    }
    match builder.create(dir) {
        // Another follower was faster.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use minder_proto::caller::Identity;
    use minder_proto::layout::Home;

    use super::*;
    use crate::follow::samples::{after, session};

    fn keeper(dir: &Path) -> Keeper {
        Keeper::new(Some(Place::of(&Home::at(dir), &Identity::Operator, Some("x"))))
    }

    #[test]
    fn a_change_is_there_for_the_next_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let one = keeper(dir.path());
        let mut held = one.hold();
        held.book.advance(session(1), after(3), None);
        one.keep(held).unwrap();
        assert_eq!(keeper(dir.path()).look().mark(session(1)).unwrap().cursor, after(3));
        let file = dir.path().join("followers/x.json");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let names: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 2, "the file and its lock: {names:?}");
    }

    #[test]
    fn what_is_changed_under_the_lock_is_never_lost() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let dir = dir.path();
                scope.spawn(move || {
                    let keeper = keeper(dir);
                    for k in 0..20 {
                        let mut held = keeper.hold();
                        held.book.advance(session(n * 20 + k), after(1), None);
                        keeper.keep(held).unwrap();
                    }
                });
            }
        });
        assert_eq!(keeper(dir.path()).look().follows.len(), 160);
    }

    #[test]
    fn a_place_that_is_not_there_is_an_error_only_when_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let keeper = keeper(&dir.path().join("no store"));
        let held = keeper.hold();
        assert_eq!(held.book, Book::default());
        assert!(keeper.keep(held).is_err());
        let none = Keeper::new(None);
        none.keep(none.hold()).unwrap();
    }
}
