//! `turn cancel`: the ladder; said again in its grace, the kill.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::TurnCancel;

use super::which;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `turn cancel`.
#[derive(Args, Debug)]
#[command(after_help = "\
The program is asked to end in its own way, and killed with all that it
started when the grace is over. Said again meanwhile it is killed at once.
Exit 1 where the turn had ended already.")]
pub struct CancelArgs {
    /// The turn: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Cancels.
pub fn run(args: CancelArgs, context: &mut Context) -> Outcome {
    which::checked(&args.id)?;
    let cancel = TurnCancel { caller: as_caller(&context.caller), id: args.id };
    let answer = context.daemon()?.call(&cancel)?;
    let short = answer.turn.short();
    if !answer.counted {
        let held = format!("has ended and is held: minder turn finish {short} OUTCOME");
        let how = answer.outcome.map_or(held, |o| format!("has ended: {o}"));
        let no = CommandError::no(format!("{short} {how}")).detail(&answer);
        return Err(CommandError { retryable: false, ..no });
    }
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(format!("{short} is told to end"))?;
    }
    Ok(exit::OK)
}
