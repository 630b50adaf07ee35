//! `minder setup`: the whole installation in one command that may be repeated, and the whole way back.
//!
//! It finds the harness, shows what it would change, asks once, puts the hooks in, takes in what runs
//! already, says who starts the daemon, sends one notice as a test and ends with what only a person can do.
//! What needs the daemon is done by the caller's `Steps`.

pub mod args;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use minder_proto::error::exit;
use minder_proto::text;
use serde::Serialize;

use super::hooks::{Output, known, print_diff, print_json, show, warn};
use crate::hooks::ours::Standing;
use crate::hooks::probe::{self, RunningAgent, TIME_LIMIT};
use crate::hooks::service::Service;
use crate::hooks::{Change, HooksError, Scope, Settings, Surroundings, claude};

/// The command line of `setup`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which harnesses; none: those that are found.
    pub harnesses: Vec<String>,
    /// Do not ask.
    pub yes: bool,
    /// Show, and change nothing.
    pub dry_run: bool,
    /// Take everything back.
    pub undo: bool,
    /// One JSON object instead of lines.
    pub json: bool,
    /// The output is a terminal: nothing of a file's text may act on it.
    pub terminal: bool,
    /// Its columns: lines are folded at words.
    pub columns: Option<usize>,
}

/// Programs of harnesses without a pack whose names mean nothing else.
const OTHERS: &[&str] = &["codex", "opencode", "gemini", "grok"];

/// What became of one running session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adopted {
    /// It is a session now, under this label.
    Taken(String),
    /// It was one already, under this label.
    Known(String),
    /// It is none by rule: why.
    Left(String),
}

/// What `setup` leaves to its caller.
pub trait Steps {
    /// Asks the person a question; nothing if there is nobody to ask.
    fn ask(&mut self, question: &str) -> io::Result<Option<bool>>;

    /// Takes a running session in.
    fn adopt(&mut self, agent: &RunningAgent) -> Result<Adopted, String>;

    /// Sees who starts the daemon here, and sees to it where that can be done: a line that says what is so
    /// now, or why it could not be done.
    fn service(&mut self, service: &Service) -> Result<String, String>;

    /// Takes back what `service` did; nothing if it did nothing.
    fn undo_service(&mut self, service: &Service) -> Result<Option<String>, String>;

    /// Sends one notice to the person as a test: a line that says which way it went, or why it did not.
    fn test_notice(&mut self) -> Result<String, String>;
}

/// Everything that was done, for `--json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    harness: Option<Found>,
    changes: Vec<Changed>,
    sessions: Vec<Session>,
    service: Option<String>,
    notice: Option<String>,
    problems: Vec<String>,
    dry_run: bool,
    undo: bool,
}

#[derive(Debug, Serialize)]
struct Found {
    name: &'static str,
    program: PathBuf,
    version: Option<String>,
}

#[derive(Debug, Serialize)]
struct Changed {
    path: PathBuf,
    diff: String,
    made: bool,
}

#[derive(Debug, Serialize)]
struct Session {
    pid: u32,
    id: String,
    label: Option<String>,
    result: &'static str,
}

/// Runs the command for a minder at `program`; `service` is what there is on this machine.
pub fn run(
    options: &Options,
    surroundings: &Surroundings,
    program: &str,
    service: &Service,
    steps: &mut dyn Steps,
    output: &mut Output<'_>,
) -> Result<u8, HooksError> {
    for harness in &options.harnesses {
        known(harness)?;
    }
    let report = Report { dry_run: options.dry_run, undo: options.undo, ..Report::default() };
    let mut setup = Setup { options, surroundings, program, service, steps, output, report };
    let code = if options.undo { setup.undo()? } else { setup.install()? };
    if options.json {
        print_json(setup.output.out, &setup.report)?;
    }
    Ok(code)
}

struct Setup<'a, 'o> {
    options: &'a Options,
    surroundings: &'a Surroundings,
    program: &'a str,
    service: &'a Service,
    steps: &'a mut dyn Steps,
    output: &'a mut Output<'o>,
    report: Report,
}

impl Setup<'_, '_> {
    fn install(&mut self) -> Result<u8, HooksError> {
        let Some(found) = self.find()? else { return Ok(exit::NO) };
        let settings = Settings::read(self.surroundings, Scope::User)?;
        warn(&settings, self.output.err)?;
        let path = settings.path().to_owned();
        let standing = settings.standing(self.program)?;
        let hindrances = standing.hindrances();
        match settings.install(self.program)? {
            None => self.say("hooks", &format!("{}: already installed", show(&path)))?,
            Some(change) => {
                let summary = format!("{} {}; nothing else changes", hooks_words(&standing), show(&path));
                if !self.change(change, &summary, "installed")? {
                    return Ok(exit::NO);
                }
            }
        }
        if self.options.dry_run {
            self.say("then", "sessions that run would be taken in, and one notice sent as a test")?;
            self.say("service", self.service.line())?;
            return Ok(exit::OK);
        }
        self.adopt(&found)?;
        let line = self.steps.service(self.service);
        self.report.service = self.step("service", line)?;
        let line = self.steps.test_notice();
        self.report.notice = self.step("notice", line)?;
        self.last_words(&hindrances, &path)?;
        Ok(if self.report.problems.is_empty() { exit::OK } else { exit::NO })
    }

