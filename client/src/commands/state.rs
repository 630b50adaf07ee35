//! `session state`: declares a state, the caller's own where no session is named.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::event::NOTE_MAX;
use minder_proto::rpc::{Call, Declare, DeclareAnswer};
use minder_proto::state::State;
use uuid::Uuid;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::input::{TextOptions, note};
use crate::link::as_caller;
use crate::spool;

/// Options of `state`.
#[derive(Args, Debug)]
#[command(after_help = "\
States:
  asking         you cannot go on without an answer; the note is the question
  review         there is work that somebody should look at
  done           the task is finished and needs no look
  close-pending  all is settled; the session may be closed
  parked         something will wake you by itself: a message, a build
  working, idle, error, queued are said by hooks and by minder

Examples:
  minder state review --note 'PR 12 is up'
  minder state asking --note - <<'EOF'
  Which database: the new one, or the one that ana's job still reads?
  EOF")]
pub struct StateArgs {
    /// The state
    #[arg(value_name = "STATE")]
    state: String,
    /// The session [default: the caller]
    #[arg(value_name = "SEL")]
    session: Option<String>,
    /// What to say with it, at most 4 KiB; - reads standard input
    #[arg(long, value_name = "T|-")]
    note: Option<String>,
    #[command(flatten)]
    text: TextOptions,
    /// Only if the session stands in this state now (exit 3 otherwise)
    #[arg(long = "if", value_name = "STATE")]
    only_if: Option<State>,
}

/// Declares.
pub fn run(args: StateArgs, context: &mut Context) -> Outcome {
    let state = in_order(&args.state, args.session.as_deref())?;
    let declare = Declare {
        caller: as_caller(&context.caller),
        session: args.session,
        state,
        note: note(args.text.read(args.note.as_deref(), "the note", NOTE_MAX)?),
        only_if: args.only_if,
        key: Some(Uuid::now_v7().to_string()),
    };
    let mut link = match &declare.session {
        Some(_) => context.daemon()?,
        None => context.daemon_of_session()?.ok_or_else(no_session)?,
    };
    match link.call_keyed(&declare)? {
        Ok(answer) if context.printer.is_json() => context.printer.object(&answer)?,
        Ok(answer) => context.printer.line(line(&answer))?,
        // Whether a condition holds is known only to a daemon.
        Err(absent) if declare.only_if.is_some() => return Err(absent.error),
        Err(absent) => return spool::leave(context, Declare::METHOD, &declare, absent),
    }
    Ok(exit::OK)
}

fn no_session() -> CommandError {
    CommandError::usage("a person's shell is no session: name one").hint("minder ls")
}

/// The first word as a state; where the two words were given the wrong way round, the error shows the right one.
fn in_order(first: &str, second: Option<&str>) -> Result<State, CommandError> {
    let bad = match first.parse::<State>() {
        Ok(state) => return Ok(state),
        Err(bad) => CommandError::usage(bad.to_string()),
    };
    match second.filter(|word| word.parse::<State>().is_ok()) {
        Some(state) => {
            Err(CommandError::usage("the state comes first").hint(format!("minder state {state} {first}")))
        }
        None => Err(bad),
    }
}

fn line(answer: &DeclareAnswer) -> String {
    match answer.seq {
        Some(_) => format!("{} → {}", answer.from, answer.to),
        None => format!("nothing changed: {} already", answer.to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrong_order_is_answered_with_the_right_one() {
        assert_eq!(in_order("review", Some("api")), Ok(State::Review));
        let error = in_order("api", Some("review")).unwrap_err();
        assert_eq!((error.exit, error.hint.as_deref()), (64, Some("minder state review api")));
        let error = in_order("reviw", None).unwrap_err();
        assert!(error.exit == 64 && error.message.contains("no such state: \"reviw\""), "{error}");
    }

    #[test]
    fn a_declaration_shows_the_move_or_that_there_was_none() {
        let session = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        let moved = DeclareAnswer { session, from: State::Asking, to: State::Working, seq: Some(7) };
        assert_eq!(line(&moved), "asking → working");
        let stays = DeclareAnswer { from: State::Working, seq: None, ..moved };
        assert_eq!(line(&stays), "nothing changed: working already");
    }
}
