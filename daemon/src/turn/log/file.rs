//! The files of the log: one a seat, a line a write, rotated before it grows past its bound.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use minder_proto::id::TurnId;
use minder_proto::turn::Outcome;
use minder_proto::turn::line::{KEEP, Line, ROTATE_AT, seat};
use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use crate::folder::{self, FolderError, Wide};

/// Longest line that is looked at.
const LINE_MAX: u64 = 64 * 1024;

/// The files in one folder.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn active(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.jsonl", seat(name)))
    }

    fn old(&self, name: &str, n: u32) -> PathBuf {
        self.folder.join(format!("{}.jsonl.{n}", seat(name)))
    }

    /// Appends a line to the file of its seat.
    pub fn append(&self, line: &Line) -> io::Result<()> {
        // A link that the user made leads to a folder of the user's.
        let place = std::fs::canonicalize(&self.folder).unwrap_or_else(|_| self.folder.clone());
        folder::private(&place, Wide::Correct).map_err(plain)?;
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::other)?;
        bytes.push(b'\n');
        let path = self.active(&line.seat);
        let mut file = open(&path)?;
        let mut found = file.metadata()?;
        if found.len() > 0 && found.len() + bytes.len() as u64 > ROTATE_AT {
            self.rotate(&line.seat)?;
            file = open(&path)?;
            found = file.metadata()?;
        }
        if found.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
        let before = found.len();
        if before > 0 && !ends_whole(&file, before)? {
            bytes.insert(0, b'\n');
        }
        let written = file.write(&bytes)?;
        if written < bytes.len() {
            // Half a line is none. If it cannot be taken back, the next one begins on a line of its own.
            let _ = file.set_len(before);
            return Err(Errno::ENOSPC.into());
        }
        Ok(())
    }

    fn rotate(&self, name: &str) -> io::Result<()> {
        for n in (1..KEEP).rev() {
            rename(&self.old(name, n), &self.old(name, n + 1))?;
        }
        rename(&self.active(name), &self.old(name, 1))
    }

    /// The turns whose lines stand in the two newest files of a seat, with their outcomes.
    pub fn turns(&self, name: &str) -> HashMap<TurnId, Outcome> {
        let mut turns = HashMap::new();
        for path in [self.old(name, 1), self.active(name)] {
            // What cannot be read says nothing.
            let Ok(file) = read(&path) else { continue };
            let mut lines = BufReader::new(file);
            let mut line = Vec::new();
            loop {
                line.clear();
                match lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                    Ok(n) if n > 0 => turns.extend(turn_of(&line)),
                    _ => break,
                }
            }
        }
        turns
    }
}

/// The turn of a line of any build, and its outcome.
fn turn_of(line: &[u8]) -> Option<(TurnId, Outcome)> {
    #[derive(serde::Deserialize)]
    struct Only {
        turn: TurnId,
        outcome: String,
    }
    let Only { turn, outcome } = serde_json::from_slice(line).ok()?;
    Some((turn, outcome.parse().unwrap_or(Outcome::Unknown)))
}

/// Opens for appending what is a regular file, and waits for nobody to read it.
fn open(path: &Path) -> io::Result<File> {
    let mut open = File::options();
    let open = open.append(true).read(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    let file = open.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::EINVAL.into()) }
}

fn read(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::EINVAL.into()) }
}

fn ends_whole(file: &File, length: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// The system's word alone: a path may be anything.
fn plain(error: FolderError) -> io::Error {
    match error {
        FolderError::Io { source, .. } => source,
        FolderError::NotAFolder(_) => Errno::ENOTDIR.into(),
        FolderError::Foreign { .. } | FolderError::Open { .. } => Errno::EPERM.into(),
    }
}
