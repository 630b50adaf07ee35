//! Reading a timeline: sealed segments `timeline.<first seq, 12 digits>.jsonl` and the active one,
//! `timeline.jsonl`. Readers never lock. They take only complete lines, up to the last newline.

mod back;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use back::read_back;

use crate::event::{Event, Line};
use crate::record::Cursor;
use crate::whole;

/// The active segment's file name.
pub const ACTIVE: &str = "timeline.jsonl";

/// Longest line a reader takes in, in bytes; a longer one is damage. The longest legal line is a message body
/// of 256 KiB in which every byte is escaped.
pub const LINE_MAX: usize = 2 * 1024 * 1024;

/// The file name of a sealed segment.
pub fn sealed_name(first: u64) -> String {
    format!("timeline.{first:012}.jsonl")
}

/// The first `seq` that a sealed segment's file name says.
pub fn sealed_first(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("timeline.")?.strip_suffix(".jsonl")?;
    (digits.len() == 12 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// The sealed segments of a session's folder, oldest first.
pub fn sealed(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(first) = entry.file_name().to_str().and_then(sealed_first) {
            found.push((first, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// One line, and where a reader stands after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The line.
    pub line: Line,
    /// The position after it. After a torn line, `seq` is that of the last good one.
    pub after: Cursor,
}

/// A position that does not fit the file any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The `seq` the reader had read up to.
    pub lost: u64,
    /// The first `seq` that was delivered after it, or where the timeline ends now.
    pub resumed: u64,
}

/// What a reading ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Where to go on next time.
    pub cursor: Cursor,
    /// Set if the position handed in was not there any more: nothing was replayed, reading stands at the end.
    pub gap: Option<Gap>,
}

struct Segment {
    first: Option<u64>,
    file: File,
}

/// Opens sealed segments from `from` on, then the active one. Sealing may happen meanwhile: a segment that was
/// renamed between the listing and the opening of the active file is found by listing again.
fn open_from(dir: &Path, from: u64) -> io::Result<Vec<Segment>> {
    loop {
        let list = sealed(dir)?;
        let start = list.iter().rposition(|(first, _)| *first <= from.max(1)).unwrap_or(0);
        let mut segments = Vec::new();
        for (first, path) in &list[start..] {
            segments.push(Segment { first: Some(*first), file: whole::open(path)? });
        }
        match whole::open(dir.join(ACTIVE)) {
            Ok(file) => segments.push(Segment { first: None, file }),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !segments.is_empty() => {}
            Err(e) => return Err(e),
        }
        if sealed(dir)?.len() == list.len() {
            return Ok(segments);
        }
    }
}

/// Reads every complete line after `position` (`None`: from the first line there is) and hands it to `each`,
/// until that breaks or the timeline ends.
///
/// A position is checked by the line before it; where that does not fit, it is found again by `seq`. If that
/// `seq` is gone (damage, retention, a foreign hand), the end says `gap`, nothing is handed over, and the cursor
/// stands at the end.
pub fn read_after(
    dir: &Path,
    position: Option<Cursor>,
    mut each: impl FnMut(Item) -> ControlFlow<()>,
) -> io::Result<End> {
    if let Some(position) = position
        && let Some(cursor) = read_on(dir, position, &mut each)?
    {
        return Ok(End { cursor, gap: None });
    }
    let wanted = position.unwrap_or(Cursor { seq: 0, offset: 0, segment: 0 });
    let segments = open_from(dir, wanted.segment.max(wanted.seq))?;
    let trusted = match position {
        Some(p) if p.seq > 0 => segments
            .iter()
            .position(|s| first_of(s).is_some_and(|first| first == p.segment))
            .filter(|i| line_before_is(&segments[*i].file, p.offset, p.seq).unwrap_or(false)),
        _ => None,
    };
    let mut cursor = Cursor { seq: 0, offset: 0, segment: 0 };
    let mut met = wanted.seq == 0 || trusted.is_some();
    let mut any = false;
    for (i, segment) in segments.into_iter().enumerate() {
        if trusted.is_some_and(|t| i < t) {
            continue;
        }
        let start = if trusted == Some(i) { wanted.offset } else { 0 };
        let first = first_of(&segment).or(segment.first);
        let first = first.unwrap_or(cursor.seq + 1);
        let begin = Cursor {
            seq: if trusted == Some(i) { wanted.seq } else { cursor.seq },
            offset: start,
            segment: first,
        };
        let mut stop = false;
        cursor = lines(segment.file, begin, |item| {
            if !met {
                let seq = item.line.seq();
                let oldest = !any;
                any |= seq.is_some();
                // Where older history was dropped, the line after the position may be the oldest one there is.
                met = seq.is_some_and(|s| s == wanted.seq || (oldest && s == wanted.seq.saturating_add(1)));
                if seq.is_none_or(|s| s <= wanted.seq) || !met {
                    return ControlFlow::Continue(());
                }
            }
            // A line that was read already stands again where a segment was rewritten: not news.
            if item.line.seq().is_some_and(|s| s <= wanted.seq) {
                return ControlFlow::Continue(());
            }
            let flow = each(item);
            stop = flow.is_break();
            flow
        })?;
        if stop {
            return Ok(End { cursor, gap: None });
        }
    }
    let gap = (!met).then_some(Gap { lost: wanted.seq, resumed: cursor.seq });
    Ok(End { cursor, gap })
}

/// Reads on in the active file, if the position is there: the common case, without a look at the folder. Lines
/// of an even newer file are announced by the feed when they are there.
fn read_on(
    dir: &Path,
    position: Cursor,
    each: &mut impl FnMut(Item) -> ControlFlow<()>,
) -> io::Result<Option<Cursor>> {
    if position.seq == 0 || position.offset == 0 {
        return Ok(None);
    }
    let file = match whole::open(dir.join(ACTIVE)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    if !line_before_is(&file, position.offset, position.seq)? {
        return Ok(None);
    }
    lines(file, position, |item| match item.line.seq() {
        Some(seq) if seq <= position.seq => ControlFlow::Continue(()),
        _ => each(item),
    })
    .map(Some)
}

fn first_of(segment: &Segment) -> Option<u64> {
    if segment.first.is_some() {
        return segment.first;
    }
    let mut found = None;
    let start = Cursor { seq: 0, offset: 0, segment: 0 };
    let clone = segment.file.try_clone().ok()?;
    lines(clone, start, |item| {
        found = item.line.seq();
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .ok()?;
    found
}

/// True if a complete line ends right before `offset`, and the last good one up to there says `seq`.
fn line_before_is(file: &File, offset: u64, seq: u64) -> io::Result<bool> {
    if offset == 0 || file.metadata()?.len() < offset {
        return Ok(false);
    }
    let mut take: u64 = 1024;
    loop {
        let begin = offset.saturating_sub(take);
        let mut bytes = vec![0; (offset - begin) as usize];
        match file.read_exact_at(&mut bytes, begin) {
            Ok(()) => {}
            // Cut after it was measured.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
        let Some(b'\n') = bytes.pop() else { return Ok(false) };
        let whole = match begin {
            0 => Some(0),
            _ => bytes.iter().position(|b| *b == b'\n').map(|i| i + 1),
        };
        let lines = whole.map(|w| bytes[w..].rsplit(|b| *b == b'\n'));
        if let Some(found) = lines.into_iter().flatten().find_map(|l| Line::parse(l).seq()) {
            return Ok(found == seq);
        }
        if begin == 0 || bytes.len() > LINE_MAX {
            return Ok(false);
        }
        take *= 8;
    }
}

/// Hands over every complete line of one file from a position, and returns the position after the last one.
fn lines(mut file: File, from: Cursor, mut each: impl FnMut(Item) -> ControlFlow<()>) -> io::Result<Cursor> {
    file.seek(SeekFrom::Start(from.offset))?;
    let mut reader = BufReader::with_capacity(32 * 1024, file);
    let mut cursor = from;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let n = (&mut reader).take(LINE_MAX as u64).read_until(b'\n', &mut bytes)?;
        if bytes.last() != Some(&b'\n') {
            if n < LINE_MAX {
                return Ok(cursor);
            }
            // An endless line: step over it without keeping it.
            let mut skipped = n as u64;
            loop {
                bytes.clear();
                let n = (&mut reader).take(LINE_MAX as u64).read_until(b'\n', &mut bytes)?;
                if n == 0 {
                    return Ok(cursor);
                }
                skipped += n as u64;
                if bytes.last() == Some(&b'\n') {
                    break;
                }
            }
            cursor.offset += skipped;
            if each(Item { line: Line::Torn, after: cursor }).is_break() {
                return Ok(cursor);
            }
            continue;
        }
        cursor.offset += n as u64;
        bytes.pop();
        if bytes.is_empty() {
            continue;
        }
        let line = Line::parse(&bytes);
        if let Some(seq) = line.seq() {
            cursor.seq = seq;
        }
        if each(Item { line, after: cursor }).is_break() {
            return Ok(cursor);
        }
    }
}

/// Where a timeline ends, as its writer needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The last whole line's `seq`; 0 if there is none.
    pub seq: u64,
    /// First `seq` of the active segment; `seq + 1` if it is empty.
    pub segment: u64,
    /// The active file's length in bytes.
    pub len: u64,
    /// True if bytes without a newline stand at the end, or the last line is damage.
    pub torn: bool,
}

/// Reads where the timeline in `dir` ends: the last lines only, wherever they are.
pub fn tail(dir: &Path) -> io::Result<Tail> {
    let sealed_last = match sealed(dir)?.pop() {
        Some((_, path)) => last_seq(&whole::open(path)?)?.0,
        None => None,
    };
    let active = match whole::open(dir.join(ACTIVE)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound && sealed_last.is_some() => {
            let seq = sealed_last.unwrap_or(0);
            return Ok(Tail { seq, segment: seq + 1, len: 0, torn: false });
        }
        Err(e) => return Err(e),
    };
    let len = active.metadata()?.len();
    let (last, torn) = last_seq(&active)?;
    let seq = last.or(sealed_last).unwrap_or(0);
    let segment = first_of(&Segment { first: None, file: active }).unwrap_or(seq + 1);
    Ok(Tail { seq, segment, len, torn })
}

/// The last `seq` in a file that parses, and whether anything behind it is not a whole good line.
fn last_seq(file: &File) -> io::Result<(Option<u64>, bool)> {
    let mut found = None;
    let mut torn = back::is_open(file)?;
    back::lines_of(file, |line| match line.seq() {
        Some(seq) => {
            found = Some(seq);
            ControlFlow::Break(())
        }
        None => {
            torn = true;
            ControlFlow::Continue(())
        }
    })?;
    Ok((found, torn))
}

/// The line that begins at `offset` of the segment whose first `seq` is `segment`, if there is one.
pub fn at(dir: &Path, segment: u64, offset: u64) -> io::Result<Option<Event>> {
    if i64::try_from(offset).is_err() {
        return Ok(None); // no file is that long
    }
    let sealed = dir.join(sealed_name(segment));
    let path = if sealed.exists() { sealed } else { dir.join(ACTIVE) };
    let mut file = match whole::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    BufReader::new(file).take(LINE_MAX as u64).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(match Line::parse(&bytes) {
        Line::Event(event) => Some(*event),
        _ => None,
    })
}

/// Finds the line `seq` of the timeline in `dir`.
pub fn find(dir: &Path, seq: u64) -> io::Result<Option<Event>> {
    let mut found = None;
    let from = sealed(dir)?.into_iter().rfind(|(first, _)| *first <= seq);
    let position = from.map(|(first, _)| Cursor { seq: 0, offset: 0, segment: first });
    read_after(dir, position, |item| {
        if item.line.seq().is_some_and(|s| s >= seq) {
            if let Line::Event(event) = item.line {
                found = Some(*event).filter(|e| e.seq == seq);
            }
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The last `n` lines that parse, oldest first.
pub fn last(dir: &Path, n: usize) -> io::Result<Vec<Event>> {
    let mut kept = Vec::with_capacity(n.min(1024));
    if n == 0 {
        return Ok(kept);
    }
    read_back(dir, |item| {
        if let Line::Event(event) = item.line {
            kept.push(*event);
        }
        if kept.len() == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    kept.reverse();
    Ok(kept)
}

#[cfg(test)]
mod tests;
