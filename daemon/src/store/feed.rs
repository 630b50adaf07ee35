//! The doorbell: one short line in `feed.jsonl` for each committed timeline line. It is not part of a commit: a
//! feed that is behind, broken or gone costs followers one look at everything, never an event.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use minder_proto::id::SessionId;
use minder_proto::record::FeedLine;

use super::disk::{self, DiskError, at};
use super::kill_point::reach;
use super::sizes;

/// The feed as its writer holds it.
pub struct Feed {
    path: PathBuf,
    file: File,
    len: u64,
    n: u64,
    /// Lines were lost: the next write says `all`.
    behind: bool,
    /// The next write begins a new file.
    anew: bool,
}

impl Feed {
    /// Opens the feed and goes on with its numbers.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let (file, len, n) = open(path).map_err(at(path))?;
        Ok(Self { path: path.to_owned(), file, len, n, behind: false, anew: false })
    }

    /// Rings for these lines.
    pub fn ring(&mut self, lines: impl Iterator<Item = (SessionId, u64)>) {
        let lines = lines.map(|(s, q)| FeedLine { n: 0, s: Some(s), q: Some(q), all: false });
        self.write(lines.collect());
    }

    /// Asks every follower to look at everything once.
    pub fn ring_all(&mut self) {
        self.write(vec![FeedLine { n: 0, s: None, q: None, all: true }]);
    }

    /// At a start, behind what asks everybody to look at everything: the part that was moved aside is read by nobody any
    /// more, and is not known to have been durable.
    pub fn drop_aside(&self) -> Result<(), DiskError> {
        disk::remove(&aside(&self.path))
    }

    /// Begins a new file, which asks every follower to look at everything once.
    pub fn begin_anew(&mut self) {
        self.anew = true;
        self.ring_all();
        self.anew = false;
    }

    fn write(&mut self, mut lines: Vec<FeedLine>) {
        if self.behind {
            lines.insert(0, FeedLine { n: 0, s: None, q: None, all: true });
        }
        if lines.is_empty() {
            return;
        }
        let mut bytes = Vec::with_capacity(lines.len() * 72);
        for line in &mut lines {
            self.n += 1;
            line.n = self.n;
            serde_json::to_writer(&mut bytes, line).expect("a feed line is plain data");
            bytes.push(b'\n');
        }
        reach("feed.before-append");
        if let Err(error) = self.append(&bytes) {
            // A gap in `n` is what a follower needs to see.
            self.behind = true;
            tracing::warn!(path = %self.path.display(), %error, "the feed could not be written");
            return;
        }
        self.behind = false;
        reach("feed.after-append");
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let meta = self.file.metadata()?;
        if meta.nlink() == 0 || meta.len() != self.len {
            // Removed, replaced or cut by a foreign hand.
            let (file, len, _) = open(&self.path)?;
            (self.file, self.len) = (file, len);
        }
        if self.len > sizes::feed() || self.anew && self.len > 0 {
            std::fs::rename(&self.path, aside(&self.path))?;
            reach("feed.rotated");
            let (file, len, _) = open(&self.path)?;
            (self.file, self.len) = (file, len);
        }
        if let Err(e) = self.file.write_all(bytes) {
            let _ = self.file.set_len(self.len);
            return Err(e);
        }
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Where the part before the present one lies.
fn aside(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

/// Opens a feed at its end, on a fresh line, and reads its last number.
fn open(path: &Path) -> io::Result<(File, u64, u64)> {
    let mut file = disk::open_rw(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(4096)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let n = end
        .split(|b| *b == b'\n')
        .rev()
        .find_map(|l| serde_json::from_slice::<FeedLine>(l).ok())
        .map_or(0, |l| l.n);
    let mut len = len;
    if end.last().is_some_and(|b| *b != b'\n') {
        file.write_all(b"\n")?;
        len += 1;
    }
    Ok((file, len, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<FeedLine> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    #[test]
    fn numbers_rise_by_one_over_restarts_and_a_torn_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.jsonl");
        let id = SessionId::random();
        for round in 0..3u64 {
            let mut feed = Feed::open(&path).unwrap();
            feed.ring([(id, round), (id, round)].into_iter());
            feed.ring_all();
            let mut text = std::fs::read(&path).unwrap();
            text.extend(b"{\"n\":");
            std::fs::write(&path, text).unwrap();
        }
        let all = lines(&path);
        assert_eq!(all.iter().map(|l| l.n).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
        assert!(all[2].all && !all[3].all);
    }

    #[test]
    fn a_feed_that_was_taken_away_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("feed.jsonl");
        let mut feed = Feed::open(&path).unwrap();
        feed.ring_all();
        std::fs::remove_file(&path).unwrap();
        feed.ring_all();
        assert_eq!(lines(&path).iter().map(|l| l.n).collect::<Vec<_>>(), [2]);
    }
}
