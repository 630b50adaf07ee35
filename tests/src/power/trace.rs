//! Reading what `strace -f -xx` wrote: the calls of a daemon that change files or make them durable, and its answers,
//! with the lines at which each began and ended. The order of the lines is the order of the events: what ended before
//! another began came before it.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The calls to be recorded.
pub const CALLS: &str = "open,openat,creat,close,dup,dup2,dup3,fcntl,write,writev,pwrite64,pwritev,sendto,sendmsg,\
    ftruncate,truncate,fallocate,fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,\
    link,linkat,symlink,symlinkat,copy_file_range,sendfile";

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line at which it began.
    pub enter: usize,
    /// The line at which it ended. None if the daemon was killed within it: whether it was done is not known.
    pub exit: Option<usize>,
    /// What it was.
    pub act: Act,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Open {
        fd: i64,
        path: PathBuf,
        create: bool,
        truncate: bool,
    },
    Close {
        fd: i64,
    },
    Copy {
        from: i64,
        to: i64,
    },
    /// Bytes at an offset, or where the file ends.
    Write {
        fd: i64,
        offset: Option<u64>,
        bytes: Vec<u8>,
    },
    Resize {
        fd: i64,
        len: u64,
    },
    Allocate {
        fd: i64,
        end: u64,
    },
    /// A file or folder is durable, or the call failed.
    Sync {
        fd: i64,
        done: bool,
    },
    /// All that was written to the file system is durable, or the call failed.
    SyncAll {
        done: bool,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    MakeDir {
        path: PathBuf,
    },
    Symlink {
        path: PathBuf,
        target: PathBuf,
    },
    /// These calls were answered.
    Answer {
        numbers: Vec<u64>,
    },
}

/// Reads a log; its first line is line `first` of the whole record. Gives the steps in the order of their beginnings,
/// and how many lines there were.
pub fn read(text: &str, first: usize) -> Result<(Vec<Step>, usize)> {
    let mut steps = Vec::new();
    let mut open: HashMap<&str, (usize, String)> = HashMap::new();
    let mut count = 0;
    for (n, line) in text.lines().enumerate() {
        count = n + 1;
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let at = first + n;
        // It was killed before the call began, or within it.
        if rest.starts_with("???") {
            continue;
        }
        let rest = &rest.replace(" <detached ...>", " <unfinished ...>");
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(thread, (at, begun.to_owned()));
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, tail) = resumed.split_once(" resumed>").context("a call goes on")?;
            let (enter, mut call) = open.remove(thread).context("a call goes on that never began")?;
            call.push_str(tail);
            steps.extend(step(&call, enter, Some(at)).with_context(|| brief(line))?);
        } else if !rest.starts_with("+++") && !rest.starts_with("---") {
            steps.extend(step(rest, at, Some(at)).with_context(|| brief(line))?);
        }
    }
    for (enter, call) in open.into_values() {
        // An unfinished call has no result; what it would have been is taken from what it was asked.
        steps.extend(step(&(call + ") = ?"), enter, None)?);
    }
    steps.sort_by_key(|s| s.enter);
    Ok((steps, count))
}

fn brief(line: &str) -> String {
    line.chars().take(200).collect()
}

