//! `session set`: changes the record of a session, in one commit.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::label;
use minder_proto::rpc::Set;
use minder_proto::text::one_line;

use crate::channel::{self, ChannelOptions};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `set`.
#[derive(Args, Debug)]
#[command(after_help = "\
SEL: minder help selectors.

Example:
  minder set 5f1c2d4a --label api --parent lead")]
pub struct SetArgs {
    /// The session
    #[arg(value_name = "SEL")]
    session: String,
    /// The name to type for it
    #[arg(long, value_name = "L")]
    label: Option<String>,
    /// The name to read
    #[arg(long, value_name = "T")]
    title: Option<String>,
    /// The session that is told of all its states
    #[arg(long, value_name = "SEL")]
    parent: Option<String>,
    #[command(flatten)]
    channel: ChannelOptions,
    /// The harness of the conversation that it is from now on
    #[arg(long, value_name = "H", requires = "harness_id")]
    harness: Option<String>,
    /// The harness's own id of that conversation
    #[arg(long, value_name = "ID", requires = "harness")]
    harness_id: Option<String>,
}

/// Changes.
pub fn run(args: SetArgs, context: &mut Context) -> Outcome {
    if let Some(label) = &args.label {
        label::check(label).map_err(|e| CommandError::usage(e.to_string()))?;
    }
    let channel = args.channel.read()?;
    let set = Set {
        caller: as_caller(&context.caller),
        session: args.session,
        label: args.label,
        title: args.title,
        parent: args.parent,
        env: channel::environment(channel.as_ref()),
        channel,
        harness: args.harness,
        harness_id: args.harness_id,
    };
    let fields = [&set.label, &set.title, &set.parent, &set.harness];
    if fields.iter().all(|f| f.is_none()) && set.channel.is_none() {
        return Err(CommandError::usage(
            "nothing to change: give --label, --title, --parent, --channel or --harness",
        ));
    }
    let answer = context.daemon()?.call(&set)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else if answer.changed.is_empty() {
        context.printer.line("nothing changed")?;
    } else {
        for change in &answer.changed {
            context.printer.line(one_line(change))?;
        }
    }
    Ok(exit::OK)
}
