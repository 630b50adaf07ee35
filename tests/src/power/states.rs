//! States that a power loss may leave, rebuilt from a record: for each a line of the record is chosen, and chance says
//! what of the changes before it that were not durable was there. A daemon starts on it, and the store is compared
//! with what was answered before that line.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};

use super::daemon::{Setup, scratch};
use super::dice::Dice;
use super::outcome::Outcome;
use super::recording::{Recording, record};
use super::verdict;

/// Rebuilt from one record before another is made.
const OF_ONE_RECORD: usize = 250;
/// States that are looked at beside each other.
const AT_ONCE: usize = 2;

/// Rebuilds `count` states and looks at each. Stops at the first violation if a fault is to be found.
pub fn run(setup: &Setup, count: usize, seed: u64) -> Result<Outcome> {
    let mut outcome = Outcome::new("rebuilt from a record".to_owned(), "states");
    while outcome.rounds < count {
        let scratch = scratch()?;
        let round = outcome.rounds as u64;
        let record_seed = (seed << 20) + 1000 * round;
        let recording = record(setup, scratch.path(), record_seed).context("the record")?;
        outcome.told += recording.history.told();
        let states = OF_ONE_RECORD.min(count - outcome.rounds);
        look_at(setup, &recording, scratch.path(), states, record_seed, &mut outcome)?;
        if setup.fault.is_some() && !outcome.violations.is_empty() {
            break;
        }
    }
    Ok(outcome)
}

/// Where, and what was wrong there.
type Seen = (String, Vec<String>);

fn look_at(
    setup: &Setup,
    recording: &Recording,
    scratch: &Path,
    states: usize,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    let found: Mutex<Vec<(usize, Result<Seen>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= states || enough.load(Ordering::Relaxed) {
                        break;
                    }
                    let folder = scratch.join(format!("state-{n}"));
                    let result = one_state(setup, recording, &folder, seed + n as u64);
                    let wrong = result.as_ref().map_or(true, |(_, wrong)| !wrong.is_empty());
                    enough.fetch_or(wrong && setup.fault.is_some(), Ordering::Relaxed);
                    found.lock().expect("nobody panics with it").push((n, result));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("nobody panics with it");
    found.sort_by_key(|(n, _)| *n);
    for (n, result) in found {
        let (at, wrong) = result.with_context(|| format!("state {n} of seed {seed}"))?;
        outcome.round(&at, wrong);
    }
    Ok(())
}

fn one_state(setup: &Setup, recording: &Recording, folder: &Path, seed: u64) -> Result<Seen> {
    let mut dice = Dice::new(seed);
    let line = *dice.one_of(&recording.lines);
    std::fs::create_dir(folder)?;
    recording.picture.after_loss(line, &mut dice, folder)?;
    let home = folder.join("store");
    let history = recording.history.as_of(|call| recording.answered.get(&call).is_some_and(|at| *at < line));
    let at = format!("line {line}, seed {seed}, {} answered", history.told());
    let mut wrong = Vec::new();
    match setup.start(&home) {
        Ok(daemon) => {
            wrong.extend(verdict::compare(&home, &history));
            wrong.extend(setup.check(&home)?);
            daemon.kill()?;
        }
        Err(error) => wrong.push(format!("no start after it: {error:#}")),
    }
    std::fs::remove_dir_all(folder)?;
    if let (Some(keep), false) = (&setup.keep, wrong.is_empty()) {
        // As the loss left it: the daemon has changed the other one.
        let keep = keep.join(format!("state-{seed}"));
        std::fs::create_dir_all(&keep)?;
        let mut dice = Dice::new(seed);
        let line = *dice.one_of(&recording.lines);
        recording.picture.after_loss(line, &mut dice, &keep)?;
    }
    Ok((at, wrong))
}
