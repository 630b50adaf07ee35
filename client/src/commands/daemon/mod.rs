//! `daemon`: start, stop, restart, status, logs. Where a service manager has charge of the daemon, they go
//! through it.

mod control;
mod logs;
mod status;

use clap::{Args, Subcommand};

use crate::cli::Outcome;
use crate::context::Context;

/// Options of `daemon`.
#[derive(Args, Debug)]
#[command(after_help = "\
Other commands start the daemon by themselves when they need it;
MINDER_NO_AUTOSTART=1 stops that. Inside a turn nothing starts it.")]
pub struct DaemonArgs {
    #[command(subcommand)]
    command: DaemonCommand,
}

#[derive(Subcommand, Debug)]
enum DaemonCommand {
    /// Start it, if it does not run
    Start,
    /// Stop it; nothing that was said is lost, and turns run on
    Stop {
        /// End the turns that run first
        #[arg(long)]
        now: bool,
    },
    /// Stop and start it; safe at any time
    Restart,
    /// Say how it is: exit 0 well, 1 something is wrong, 69 not running
    Status,
    /// Print the end of its log
    Logs(logs::LogsArgs),
}

/// Does what was asked of the daemon.
pub fn run(args: &DaemonArgs, context: &mut Context) -> Outcome {
    match &args.command {
        DaemonCommand::Start => control::start(context),
        DaemonCommand::Stop { now } => control::stop(*now, context),
        DaemonCommand::Restart => control::restart(context),
        DaemonCommand::Status => status::run(context),
        DaemonCommand::Logs(args) => logs::run(args, context),
    }
}
