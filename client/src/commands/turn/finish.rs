//! `turn finish`: the outcome of a turn that is held, from whoever was to deliver its reply.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::TurnFinish;
use minder_proto::text::one_line;
use minder_proto::turn::Outcome as Word;

use super::which;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `turn finish`.
#[derive(Args, Debug)]
#[command(after_help = "\
The first finish counts; a later one is told so (exit 1).

OUTCOME: delivered, silent, reply_lost, claim_lost (the lease of an outer
loop was lost, nothing was delivered), server_skipped, server_refused,
upstream_refused. Another word is recorded as unknown, and that is said.")]
pub struct FinishArgs {
    /// The turn: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
    /// What became of its reply
    #[arg(value_name = "OUTCOME")]
    outcome: String,
}

/// Finishes.
pub fn run(args: FinishArgs, context: &mut Context) -> Outcome {
    which::checked(&args.id)?;
    if args.outcome == Word::Failed.as_str() {
        return Err(CommandError::usage("a run that succeeded cannot be failed afterwards"));
    }
    let known = args.outcome.parse::<Word>().is_ok_and(|word| word != Word::Unknown);
    let finish =
        TurnFinish { caller: as_caller(&context.caller), id: args.id, outcome: args.outcome.clone() };
    let answer = context.daemon()?.call(&finish)?;
    let short = answer.turn.short();
    let word = answer.outcome.unwrap_or(Word::Unknown);
    if !answer.counted {
        let no = CommandError::no(format!("{short} was finished before: {word}")).detail(&answer);
        return Err(CommandError { retryable: false, ..no });
    }
    if !known {
        context.printer.tell(format!("{} is no outcome; unknown is recorded", one_line(&args.outcome)));
    }
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(format!("{short} {word}"))?;
    }
    Ok(exit::OK)
}
