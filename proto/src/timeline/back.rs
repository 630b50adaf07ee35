//! Reading a timeline from its end: for a reader that looks for the newest of something. It costs what it reads,
//! not what the timeline holds.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{ACTIVE, Item, LINE_MAX, sealed};
use crate::event::Line;
use crate::record::Cursor;
use crate::whole;

/// Bytes of the first look at the end of a file; each further one is twice as long.
const FIRST_LOOK: u64 = 4 * 1024;
/// Bytes of the longest look.
const LONGEST_LOOK: u64 = 512 * 1024;

/// Hands over the complete lines of the timeline in `dir`, newest first, until `each` breaks or there are none
/// left. The position of an item is the one right after its line; a damaged line's has `seq` 0.
///
/// Returns the position after the newest good line: where a reader goes on that wants only what comes.
pub fn read_back(dir: &Path, mut each: impl FnMut(Item) -> ControlFlow<()>) -> io::Result<Cursor> {
    let mut newest = Cursor { seq: 0, offset: 0, segment: 0 };
    let mut take = |item: Item| {
        if newest.seq == 0 {
            newest = item.after;
        }
        each(item)
    };
    let mut read_from = u64::MAX;
    let active = match whole::open(dir.join(ACTIVE)) {
        Ok(file) => Some(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    if let Some(file) = &active {
        let mut end = Window::at_end(file)?;
        let first = first_seq(file, &end)?;
        if lines_back(file, &mut end, first.unwrap_or(0), &mut take)?.is_break() {
            return Ok(newest);
        }
        read_from = first.unwrap_or(u64::MAX);
    }
    let segments = sealed(dir)?;
    if active.is_none() && segments.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    for (first, path) in segments.into_iter().rev() {
        // What was read as the active file may have been sealed meanwhile.
        if first >= read_from {
            continue;
        }
        let file = whole::open(path)?;
        if lines_back(&file, &mut Window::at_end(&file)?, first, &mut take)?.is_break() {
            break;
        }
    }
    Ok(newest)
}

/// Hands over the complete lines of one file, newest first, until `each` breaks.
pub(super) fn lines_of(file: &File, mut each: impl FnMut(Line) -> ControlFlow<()>) -> io::Result<()> {
    lines_back(file, &mut Window::at_end(file)?, 0, &mut |item| each(item.line)).map(drop)
}

/// True if bytes without a newline stand at the end of a file.
pub(super) fn is_open(file: &File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let mut last = [0];
    Ok(len > 0 && file.read_at(&mut last, len - 1)? == 1 && last[0] != b'\n')
}

/// A piece of a file that was read, up to where it was wanted.
struct Window {
    /// Where it begins.
    low: u64,
    bytes: Vec<u8>,
    /// How long the next one is.
    look: u64,
}

impl Window {
    /// The end of a file.
    fn at_end(file: &File) -> io::Result<Self> {
        let mut window = Self { low: file.metadata()?.len(), bytes: Vec::new(), look: FIRST_LOOK };
        window.read_before(file)?;
        Ok(window)
    }

    /// Puts the piece before it in front of it.
    fn read_before(&mut self, file: &File) -> io::Result<()> {
        let begin = self.low.saturating_sub(self.look);
        let mut bytes = Vec::with_capacity((self.low - begin) as usize + self.bytes.len());
        bytes.resize((self.low - begin) as usize, 0);
        file.read_exact_at(&mut bytes, begin)?;
        bytes.append(&mut self.bytes);
        (self.low, self.bytes) = (begin, bytes);
        self.look = (self.look * 2).min(LONGEST_LOOK);
        Ok(())
    }
}

/// The `seq` of a file's first good line, from its first bytes alone where those have it.
fn first_seq(file: &File, end: &Window) -> io::Result<Option<u64>> {
    let mut bytes = [0; 64];
    let n = if end.low == 0 {
        let n = end.bytes.len().min(bytes.len());
        bytes[..n].copy_from_slice(&end.bytes[..n]);
        n
    } else {
        file.read_at(&mut bytes, 0)?
    };
    // The daemon writes `seq` first; any other order is read in full.
    let digits = bytes[..n].strip_prefix(b"{\"seq\":").unwrap_or_default();
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    match std::str::from_utf8(&digits[..len]).ok().and_then(|d| d.parse().ok()) {
        Some(seq) if digits.get(len) == Some(&b',') => Ok(Some(seq)),
        _ => Ok(super::first_of(&super::Segment { first: None, file: file.try_clone()? })),
    }
}

/// The complete lines of one file, newest first, from a window at its end on.
fn lines_back(
    file: &File,
    window: &mut Window,
    segment: u64,
    each: &mut impl FnMut(Item) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    // Behind the last newline is what is not complete yet.
    loop {
        if let Some(i) = window.bytes.iter().rposition(|b| *b == b'\n') {
            window.bytes.truncate(i + 1);
            break;
        }
        if window.low == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        window.bytes.clear();
        window.read_before(file)?;
    }
    loop {
        while let Some(body) = window.bytes.len().checked_sub(1) {
            let start = match window.bytes[..body].iter().rposition(|b| *b == b'\n') {
                Some(i) => i + 1,
                None if window.low == 0 => 0,
                None => break,
            };
            if start < body {
                let line = Line::parse(&window.bytes[start..body]);
                let offset = window.low + window.bytes.len() as u64;
                let after = Cursor { seq: line.seq().unwrap_or(0), offset, segment };
                if each(Item { line, after }).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            window.bytes.truncate(start);
        }
        if window.low == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if window.bytes.len() > LINE_MAX {
            // Damage without an end: what is left of it is passed over.
            window.bytes.truncate(1);
            window.bytes[0] = b'\n';
        }
        window.read_before(file)?;
    }
}
