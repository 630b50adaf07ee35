//! `minder setup`: the whole installation in one command that may be repeated, and the whole way back.
//!
//! It finds the harnesses, shows what it would change, asks once, puts the hooks in, takes in what runs
//! already, says who starts the daemon, sends one notice as a test and ends with what only a person can do.
//! What needs the daemon is done by the caller's `Steps`.

pub mod args;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use minder_proto::error::exit;
use minder_proto::text;
use serde::Serialize;

use super::hooks::{Output, known, print_diff, print_json, show, warn};
use crate::hooks::change::{SandboxConfig, SandboxOffer};
use crate::hooks::ours::Standing;
use crate::hooks::pack::Body;
use crate::hooks::probe::{self, RunningAgent, TIME_LIMIT};
use crate::hooks::service::Service;
use crate::hooks::{Change, HooksError, Pack, Scope, Settings, Surroundings, pack};

/// The command line of `setup`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which harnesses; none: those that are found.
    pub harnesses: Vec<String>,
    /// Do not ask.
    pub yes: bool,
    /// Show, and change nothing.
    pub dry_run: bool,
    /// Offer what lets the commands in Codex's sandbox speak: nothing else that is asked includes it.
    pub codex_sandbox: bool,
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
const OTHERS: &[&str] = &["grok"];

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
    harnesses: Vec<Found>,
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

/// A change that was shown, and what it is when it is made.
struct Shown {
    change: Change,
    done: &'static str,
}

