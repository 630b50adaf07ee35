//! The files that a follower reads: where a session's timeline lies, and which timelines grew.

use std::io;
use std::path::{Path, PathBuf};

use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::Cursor;
use minder_proto::timeline::ACTIVE;

use super::bell::{Bell, Woke};
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
}

impl Source {
    /// Notes the end of the feed: to be called before the first timeline is read, and after the bell was hung.
    pub fn new(home: &Home, bell: Option<Bell>) -> Self {
        Self { home: home.clone(), feed: Feed::at_end(&home.feed()), bell }
    }

    /// Finds a session's timeline: open, or closed and in the trash.
    pub fn locate(&self, id: SessionId) -> Option<Located> {
        let (open, trashed) = (self.home.session(id), self.home.trashed(id));
        let found = [(open, false), (trashed, true)].into_iter().find(|(dir, _)| is_dir(dir));
        found.map(|(dir, closed)| Located { dir, closed })
    }

    /// Reads a session's timeline with `read`. Most are open: the trash is looked into only where one is not there.
    /// `NotFound` if there is none.
    pub fn read<T>(
        &self,
        id: SessionId,
        mut read: impl FnMut(&Located) -> io::Result<T>,
    ) -> io::Result<(Located, T)> {
        let mut located = Located { dir: self.home.session(id), closed: false };
        loop {
            match read(&located) {
                Ok(value) => return Ok((located, value)),
                Err(e) if e.kind() == io::ErrorKind::NotFound && !located.closed => {
                    located = Located { dir: self.home.trashed(id), closed: true };
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// True if a timeline that was read up to `cursor` is not as it was then. It is not opened for this.
    pub fn has_moved(&self, id: SessionId, cursor: Cursor) -> bool {
        let meta = std::fs::metadata(self.home.session(id).join(ACTIVE));
        meta.map_or(true, |m| m.len() != cursor.offset)
    }

    /// What the feed named since the last time; everything, if the kernel dropped notices.
    pub fn grown(&mut self, woke: Woke) -> Grown {
        let bell = &mut self.bell;
        let rewatch = |_: &Path| {
            if let Some(bell) = bell {
                bell.rewatch();
            }
        };
        let mut grown =
            if woke == Woke::Written { self.feed.written(rewatch) } else { self.feed.catch_up(rewatch) };
        grown.all |= woke == Woke::Lost;
        grown
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
