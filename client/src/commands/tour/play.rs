//! One step of the tour: runs its commands, shows each with what it printed, and compares that with what it should be.

use std::fmt::Display;
use std::io;

use minder_proto::text::{block, width};
use serde::Serialize;
use serde_json::Value;

use super::stage::{Ran, Running, Stage};
use crate::apart::Wanted;
use crate::fault::CommandError;
use crate::printer::Printer;

/// Columns that the tour keeps to.
const COLUMNS: usize = 100;

/// Why the tour ends early.
#[derive(Debug)]
pub enum Unmet {
    /// Nobody reads it any more, or somebody wants it to end.
    Unwanted,
    /// Something is not as it should be.
    Other {
        /// What should have been there.
        expected: String,
        /// What was there.
        found: String,
    },
}

impl From<CommandError> for Unmet {
    fn from(error: CommandError) -> Self {
        if error.silent {
            return Self::Unwanted;
        }
        Self::Other { expected: "its output to be written".to_owned(), found: error.message }
    }
}

/// What a step comes to.
pub type Met<T = ()> = Result<T, Unmet>;

/// A step: its heading, and what is done.
pub type Step = (&'static str, fn(&mut Play) -> Met);

/// The tour under way.
#[derive(Debug)]
pub struct Play<'a> {
    /// Where it plays.
    pub stage: &'a Stage,
    /// What later steps have to know of earlier ones.
    pub known: Known,
    printer: &'a mut Printer,
    wanted: &'a Wanted,
    number: usize,
    of: usize,
    shown: Shown,
}

/// What was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The short id of the session `lead`.
    pub lead: String,
    /// The short id of the session `api`.
    pub api: String,
    /// The daemon's process.
    pub pid: i64,
}

/// A step for programs.
#[derive(Debug, Default, Serialize)]
struct Shown {
    step: usize,
    of: usize,
    title: &'static str,
    ran: Vec<Line>,
    meaning: Option<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    command: String,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
}

/// A shown command that goes on.
#[derive(Debug)]
pub struct Background {
    running: Running,
    line: &'static str,
    shown: usize,
}

impl Background {
    /// Ends it. Gives all that it printed.
    pub fn stop(self) -> String {
        self.running.text()
    }
}

impl<'a> Play<'a> {
    /// A tour of so many steps.
    pub fn new(stage: &'a Stage, printer: &'a mut Printer, wanted: &'a Wanted, of: usize) -> Self {
        Self { stage, known: Known::default(), printer, wanted, number: 0, of, shown: Shown::default() }
    }

    /// Plays the next step.
    pub fn step(&mut self, (title, run): Step) -> Met {
        self.number += 1;
        self.shown = Shown { step: self.number, of: self.of, title, ..Shown::default() };
        if !self.printer.is_json() {
            self.printer.line(format!("\n{}/{}  {title}", self.number, self.of))?;
            self.printer.flush()?;
        }
        run(self)?;
        if self.printer.is_json() {
            self.printer.object(&self.shown)?;
            self.printer.flush()?;
        }
        Ok(())
    }

    /// The step as its failure names it.
    pub fn number(&self) -> String {
        format!("step {}/{}", self.number, self.of)
    }

    /// Runs a command that succeeds. Gives what it printed.
    pub fn run(&mut self, line: &str) -> Met<Ran> {
        self.run_to(line, 0)
    }

    /// Runs a command that ends with this code.
    pub fn run_to(&mut self, line: &str, exit: i32) -> Met<Ran> {
        self.command(line, "")?;
        let ran = self.stage.start(line).and_then(Running::end).map_err(|e| not_run(line, &e))?;
        self.output(&ran.text, Some(ran.exit))?;
        exits(line, &ran, exit)?;
        Ok(ran)
    }

    /// Starts a command that goes on, and waits until it has printed what is asked for.
    pub fn start(
        &mut self,
        line: &'static str,
        sign: &str,
        printed: impl Fn(&str) -> bool,
    ) -> Met<Background> {
        self.command(line, sign)?;
        let failed = |e| not_run(line, &e);
        let mut running = self.stage.start(line).map_err(failed)?;
        let there = running.until(printed).map_err(failed)?;
        let text = running.text();
        self.output(&text, None)?;
        if !there {
            return Err(unmet(format!("`{line}` to print what is there and go on"), quoted(&text)));
        }
        Ok(Background { running, line, shown: text.len() })
    }

    /// Waits for the end of such a command, which succeeds. Gives what it printed since.
    pub fn end(&mut self, background: Background) -> Met<Ran> {
        let Background { running, line, shown } = background;
        let mut ran = running.end().map_err(|e| not_run(line, &e))?;
        ran.text.drain(..shown);
        self.output(&ran.text, Some(ran.exit))?;
        exits(line, &ran, 0)?;
        Ok(ran)
    }