fn step(call: &str, enter: usize, exit: Option<usize>) -> Result<Option<Step>> {
    let (name, rest) = call.split_once('(').context("no call")?;
    let (inside, result) = rest.rsplit_once(" = ").context("no result")?;
    let inside = inside.trim_end().strip_suffix(')').unwrap_or(inside);
    // Killed within it.
    let exit = exit.filter(|_| !result.trim_start().starts_with('?'));
    let arguments = arguments(inside);
    let argument = |n: usize| arguments.get(n).copied().with_context(|| format!("argument {n}"));
    let number = |n: usize| -> Result<i64> { Ok(argument(n)?.parse::<i64>()?) };
    let path = |n: usize| -> Result<PathBuf> { Ok(PathBuf::from(String::from_utf8(text(argument(n)?)?)?)) };
    let result: Option<i64> = result.split_whitespace().next().and_then(|r| {
        r.strip_prefix("0x").map_or_else(|| r.parse().ok(), |hex| i64::from_str_radix(hex, 16).ok())
    });
    let failed = result == Some(-1);
    let cut = |mut bytes: Vec<u8>| {
        bytes.truncate(result.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0)));
        bytes
    };
    let act = match name {
        "fsync" | "fdatasync" => Act::Sync { fd: number(0)?, done: result == Some(0) },
        "syncfs" => Act::SyncAll { done: result == Some(0) },
        _ if failed => return Ok(None),
        "open" | "openat" | "creat" => {
            let first = usize::from(name == "openat");
            let flags = if name == "creat" { "O_CREAT|O_TRUNC" } else { argument(first + 1)? };
            let has = |flag: &str| flags.split('|').any(|f| f == flag);
            let fd = result.unwrap_or(-1);
            Act::Open { fd, path: path(first)?, create: has("O_CREAT"), truncate: has("O_TRUNC") }
        }
        "close" => Act::Close { fd: number(0)? },
        "dup" | "dup2" | "dup3" => Act::Copy { from: number(0)?, to: result.unwrap_or(-1) },
        "fcntl" if argument(1)?.starts_with("F_DUPFD") => {
            Act::Copy { from: number(0)?, to: result.unwrap_or(-1) }
        }
        "fcntl" => return Ok(None),
        "write" | "writev" | "sendto" | "sendmsg" => {
            let bytes = cut(text(argument(1)?)?);
            match answers(&bytes) {
                numbers if !numbers.is_empty() => Act::Answer { numbers },
                _ if name.starts_with("send") => return Ok(None),
                _ => Act::Write { fd: number(0)?, offset: None, bytes },
            }
        }
        "pwrite64" | "pwritev" => {
            let offset = Some(u64::try_from(number(3)?)?);
            Act::Write { fd: number(0)?, offset, bytes: cut(text(argument(1)?)?) }
        }
        "ftruncate" => Act::Resize { fd: number(0)?, len: u64::try_from(number(1)?)? },
        "fallocate" if argument(1)? == "0" => {
            Act::Allocate { fd: number(0)?, end: u64::try_from(number(2)? + number(3)?)? }
        }
        "rename" => Act::Rename { from: path(0)?, to: path(1)? },
        "renameat" | "renameat2" => Act::Rename { from: path(1)?, to: path(3)? },
        "unlink" | "rmdir" => Act::Unlink { path: path(0)? },
        "unlinkat" => Act::Unlink { path: path(1)? },
        "mkdir" => Act::MakeDir { path: path(0)? },
        "mkdirat" => Act::MakeDir { path: path(1)? },
        "symlink" => Act::Symlink { target: path(0)?, path: path(1)? },
        "symlinkat" => Act::Symlink { target: path(0)?, path: path(2)? },
        _ => bail!("a call that is not known here: {name}"),
    };
    // A descriptor has its number from the end of the call on: another may be closed under it meanwhile.
    let enter = match act {
        Act::Open { .. } | Act::Copy { .. } => exit.unwrap_or(enter),
        _ => enter,
    };
    Ok(Some(Step { enter, exit, act }))
}

/// The arguments between the brackets of a call. Texts are in hexadecimal: nothing in them separates.
fn arguments(inside: &str) -> Vec<&str> {
    let (mut found, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (i, byte) in inside.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(inside[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    found.push(inside[from..].trim());
    found
}

/// All bytes that are quoted in an argument, in `\x2f` form.
fn text(argument: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for quoted in argument.split('"').skip(1).step_by(2) {
        for hex in quoted.split("\\x").skip(1) {
            bytes.push(u8::from_str_radix(hex, 16).with_context(|| format!("a byte: {hex}"))?);
        }
    }
    if argument.contains("\"...") {
        bail!("a text was cut");
    }
    Ok(bytes)
}

/// The numbers of the calls that a piece of HTTP answers.
fn answers(bytes: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains("\"jsonrpc\"") {
        return Vec::new();
    }
    let ids = text.split("\"id\":").skip(1);
    // The first one is the answer's own; what is in a result has texts as ids.
    ids.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_with_their_beginnings_and_ends() {
        let log = "\
7 openat(AT_FDCWD, \"\\x2f\\x61\", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3
7 openat(AT_FDCWD, \"\\x2f\\x62\", O_RDONLY) = -1 ENOENT (No such file or directory)
7 pwrite64(3, \"\\x41\\x42\\x43\", 3, 10 <unfinished ...>
8 writev(9, [{iov_base=\"\\x22\\x6a\\x73\\x6f\\x6e\\x72\\x70\\x63\\x22\\x22\\x69\\x64\\x22\\x3a\", iov_len=14}, {iov_base=\"\\x35\\x2c\", iov_len=2}], 2) = 16
7 <... pwrite64 resumed>) = 2
7 fsync(3) = -1 EIO (Input/output error) (INJECTED)
7 fcntl(3, F_DUPFD_CLOEXEC, 3) = 4
7 +++ killed by SIGKILL +++
9 ???( <detached ...>
8 unlink(\"\\x2f\\x61\" <unfinished ...>";
        let (steps, lines) = read(log, 100).unwrap();
        assert_eq!(lines, 10);
        let a = PathBuf::from("/a");
        let expected = [
            (100, Some(100), Act::Open { fd: 3, path: a.clone(), create: true, truncate: false }),
            (102, Some(104), Act::Write { fd: 3, offset: Some(10), bytes: b"AB".to_vec() }),
            (103, Some(103), Act::Answer { numbers: vec![5] }),
            (105, Some(105), Act::Sync { fd: 3, done: false }),
            (106, Some(106), Act::Copy { from: 3, to: 4 }),
            (109, None, Act::Unlink { path: a }),
        ];
        assert_eq!(steps, expected.map(|(enter, exit, act)| Step { enter, exit, act }));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(read("7 sendfile(3, 4, NULL, 100) = 100", 0).is_err());
        assert!(read("7 write(3, \"\\x41\"..., 100) = 100", 0).is_err());
    }
}
