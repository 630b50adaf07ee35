//! What every part of a repair has in its hands: the store, what was done so far, and the time.

use std::collections::BTreeSet;
use std::path::Path;

use minder_proto::id::SessionId;
use minder_proto::stamp::Stamp;

use super::RepairError;
use super::report::Done;
use crate::check::inside::{Overlay, Trouble};
use crate::store::{Mender, Op};

/// A repair under way.
pub struct Work {
    mender: Mender,
    root: std::path::PathBuf,
    done: Vec<Done>,
    /// The time of it.
    pub now: Stamp,
}

impl Work {
    /// Begins one.
    pub fn new(mender: Mender, root: &Path, now: Stamp) -> Self {
        let mut work = Self { mender, root: root.to_owned(), done: Vec::new(), now };
        let prefix = format!("{}/", root.display());
        for note in std::mem::take(&mut work.mender.notes) {
            let (path, what) = note.split_once(": ").unwrap_or(("journal", &note));
            work.done(path.strip_prefix(&prefix).unwrap_or(path), what);
        }
        work
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Notes that something was done.
    pub fn done(&mut self, path: &str, what: impl Into<String>) {
        self.done.push(Done { path: path.to_owned(), what: what.into() });
    }

    /// A file; nothing if there is none.
    pub fn read(&self, file: &str) -> Result<Option<Vec<u8>>, Trouble> {
        Overlay::new(&self.root).read(file)
    }

    /// The names in a folder.
    pub fn names(&self, dir: &str) -> Result<Vec<String>, RepairError> {
        let names = Overlay::new(&self.root).names(dir);
        Ok(names
            .map_err(|trouble| RepairError::unreadable(&self.root.join(dir), trouble))?
            .into_keys()
            .collect())
    }

    /// The sessions that have a folder here.
    pub fn ids(&self, dir: &str) -> Result<Vec<SessionId>, RepairError> {
        let mut ids: Vec<SessionId> = self.names(dir)?.iter().filter_map(|n| n.parse().ok()).collect();
        ids.retain(|id| self.root.join(dir).join(id.to_string()).is_dir());
        Ok(ids)
    }

    /// True if a session has a folder among the open ones.
    pub fn is_open(&self, id: SessionId) -> bool {
        self.root.join(format!("sessions/{id}")).is_dir()
    }

    /// The label whose file names this session.
    pub fn label_of(&self, id: SessionId) -> Option<String> {
        let names: BTreeSet<String> = self.names("labels").ok()?.into_iter().collect();
        names.into_iter().find(|name| {
            let text = self.read(&format!("labels/{name}")).ok().flatten().unwrap_or_default();
            String::from_utf8_lossy(&text).trim_end() == id.to_string()
        })
    }

    /// A file will have this content; what it held is kept in the quarantine.
    pub fn rewrite(
        &mut self,
        ops: &mut Vec<Op>,
        file: &str,
        bytes: Vec<u8>,
        what: &str,
    ) -> Result<(), RepairError> {
        self.keep(file, what)?;
        self.done(file, what);
        ops.push(Op::Replace { file: file.to_owned(), bytes });
        Ok(())
    }

    /// A file will be gone; what it held is kept in the quarantine.
    pub fn remove(&mut self, ops: &mut Vec<Op>, file: &str, what: &str) -> Result<(), RepairError> {
        self.keep(file, what)?;
        self.done(file, format!("removed: {what}"));
        ops.push(Op::Remove { file: file.to_owned() });
        Ok(())
    }

    fn keep(&mut self, file: &str, why: &str) -> Result<(), RepairError> {
        if self.root.join(file).is_file() {
            self.mender.keep(file, why)?;
        }
        Ok(())
    }

    /// Moves whatever has this name to the quarantine.
    pub fn set_aside(&mut self, file: &str, why: &str) -> Result<(), RepairError> {
        self.mender.set_aside(file, why)?;
        self.done(file, format!("moved to quarantine/: {why}"));
        Ok(())
    }

    /// Moves an open session to the quarantine.
    pub fn set_session_aside(&mut self, id: SessionId, why: &str) -> Result<(), RepairError> {
        self.mender.set_session_aside(id, why)?;
        self.done(&format!("sessions/{id}"), format!("moved to quarantine/: {why}"));
        Ok(())
    }

    /// Gives a file or folder the permissions that it should have.
    pub fn permit(&mut self, file: &str) -> Result<(), RepairError> {
        self.mender.permit(file)?;
        self.done(file, "permissions corrected");
        Ok(())
    }

    /// Makes changes.
    pub fn commit(&mut self, ops: Vec<Op>) -> Result<(), RepairError> {
        Ok(self.mender.commit(ops)?)
    }

    /// Makes everything durable; gives what was done.
    pub fn finish(mut self) -> Result<Vec<Done>, RepairError> {
        if !self.done.is_empty() {
            self.mender.ring()?;
        }
        self.mender.finish()?;
        // As a check says it: in the order of paths.
        self.done.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
        Ok(self.done)
    }
}
