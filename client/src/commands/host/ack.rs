//! `host ack`.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::HostAck;

use super::ack_command;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `host ack`.
#[derive(Args, Debug)]
#[command(after_help = "\
A drain prints the exact command. What came after that drain stays. Exit 1
where nothing was acknowledged although something was shown.")]
pub struct AckArgs {
    /// Up to which row
    #[arg(long, value_name = "N")]
    through: u64,
    /// Of which hand-back
    #[arg(long, value_name = "G")]
    generation: u64,
    /// The primary [default: this session, or the only host there is]
    #[arg(value_name = "SEL")]
    session: Option<String>,
}

/// Acknowledges.
pub fn run(args: &AckArgs, context: &mut Context) -> Outcome {
    let ack = HostAck {
        caller: as_caller(&context.caller),
        session: args.session.clone(),
        through: args.through,
        generation: args.generation,
    };
    let answer = context.daemon()?.call(&ack)?;
    if let Some((through, generation)) = answer.instead {
        return Err(CommandError::no("nothing acknowledged").hint(ack_command(through, generation)));
    }
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        let n = answer.rows.len();
        context.printer.line(format!("{n} {} acknowledged", if n == 1 { "wake" } else { "wakes" }))?;
        if answer.newer {
            context.printer.line("a newer hand-back waits: minder host drain")?;
        }
    }
    Ok(exit::OK)
}
