//! `minderd --repair`: what cannot be read goes to `quarantine/`, each file with the reason beside it, and what can be
//! rebuilt is: a record from its timeline, a ledger from its timeline and what is left of it, labels and conversations
//! from the records. What is written anew was kept in the quarantine before. A repair that was cut off is begun again; a
//! second one does nothing.
//!
//! The parts that decide (`timeline`, `ledger`, `record`, `lists`) are pure; `recipient` and `whole` do it.
//!
//! Uses: `proto`, the reading of `check`, and of `store` the hands for it. Used by: `main`.

use std::path::{Path, PathBuf};

use minder_proto::error::exit;
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;

mod ledger;
mod lists;
mod recipient;
mod record;
mod report;
mod timeline;
mod whole;
mod work;

pub use report::{Done, Report};

use crate::check::inside::Trouble;
use crate::check::{self, CheckError};
use crate::store::{DiskError, Mender, OpenError};

/// Why a store cannot be repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file system refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A folder of it is none.
    #[error("{}: {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl RepairError {
    fn unreadable(path: &Path, trouble: Trouble) -> Self {
        match trouble {
            Trouble::Kind(what) => Self::Folder { path: path.to_owned(), what: what.to_owned() },
            Trouble::Io(error) => DiskError { path: path.to_owned(), error }.into(),
        }
    }

    /// The exit code for it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Check(error) => error.exit(),
            Self::Open(error) => error.exit(),
            Self::Disk(_) | Self::Folder { .. } => exit::IO,
        }
    }

    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Check(error) => error.kind(),
            Self::Open(OpenError::Format { .. }) => "version",
            Self::Open(_) | Self::Disk(_) | Self::Folder { .. } => "io",
        }
    }
}

/// True if a start met a hole in the journal and nothing was repaired since.
pub fn is_needed(home: &Home) -> bool {
    home.repair_needed().symlink_metadata().is_ok()
}

/// Repairs the store. The caller holds its lock.
pub fn repair(home: &Home, now: Stamp) -> Result<Report, RepairError> {
    check::is_store(home)?;
    let mender = Mender::open(home)?;
    let mut work = work::Work::new(mender, home.root(), now);
    whole::mend(&mut work)?;
    let done = work.finish()?;
    Ok(Report { store: home.root().to_owned(), done, after: check::check(home)? })
}

#[cfg(test)]
mod tests;
