//! Reads the feed: which timelines grew. A feed that was cut, replaced or that jumps says that everything must be
//! looked at once; it can be late or wrong, and costs only that.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use minder_proto::id::SessionId;
use minder_proto::record::FeedLine;

/// Bytes of the first read; a burst is read in pieces of [`PIECE`].
const FIRST_PIECE: usize = 4 * 1024;
/// Bytes of one read of a burst.
const PIECE: usize = 64 * 1024;
/// Up to so many sessions a list is searched faster than a set is made.
const FEW: usize = 16;
/// Bytes at the end in which the last line's number is looked for.
const LAST_LINE: u64 = 512;

/// What the feed named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Sessions whose timeline grew, each once, in the order in which they were named.
    pub sessions: Vec<SessionId>,
    /// The person's own timeline grew: a line that names no session.
    pub operator: bool,
    /// Nothing can be relied on: look at everything once.
    pub all: bool,
}

/// The feed as a follower reads it.
#[derive(Debug)]
pub struct Feed {
    path: PathBuf,
    open: Option<Open>,
    /// The number of the last line; none before the first.
    last: Option<u64>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: (u64, u64),
    offset: u64,
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Feed {
    /// Opens the feed at its end. One that is not there yet is read from its first line once it is.
    pub fn at_end(path: &Path) -> Self {
        let mut feed = Self { path: path.to_owned(), open: None, last: None, buffer: vec![0; FIRST_PIECE] };
        if let Ok(file) = File::open(path) {
            let _ = feed.open_at_end(file);
        }
        feed
    }

    fn open_at_end(&mut self, file: File) -> io::Result<()> {
        let meta = file.metadata()?;
        let begin = meta.len().saturating_sub(LAST_LINE);
        let mut bytes = vec![0; (meta.len() - begin) as usize];
        file.read_exact_at(&mut bytes, begin)?;
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let line = bytes[..end].split(|b| *b == b'\n').rev().find(|l| !l.is_empty());
        self.last = line.and_then(|l| serde_json::from_slice::<FeedLine>(l).ok()).map(|l| l.n);
        self.open = Some(Open { file, identity: identity(&meta), offset: begin + end as u64 });
        Ok(())
    }

    /// Reads what came since, after the kernel said that the open feed was written. The path is looked at only if
    /// there is nothing.
    pub fn written(&mut self, replaced: impl FnMut(&Path)) -> Grown {
        let mut grown = Grown::default();
        if self.read(&mut grown) { grown } else { self.catch_up(replaced) }
    }

    /// Reads what came since. `replaced` is called with the path of a new feed before the old one is finished, so
    /// that nothing of the new one is missed.
    pub fn catch_up(&mut self, mut replaced: impl FnMut(&Path)) -> Grown {
        let mut grown = Grown::default();
        let there = std::fs::metadata(&self.path).ok();
        let same = match (&self.open, &there) {
            (Some(open), Some(meta)) => open.identity == identity(meta),
            (None, None) => return grown,
            // Taken away: what is still open is all there is, for now.
            (Some(_), None) => true,
            (None, Some(_)) => false,
        };
        if same {
            if let (Some(open), Some(meta)) = (&mut self.open, &there) {
                if meta.len() == open.offset {
                    return grown;
                }
                if meta.len() < open.offset {
                    open.offset = 0;
                    self.last = None;
                    grown.all = true;
                }
            }
        } else {
            replaced(&self.path);
        }
        self.read(&mut grown);
        if !same {
            grown.all |= self.last.is_none();
            if let Ok(file) = File::open(&self.path)
                && let Ok(meta) = file.metadata()
            {
                self.open = Some(Open { file, identity: identity(&meta), offset: 0 });
                self.read(&mut grown);
            }
        }
        grown
    }

    /// Reads on in the open feed; false if nothing is there.
    fn read(&mut self, grown: &mut Grown) -> bool {
        let Some(open) = &mut self.open else { return false };
        let mut any = false;
        loop {
            let n = match open.file.read_at(&mut self.buffer, open.offset) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {
                    grown.all = true;
                    break;
                }
            };
            any = true;
            let full = n == self.buffer.len();
            let used = digest(&self.buffer[..n], &mut self.last, grown);
            open.offset += used as u64;
            if full && used == 0 && n == PIECE {
                // No line is that long.
                grown.all = true;
                open.offset += n as u64;
            }
            if !full {
                break;
            }
            self.buffer.resize(PIECE, 0);
        }
        if self.buffer.len() > FIRST_PIECE {
            self.buffer = vec![0; FIRST_PIECE];
        }
        any
    }
}

