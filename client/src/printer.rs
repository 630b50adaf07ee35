//! The one place that writes to standard output and standard error.
//!
//! Standard output holds what was asked for and nothing else: lines, or with `--json` one object (or one a line
//! for what goes on). Standard error holds what is told beside it and the one line of a failure. Text of others
//! passes `minder_proto::text` before it comes here.

use std::io::{self, IsTerminal, Write};
use std::os::fd::BorrowedFd;

use minder_proto::text;
use serde::Serialize;

use crate::commands::setup;
use crate::fault::CommandError;
use crate::look::Look;
use crate::output::Output;

/// Writes for one command.
#[derive(Debug)]
pub struct Printer {
    json: bool,
    look: Look,
    out: Output<io::Stdout>,
}

impl Printer {
    /// A printer to this process's own streams.
    pub fn new(json: bool) -> Self {
        Self { json, look: Look::of_stdout(), out: Output::new(io::stdout()) }
    }

    /// True if objects are asked for instead of lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// What standard output can show.
    pub fn look(&self) -> Look {
        self.look
    }

    /// A line (or several, for a text that has them) on standard output.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), CommandError> {
        let line = line.as_ref();
        self.push(line.as_bytes())?;
        if line.ends_with('\n') { Ok(()) } else { self.push(b"\n") }
    }

    /// A text that somebody wrote, byte by byte where a program reads it; on a terminal with everything that
    /// acts on one shown as an escape.
    pub fn body(&mut self, body: &str) -> Result<(), CommandError> {
        if self.look.terminal { self.line(text::block(body)) } else { self.line(body) }
    }

    /// One object on a line of its own.
    pub fn object(&mut self, object: &impl Serialize) -> Result<(), CommandError> {
        let mut bytes = serde_json::to_vec(object).map_err(|e| unshown(&e))?;
        bytes.push(b'\n');
        self.push(&bytes)
    }

    /// Standard output for a text that is written elsewhere; with `--json` that writes the object.
    pub fn writer(&mut self) -> impl Write {
        Writer(&mut self.out)
    }

    /// Standard error for lines that are written elsewhere.
    pub fn teller(&self) -> impl Write + use<> {
        Teller { json: self.json, line: Vec::new() }
    }

    /// Writes what is held back. A command that promises something after its output calls it before.
    pub fn flush(&mut self) -> Result<(), CommandError> {
        self.out.flush().map_err(|e| written(&e))
    }

    /// A line beside the output, on standard error.
    pub fn tell(&self, line: impl AsRef<str>) {
        tell(self.json, line.as_ref());
    }

    /// Bytes that a program wrote to its standard error, as they are, on ours.
    pub fn pass(&self, bytes: &[u8]) {
        let _ = io::stderr().write_all(bytes);
    }

    /// True if standard error is a terminal that a line can be drawn on again and again.
    pub fn can_draw(&self) -> bool {
        !self.json && io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|t| t != "dumb")
    }

    /// Draws a line over the last one drawn, and no longer than the terminal is wide; an empty one wipes it away.
    pub fn draw(&self, line: &str) {
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { 80 } else { columns };
        let line = text::fit(line, columns.saturating_sub(1));
        let _ = io::stderr().write_all(format!("\r\x1b[K{}", line.trim_end()).as_bytes());
    }

    /// One object beside the output, on standard error.
    pub fn tell_object(&self, object: &impl Serialize) -> Result<(), CommandError> {
        say(&serde_json::to_string(object).map_err(|e| unshown(&e))?);
        Ok(())
    }

    /// Standard output's descriptor, for a command that notices when nobody reads it any more.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.out.descriptor()
    }

    /// The one line of a failure.
    pub fn fail(&self, error: &CommandError) {
        if !error.silent {
            say(&if self.json { error.to_json() } else { error.to_line() });
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        self.out.push(bytes).map_err(|e| written(&e))
    }
}

fn unshown(error: &serde_json::Error) -> CommandError {
    CommandError::software(format!("an answer cannot be shown as JSON: {error}"))
}

fn written(error: &io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CommandError::nobody_reads(),
        _ => CommandError::io("standard output", error),
    }
}

fn tell(json: bool, line: &str) {
    #[derive(Serialize)]
    struct Note<'a> {
        note: &'a str,
    }
    if json {
        say(&serde_json::to_string(&Note { note: line }).expect("a string is always JSON"));
    } else {
        say(line);
    }
}

struct Writer<'a>(&'a mut Output<io::Stdout>);

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Takes bytes, and tells each line of them once it is whole.
struct Teller {
    json: bool,
    line: Vec<u8>,
}

impl Write for Teller {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            tell(self.json, &String::from_utf8_lossy(&line[..end]));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Asks the person at the terminal; nothing where there is none.
pub fn ask(question: &str) -> io::Result<Option<bool>> {
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    setup::ask(question, terminal, &mut io::stdin().lock(), &mut io::stderr())
}

/// One line on standard error. Where that is closed nobody is left to be told.
pub fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
