//! The proof that what was answered survives a loss of power. Two ways:
//!
//! * `cycles`: a real file system in an image, ext4 or XFS, whose power is cut in the middle of a load. It shows what
//!   these file systems do.
//! * `states`: the file operations of daemons under load are recorded, and from the record the folders are built that
//!   a power loss may leave: cut off anywhere, with what was not synced there, missing, half there, or in another
//!   order. It shows what any file system may do that keeps to what `fsync` promises.
//!
//! After each loss a daemon starts on what is left, and the store is compared with what its callers were answered.
//! With a fault built in, a run ends well only if it finds it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use minder_proto::trial::{FAULTS, Shown};

mod call;
mod cycles;
mod daemon;
mod dice;
mod history;
mod load;
mod loop_fs;
mod outcome;
mod picture;
mod recording;
mod states;
mod trace;
mod verdict;

use crate::isolate::Isolated;
use daemon::Setup;
use loop_fs::Kind;
use outcome::Outcome;

/// What is said where the options are not understood.
pub const USAGE: &str = "usage: power [--cycles N] [--fs ext4|xfs|all] [--states N] [--seed N] [--fault NAME] \
    [--faults] [--keep FOLDER]";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Power losses on each file system.
    pub cycles: usize,
    /// On which.
    pub kinds: Vec<&'static str>,
    /// Rebuilt states.
    pub states: usize,
    /// What chance begins with.
    pub seed: u64,
    /// The fault that is to be found.
    pub fault: Option<String>,
    /// Also make each fault that only a loss of power shows, and find it.
    pub faults: bool,
    /// Where rebuilt states are kept that a daemon did not make good.
    pub keep: Option<PathBuf>,
}

impl Options {
    /// From the arguments of a program.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let kinds = vec!["ext4", "xfs"];
        let mut options =
            Self { cycles: 0, kinds, states: 0, seed: 1, fault: None, faults: false, keep: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--cycles" => options.cycles = value()?.parse().context("--cycles")?,
                "--states" => options.states = value()?.parse().context("--states")?,
                "--seed" => options.seed = value()?.parse().context("--seed")?,
                "--keep" => options.keep = Some(value()?.into()),
                "--faults" => options.faults = true,
                "--fault" => options.fault = Some(value()?),
                "--fs" => {
                    options.kinds = match value()?.as_str() {
                        "all" => vec!["ext4", "xfs"],
                        name => {
                            vec![Kind::parse(name).with_context(|| format!("--fs {name}: not known"))?.name()]
                        }
                    };
                }
                _ => bail!("{word}: not known"),
            }
        }
        Ok(options)
    }
}

/// Does it, and gives what is to be printed, and whether all is well.
pub fn run(options: &Options) -> Result<(String, bool)> {
    let (mut text, mut good) = one_run(options)?;
    let seeded = FAULTS.iter().filter(|f| options.faults && f.shown == Shown::ByPowerLoss);
    for fault in seeded {
        let few = Options {
            cycles: options.cycles.min(FEW_CYCLES),
            states: options.states.min(FEW_STATES),
            fault: Some(fault.name.to_owned()),
            kinds: options.kinds.clone(),
            keep: None,
            ..*options
        };
        let (_, found) = one_run(&few)?;
        let word = if found { "found" } else { "NOT FOUND" };
        text.push_str(&format!("fault {}: {word} ({})\n", fault.name, fault.what));
        good &= found;
    }
    Ok((text, good))
}

/// What a fault must be found in.
const FEW_CYCLES: usize = 12;
const FEW_STATES: usize = 60;

fn one_run(options: &Options) -> Result<(String, bool)> {
    let setup =
        Setup { isolated: Isolated::new()?, fault: options.fault.clone(), keep: options.keep.clone() };
    let mut outcomes: Vec<Outcome> = Vec::new();
    if options.cycles > 0 {
        let kinds: BTreeSet<_> = options.kinds.iter().collect();
        for name in kinds {
            let kind = Kind::parse(name).expect("parsed once");
            outcomes.push(cycles::run(&setup, kind, options.cycles, options.seed)?);
        }
    }
    if options.states > 0 {
        outcomes.push(states::run(&setup, options.states, options.seed)?);
    }
    let violations: Vec<&String> = outcomes.iter().flat_map(|o| &o.violations).collect();
    let mut text = String::new();
    for violation in &violations {
        text.push_str(violation);
        text.push('\n');
    }
    text.push_str(&outcome::table(&outcomes));
    let Some(fault) = &options.fault else { return Ok((text, violations.is_empty())) };
    let by: Vec<String> = outcomes
        .iter()
        .filter(|o| !o.violations.is_empty())
        .map(|o| format!("{} ({} {})", o.method, o.rounds, o.unit))
        .collect();
    let verdict = if by.is_empty() { "NOT FOUND".to_owned() } else { format!("found by {}", by.join(", ")) };
    text.push_str(&format!("fault {fault}: {verdict}\n"));
    Ok((text, !by.is_empty()))
}
