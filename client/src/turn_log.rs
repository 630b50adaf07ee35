//! The logs of supervised turns, read from files alone: one file a seat, with its rotated ones. A line that cannot be read
//! is counted and hides nothing else.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use minder_proto::id::TurnId;
use minder_proto::turn::line::Line;
use minder_proto::whole;

/// Bytes of each seat's newest file that are looked at for the newest turns.
const TAIL: u64 = 64 * 1024;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The lines, oldest first within a seat.
    pub lines: Vec<Line>,
    /// Lines that are torn, or of a form that this build does not know.
    pub unreadable: usize,
    /// Files that cannot be read, with why.
    pub closed: Vec<String>,
}

impl Found {
    fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(line) => self.lines.push(line),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.unreadable += 1,
        }
    }

    fn failed(&mut self, path: &Path, error: &io::Error) {
        // It may have been rotated away since the folder was read.
        if error.kind() != ErrorKind::NotFound {
            self.closed.push(format!("{}: {error}", path.display()));
        }
    }
}

/// Every line, of one seat or of all.
pub fn all(folder: &Path, seat: Option<&str>) -> io::Result<Found> {
    let mut found = Found::default();
    for paths in files(folder, seat)?.into_values() {
        for path in paths {
            if let Err(error) = whole::lines(&path, |line| found.take(line)) {
                found.failed(&path, &error);
            }
        }
    }
    Ok(found)
}

/// The newest `most` lines of all seats, oldest first, as far as they stand near the end of a file.
pub fn newest(folder: &Path, most: usize) -> io::Result<Vec<Line>> {
    let mut found = Found::default();
    for paths in files(folder, None)?.into_values() {
        if let Some(path) = paths.last() {
            match tail(path) {
                Ok(bytes) => bytes.split(|b| *b == b'\n').for_each(|line| found.take(line)),
                Err(error) => found.failed(path, &error),
            }
        }
    }
    let mut lines = found.lines;
    lines.sort_by_key(|line| (line.ts, line.turn));
    lines.drain(..lines.len().saturating_sub(most));
    Ok(lines)
}

/// The lines of turns that `word` names: an id, or the end of one.
pub fn named(folder: &Path, word: &str) -> io::Result<BTreeMap<TurnId, Line>> {
    let word = word.to_ascii_lowercase();
    let mut found = BTreeMap::new();
    for path in files(folder, None)?.into_values().flatten() {
        let looked = whole::lines(&path, |line| {
            // Only what has the word at all is read as a line.
            if line.windows(word.len().max(1)).any(|part| part == word.as_bytes())
                && let Ok(line) = serde_json::from_slice::<Line>(line)
                && line.turn.ends_with(&word)
            {
                found.insert(line.turn, line);
            }
        });
        match looked {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(found)
}

/// The files by seat, oldest first.
fn files(folder: &Path, seat: Option<&str>) -> io::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut numbered: BTreeMap<String, Vec<(u32, PathBuf)>> = BTreeMap::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        if let Some((name, number)) = entry.file_name().to_str().and_then(parts)
            && seat.is_none_or(|seat| seat == name)
        {
            numbered.entry(name.to_owned()).or_default().push((number, entry.path()));
        }
    }
    let sorted = |mut files: Vec<(u32, PathBuf)>| {
        files.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        files.into_iter().map(|(_, path)| path).collect()
    };
    Ok(numbered.into_iter().map(|(seat, files)| (seat, sorted(files))).collect())
}

/// The seat of a file's name and how often it was rotated.
fn parts(name: &str) -> Option<(&str, u32)> {
    if let Some(seat) = name.strip_suffix(".jsonl") {
        return Some((seat, 0));
    }
    let (file, number) = name.rsplit_once('.')?;
    Some((file.strip_suffix(".jsonl")?, number.parse().ok().filter(|n| *n > 0)?))
}

/// The whole lines near the end of a file.
fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = whole::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    if start > 0 {
        let first = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_and_its_rotated_files_are_told_from_what_else_lies_there() {
        assert_eq!(parts("api.jsonl"), Some(("api", 0)));
        assert_eq!(parts("api.jsonl.8"), Some(("api", 8)));
        assert_eq!(parts("api.jsonl.jsonl.2"), Some(("api.jsonl", 2)));
        for other in ["run", "api.json", "api.jsonl.0", "api.jsonl.x", "api.jsonl.tmp", "jsonl"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn no_folder_is_no_turn_and_what_is_no_line_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        assert!(all(&dir.path().join("none"), None).unwrap().lines.is_empty());
        std::fs::write(dir.path().join("a.jsonl"), "{\"v\":2}\n\nnot a line\n{\"v\":2,\"ts\"").unwrap();
        std::fs::create_dir(dir.path().join("b.jsonl")).unwrap();
        let found = all(dir.path(), None).unwrap();
        assert_eq!((found.lines.len(), found.unreadable, found.closed.len()), (0, 3, 1));
        assert_eq!(all(dir.path(), Some("c")).unwrap().unreadable, 0);
        assert!(newest(dir.path(), 9).unwrap().is_empty());
    }
}