    /// The harness, and a line about each other one that is here.
    fn find(&mut self) -> Result<Option<PathBuf>, HooksError> {
        let found = probe::find_claude(self.surroundings);
        if let Some(program) = &found {
            let version = probe::version(program, TIME_LIMIT);
            let said = version.as_ref().map_or_else(|why| format!("(version unknown: {why})"), Clone::clone);
            self.say(claude::HARNESS, &format!("{said}  {}", show(program)))?;
            let version = version.ok();
            if let Some(version) = version.as_deref().filter(|version| claude::is_too_old(version)) {
                let [major, minor, patch] = claude::OLDEST_SEEN;
                return Err(HooksError::Refused(format!(
                    "claude {version} is older than {major}.{minor}.{patch}, the oldest whose hooks were tried: update it first"
                )));
            }
            self.report.harness = Some(Found { name: claude::HARNESS, program: program.clone(), version });
        } else if !self.options.harnesses.is_empty() {
            return Err(HooksError::NotFound("claude is not on PATH".to_owned()));
        }
        if self.options.harnesses.is_empty() {
            for name in OTHERS {
                if probe::find_program(name, self.surroundings.path.as_deref()).is_some() {
                    self.say(name, "found; minder has no hooks for it yet")?;
                }
            }
        }
        if found.is_none() {
            self.say("setup", "no harness found (claude is not on PATH); nothing changed")?;
        }
        Ok(found)
    }

    /// Shows a change, and what it comes to; asks, makes it. False if the person said no.
    fn change(&mut self, change: Change, summary: &str, done: &str) -> Result<bool, HooksError> {
        let path = change.path().to_owned();
        let diff = change.diff();
        if !self.options.json {
            print_diff(self.output.out, &diff, self.options.terminal)?;
            self.output.out.flush()?;
        }
        // A long change scrolls away: what the question is about stands right above it.
        self.say("change", summary)?;
        self.report.changes.push(Changed { path: path.clone(), diff, made: false });
        if self.options.dry_run {
            return Ok(true);
        }
        if !self.options.yes {
            match self.steps.ask("Change this file as shown?")? {
                Some(true) => {}
                Some(false) => {
                    self.say("setup", "nothing changed")?;
                    return Ok(false);
                }
                None => {
                    let line =
                        "setup: nobody here to ask; run it again with --yes, or with --dry-run to look";
                    return Err(HooksError::Usage(line.to_owned()));
                }
            }
        }
        change.make()?;
        if let Some(last) = self.report.changes.last_mut() {
            last.made = true;
        }
        self.say("hooks", &format!("{}: {done}", show(&path)))?;
        Ok(true)
    }

    fn adopt(&mut self, program: &Path) -> Result<(), HooksError> {
        let agents = match probe::running_agents(program, TIME_LIMIT) {
            Ok(agents) => agents,
            Err(why) => {
                // Nothing is lost by it: each comes in by itself with its next prompt.
                return self
                    .say("sessions", &format!("what runs comes in with its next prompt (claude {why})"));
            }
        };
        if agents.is_empty() {
            self.say("sessions", "none runs now")?;
        }
        for agent in agents {
            let place = agent.cwd.as_deref().unwrap_or("?");
            let who = format!("pid {} in {}", agent.pid, text::one_line(place));
            let (label, result) = match self.steps.adopt(&agent) {
                Ok(Adopted::Taken(label)) => {
                    self.say("sessions", &format!("{} taken in ({who})", text::one_line(&label)))?;
                    (Some(label), "taken")
                }
                Ok(Adopted::Known(label)) => {
                    self.say("sessions", &format!("{} is known ({who})", text::one_line(&label)))?;
                    (Some(label), "known")
                }
                Ok(Adopted::Left(why)) => {
                    self.say("sessions", &format!("left alone: {} ({who})", text::one_line(&why)))?;
                    (None, "left")
                }
                Err(why) => {
                    self.problem("sessions", &format!("not taken in: {} ({who})", text::one_line(&why)))?;
                    (None, "failed")
                }
            };
            self.report.sessions.push(Session { pid: agent.pid, id: agent.session_id, label, result });
        }
        Ok(())
    }

