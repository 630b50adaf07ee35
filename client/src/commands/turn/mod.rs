//! `turn`: supervised turns. One run of one program for one prompt, which always ends, once, with a named outcome.

mod cancel;
mod finish;
mod logs;
mod ls;
mod policy;
mod report;
pub mod run;
mod show;
mod which;
mod words;

use clap::{Args, Subcommand};

use crate::cli::Outcome;
use crate::context::Context;

/// Options of `turn`.
#[derive(Args, Debug)]
#[command(after_help = "\
A turn is one run of one program for one prompt. It ends by itself, by its
windows or by a cancel, within a time that turn policy tells; nothing that it
started is left behind, and one line is kept of it, which turn report reads.

ID: the id of a turn, or the end of it; 8 characters are shown.")]
pub struct TurnArgs {
    #[command(subcommand)]
    command: TurnCommand,
}

#[derive(Subcommand, Debug)]
enum TurnCommand {
    /// Run a program as a turn, and exit as it did
    Run(run::RunArgs),
    /// List the turns that run, and those that ended last
    Ls(ls::LsArgs),
    /// Show one turn
    Show(show::ShowArgs),
    /// Print the output of a turn, as far as it is kept
    Logs(logs::LogsArgs),
    /// End a turn; said again, at once
    Cancel(cancel::CancelArgs),
    /// Name the outcome of a turn that is held
    Finish(finish::FinishArgs),
    /// What a log of turns says: outcomes, durations, silences, cost
    Report(report::ReportArgs),
    /// Show the windows of an adapter's turns, and where each comes from
    Policy(policy::PolicyArgs),
}

impl TurnArgs {
    /// The command `turn run`.
    pub fn of_run(args: run::RunArgs) -> Self {
        Self { command: TurnCommand::Run(args) }
    }
}

/// Does what was asked of turns.
pub fn run(args: TurnArgs, context: &mut Context) -> Outcome {
    match args.command {
        TurnCommand::Run(args) => run::run(args, context),
        TurnCommand::Ls(args) => ls::run(&args, context),
        TurnCommand::Show(args) => show::run(&args, context),
        TurnCommand::Logs(args) => logs::run(&args, context),
        TurnCommand::Cancel(args) => cancel::run(args, context),
        TurnCommand::Finish(args) => finish::run(args, context),
        TurnCommand::Report(args) => report::run(&args, context),
        TurnCommand::Policy(args) => policy::run(&args, context),
    }
}
