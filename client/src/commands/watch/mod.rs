//! `session watch`: the durable relation between a session that is told and one that it is told of.

mod cancel;
mod list;
mod stream;

use clap::{Args, Subcommand};
use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::rpc::{Status, WatchAdd, Watched};
use minder_proto::state::StateSet;
use minder_proto::text::named;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `watch`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
The calling session gets every state but working that SEL declares as a
message, whether it is busy, idle or away, beginning with the one that
stands.

In a person's shell, on a terminal, this shows every event as it happens. A
session that is named there gets one message that says that you follow it;
watch stream --no-announce sends none. A shell that is neither has no
address: it is told which minder wait to run instead (exit 3).

SEL: minder help selectors.

Examples:
  minder watch api
  minder watch 'api-*' --states asking,review,error
  minder watch cancel api"
)]
pub struct WatchArgs {
    #[command(subcommand)]
    command: Option<WatchCommand>,
    /// Which sessions
    #[arg(value_name = "SEL")]
    sessions: Vec<String>,
    /// Which states are sent: a comma list, or all [default: every state but working]
    #[arg(long, value_name = "STATES")]
    states: Option<StateSet>,
}

#[derive(Subcommand, Debug)]
enum WatchCommand {
    /// List what the caller watches, or who watches a session
    List(list::ListArgs),
    /// Stop watching
    Cancel(cancel::CancelArgs),
    /// Show every event as it happens
    Stream(stream::StreamArgs),
}

/// Watches, lists or cancels.
pub fn run(args: WatchArgs, context: &mut Context) -> Outcome {
    match args.command {
        Some(WatchCommand::List(args)) => list::run(&args, context),
        Some(WatchCommand::Cancel(args)) => cancel::run(&args, context),
        Some(WatchCommand::Stream(args)) => stream::run(args, context),
        None => watch(&args.sessions, args.states, context),
    }
}

fn watch(sessions: &[String], states: Option<StateSet>, context: &mut Context) -> Outcome {
    if context.printer.look().terminal
        && context.who()? == Identity::Operator
        && context.caller.acting_as.is_none()
    {
        return stream::run(stream::StreamArgs::of(sessions.to_vec(), states), context);
    }
    if !is_session(context)? {
        return Err(no_address(&context.who()?, sessions, states));
    }
    if sessions.is_empty() {
        return Err(CommandError::usage("which session?").hint("minder watch SEL"));
    }
    let add = WatchAdd { caller: as_caller(&context.caller), sessions: sessions.join(","), states };
    let answer = context.daemon()?.call(&add)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for watched in &answer.watched {
            context.printer.line(line(watched))?;
        }
    }
    Ok(exit::OK)
}

/// Whether the caller is a session. Where the files do not say so, the daemon may know it by its ancestry.
fn is_session(context: &Context) -> Result<bool, CommandError> {
    let fleet = context.fleet_for(None)?;
    if let Identity::Session { .. } = context.identity(&fleet)? {
        return Ok(true);
    }
    let Some(mut link) = context.daemon_of_session()? else { return Ok(false) };
    let answer = link.call_or_absent(&Status { caller: as_caller(&context.caller) })?;
    Ok(answer.is_ok_and(|status| status.you.session().is_some()))
}

/// Nothing is written for a caller that no message could reach; it is told what does the same for it, and an agent
/// also how it gets an address.
fn no_address(caller: &Identity, sessions: &[String], states: Option<StateSet>) -> CommandError {
    let words = ["minder", "session", "wait"].map(str::to_owned);
    let mut wait = words.into_iter().chain(sessions.iter().map(|s| quoted(s))).collect::<Vec<_>>().join(" ");
    if let Some(states) = states {
        wait.push_str(&format!(" --states {states}"));
    }
    let why = "this shell has no address that a message could reach";
    let message = match caller {
        Identity::Unregistered { .. } => {
            "no message could reach this conversation before `minder new` has registered it; without that, run this \
             in the background"
                .to_owned()
        }
        _ if sessions.is_empty() => {
            format!("{why}; `minder watch stream` prints every event, and this returns the next one")
        }
        _ => format!("{why}; run this in the background"),
    };
    CommandError::refused(message).hint(wait)
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@._-:/,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn line(watched: &Watched) -> String {
    let how = if watched.already { "already watching" } else { "watching" };
    let who = named(&watched.title, &watched.label, Some(&watched.session.short()));
    format!("{how} {who}: {}", watched.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_without_an_address_is_told_the_exact_command() {
        let words = ["api-*".to_owned(), "web".to_owned()];
        let error = no_address(&Identity::Operator, &words, Some("done".parse().unwrap()));
        assert_eq!(error.exit, 3);
        assert!(!error.message.contains("minder new"), "{error}");
        assert_eq!(error.hint.unwrap(), "minder session wait 'api-*' web --states done");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn who_names_nobody_is_not_led_back_to_the_same_command() {
        let error = no_address(&Identity::Operator, &[], None);
        assert!(error.message.contains("`minder watch stream`"), "{error}");
        assert_eq!(error.hint.unwrap(), "minder session wait");
    }

    #[test]
    fn an_agent_without_an_address_is_told_how_it_gets_one() {
        let agent = Identity::Unregistered { harness: "claude".into(), harness_id: "x".into() };
        let error = no_address(&agent, &["api".to_owned()], None);
        assert!(error.message.contains("`minder new`"), "{error}");
        assert_eq!(error.hint.unwrap(), "minder session wait api");
    }
}