    fn last_words(&mut self, hindrances: &[&str], path: &Path) -> Result<(), HooksError> {
        for line in hindrances {
            self.problem("for you", &format!("{}: {line}", show(path)))?;
        }
        if self.service.ends_with_login() {
            let line = "the daemon ends with your last login; `loginctl enable-linger` keeps it";
            self.say("for you", line)?;
        }
        self.say(
            "for you",
            "start `claude` in any terminal; sessions that run speak from their next prompt",
        )?;
        self.say("undo", "minder setup --undo")
    }

    fn undo(&mut self) -> Result<u8, HooksError> {
        let settings = Settings::read(self.surroundings, Scope::User)?;
        warn(&settings, self.output.err)?;
        let path = settings.path().to_owned();
        match settings.uninstall()? {
            None => self.say("hooks", &format!("{}: nothing of minder's in it", show(&path)))?,
            Some(change) => {
                let summary = format!("takes minder's hooks out of {}; nothing else changes", show(&path));
                if !self.change(change, &summary, "as it was before")? {
                    return Ok(exit::NO);
                }
            }
        }
        if !self.options.dry_run {
            match self.steps.undo_service(self.service) {
                Ok(None) => {}
                Ok(Some(line)) => self.report.service = self.step("service", Ok(line))?,
                Err(why) => self.report.service = self.step("service", Err(why))?,
            }
        }
        self.say("store", &format!("{}: kept", show(&self.surroundings.minder_home)))?;
        Ok(if self.report.problems.is_empty() { exit::OK } else { exit::NO })
    }

    /// A line, or a problem, of one of the caller's steps.
    fn step(&mut self, what: &str, line: Result<String, String>) -> Result<Option<String>, HooksError> {
        match line {
            Ok(line) => {
                self.say(what, &text::one_line(&line))?;
                Ok(Some(line))
            }
            Err(why) => {
                self.problem(what, &text::one_line(&why))?;
                Ok(None)
            }
        }
    }

    fn say(&mut self, what: &str, line: &str) -> Result<(), HooksError> {
        if !self.options.json {
            writeln!(self.output.out, "{}", self.folded(&format!("{what:<10}{line}")))?;
            self.output.out.flush()?;
        }
        Ok(())
    }

    fn problem(&mut self, what: &str, line: &str) -> Result<(), HooksError> {
        self.report.problems.push(format!("{what}: {line}"));
        if !self.options.json {
            writeln!(self.output.err, "{}", self.folded(&format!("minder: {what}: {line}")))?;
        }
        Ok(())
    }

    fn folded(&self, line: &str) -> String {
        self.options.columns.map_or_else(|| line.to_owned(), |columns| text::fold(line, 10, columns))
    }
}

/// What an installation does to a file, up to the file's name.
fn hooks_words(standing: &Standing) -> String {
    let events = |n: usize| if n == 1 { "1 event".to_owned() } else { format!("{n} events") };
    match (standing.missing.len(), standing.outdated.len() + standing.surplus.len()) {
        (new, 0) => format!("adds hooks for {} to", events(new)),
        (0, old) => format!("brings hooks for {} up to date in", events(old)),
        (new, old) => {
            format!("adds hooks for {} and brings those for {} up to date in", events(new), events(old))
        }
    }
}

/// Asks on a terminal and reads one line: yes only where it says so. Nothing without a terminal, or where it
/// ends before a line.
pub fn ask(
    question: &str,
    terminal: bool,
    input: &mut dyn BufRead,
    err: &mut dyn Write,
) -> io::Result<Option<bool>> {
    if !terminal {
        return Ok(None);
    }
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        writeln!(err)?;
        return Ok(None);
    }
    Ok(Some(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(terminal: bool, typed: &str) -> (Option<bool>, String) {
        let mut shown = Vec::new();
        let answer = ask("Sure?", terminal, &mut typed.as_bytes(), &mut shown).unwrap();
        (answer, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn a_summary_counts_the_events() {
        let names = |n: usize| vec!["Stop".to_owned(); n];
        let words = |missing, outdated| {
            hooks_words(&Standing {
                missing: names(missing),
                outdated: names(outdated),
                ..Standing::default()
            })
        };
        assert_eq!(words(11, 0), "adds hooks for 11 events to");
        assert_eq!(words(0, 1), "brings hooks for 1 event up to date in");
        assert_eq!(words(1, 2), "adds hooks for 1 event and brings those for 2 events up to date in");
    }

    #[test]
    fn only_yes_is_yes_and_nobody_is_nobody() {
        for yes in ["y\n", "yes\n", " Y \n", "YES", "y"] {
            assert_eq!(answer(true, yes), (Some(true), "Sure? [y/N] ".to_owned()), "{yes:?}");
        }
        for no in ["\n", "n\n", "no\n", "yep\n", "why?\n"] {
            assert_eq!(answer(true, no).0, Some(false), "{no:?}");
        }
        assert_eq!(answer(true, "").0, None);
        assert_eq!(answer(false, "y\n"), (None, String::new()));
    }
}
