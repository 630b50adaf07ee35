//! Reading a small file whole. No file that is replaced or rewritten as a whole can be larger than one record of the
//! journal; what is larger was not written by minder, and is not taken into memory. What is no regular file is not
//! opened: a pipe would let its reader wait for ever.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::timeline::LINE_MAX;

/// Most bytes of a file that is read whole.
pub const MAX: u64 = 64 * 1024 * 1024;

/// Opens a regular file. Whatever else has its name is `InvalidData`.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    is_regular(path)?;
    File::open(path)
}

/// Says `InvalidData` of what has this name and is no regular file.
pub fn is_regular(path: &Path) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_symlink() => "a symbolic link",
        _ => "no regular file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("{what}, where a file should be")))
}

/// Reads a file of at most [`MAX`] bytes; a larger one is `InvalidData`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    at_most(path, MAX)
}

/// Reads a file of at most `max` bytes; a larger one is `InvalidData`.
pub fn at_most(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let len = file.metadata()?.len();
    if len > max {
        return Err(too_large(len, max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    // It may grow while it is read.
    let read = file.take(max + 1).read_to_end(&mut bytes)?;
    if read as u64 > max { Err(too_large(read as u64, max)) } else { Ok(bytes) }
}

/// Reads at most `max` bytes of the beginning of a file.
pub fn beginning(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Hands over every line of a file that may have any size, without its newline, the last one with or without. A line
/// of more than [`LINE_MAX`] bytes is handed over cut.
pub fn lines(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut reader).take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if n == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if n == LINE_MAX {
            reader.skip_until(b'\n')?;
        }
        each(&line);
    }
}

fn too_large(len: u64, max: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{len} bytes, where at most {max} are read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let long = "x".repeat(LINE_MAX * 2 + 5);
        std::fs::write(&path, format!("a\n\n{long}\nb\nc")).unwrap();
        let mut seen = Vec::new();
        lines(&path, |line| seen.push(line.len())).unwrap();
        assert_eq!(seen, [1, 0, LINE_MAX, 1, 1]);
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, link) = (dir.path().join("folder"), dir.path().join("link"));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("link", &link).unwrap();
        let socket = dir.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        for (path, what) in [(folder, "a folder"), (link, "a symbolic link"), (socket, "no regular file")] {
            for error in [read(&path).unwrap_err(), lines(&path, |_| ()).unwrap_err()] {
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                assert_eq!(error.to_string(), format!("{what}, where a file should be"));
            }
        }
    }

    #[test]
    fn what_is_too_large_is_not_taken_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(at_most(&path, 5).unwrap(), b"12345");
        assert_eq!(at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        File::options().write(true).open(&path).unwrap().set_len(MAX + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().starts_with("67108865 bytes"));
        assert_eq!(read(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
