//! `session wait`: takes the next event and exits. It reads files only; the following itself is in `follow`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use minder_proto::stamp::parse_duration;
use minder_proto::state::StateSet;

use crate::cli::Outcome;
use crate::context::Context;
use crate::follow::{self, Only, WaitOptions};

/// Options of `wait`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the next event that the caller was not told of and exits: a session
that enters a state that is waited for, or a message. Where it left off is
kept, so that a loop of waits loses nothing. What else is seen goes to
standard error.

Exit 0 an event, 1 the time is up, 2 a session is gone, 4 it went to error
while --states asked for others (the event is printed).

Without SEL: every session but the caller, and the caller's own messages.
With SEL: those sessions alone.

SEL: minder help selectors.

Examples:
  minder wait
  minder wait api --states done && make deploy
  minder wait 'api-*' --each --timeout 1h
  minder wait api --or-already --json")]
pub struct WaitArgs {
    /// Which sessions
    #[arg(value_name = "SEL")]
    sessions: Vec<String>,
    /// The states waited for: a comma list, all, or actionable [default: actionable,turn-end]
    #[arg(long, value_name = "STATES")]
    states: Option<StateSet>,
    /// How long; 0 looks once
    #[arg(long, value_name = "D", default_value = "20m", value_parser = parse_duration)]
    timeout: Duration,
    /// Wait for moves of sessions alone, or for messages alone
    #[arg(long, value_name = "WHAT")]
    only: Option<OnlyArg>,
    /// Return a session that stands in such a state already, unless the caller was told
    #[arg(long)]
    or_already: bool,
    /// Start after this line of each session's timeline, wherever the caller left off
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Return when every session has had its event; a line each
    #[arg(long)]
    each: bool,
    /// Go on when a session is gone, until none is left
    #[arg(long)]
    keep_going: bool,
    /// Keep the position under this name, for a script in a person's shell
    #[arg(long, value_name = "N")]
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnlyArg {
    Sessions,
    Inbox,
}

/// Waits.
pub fn run(args: WaitArgs, context: &mut Context) -> Outcome {
    let options = WaitOptions {
        selectors: args.sessions,
        states: args.states,
        timeout: args.timeout,
        only: args.only.map(|only| match only {
            OnlyArg::Sessions => Only::Sessions,
            OnlyArg::Inbox => Only::Inbox,
        }),
        or_already: args.or_already,
        since: args.since,
        each: args.each,
        keep_going: args.keep_going,
        name: args.name,
    };
    let home = context.home()?.clone();
    let follower = context.follower(&home)?;
    follow::wait(&follower, &options, &mut context.printer)
}
