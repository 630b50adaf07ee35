//! `minderd --check`: every invariant of a store's files, from the files alone. Reads only; works without a daemon,
//! on a copy, and beside a running daemon.
//!
//! What the journal holds and the files do not show yet is not damage: each look is at the store as a replay would
//! leave it. A daemon that writes meanwhile makes two files look as if they did not fit. So what is found counts only
//! if a second look finds it too, and the journal names no change of those files in between.
//!
//! One file for each kind of file of the store; `finding`, `lines`, `overlay`, `pass`, `rounds` and `report` are what they stand on.
//!
//! Uses: `proto`, and of `store` the reading of the journal. Used by: `main`.

use std::io;
use std::path::PathBuf;

use minder_proto::STORE_FORMAT;
use minder_proto::error::exit;
use minder_proto::layout::Home;

mod closed;
mod cursors;
mod feed;
mod finding;
mod format;
mod host;
mod keys;
mod ledger;
mod lines;
mod overlay;
mod pass;
mod pointers;
mod recipient;
mod record;
mod report;
mod rounds;
mod spool;
mod timeline;
mod tree;
mod watchers;

pub use finding::{Finding, Weight};
pub use report::Report;

/// What a repair reads with.
pub(crate) mod inside {
    pub use super::cursors::read as cursors;
    pub use super::feed::read as feed;
    pub use super::finding::{Finding, Sheet, Trouble, Weight};
    pub use super::host::{FILES as HOST_FILES, read as host};
    pub use super::overlay::Overlay;
    pub use super::pointers::{BINDINGS, LABELS, compare};
    pub use super::recipient::look;
    pub use super::spool::{is_request, read as request};
    pub use super::tree::walk;

    /// True if a reading puts damage on its sheet.
    pub fn wrong_lines(bytes: &[u8], read: impl FnOnce(&[u8], &mut Sheet)) -> bool {
        let mut sheet = Sheet::new("");
        read(bytes, &mut sheet);
        sheet.finish().iter().any(|f| f.weight > Weight::Note)
    }
}

use finding::Sheet;
use format::Format;
use pass::Kept;
use rounds::{Changed, Rounds};

use crate::store::{DiskError, Recovered, recover};

/// How often a store is looked at that changes all the time.
const ROUNDS: usize = 8;

/// Why a store cannot be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no store.
    #[error("{}: no store there", .0.display())]
    NoStore(PathBuf),
    /// A newer build wrote it.
    #[error("{}: the store says {found:?}, this build reads {STORE_FORMAT:?}: upgrade minder", path.display())]
    Newer {
        /// The `format` file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// The file system refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl CheckError {
    /// The exit code for it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::NoStore(_) => exit::GONE,
            Self::Newer { .. } => exit::VERSION,
            Self::Disk(_) => exit::IO,
        }
    }

    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoStore(_) => "not_found",
            Self::Newer { .. } => "version",
            Self::Disk(_) => "io",
        }
    }
}

/// Checks the store.
pub fn check(home: &Home) -> Result<Report, CheckError> {
    is_store(home)?;
    let mut journal = read_journal(home)?;
    let mut kept = Kept::default();
    let mut rounds = Rounds::default();
    for round in 1.. {
        let look = pass::pass(home.root(), &journal, &mut kept)?;
        rounds.found(look.findings);
        if rounds.is_settled() || round == ROUNDS {
            let (store, findings) = (home.root().to_owned(), rounds.finish());
            return Ok(Report { store, sessions: look.sessions, lines: look.lines, findings });
        }
        let next = read_journal(home)?;
        rounds.changed(&Changed::between(&journal, &next));
        let doubtful = rounds.doubtful();
        kept.forget(|dir| doubtful.contains(&rounds::unit(dir)));
        journal = next;
    }
    unreachable!("the last round returns")
}

/// Whether there is a store that this build may look at.
pub fn is_store(home: &Home) -> Result<(), CheckError> {
    let absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let root = home.root();
    match std::fs::read_dir(root) {
        Ok(_) => {}
        Err(e) if absent(&e) => return Err(CheckError::NoStore(root.to_owned())),
        Err(error) => return Err(DiskError { path: root.to_owned(), error }.into()),
    }
    let path = home.format();
    match std::fs::read(&path) {
        Ok(bytes) => match format::read(Some(&bytes), &mut Sheet::new("format")) {
            Format::Newer(found) => Err(CheckError::Newer { path, found }),
            Format::Known => Ok(()),
        },
        Err(e) if absent(&e) && !home.journal().is_dir() && !home.sessions().is_dir() => {
            Err(CheckError::NoStore(root.to_owned()))
        }
        Err(e) if absent(&e) || e.kind() == io::ErrorKind::IsADirectory => Ok(()),
        Err(error) => Err(DiskError { path, error }.into()),
    }
}

/// Reads the journal. A checkpoint may remove a segment between its listing and its reading; then it is read again.
fn read_journal(home: &Home) -> Result<Recovered, DiskError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match recover(&home.journal()) {
            Err(e) if e.error.kind() == io::ErrorKind::NotFound && tries < ROUNDS => {
                if !home.journal().is_dir() {
                    return Ok(Recovered::none());
                }
            }
            other => return other,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
