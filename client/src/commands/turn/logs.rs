//! `turn logs`: the spooled output of a turn, and with `-f` what is added to it until the turn is settled. It reads the
//! turn's folder alone.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use minder_proto::error::exit;
use minder_proto::text::block;
use minder_proto::turn::folder::{Found, RESULT, STDERR, STDOUT, STDOUT_TAIL};
use minder_proto::whole;
use serde::Serialize;

use super::which;
use super::words::size;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::folder_watch::FolderWatch;

/// Options of `turn logs`.
#[derive(Args, Debug)]
#[command(after_help = "\
What the program wrote to its standard output goes to standard output, the
end of its standard error to standard error. The output of a turn is there
while it runs or is held, that of a failed one for turn.keep_failed.")]
pub struct LogsArgs {
    /// The turn: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
    /// Go on with what is added, until the turn has ended
    #[arg(short, long)]
    follow: bool,
}

/// Where nothing rings, the folder is looked at this often.
const FLOOR: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Shown<'a> {
    stream: &'a str,
    text: &'a str,
}

/// Shows.
pub fn run(args: &LogsArgs, context: &mut Context) -> Outcome {
    let home = context.home()?.clone();
    let found = which::one(&home, &args.id)?;
    let folder = home.turn(found.id);
    if !found.kept {
        let ended = found.line.map_or_else(String::new, |line| format!(", it is {}", line.outcome));
        return Err(CommandError::not_found(format!(
            "the output of {} is not kept{ended}",
            found.id.short()
        )));
    }
    // Begun before the first reading, so that nothing falls between the two.
    let watch = args.follow.then(|| FolderWatch::new(&[&folder])).flatten();
    let mut output = Spool::new(folder.join(STDOUT));
    loop {
        // Looked for before the rest is read: what was written until then is read whole.
        let settled = folder.join(RESULT).exists() || !folder.exists();
        output.more(context)?;
        if settled || !args.follow {
            break;
        }
        context.printer.flush()?;
        match &watch {
            Some(watch) => drop(watch.wait(None, Some(FLOOR))),
            None => std::thread::sleep(FLOOR),
        }
    }
    output.end(context)?;
    tail(&folder, output.shown, context)?;
    context.printer.flush()?;
    if let Ok(bytes) = whole::read(&folder.join(STDERR)) {
        let text = String::from_utf8_lossy(&bytes);
        if context.printer.is_json() {
            if !text.is_empty() {
                context.printer.object(&Shown { stream: "stderr", text: &text })?;
            }
        } else if context.printer.look().terminal {
            context.printer.pass(block(&text).as_bytes());
        } else {
            context.printer.pass(&bytes);
        }
    }
    Ok(exit::OK)
}

/// Of an output that is longer than is kept: what lies between, and its end.
fn tail(folder: &Path, shown: u64, context: &mut Context) -> Result<(), CommandError> {
    let Ok(end) = whole::read(&folder.join(STDOUT_TAIL)) else { return Ok(()) };
    let found = whole::read(&folder.join(RESULT)).ok();
    let all = found.and_then(|bytes| serde_json::from_slice::<Found>(&bytes).ok()).map(|f| f.stdout_bytes);
    // The end begins somewhere in what is shown already where little more was written.
    let length = end.len() as u64;
    let (gap, end) = match all.map(|all| all.saturating_sub(length)) {
        Some(begins) if begins <= shown => {
            let over = usize::try_from(shown - begins).unwrap_or(usize::MAX).min(end.len());
            (0, &end[over..])
        }
        Some(begins) => (begins - shown, &end[..]),
        None => (0, &end[..]),
    };
    if gap > 0 {
        context.printer.flush()?;
        context.printer.tell(format!("{} are not kept here", size(gap)));
    }
    piece(context, end)
}

/// A piece of standard output.
fn piece(context: &mut Context, bytes: &[u8]) -> Result<(), CommandError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(bytes);
    if context.printer.is_json() {
        return context.printer.object(&Shown { stream: "stdout", text: &text });
    }
    let written = if context.printer.look().terminal {
        io::Write::write_all(&mut context.printer.writer(), block(&text).as_bytes())
    } else {
        io::Write::write_all(&mut context.printer.writer(), bytes)
    };
    written.map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => CommandError::nobody_reads(),
        _ => CommandError::io("standard output", &e),
    })
}

/// The kept output as it grows.
struct Spool {
    path: PathBuf,
    file: Option<File>,
    shown: u64,
    /// The beginning of a character whose rest is still to come.
    rest: Vec<u8>,
}

impl Spool {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, shown: 0, rest: Vec::new() }
    }

    /// Shows what was added.
    fn more(&mut self, context: &mut Context) -> Result<(), CommandError> {
        let failed = |e: io::Error| CommandError::io(self.path.display(), &e);
        if self.file.is_none() {
            match whole::open(&self.path) {
                Ok(file) => self.file = Some(file),
                // Nothing was written yet, or the turn is over and its line is written.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(failed(e)),
            }
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut some = vec![0; 64 * 1024];
        loop {
            let n = file.read(&mut some).map_err(failed)?;
            if n == 0 {
                return Ok(());
            }
            self.shown += n as u64;
            self.rest.extend_from_slice(&some[..n]);
            let whole = whole_characters(&self.rest);
            let rest = self.rest.split_off(whole);
            let ready = std::mem::replace(&mut self.rest, rest);
            piece(context, &ready)?;
        }
    }

    /// Shows what stayed half.
    fn end(&mut self, context: &mut Context) -> Result<(), CommandError> {
        piece(context, &std::mem::take(&mut self.rest))
    }
}

/// Bytes up to a character that is cut at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let cut = (1..=3.min(bytes.len())).find(|n| {
        let tail = &bytes[bytes.len() - n..];
        tail[0] >= 0xc0 && std::str::from_utf8(tail).is_err_and(|e| e.error_len().is_none())
    });
    bytes.len() - cut.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_cut_waits_for_its_rest() {
        let text = "añ日🙂";
        for end in 0..=text.len() {
            let whole = whole_characters(&text.as_bytes()[..end]);
            let expected = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            assert_eq!(whole, expected, "{end}");
        }
        // What is no text is not waited for.
        assert_eq!(whole_characters(b"ab\xff"), 3);
        assert_eq!(whole_characters(b"\x80\x80\x80"), 3);
    }
}
