//! `daemon logs`: the end of the daemon's log, and with `-f` what is added to it. Where the service manager keeps
//! the log, its own program shows it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::Status;
use minder_proto::text::one_line;
use serde::Serialize;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::folder_watch::FolderWatch;
use crate::link::Link;
use crate::service;

/// Options of `daemon logs`.
#[derive(Args, Debug)]
pub struct LogsArgs {
    /// Go on with what is added
    #[arg(short, long)]
    follow: bool,
}

/// Lines of the end that are shown.
const LINES: usize = 200;
/// Bytes of the end that are read.
const TAIL: u64 = 256 * 1024;
/// Where nothing rings, the log is looked at this often.
const FLOOR: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Shown<'a> {
    line: &'a str,
}

/// Shows.
pub fn run(args: &LogsArgs, context: &mut Context) -> Outcome {
    let home = context.home()?.clone();
    let running = Link::of_any_version(&home, Duration::from_secs(1)).call(&Status::default()).ok();
    if running.is_some_and(|status| service::runs(status.pid)) {
        return Err(journal(args.follow));
    }
    let path = home.log();
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Begun before the first reading, so that nothing falls between the two.
    let mut watch = args.follow.then(|| FolderWatch::new(&[folder]));
    let mut log = match Log::open(&path) {
        Ok(log) => log,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandError::not_found(format!("no log yet at {}", path.display())));
        }
        Err(e) => return Err(CommandError::io(path.display(), &e)),
    };
    let failed = |e: std::io::Error| CommandError::io(path.display(), &e);
    let lines = log.end().map_err(failed)?;
    show(context, &lines[lines.len().saturating_sub(LINES)..])?;
    while let Some(watch) = &mut watch {
        context.printer.flush()?;
        if let Some(watch) = watch {
            watch.wait(None, Some(FLOOR));
        } else {
            std::thread::sleep(FLOOR);
        }
        let lines = log.more(&path).map_err(failed)?;
        show(context, &lines)?;
    }
    Ok(exit::OK)
}

fn show(context: &mut Context, lines: &[String]) -> Result<(), CommandError> {
    for line in lines {
        if context.printer.is_json() {
            context.printer.object(&Shown { line })?;
        } else {
            context.printer.line(one_line(line))?;
        }
    }
    Ok(())
}

/// Becomes `journalctl`; returns only if that fails.
fn journal(follow: bool) -> CommandError {
    let mut command = Command::new("journalctl");
    command.args(["--user", "--unit", service::UNIT, "--lines", &LINES.to_string()]);
    if follow {
        command.arg("--follow");
    }
    CommandError::unavailable(format!("journalctl: {}", command.exec()))
}

/// The log as it is read on.
struct Log {
    file: File,
    /// What stands after the last newline.
    rest: Vec<u8>,
}

impl Log {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: File::open(path)?, rest: Vec::new() })
    }

    /// The whole lines near the end.
    fn end(&mut self) -> std::io::Result<Vec<String>> {
        let len = self.file.metadata()?.len();
        let start = len.saturating_sub(TAIL);
        self.file.seek(SeekFrom::Start(start))?;
        let mut lines = self.lines()?;
        if start > 0 && !lines.is_empty() {
            lines.remove(0); // its beginning may be outside
        }
        Ok(lines)
    }

    /// What was added. A log that was rotated is read to its end before the new one is begun.
    fn more(&mut self, path: &Path) -> std::io::Result<Vec<String>> {
        let mut lines = self.lines()?;
        let here = self.file.metadata()?;
        match path.metadata() {
            Ok(there) if (there.dev(), there.ino()) != (here.dev(), here.ino()) => {
                // Written between the reading and the rotation.
                lines.extend(self.lines()?);
                *self = Self::open(path)?;
                lines.extend(self.lines()?);
            }
            _ if here.len() < self.file.stream_position()? => {
                self.file.seek(SeekFrom::Start(0))?;
                self.rest.clear();
                lines.extend(self.lines()?);
            }
            _ => {}
        }
        Ok(lines)
    }

    fn lines(&mut self) -> std::io::Result<Vec<String>> {
        self.file.read_to_end(&mut self.rest)?;
        let Some(end) = self.rest.iter().rposition(|b| *b == b'\n') else { return Ok(Vec::new()) };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_is_followed_over_its_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("minderd.log");
        std::fs::write(&path, "one\ntwo\nhal").unwrap();
        let mut log = Log::open(&path).unwrap();
        assert_eq!(log.end().unwrap(), ["one", "two"]);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"f\nthree\n").unwrap();
        std::fs::rename(&path, dir.path().join("minderd.log.1")).unwrap();
        file.write_all(b"late\n").unwrap();
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(log.more(&path).unwrap(), ["half", "three", "late", "new"]);
        std::fs::write(&path, "n\n").unwrap();
        assert_eq!(log.more(&path).unwrap(), ["n"]);
        assert!(log.more(&path).unwrap().is_empty());
    }
}