/// Takes in the complete lines of `bytes`; returns how many bytes they have. Pure.
fn digest(bytes: &[u8], last: &mut Option<u64>, grown: &mut Grown) -> usize {
    let mut seen: HashSet<SessionId> = HashSet::new();
    let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return 0 };
    for line in bytes[..end].split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let Ok(line) = serde_json::from_slice::<FeedLine>(line) else {
            grown.all = true;
            continue;
        };
        grown.all |= line.all || last.is_some_and(|l| line.n != l.wrapping_add(1));
        *last = Some(line.n);
        match line.s {
            Some(id) if grown.sessions.len() < FEW => {
                if !grown.sessions.contains(&id) {
                    grown.sessions.push(id);
                }
            }
            Some(id) => {
                if seen.is_empty() {
                    seen.extend(&grown.sessions);
                }
                if seen.insert(id) {
                    grown.sessions.push(id);
                }
            }
            None => grown.operator |= !line.all,
        }
    }
    end + 1
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::follow::samples::session;

    fn line(n: u64, s: u8) -> String {
        format!("{{\"n\":{n},\"s\":\"{}\",\"q\":1}}\n", session(s))
    }

    fn named(sessions: &[u8]) -> Grown {
        Grown { sessions: sessions.iter().map(|n| session(*n)).collect(), ..Grown::default() }
    }

    fn all(sessions: &[u8]) -> Grown {
        Grown { all: true, ..named(sessions) }
    }

    #[test]
    fn lines_name_sessions_and_a_jump_names_everything() {
        for (text, last, grown, after) in [
            (line(5, 1) + &line(6, 2), Some(4), named(&[1, 2]), Some(6)),
            (line(5, 1), None, named(&[1]), Some(5)),
            (line(7, 1), Some(4), all(&[1]), Some(7)),
            (line(2, 1), Some(4), all(&[1]), Some(2)),
            ("{\"n\":5,\"all\":true}\n".to_owned(), Some(4), all(&[]), Some(5)),
            ("{\"n\":5}\n".to_owned(), Some(4), Grown { operator: true, ..named(&[]) }, Some(5)),
            ("garbage\n".to_owned() + &line(5, 1), Some(4), all(&[1]), Some(5)),
            ("{\"n\":5,".to_owned(), Some(4), named(&[]), Some(4)),
        ] {
            let mut found = (Grown::default(), last);
            let used = digest(text.as_bytes(), &mut found.1, &mut found.0);
            assert_eq!(found, (grown, after), "{text}");
            assert_eq!(used, text.rfind('\n').map_or(0, |i| i + 1));
        }
    }

    struct Files {
        dir: tempfile::TempDir,
        feed: Feed,
    }

    impl Files {
        fn new(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("feed.jsonl");
            std::fs::write(&path, text).unwrap();
            Self { feed: Feed::at_end(&path), dir }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("feed.jsonl")
        }

        fn append(&self, text: &str) {
            let mut file = File::options().append(true).create(true).open(self.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn seal(&self) {
            std::fs::rename(self.path(), self.dir.path().join("feed.jsonl.1")).unwrap();
        }

        fn catch_up(&mut self) -> (Grown, usize) {
            let mut replaced = 0;
            let grown = self.feed.catch_up(|_| replaced += 1);
            (grown, replaced)
        }
    }

    #[test]
    fn only_what_came_since_is_read_and_half_a_line_waits() {
        let mut files = Files::new(&(line(1, 1) + &line(2, 2)));
        assert_eq!(files.catch_up(), (named(&[]), 0));
        let three = line(3, 3);
        files.append(&three[..20]);
        assert_eq!(files.catch_up(), (named(&[]), 0));
        assert_eq!(files.feed.written(|_| ()), named(&[]));
        files.append(&three[20..]);
        assert_eq!(files.catch_up(), (named(&[3]), 0));
        files.append(&line(4, 4));
        assert_eq!(files.feed.written(|_| ()), named(&[4]));
        assert_eq!(files.feed.written(|_| ()), named(&[]));
        std::fs::write(files.path(), line(1, 1)).unwrap();
        assert_eq!(files.feed.written(|_| ()), all(&[1]), "cut");
    }

    #[test]
    fn a_burst_names_each_session_once_and_in_order() {
        let mut files = Files::new("");
        let lines: String = (1..=4_000).map(|n| line(n, (n * 7 % 251) as u8)).collect();
        files.append(&lines);
        let grown = files.feed.written(|_| unreachable!("it was not replaced"));
        let expected: Vec<SessionId> = (1..=251).map(|n: u64| session((n * 7 % 251) as u8)).collect();
        assert_eq!((grown.sessions, grown.all), (expected, false));
        assert_eq!(files.feed.buffer.len(), FIRST_PIECE);
    }

    #[test]
    fn a_feed_that_moves_on_loses_nothing() {
        let mut files = Files::new(&line(1, 1));
        files.append(&line(2, 2));
        files.seal();
        files.append(&line(3, 3));
        assert_eq!(files.catch_up(), (named(&[2, 3]), 1));
        files.append(&line(4, 4));
        assert_eq!(files.catch_up(), (named(&[4]), 0));
        // Two at once: the one between is not seen, its numbers are missing.
        files.append(&line(5, 5));
        files.seal();
        files.append(&line(6, 6));
        files.seal();
        files.append(&line(7, 7));
        assert_eq!(files.catch_up(), (all(&[5, 7]), 1));
    }

    #[test]
    fn a_feed_that_was_cut_or_begun_anew_asks_for_a_look_at_everything() {
        let mut files = Files::new(&(line(1, 1) + &line(2, 2)));
        std::fs::write(files.path(), line(1, 1)).unwrap();
        assert_eq!(files.catch_up(), (all(&[1]), 0));
        std::fs::write(files.dir.path().join("other"), line(9, 4)).unwrap();
        std::fs::rename(files.dir.path().join("other"), files.path()).unwrap();
        assert_eq!(files.catch_up(), (all(&[4]), 1));
    }

    #[test]
    fn a_feed_that_is_not_there_yet_is_read_whole_when_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let mut feed = Feed::at_end(&dir.path().join("feed.jsonl"));
        assert_eq!(feed.catch_up(|_| ()), Grown::default());
        std::fs::write(dir.path().join("feed.jsonl"), line(1, 1)).unwrap();
        assert_eq!(feed.catch_up(|_| ()), all(&[1]));
    }
}
