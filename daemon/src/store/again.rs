//! Writing once more, in a daemon that runs, what the journal holds. When a flush of the files failed, the system may
//! have given up what it could not write, while whoever reads it still sees it: a second flush would find nothing to do
//! and the journal would be removed for nothing.

use std::path::Path;

use minder_proto::id::SessionId;

use super::disk::DiskError;
use super::files::Files;
use super::journal::recover;
use super::op::Op;
use super::recover::{Target, replay};

/// Writes it.
pub fn write(files: &mut Files, journal: &Path) -> Result<(), DiskError> {
    let found = recover(journal)?;
    files.trust_nothing(true);
    let done = replay(&mut Again(files), &found.commits, found.hole());
    files.trust_nothing(false);
    done.map(|_| ())
}

/// The store's files, all of which have been applied to before. One that is gone was taken away since, and is judged
/// when it is written to.
struct Again<'a>(&'a mut Files);

impl Target for Again<'_> {
    fn redo(&mut self, op: &Op) -> Result<Option<String>, DiskError> {
        self.0.redo(op).map(|_| None)
    }

    fn cut(&mut self, _file: &str, _segment: u64, _len: u64) -> Result<bool, DiskError> {
        Ok(false)
    }

    fn set_aside(&mut self, _session: SessionId, _why: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn bears(&mut self, file: &str, segment: u64, offset: u64, bytes: &[u8]) -> Result<bool, DiskError> {
        self.0.bears(file, segment, offset, bytes)
    }

    fn whole(&self, file: &str) -> Option<Vec<u8>> {
        Target::whole(&*self.0, file)
    }
}
