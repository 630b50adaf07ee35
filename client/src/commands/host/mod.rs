//! `host enable|disable|status|drain|ack|log`: the wake queue beside a session that supervises others.

mod ack;
mod drain;
mod log;
mod status;
mod switch;

use clap::{Args, Subcommand};

use crate::cli::Outcome;
use crate::context::Context;

/// Options of `host`.
#[derive(Args, Debug)]
#[command(after_help = "\
A session with a host, its primary, is told of the sessions that it started or
watches in one hand-back for all that happened within host.coalesce, and each
thing stays in its wake queue until the primary acknowledges it.

Examples:
  minder host enable lead
  minder host status lead
  minder host drain
  minder host log --since 1h")]
pub struct HostArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Keep a wake queue for a session, and wake it for what is in it
    Enable(Which),
    /// End that; the news that is kept goes out as ordinary messages
    Disable(Which),
    /// Show how it stands; exit 1 where something is owed
    Status(Which),
    /// Show what waits, and how to acknowledge it
    Drain(Which),
    /// Acknowledge what a drain has shown
    Ack(ack::AckArgs),
    /// Show what the host did
    Log(log::LogArgs),
}

/// Which host.
#[derive(Args, Debug)]
struct Which {
    /// The primary [default: this session, or the only host there is]
    #[arg(value_name = "SEL")]
    session: Option<String>,
}

/// Does it.
pub fn run(args: &HostArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        Verb::Enable(which) => switch::run(which.session.clone(), true, context),
        Verb::Disable(which) => switch::run(which.session.clone(), false, context),
        Verb::Status(which) => status::run(which.session.clone(), context),
        Verb::Drain(which) => drain::run(which.session.clone(), context),
        Verb::Ack(args) => ack::run(args, context),
        Verb::Log(args) => log::run(args, context),
    }
}

/// `minder host ack …`, as a drain and a refused acknowledgement print it.
fn ack_command(through: u64, generation: u64) -> String {
    format!("minder host ack --through {through} --generation {generation}")
}
