//! Reading a small file whole. No file that is replaced or rewritten as a whole can be larger than one record of the
//! journal; what is larger was not written by minder, and is not taken into memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::timeline::LINE_MAX;

/// Most bytes of a file that is read whole.
pub const MAX: u64 = 64 * 1024 * 1024;

/// Reads a file of at most [`MAX`] bytes; a larger one is `InvalidData`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    at_most(path, MAX)
}

/// Reads a file of at most `max` bytes; a larger one is `InvalidData`.
pub fn at_most(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    if len > max {
        return Err(too_large(len, max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    // It may grow while it is read.
    let read = file.take(max + 1).read_to_end(&mut bytes)?;
    if read as u64 > max { Err(too_large(read as u64, max)) } else { Ok(bytes) }
}

/// Hands over every line of a file that may have any size, without its newline, the last one with or without. A line
/// of more than [`LINE_MAX`] bytes is handed over cut.
pub fn lines(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, File::open(path)?);
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
