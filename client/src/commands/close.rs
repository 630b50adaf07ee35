//! `session close`: the last line of a session; its watchers and the senders of what it was not given are told.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::event::NOTE_MAX;
use minder_proto::rpc::{Close, CloseAnswer};

use crate::cli::Outcome;
use crate::context::Context;
use crate::input::{TextOptions, note};
use crate::link::as_caller;

/// Options of `close`.
#[derive(Args, Debug)]
#[command(after_help = "\
What minder did not start is left running. The session's files lie in trash/
for store.trash_days (seven, if nobody set it otherwise).

SEL: minder help selectors.

Example:
  minder close api --note 'merged and deployed'")]
pub struct CloseArgs {
    /// The session
    #[arg(value_name = "SEL")]
    session: String,
    /// Why, or how it ended; - reads standard input
    #[arg(long, value_name = "T|-")]
    note: Option<String>,
    #[command(flatten)]
    text: TextOptions,
    /// Also take back what it sent and nobody was given yet
    #[arg(long)]
    recall: bool,
}

/// Closes.
pub fn run(args: CloseArgs, context: &mut Context) -> Outcome {
    let note = note(args.text.read(args.note.as_deref(), "the note", NOTE_MAX)?);
    let close =
        Close { caller: as_caller(&context.caller), session: args.session, note, recall: args.recall };
    let answer = context.daemon()?.call(&close)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for line in lines(&answer) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

fn lines(answer: &CloseAnswer) -> Vec<String> {
    let mut lines = vec![format!("{} ({}) closed", answer.label, answer.session.short())];
    let messages = |n| if n == 1 { "1 message".to_owned() } else { format!("{n} messages") };
    if answer.dead > 0 {
        lines.push(format!("{} for it not delivered; the senders are told", messages(answer.dead)));
    }
    if answer.recalled > 0 {
        lines.push(format!("{} of its own taken back", messages(answer.recalled)));
    }
    if let Some(pid) = answer.left_running {
        lines.push(format!("process {pid} runs on: minder did not start it"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_said() {
        let session = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        let plain = CloseAnswer { session, label: "api".into(), dead: 0, recalled: 0, left_running: None };
        assert_eq!(lines(&plain), ["api (5f1c2d4a) closed"]);
        let much = CloseAnswer { dead: 2, recalled: 1, left_running: Some(4121), ..plain };
        assert_eq!(
            lines(&much)[1..],
            [
                "2 messages for it not delivered; the senders are told",
                "1 message of its own taken back",
                "process 4121 runs on: minder did not start it"
            ]
        );
    }
}
