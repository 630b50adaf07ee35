//! `session drop`: a message that waits is never delivered; its sender is told.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::Drop;

use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Options of `drop`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  minder drop 7be21c09")]
pub struct DropArgs {
    /// The message: its id, or the end of it
    #[arg(value_name = "MID")]
    id: String,
}

/// Drops.
pub fn run(args: &DropArgs, context: &mut Context) -> Outcome {
    let drop = Drop { caller: as_caller(&context.caller), id: args.id.clone() };
    let answer = context.daemon()?.call(&drop)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(format!("{} {}", answer.id.short(), answer.receipt))?;
    }
    Ok(exit::OK)
}
