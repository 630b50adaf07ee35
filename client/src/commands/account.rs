//! `account list|release`: what holds the turns of headless sessions, and the word that they may go on.

use clap::{Args, Subcommand};
use minder_proto::error::exit;
use minder_proto::rpc::{AccountList, AccountListAnswer, AccountRelease};
use minder_proto::stamp::{Stamp, short_age};

use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Options of `account`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  minder account list
  minder account release claude")]
pub struct AccountArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// What holds accounts, and the circuits that failures opened
    List,
    /// Ends what holds an account or a session, and tries again
    Release {
        /// The account, or the label of a session
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Shows or ends.
pub fn run(args: &AccountArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        Verb::List => list(context),
        Verb::Release { name } => release(name, context),
    }
}

fn list(context: &mut Context) -> Outcome {
    let answer = context.daemon()?.call(&AccountList { caller: as_caller(&context.caller) })?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for line in lines(&answer, Stamp::now()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

fn lines(answer: &AccountListAnswer, now: Stamp) -> Vec<String> {
    let mut lines = Vec::new();
    for hold in &answer.holds {
        let why = hold.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!(
            "{}  {}, for {}{why}",
            hold.account,
            hold.reason(),
            short_age(hold.since.age(now))
        ));
    }
    for open in &answer.circuits {
        let (failures, class) = (open.circuit.failures, open.circuit.class);
        lines.push(format!(
            "{}  circuit of {}: {failures} failed ({class}), tried again in {}s",
            open.account, open.label, open.probe_s
        ));
    }
    if lines.is_empty() {
        lines.push("nothing is held".to_owned());
    }
    lines
}

fn release(name: &str, context: &mut Context) -> Outcome {
    let release = AccountRelease { caller: as_caller(&context.caller), account: name.to_owned() };
    let answer = context.daemon()?.call(&release)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        let n = answer.sessions.len();
        context.printer.line(format!("{name}: {n} session{} may go on", if n == 1 { "" } else { "s" }))?;
    }
    Ok(exit::OK)
}
