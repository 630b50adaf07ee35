//! The files that a follower reads: where a session's timeline lies, and which timelines grew.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::Cursor;
use minder_proto::timeline::ACTIVE;

use super::bell::Bell;
use super::feed::{Feed, Grown};

/// Where a timeline lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its folder.
    pub dir: PathBuf,
    /// True for one in the trash: nothing comes any more.
    pub closed: bool,
}

/// The store as a follower sees it.
#[derive(Debug)]
pub struct Source {
    home: Home,
    feed: Feed,
    /// The bell, for who sleeps.
    pub bell: Option<Bell>,
    /// Inode of each active timeline when it was looked at last: with its length it says whether it grew.
    inodes: HashMap<SessionId, u64>,
}

impl Source {
    /// Notes the end of the feed: to be called before the first timeline is read, and after the bell was hung.
    pub fn new(home: &Home, bell: Option<Bell>) -> Self {
        Self { home: home.clone(), feed: Feed::at_end(&home.feed()), bell, inodes: HashMap::new() }
    }

    /// Finds a session's timeline: open, or closed and in the trash.
    pub fn locate(&mut self, id: SessionId) -> Option<Located> {
        let open = self.home.session(id);
        if let Ok(meta) = std::fs::metadata(open.join(ACTIVE)) {
            self.inodes.insert(id, meta.ino());
            return Some(Located { dir: open, closed: false });
        }
        // Between a seal and the next line there is no active file; and a session may be closed.
        let trashed = self.home.trashed(id);
        let found = [(open, false), (trashed, true)].into_iter().find(|(dir, _)| is_dir(dir));
        found.map(|(dir, closed)| Located { dir, closed })
    }

    /// True if a timeline that was read up to `cursor` is not as it was then. It is not opened for this.
    pub fn has_moved(&self, id: SessionId, cursor: Cursor) -> bool {
        let Ok(meta) = std::fs::metadata(self.home.session(id).join(ACTIVE)) else { return true };
        self.inodes.get(&id) != Some(&meta.ino()) || meta.len() != cursor.offset
    }

    /// What the feed named since the last time.
    pub fn grown(&mut self) -> Grown {
        let bell = &mut self.bell;
        self.feed.catch_up(|_| {
            if let Some(bell) = bell {
                bell.rewatch();
            }
        })
    }

    /// True if the kernel tells nothing, and the floor does all.
    pub fn is_blind(&self) -> bool {
        self.bell.as_ref().is_some_and(Bell::is_blind)
    }

    /// What is printed from here on may block, and can be interrupted.
    pub fn awake(&mut self) {
        if let Some(bell) = &mut self.bell {
            bell.awake();
        }
    }
}

fn is_dir(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_dir())
}
