//! What a run says, on disk: the beginning of standard output, a tail of it where that was not all, and a tail of
//! standard error. What is not kept is counted elsewhere. No buffer of ours holds any of it, so that a reader sees it at
//! once and a shim that dies loses none.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use minder_proto::turn::folder::{STDERR, STDOUT, STDOUT_TAIL, TAIL_MAX};

/// A tail's file grows to this before its beginning is cut off.
const ROOM: u64 = 4 * TAIL_MAX as u64;
/// Bytes that are moved at once.
const PIECE: usize = 16 * 1024;

/// The files of one run's output.
#[derive(Debug)]
pub struct Spool {
    head: File,
    head_len: u64,
    head_max: u64,
    /// A piece of it could not be written: what is there stays a beginning, and is not the whole.
    head_torn: bool,
    stdout_tail: Option<Tail>,
    stderr: Tail,
}

impl Spool {
    /// Empty files in the folder that this process is in.
    pub fn create() -> io::Result<Self> {
        let stderr = Tail::create(STDERR)?;
        let head = create(STDOUT)?;
        Ok(Self { head, head_len: 0, head_max: 0, head_torn: false, stdout_tail: None, stderr })
    }

    /// Keeps this many bytes of standard output.
    #[must_use]
    pub fn keeping(self, head_max: u64) -> Self {
        Self { head_max, ..self }
    }

    /// Bytes of standard output.
    pub fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.head_torn {
            return Ok(());
        }
        let room = usize::try_from(self.head_max - self.head_len).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.write_all_at(head, self.head_len).inspect_err(|_| self.head_torn = true)?;
        self.head_len += head.len() as u64;
        if rest.is_empty() {
            return Ok(());
        }
        if self.stdout_tail.is_none() {
            self.stdout_tail = Some(Tail::create(STDOUT_TAIL)?);
        }
        self.stdout_tail.as_mut().map_or(Ok(()), |tail| tail.append(rest))
    }

    /// Bytes of standard error.
    pub fn stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stderr.append(bytes)
    }

    /// Forgets what a run wrote that is begun anew.
    pub fn forget(&mut self) -> io::Result<()> {
        (self.head_len, self.head_torn, self.stderr.len) = (0, false, 0);
        self.head.set_len(0)?;
        self.stderr.file.set_len(0)?;
        if self.stdout_tail.take().is_some() {
            std::fs::remove_file(STDOUT_TAIL)?;
        }
        Ok(())
    }

    /// Nothing follows: tails are cut to their length. One that cannot be cut is longer than it would be, or has a
    /// beginning that is not its own; it is no reason not to settle the turn.
    pub fn finish(&mut self) {
        let _ = self.stderr.cut();
        if let Some(tail) = &mut self.stdout_tail {
            let _ = tail.cut();
        }
    }

    /// Waits until the disk has it all.
    pub fn sync(&self) -> io::Result<()> {
        self.head.sync_all()?;
        self.stderr.file.sync_all()?;
        self.stdout_tail.as_ref().map_or(Ok(()), |tail| tail.file.sync_all())
    }
}

/// The end of a stream, at least [`TAIL_MAX`] bytes of it.
#[derive(Debug)]
struct Tail {
    file: File,
    len: u64,
}

impl Tail {
    fn create(name: &str) -> io::Result<Self> {
        Ok(Self { file: create(name)?, len: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        if self.len > ROOM { self.cut() } else { Ok(()) }
    }

    /// Moves the last bytes to the beginning.
    fn cut(&mut self) -> io::Result<()> {
        let most = TAIL_MAX as u64;
        if self.len <= most {
            return Ok(());
        }
        let from = self.len - most;
        let mut piece = vec![0; PIECE];
        let mut moved = 0;
        while moved < most {
            let wanted = PIECE.min(usize::try_from(most - moved).unwrap_or(PIECE));
            let read = self.file.read_at(&mut piece[..wanted], from + moved)?;
            if read == 0 {
                break;
            }
            self.file.write_all_at(&piece[..read], moved)?;
            moved += read as u64;
        }
        self.file.set_len(moved)?;
        self.len = moved;
        Ok(())
    }
}

fn create(name: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_piece_that_could_not_be_written_nothing_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head");
        let writable = File::create(&path).unwrap();
        let stderr = Tail { file: tempfile::tempfile().unwrap(), len: 0 };
        let head = File::open(&path).unwrap();
        let mut spool =
            Spool { head, head_len: 0, head_max: 100, head_torn: false, stdout_tail: None, stderr };
        spool.stdout(b"lost").unwrap_err();
        spool.head = writable;
        spool.stdout(b"found").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn one_tail_that_cannot_be_cut_keeps_no_other_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let long = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, vec![b'x'; 2 * TAIL_MAX]).unwrap();
            path
        };
        let tail = |file| Tail { file, len: 2 * TAIL_MAX as u64 };
        let stderr = tail(File::open(long("stderr")).unwrap());
        let path = long("tail");
        let stdout_tail = Some(tail(File::options().read(true).write(true).open(&path).unwrap()));
        let head = tempfile::tempfile().unwrap();
        let mut spool = Spool { head, head_len: 0, head_max: 100, head_torn: false, stdout_tail, stderr };
        spool.finish();
        assert_eq!(path.metadata().unwrap().len(), TAIL_MAX as u64);
    }

    #[test]
    fn a_tail_is_the_end_of_what_came() {
        let mut tail = Tail { file: tempfile::tempfile().unwrap(), len: 0 };
        let mut all = Vec::new();
        for number in 0..300_u32 {
            let piece: Vec<u8> =
                (0..7_777_u32).map(|n| u8::try_from((n * 31 + number) % 251).unwrap()).collect();
            tail.append(&piece).unwrap();
            assert!(tail.len <= ROOM);
            all.extend(piece);
        }
        tail.cut().unwrap();
        let mut kept = vec![0; TAIL_MAX];
        tail.file.read_exact_at(&mut kept, 0).unwrap();
        assert!(kept == all[all.len() - TAIL_MAX..]);
        assert_eq!(tail.file.metadata().unwrap().len(), TAIL_MAX as u64);
    }
}
