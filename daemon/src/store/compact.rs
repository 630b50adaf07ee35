//! What a checkpoint does when it is due, at once and without regard to sizes: somebody asked for it.

use minder_proto::error::{Fault, Kind};

use super::owner::Owner;

/// What a compaction came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Ledgers and lists of keys that were rewritten.
    pub rewritten: usize,
    /// Bytes of them that went.
    pub shorter: u64,
    /// Bytes of journal that went.
    pub journal: u64,
}

impl Owner {
    /// Rewrites every ledger that can be shorter, begins the feed anew, and makes the journal empty.
    pub(super) fn compact(&mut self) -> Result<Compacted, Fault> {
        if let Some(why) = self.refuses() {
            return Err(Fault::new(Kind::ReadOnly, why));
        }
        let io = |e: super::DiskError| Fault::new(Kind::ReadOnly, e.to_string());
        let mut compacted = Compacted { journal: self.journal.bytes(), ..Compacted::default() };
        (compacted.rewritten, compacted.shorter) = self.rewrite_ledgers(0).map_err(io)?;
        self.feed.begin_anew();
        if !self.checkpoint_now() {
            return Err(Fault::new(Kind::ReadOnly, "the journal cannot be emptied now; the log says why"));
        }
        Ok(compacted)
    }
}
