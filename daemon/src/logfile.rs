//! The daemon's own log file, for where no service manager keeps one: bounded, private, a few old ones beside it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc::O_NOFOLLOW;

use crate::folder::{self, FolderError, Wide};

/// How large a log file becomes.
pub const SIZE: u64 = 8 << 20;
/// How many full ones are kept.
pub const KEEP: u32 = 3;

/// A file that gives way to a new one before it grows past its limit.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
    keep: u32,
}

impl RotatingFile {
    /// Opens or makes the file, 0600 in a folder of 0700.
    pub fn open(path: &Path, limit: u64, keep: u32) -> Result<Self, FolderError> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        folder::private(folder, Wide::Correct)?;
        let failed = |source| FolderError::Io { path: path.to_owned(), source };
        let file = append(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(Self { path: path.to_owned(), file, size, limit, keep })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let old = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..self.keep).rev() {
            rename(&old(n), &old(n + 1))?;
        }
        rename(&self.path, &old(1))?;
        self.file = append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW).open(path)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Write for RotatingFile {
    /// One call is one record, which is never split over two files.
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + record.len() as u64 > self.limit {
            // A log that cannot be rotated goes on rather than go silent.
            let _ = self.rotate();
        }
        let written = self.file.write(record)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_bounded_private_and_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/minderd.log");
        for n in 0..40 {
            // Opened anew for every line, as by a daemon that starts again and again.
            let mut log = RotatingFile::open(&path, 64, 3).unwrap();
            log.write_all(format!("line {n:03} ........\n").as_bytes()).unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["minderd.log", "minderd.log.1", "minderd.log.2", "minderd.log.3"]);
        let all: String = ["minderd.log.3", "minderd.log.2", "minderd.log.1", "minderd.log"]
            .map(|n| std::fs::read_to_string(path.with_file_name(n)).unwrap())
            .concat();
        let last: Vec<_> = all.lines().map(|l| l[5..8].parse::<u32>().unwrap()).collect();
        assert_eq!(last, (40 - last.len() as u32..40).collect::<Vec<_>>());
        assert!(last.len() > 9, "three full files and the last: {last:?}");
        for name in names {
            let at = std::fs::metadata(path.with_file_name(name)).unwrap();
            assert!(at.len() <= 64);
            assert_eq!(at.permissions().mode() & 0o777, 0o600);
        }
    }
}