/// A harness that is set up, and what keeps its hooks from running.
struct Ready {
    pack: &'static Pack,
    program: PathBuf,
    path: PathBuf,
    hindrances: Vec<String>,
    /// What it does not do without being asked for it.
    withheld: Option<String>,
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
    let mut packs = Vec::new();
    for harness in &options.harnesses {
        let pack = known(harness)?;
        if !packs.iter().any(|known: &&Pack| known.name == pack.name) {
            packs.push(pack);
        }
    }
    let report = Report { dry_run: options.dry_run, undo: options.undo, ..Report::default() };
    let mut setup = Setup { options, surroundings, program, service, steps, output, report };
    let code = if options.undo { setup.undo(&packs)? } else { setup.install(&packs)? };
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
    fn install(&mut self, named: &[&'static Pack]) -> Result<u8, HooksError> {
        let found = self.find(named)?;
        if found.is_empty() {
            return Ok(exit::NO);
        }
        let alone = found.len() == 1;
        let (mut ready, mut shown) = (Vec::new(), Vec::new());
        for (pack, program) in found {
            match self.prepare(pack, program) {
                Ok((one, changes)) => {
                    ready.push(one);
                    shown.extend(changes);
                }
                // One whose settings are broken keeps no other from being set up.
                Err(error) if alone => return Err(error),
                Err(error) => self.problem(pack.name, &text::one_line(&error.to_string()))?,
            }
        }
        if !self.change(shown)? {
            return Ok(exit::NO);
        }
        if self.options.dry_run {
            self.say("then", "sessions that run would be taken in, and one notice sent as a test")?;
            self.say("service", self.service.line())?;
            for one in &ready {
                if let Some(line) = &one.withheld {
                    self.say("for you", line)?;
                }
            }
            return Ok(if self.report.problems.is_empty() { exit::OK } else { exit::NO });
        }
        for one in ready.iter().filter(|one| one.pack.lists_sessions) {
            self.adopt(&one.program)?;
        }
        let line = self.steps.service(self.service);
        self.report.service = self.step("service", line)?;
        let line = self.steps.test_notice();
        self.report.notice = self.step("notice", line)?;
        self.last_words(&ready)?;
        Ok(if self.report.problems.is_empty() { exit::OK } else { exit::NO })
    }

    /// The harnesses, and a line about each other one that is here.
    fn find(&mut self, named: &[&'static Pack]) -> Result<Vec<(&'static Pack, PathBuf)>, HooksError> {
        let (mut all, mut refused) = (Vec::new(), None);
        for pack in if named.is_empty() { pack::ALL } else { named } {
            let Some(program) = probe::find(pack, self.surroundings) else {
                if !named.is_empty() {
                    return Err(HooksError::NotFound(format!("{} is not on PATH", pack.program.name)));
                }
                continue;
            };
            let version = probe::version(&program, TIME_LIMIT);
            let said = version.as_ref().map_or_else(|why| format!("(version unknown: {why})"), Clone::clone);
            self.say(pack.name, &format!("{said}  {}", show(&program)))?;
            let version = version.ok();
            if let Some(version) = version.as_deref().filter(|version| pack.is_too_old(version)) {
                let [major, minor, patch] = pack.program.oldest.unwrap_or_default();
                let line = format!(
                    "{} {version} is older than {major}.{minor}.{patch}, the oldest whose hooks were tried: update it first",
                    pack.name
                );
                if !named.is_empty() {
                    return Err(HooksError::Refused(line));
                }
                refused = refused.or(Some(line));
                continue;
            }
            self.report.harnesses.push(Found { name: pack.name, program: program.clone(), version });
            all.push((*pack, program));
        }
        match refused {
            Some(line) if all.is_empty() => return Err(HooksError::Refused(line)),
            Some(line) => self.problem("setup", &line)?,
            None => {}
        }
        if named.is_empty() {
            for name in OTHERS {
                if probe::find_program(name, self.surroundings.path.as_deref()).is_some() {
                    self.say(name, "found; minder has no hooks for it yet")?;
                }
            }
        }
        if all.is_empty() {
            let programs: Vec<_> = pack::ALL.iter().map(|pack| pack.program.name).collect();
            let line = format!("no harness found ({} not on PATH); nothing changed", programs.join(", "));
            self.say("setup", &line)?;
        }
        Ok(all)
    }

    /// Works out what is to be changed for a harness, and shows it.
    fn prepare(&mut self, pack: &'static Pack, program: PathBuf) -> Result<(Ready, Vec<Shown>), HooksError> {
        let settings = Settings::read(self.surroundings, pack, Scope::User)?;
        warn(&settings, self.output.err)?;
        let path = settings.path().to_owned();
        let standing = settings.standing(self.program)?;
        let summary = format!("{} {}; nothing else changes", words(pack, &standing), show(&path));
        let mut shown = Vec::new();
        match settings.install(self.program)? {
            None => self.say("hooks", &format!("{}: already installed", show(&path)))?,
            Some(change) => shown.push(self.show(change, &summary, "installed")?),
        }
        let (mut hindrances, mut withheld) = (standing.hindrances, None);
        if let Some(sandbox) = SandboxConfig::read(self.surroundings, pack)? {
            let (config, lines) = (show(sandbox.path()), sandbox.lines());
            match sandbox.offer() {
                SandboxOffer::Given => {}
                // A sandbox is a person's own measure: it is not widened in passing.
                _ if !self.options.codex_sandbox => {
                    let by = if self.options.dry_run {
                        format!(", by this in {config}: {}", text::one_line(&lines.replace('\n', " ")))
                    } else {
                        String::new()
                    };
                    withheld = Some(format!(
                        "tools in {}'s sandbox cannot speak; `minder setup {} --codex-sandbox` would let every command in it write to minder's spool{by}",
                        pack.title, pack.name
                    ));
                }
                SandboxOffer::Change(change) => {
                    let summary = format!(
                        "lets every command in {}'s sandbox write to minder's spool: what tools say gets out there",
                        pack.title
                    );
                    shown.push(self.show(*change, &summary, "lets tools speak")?);
                }
                SandboxOffer::ByHand => {
                    let lines = text::one_line(&lines.replace('\n', " "));
                    hindrances
                        .push(format!("tools in its sandbox cannot speak without this in {config}: {lines}"));
                }
            }
        }
        Ok((Ready { pack, program, path, hindrances, withheld }, shown))
    }

    /// Shows a change, and what it comes to.
    fn show(&mut self, change: Change, summary: &str, done: &'static str) -> Result<Shown, HooksError> {
        let diff = change.diff();
        if !self.options.json {
            print_diff(self.output.out, &diff, self.options.terminal)?;
            self.output.out.flush()?;
        }
        // A long change scrolls away: what the question is about stands right above it.
        self.say("change", summary)?;
        self.report.changes.push(Changed { path: change.path().to_owned(), diff, made: false });
        Ok(Shown { change, done })
    }

    /// Asks once about all that was shown, and makes it. False if the person said no.
    fn change(&mut self, shown: Vec<Shown>) -> Result<bool, HooksError> {
        if self.options.dry_run || shown.is_empty() {
            return Ok(true);
        }
        if !self.options.yes {
            let question = match shown.len() {
                1 => "Change this file as shown?".to_owned(),
                n => format!("Change these {n} files as shown?"),
            };
            match self.steps.ask(&question)? {
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
        for Shown { change, done } in shown {
            let path = change.path().to_owned();
            // One file that cannot be written keeps nothing else from being done.
            if let Err(error) = change.make() {
                self.problem("hooks", &text::one_line(&error.to_string()))?;
                continue;
            }
            for changed in self.report.changes.iter_mut().filter(|changed| changed.path == path) {
                changed.made = true;
            }
            self.say("hooks", &format!("{}: {done}", show(&path)))?;
        }
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

    fn last_words(&mut self, ready: &[Ready]) -> Result<(), HooksError> {
        for one in ready {
            for line in &one.hindrances {
                self.problem("for you", &format!("{}: {}", show(&one.path), text::one_line(line)))?;
            }
        }
        if self.service.ends_with_login() {
            let line = "the daemon ends with your last login; `loginctl enable-linger` keeps it";
            self.say("for you", line)?;
        }
        for one in ready {
            if let Some(line) = &one.withheld {
                self.say("for you", line)?;
            }
            let failed = self.report.changes.iter().any(|change| change.path == one.path && !change.made);
            if !failed {
                self.say("for you", one.pack.then)?;
            }
        }
        self.say("undo", "minder setup --undo")
    }

    fn undo(&mut self, named: &[&'static Pack]) -> Result<u8, HooksError> {
        let mut shown = Vec::new();
        for pack in if named.is_empty() { pack::ALL } else { named } {
            match self.prepare_undo(pack) {
                Ok(changes) => shown.extend(changes),
                Err(error) if named.len() == 1 => return Err(error),
                Err(error) => self.problem(pack.name, &text::one_line(&error.to_string()))?,
            }
        }
        if shown.is_empty() {
            self.say("hooks", "nothing of minder's in any settings")?;
        }
        if !self.change(shown)? {
            return Ok(exit::NO);
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

    /// Shows what is to be taken back of a harness, also of one that is gone.
    fn prepare_undo(&mut self, pack: &'static Pack) -> Result<Vec<Shown>, HooksError> {
        let settings = Settings::read(self.surroundings, pack, Scope::User)?;
        warn(&settings, self.output.err)?;
        let mut shown = Vec::new();
        // What was put in last goes first: a folder that was made for both goes with the other.
        let sandbox = SandboxConfig::read(self.surroundings, pack)?;
        if let Some(change) = sandbox.and_then(SandboxConfig::take_back) {
            let summary = format!("takes minder's spool out of {}'s sandbox again", pack.title);
            shown.push(self.show(change, &summary, "as it was before")?);
        }
        if let Some(change) = settings.uninstall()? {
            let path = show(change.path());
            let summary = match &pack.body {
                Body::Script(what, _) => format!("removes minder's {what} {path}"),
                Body::Groups(_) | Body::Commands(_) => {
                    format!("takes minder's hooks out of {path}; nothing else changes")
                }
            };
            shown.push(self.show(change, &summary, "as it was before")?);
        }
        Ok(shown)
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

/// What an installation does to a harness's file, up to the file's name.
fn words(pack: &Pack, standing: &Standing) -> String {
    match &pack.body {
        Body::Groups(_) | Body::Commands(_) => hooks_words(standing),
        Body::Script(what, _) if standing.programs.is_empty() => format!("makes minder's {what}"),
        Body::Script(what, _) => format!("brings minder's {what} up to date in"),
    }
}

/// What it does to settings with events in them.
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