    /// Runs a command that is not shown, and reads the object that it prints.
    pub fn ask(&self, line: &str) -> Met<Value> {
        let ran = self.look(line, 0)?;
        serde_json::from_str(&ran.text).map_err(|e| {
            unmet(format!("`{line}` to print an object"), format!("{} ({e})", quoted(&ran.text)))
        })
    }

    /// Runs a command that is not shown and ends with this code.
    pub fn look(&self, line: &str, exit: i32) -> Met<Ran> {
        let ran = self.stage.start(line).and_then(Running::end).map_err(|e| not_run(line, &e))?;
        exits(line, &ran, exit)?;
        Ok(ran)
    }

    /// Says what it meant.
    pub fn means(&mut self, text: String) -> Met {
        if !self.printer.is_json() {
            self.paragraph("     -> ", "        ", &text)?;
        }
        self.shown.meaning = Some(text);
        Ok(())
    }

    fn command(&mut self, line: &str, sign: &str) -> Met {
        if !self.wanted.still() {
            return Err(Unmet::Unwanted);
        }
        if !self.printer.is_json() {
            self.paragraph("     $ ", "       ", &format!("{line}{sign}"))?;
        }
        self.shown.ran.push(Line { command: line.to_owned(), output: String::new(), exit: None });
        Ok(())
    }

    /// Shows what the command that was named last printed, and its exit where that is not 0.
    fn output(&mut self, text: &str, exit: Option<i32>) -> Met {
        let ended = exit.filter(|exit| *exit != 0).map(|exit| format!("(exit {exit})"));
        let mut lines: Vec<String> = block(text).lines().map(str::to_owned).collect();
        match (ended, lines.last_mut()) {
            (Some(ended), Some(last)) => *last = format!("{last}  {ended}"),
            (Some(ended), None) => lines.push(ended),
            (None, _) => {}
        }
        if !self.printer.is_json() {
            for line in &lines {
                self.paragraph("     ", "       ", line)?;
            }
        }
        if let Some(line) = self.shown.ran.last_mut() {
            line.output.push_str(text);
            line.exit = exit.or(line.exit);
        }
        Ok(())
    }

    /// A text that is folded at its spaces where it is too long for one line.
    fn paragraph(&mut self, first: &str, next: &str, text: &str) -> Met {
        for line in folded(first, next, text) {
            self.printer.line(line)?;
        }
        Ok(self.printer.flush()?)
    }
}

/// Something is not as it should be.
pub fn unmet(expected: impl Into<String>, found: impl Into<String>) -> Unmet {
    Unmet::Other { expected: expected.into(), found: found.into() }
}

/// Compares what is there with what should be.
pub fn same<T: PartialEq + Display>(what: &str, expected: T, found: T) -> Met {
    if expected == found {
        return Ok(());
    }
    Err(unmet(format!("{what} to be {}", quoted(&expected.to_string())), quoted(&found.to_string())))
}

/// What a program printed, as a failure shows it.
pub fn quoted(text: &str) -> String {
    format!("{:?}", text.trim_end())
}

fn exits(line: &str, ran: &Ran, exit: i32) -> Met {
    if ran.exit == exit {
        return Ok(());
    }
    Err(unmet(format!("`{line}` to exit {exit}"), format!("exit {}: {}", ran.exit, ran.text.trim_end())))
}

fn not_run(line: &str, error: &io::Error) -> Unmet {
    unmet(format!("`{line}` to run to its end"), error.to_string())
}

fn folded(first: &str, next: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut bare = true;
    for word in text.split(' ') {
        if !bare && width(&line) + 1 + width(word) > COLUMNS {
            lines.push(std::mem::replace(&mut line, next.to_owned()));
            bare = true;
        }
        if !bare {
            line.push(' ');
        }
        line.push_str(word);
        bare = false;
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_folded_at_its_spaces_and_keeps_them() {
        let text = "12:00:00  api  ".to_owned() + &"word ".repeat(30);
        let lines = folded("     ", "       ", &text);
        assert!(lines.iter().all(|line| width(line) <= COLUMNS), "{lines:#?}");
        assert!(lines[0].starts_with("     12:00:00  api  word word"), "{lines:#?}");
        assert!(lines.len() == 2 && lines[1].starts_with("       word"), "{lines:#?}");
        assert_eq!(folded("  ", "   ", ""), [""]);
        let long = "x".repeat(300);
        assert_eq!(folded("  ", "   ", &format!("a {long} b")), ["  a", &format!("   {long}"), "   b"]);
    }

    #[test]
    fn what_is_not_as_it_should_be_is_said_as_it_is() {
        assert!(same("the pid", 1, 1).is_ok());
        let Err(Unmet::Other { expected, found }) = same("the pid", 1, 2) else { panic!() };
        assert_eq!((expected.as_str(), found.as_str()), ("the pid to be \"1\"", "\"2\""));
    }
}
