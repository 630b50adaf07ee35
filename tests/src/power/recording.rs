//! A record of several lives of a daemon on one store: it is killed under load, killed between a write and its flush,
//! stopped, and lives with a disk whose syncs fail now and then. Everything is in one order: the calls that change
//! files, the syncs, the answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::daemon::{Daemon, Setup};
use super::history::History;
use super::load;
use super::picture::Picture;
use super::trace::{self, Act, CALLS, Step};
use crate::process::Process;

/// What was recorded.
pub struct Recording {
    /// The files.
    pub picture: Picture,
    /// What callers know.
    pub history: History,
    /// At which line each call was answered.
    pub answered: HashMap<u64, usize>,
    /// The lines at which something changed, became durable or was answered.
    pub lines: Vec<usize>,
}

/// How a life ends.
#[derive(Clone, Copy)]
enum End {
    /// Killed after so many answers.
    Killed(usize),
    /// Killed between a write of the journal and its flush.
    Unflushed,
    /// Stopped after so many answers.
    Stopped(usize),
}

/// Each life: what fails in it, and how it ends.
const LIVES: [(Option<&str>, End); 8] = [
    (None, End::Killed(90)),
    (None, End::Unflushed),
    (None, End::Stopped(120)),
    (Some("fsync:error=EIO:when=19+7"), End::Killed(90)),
    (None, End::Unflushed),
    (Some("fdatasync:error=EIO:when=20+13"), End::Killed(60)),
    (Some("fsync,fdatasync,syncfs:error=EIO:when=40+17"), End::Stopped(90)),
    (None, End::Killed(60)),
];

/// Records the lives on a new store below `scratch`.
pub fn record(setup: &Setup, scratch: &Path, seed: u64) -> Result<Recording> {
    let root = scratch.join("live");
    std::fs::create_dir(&root)?;
    let mut recording = Recording {
        picture: Picture::new(&root),
        history: History::default(),
        answered: HashMap::new(),
        lines: Vec::new(),
    };
    let home = root.join("store");
    let mut first = 0;
    for (life, (fails, end)) in LIVES.into_iter().enumerate() {
        let log = scratch.join(format!("{life}.strace"));
        one_life(setup, &home, &log, fails, end, seed + life as u64, &mut recording.history)
            .with_context(|| format!("life {life}"))?;
        let text = std::fs::read_to_string(&log)?;
        let (steps, lines) = trace::read(&text, first).with_context(|| log.display().to_string())?;
        std::fs::remove_file(&log)?;
        recording.take_in(&steps).with_context(|| format!("life {life}"))?;
        first += lines;
    }
    recording.lines.sort_unstable();
    recording.lines.dedup();
    Ok(recording)
}

impl Recording {
    fn take_in(&mut self, steps: &[Step]) -> Result<()> {
        let (whole, cut): (Vec<&Step>, Vec<&Step>) = steps.iter().partition(|s| s.exit.is_some());
        for step in whole {
            self.picture.apply(step)?;
            match &step.act {
                Act::Answer { numbers } => {
                    for number in numbers {
                        self.answered.entry(*number).or_insert(step.enter);
                    }
                }
                Act::Open { .. } | Act::Close { .. } | Act::Copy { .. } => continue,
                _ => {}
            }
            self.lines.extend([Some(step.enter + 1), step.exit.map(|l| l + 1)].into_iter().flatten());
        }
        // Each call that the daemon was killed in was done or not: the files say it.
        let mut errors = Vec::new();
        for chosen in 0..1usize << cut.len() {
            let mut picture = self.picture.clone();
            for (_, step) in cut.iter().enumerate().filter(|(i, _)| chosen & (1 << i) != 0) {
                picture.apply(step)?;
            }
            match picture.is_true() {
                Ok(()) => {
                    self.picture = picture;
                    self.picture.process_ended();
                    return Ok(());
                }
                Err(error) => errors.push(format!("{error}")),
            }
        }
        bail!("the record is not what the files are, whatever of {cut:?} was done: {errors:?}")
    }
}

fn one_life(
    setup: &Setup,
    home: &Path,
    log: &Path,
    fails: Option<&str>,
    end: End,
    seed: u64,
    history: &mut History,
) -> Result<()> {
    let mut command = setup.command(home)?;
    if matches!(end, End::Unflushed) {
        command.env("MINDER_KILL_POINT", "journal.after-write:25");
    }
    let daemon = Daemon::start(traced(&command, fails, log))?;
    let process = served_by(home)?;
    if history.callers.is_empty() {
        history.extend(load::prepare(home));
    }
    let kill = || {
        process.signal(Signal::KILL);
    };
    history.extend(match end {
        End::Killed(enough) => load::run(home, seed, usize::MAX, enough, &kill),
        End::Unflushed => load::run(home, seed, usize::MAX, usize::MAX, &|| ()),
        End::Stopped(limit) => load::run(home, seed, limit, usize::MAX, &|| ()),
    });
    process.signal(Signal::TERM);
    daemon.ended()
}

/// The daemon, which is a child of the program that looks at it.
fn served_by(home: &Path) -> Result<Process> {
    let text = std::fs::read_to_string(home.join("daemon.lock"))?;
    let pid = text.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
    Process::open(pid.context("the lock says who holds it")?)?.context("who holds the lock lives")
}

fn traced(command: &Command, fails: Option<&str>, log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-xx", "-s", "20000000", "-e", &format!("trace={CALLS}"), "-e", "signal=none"]);
    strace.args(fails.iter().flat_map(|what| ["-e".to_owned(), format!("inject={what}")]));
    let output: PathBuf = log.to_owned();
    strace.arg("-o").arg(output).arg("--").arg(command.get_program()).args(command.get_args());
    strace.env_clear();
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    strace
}
