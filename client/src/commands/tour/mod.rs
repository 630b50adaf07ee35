//! `tour`: the real programs at work in a throw-away store, each step checked. It is a demonstration for a newcomer
//! and the smoke test of an installation.
//!
//! `steps.rs` is what is shown and what must come of it, `play.rs` runs a command and shows what it printed,
//! `stage.rs` is the folder and the environment that the commands see; the crate's `apart` gives the steps a process of
//! their own. Used by `cli`.

use clap::Args;
use minder_proto::error::exit;

use crate::apart::{self, Ended, Wanted};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::printer::Printer;

mod play;
mod stage;
mod steps;

use play::{Play, Unmet};
use stage::Stage;

/// Options of `tour`.
#[derive(Args, Debug)]
#[command(after_help = "\
Everything happens in a folder of its own: your sessions, hooks and settings
are not touched. A line with $ is a command that was run, the lines under it
are what it printed, -> says what it meant.

Exit 0 if every step did what it says. Else exit 70: the step is named, and
the folder is kept and named.")]
pub struct TourArgs {}

/// Shows.
pub fn run(_: &TourArgs, context: &mut Context) -> Outcome {
    let stage = Stage::make()?;
    let printer = &mut context.printer;
    if !printer.is_json() {
        printer.line(format!("minder tour: a throw-away store in {}.", stage.folder().display()))?;
        printer.line("Your sessions, hooks and settings are not touched.")?;
    }
    // Held back, it would be printed by both processes.
    printer.flush()?;
    let play = |wanted: &Wanted| perform(&stage, printer, wanted);
    // Nobody is left to be told if that fails.
    let forsaken = || drop(stage.clear());
    let ended = apart::run(play, forsaken).map_err(|e| CommandError::io("a process for the tour", &e))?;
    let end = match ended {
        Ended::Said(said) if said == MET => None,
        Ended::Said(said) if said == UNWANTED => Some(Err(CommandError::nobody_reads())),
        Ended::Said(said) => return Err(failed(stage, &said)),
        Ended::Silent => {
            return Err(failed(stage, "expected the tour's process to say how it ended, found it gone"));
        }
        Ended::Interrupted(signal) => Some(Ok(signal.exit())),
    };
    if let Err(why) = stage.clear() {
        return Err(failed(stage, &why));
    }
    if let Some(end) = end {
        return end;
    }
    let printer = &mut context.printer;
    if !printer.is_json() {
        let steps = steps::ALL.len();
        let line =
            format!("{steps} of {steps} steps did what they say. The daemon is stopped, the store removed.");
        printer.line("")?;
        printer.line(line)?;
        for line in next(built_here()) {
            printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

/// What to do now: where the program runs out of the folder it was built in, it is not installed yet.
fn next(not_installed: bool) -> [&'static str; 2] {
    if not_installed {
        [
            "Next: make install               two programs into ~/.local/bin",
            "      minder setup               shows every change to your harness's settings, and asks",
        ]
    } else {
        [
            "Next: minder setup               shows every change to your harness's settings, and asks",
            "      minder help agent          the lines for your AGENTS.md",
        ]
    }
}

/// True if this program lies where cargo puts it, `target/debug` or `target/<host>/release`.
fn built_here() -> bool {
    std::env::current_exe().is_ok_and(|program| is_build_folder(&program))
}

fn is_build_folder(program: &std::path::Path) -> bool {
    program.ancestors().any(|folder| folder.join("CACHEDIR.TAG").is_file())
}

/// What the process of the steps says when all of them did what they say; else it says what was not met.
const MET: &str = "met";
/// What it says when it was not to go on: nobody reads the output any more.
const UNWANTED: &str = "unwanted";

/// Plays all steps.
fn perform(stage: &Stage, printer: &mut Printer, wanted: &Wanted) -> String {
    let mut play = Play::new(stage, printer, wanted, steps::ALL.len());
    for step in steps::ALL {
        match play.step(step) {
            Ok(()) => {}
            Err(Unmet::Unwanted) => return UNWANTED.to_owned(),
            Err(Unmet::Other { expected, found }) => {
                return format!("{}: expected {expected}, found {found}", play.number());
            }
        }
    }
    MET.to_owned()
}

/// The failure of a step. The folder is kept, its daemon is not.
fn failed(stage: Stage, said: &str) -> CommandError {
    #[derive(serde::Serialize)]
    struct Kept {
        kept: std::path::PathBuf,
    }
    // What is wrong with the daemon was found by the step.
    let _ = stage.stop_daemon();
    let kept = stage.keep();
    CommandError::software(format!("{said}: the folder is kept: {}", kept.display())).detail(&Kept { kept })
}
