//! Files of JSON lines: whole ones in memory, and long ones line by line without keeping them.

use std::io::{self, BufRead, Read};

use minder_proto::timeline::LINE_MAX;
use serde::de::DeserializeOwned;

use super::finding::{Sheet, unparsable};

/// Hands over every line that parses, with its number; the others are damage. So is what stands at the end without a
/// newline, which is a line that was not written to its end.
pub fn each<T: DeserializeOwned>(
    bytes: &[u8],
    sheet: &mut Sheet,
    mut take: impl FnMut(&mut Sheet, usize, T),
) {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    for (i, line) in bytes[..whole].split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(value) => take(sheet, i + 1, value),
            Err(e) => sheet.damage(format!("line {} {}", i + 1, unparsable(&e, true))),
        }
    }
    if let Some(what) = open_end(bytes.len() - whole) {
        sheet.damage(what);
    }
}

/// What is said of bytes without a newline at the end of a file.
pub fn open_end(bytes: usize) -> Option<String> {
    let noun = if bytes == 1 { "byte" } else { "bytes" };
    (bytes > 0).then(|| format!("{bytes} {noun} without a newline at the end"))
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A line is in the buffer, without its newline.
    Line,
    /// A line that is longer than any reader takes was passed over.
    Endless,
    /// The file ends, with so many bytes that are no whole line.
    End(usize),
}

/// Reads the next line into `buffer`; gives it, and how many bytes were passed.
pub fn next(reader: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<(Next, u64)> {
    buffer.clear();
    let n = reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', buffer)?;
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
        return Ok((Next::Line, n as u64));
    }
    if n < LINE_MAX {
        return Ok((Next::End(n), n as u64));
    }
    let mut passed = n as u64;
    loop {
        buffer.clear();
        let n = reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', buffer)?;
        passed += n as u64;
        if n == 0 {
            return Ok((Next::End(usize::try_from(passed).unwrap_or(usize::MAX)), passed));
        }
        if buffer.last() == Some(&b'\n') {
            return Ok((Next::Endless, passed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_an_endless_one_is_passed_over() {
        let mut text = b"a\n\n".to_vec();
        text.resize(text.len() + 2 * LINE_MAX + 7, b'x');
        text.extend(b"\nb\nrest");
        let (mut reader, mut buffer) = (&text[..], Vec::new());
        let mut seen = Vec::new();
        loop {
            let (next, passed) = next(&mut reader, &mut buffer).unwrap();
            let end = matches!(next, Next::End(_));
            seen.push((next, passed));
            if end {
                break;
            }
        }
        let long = 2 * LINE_MAX as u64 + 8;
        let line = |n| (Next::Line, n);
        assert_eq!(seen, [line(2), line(1), (Next::Endless, long), line(2), (Next::End(4), 4)]);
    }
}
