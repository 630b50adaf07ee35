//! `session relaunch`: a new process for a session, in its newest conversation.

use clap::Args;
use minder_proto::rpc::{Call, Relaunch};

use super::launch::{PlaceOptions, show};
use crate::cli::Outcome;
use crate::context::Context;
use crate::environment;
use crate::link::as_caller;

/// Options of `relaunch`.
#[derive(Args, Debug)]
#[command(after_help = "\
Goes on with the session's newest conversation, by its exact id, in a new
window of the tmux server that the caller is in, else of the one it was
launched in. A conversation in which nothing was said yet is begun anew, which
is said.

Exit 3: its process still runs (two processes of one conversation lose a
branch of it). Exit 4: it could not be started.

SEL: minder help selectors.

Examples:
  minder relaunch api
  minder relaunch api --fresh")]
pub struct RelaunchArgs {
    /// The session
    #[arg(value_name = "SEL")]
    session: String,
    /// Begin a new conversation
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Relaunches.
pub fn run(args: RelaunchArgs, context: &mut Context) -> Outcome {
    let relaunch = Relaunch {
        caller: as_caller(&context.caller),
        session: args.session,
        fresh: args.fresh,
        place: args.place.read()?,
        env: environment::own(),
    };
    let answer = context.daemon()?.call(&relaunch)?;
    show(&answer, Relaunch::METHOD, context)
}
