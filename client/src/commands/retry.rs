//! `session retry`: tries the delivery of one message again at once.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::Retry;

use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Options of `retry`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  minder retry 7be21c09")]
pub struct RetryArgs {
    /// The message: its id, or the end of it
    #[arg(value_name = "MID")]
    id: String,
}

/// Tries again.
pub fn run(args: &RetryArgs, context: &mut Context) -> Outcome {
    let retry = Retry { caller: as_caller(&context.caller), id: args.id.clone() };
    let answer = context.daemon()?.call(&retry)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(format!("{} {}", answer.id.short(), answer.receipt))?;
    }
    Ok(exit::OK)
}
