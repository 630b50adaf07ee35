//! Power losses on a real file system: load, the power cut in the middle of it, the next start, the comparison.

use anyhow::{Context, Result};

use super::daemon::{Setup, scratch};
use super::dice::Dice;
use super::history::{End, History};
use super::loop_fs::{Cut, Kind, LoopFs};
use super::outcome::Outcome;
use super::{load, verdict};

/// How many losses a store lives through before the next one begins with an empty disk.
const LIVES: usize = 8;

/// Cuts the power `cycles` times. Stops at the first violation if a fault is to be found.
pub fn run(setup: &Setup, kind: Kind, cycles: usize, seed: u64) -> Result<Outcome> {
    let mut outcome = Outcome::new(format!("power cut on {}", kind.name()), "cycles");
    let mut dice = Dice::new(seed ^ 0x10_0b);
    while outcome.rounds < cycles {
        let lives = LIVES.min(cycles - outcome.rounds);
        one_disk(setup, kind, lives, &mut dice, &mut outcome)?;
        if setup.fault.is_some() && !outcome.violations.is_empty() {
            break;
        }
    }
    Ok(outcome)
}

fn one_disk(setup: &Setup, kind: Kind, lives: usize, dice: &mut Dice, outcome: &mut Outcome) -> Result<()> {
    let scratch = scratch()?;
    let mut disk = LoopFs::new(kind, scratch.path())?;
    let home = disk.root().join("store");
    let mut history = History::default();
    for life in 0..lives {
        let seed = outcome.rounds as u64 + 1;
        let mut daemon = setup.start(&home).context("a start")?;
        if life == 0 {
            history.extend(load::prepare(&home));
        }
        // In some lives the process dies first: what it had not flushed is then read back by the next one, from
        // memory, before the power goes.
        if dice.percent(30) {
            let enough = 1 + dice.below(60);
            let pid = daemon.pid();
            let said = load::run(&home, seed << 32, usize::MAX, enough, &|| kill(pid));
            history.extend(said);
            daemon.ended()?;
            daemon = setup.start(&home).context("a start after a kill")?;
        }
        let enough = 1 + dice.below(150);
        let how = *dice.one_of(&[Cut::Hard, Cut::LogFlushed]);
        let pid = daemon.pid();
        let said = load::run(&home, seed, usize::MAX, enough, &|| {
            disk.cut(how).expect("the power can be cut");
            kill(pid);
        });
        history.extend(said);
        // Without power nobody is answered, and a refusal after the cut says nothing of what the disk has.
        for entry in history.callers.iter_mut().flatten().filter(|e| e.end == End::Refused) {
            entry.end = End::Unknown;
        }
        daemon.ended()?;
        disk.unmount()?;
        disk.mount()?;

        let mut wrong = Vec::new();
        match setup.start(&home) {
            Ok(daemon) => {
                wrong.extend(verdict::compare(&home, &history));
                wrong.extend(setup.check(&home)?);
                daemon.kill()?;
            }
            Err(error) => wrong.push(format!("no start after it: {error:#}")),
        }
        let broken = !wrong.is_empty();
        let at = format!("cycle {}, cut {how:?} after {enough} answers", outcome.rounds + 1);
        outcome.round(&at, wrong);
        if broken {
            break; // what follows on this disk follows from it
        }
    }
    outcome.told += history.told();
    Ok(())
}

fn kill(pid: u32) {
    if let Ok(Some(process)) = crate::process::Process::open(pid) {
        process.signal(rustix::process::Signal::KILL);
    }
}
