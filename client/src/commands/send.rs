//! `session send`: queues a message, says how far it got, and with `--wait` prints the answer of the turn that
//! it started.

use std::time::{Duration, Instant};

use clap::Args;
use minder_proto::error::exit;
use minder_proto::event::{BODY_MAX, Class, Receipt};
use minder_proto::rpc::{self, Call, ReceiptAnswer, SendAnswer, WaitVerdict};
use minder_proto::stamp::{parse_duration, short_age};
use uuid::Uuid;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::follow;
use crate::holds;
use crate::input::TextOptions;
use crate::link::{Link, as_caller, failed};
use crate::rpc::{CallError, Unreachable};
use crate::spool;

/// Options of `send`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
--wait prints the answer on standard output. Exit 0 answered, 1 not in time
(the message still waits), 3 somebody must answer a dialog first or nothing
wakes this session, 4 the turn failed.

SEL: minder help selectors.

Examples:
  minder send api - <<'EOF'
  The schema changed: `id` is text now. Please adapt.
  EOF
  minder send --reply-to 7be21c09 --body-file answer.md
  minder send api --wait - <<'EOF'
  Which tests fail on your branch?
  EOF")]
pub struct SendArgs {
    /// The session (or @operator), then the text; - reads standard input. With --reply-to the session may be
    /// left out
    #[arg(value_name = "SEL TEXT|-", num_args = 0..)]
    words: Vec<String>,
    #[command(flatten)]
    text: TextOptions,
    /// When it may enter: now, next-tool, turn-end, idle, with-next
    #[arg(long, value_name = "C", default_value = "now")]
    class: Class,
    /// The same key with the same text is the same message
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// The message that this answers: its id, or the end of it
    #[arg(long, value_name = "M")]
    reply_to: Option<String>,
    /// Wait until the turn that this message starts is over, and print its answer
    #[arg(long)]
    wait: bool,
    /// How long --wait waits
    #[arg(long, value_name = "D", requires = "wait", default_value = "20m", value_parser = parse_duration)]
    timeout: Duration,
}

/// Sends.
pub fn run(args: SendArgs, context: &mut Context) -> Outcome {
    let (to, literal) = split(&args.words, &args.text, args.reply_to.is_some())?;
    let body = args.text.read(literal.as_deref(), "the text", BODY_MAX)?.unwrap_or_default();
    if body.is_empty() {
        return Err(CommandError::usage("the text is empty"));
    }
    let own_key = args.key.is_none();
    let send = rpc::Send {
        caller: as_caller(&context.caller),
        to,
        body,
        class: args.class,
        // A key even where none was asked for: a daemon that ends in the middle queues nothing twice.
        key: Some(args.key.unwrap_or_else(|| Uuid::now_v7().to_string())),
        reply_to: args.reply_to,
        expires_s: None,
    };
    let mut link = context.daemon()?;
    let mut answer = match link.call_keyed(&send)? {
        Ok(answer) => answer,
        Err(absent) if args.wait => return Err(absent.error),
        Err(absent) => return spool::leave(context, rpc::Send::METHOD, &send, absent),
    };
    answer.duplicate &= !own_key;
    note_place(&answer, context);
    if args.wait {
        return wait(&answer, args.timeout, &mut link, context);
    }
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(line(&answer))?;
    }
    Ok(exit::OK)
}

/// A later wait for this session starts at this message. Where that cannot be kept it starts at the session's end,
/// as for any other.
fn note_place(sent: &SendAnswer, context: &Context) {
    if let (Some(target), Ok(home), Ok(who)) = (sent.to.session(), context.home(), context.who()) {
        let _ = follow::note_sent(home, &who, None, target, sent.seq);
    }
}

/// Whom to send to, and the text among the words.
fn split(
    words: &[String],
    text: &TextOptions,
    is_reply: bool,
) -> Result<(Option<String>, Option<String>), CommandError> {
    let no_text =
        || CommandError::usage("no text: give -, --body-file or an argument").hint("minder send --help");
    match words {
        [to, literal] => Ok((Some(to.clone()), Some(literal.clone()))),
        [to] if text.is_given() => Ok((Some(to.clone()), None)),
        [literal] if is_reply => Ok((None, Some(literal.clone()))),
        [literal] if literal == "-" => Err(CommandError::usage("whom to? the session comes before the text")),
        [_] => Err(no_text()),
        [] if is_reply && text.is_given() => Ok((None, None)),
        [] if is_reply => Err(no_text()),
        [] => Err(CommandError::usage("whom to? give a session and a text").hint("minder send --help")),
        _ => Err(CommandError::usage("the text is one argument: quote it, or give it by -")),
    }
}

/// `7be21c09 queued`; where it is held, why and what lifts it.
fn line(answer: &SendAnswer) -> String {
    let mut line =
        format!("{} {}", answer.id.short(), holds::receipt(answer.receipt, answer.reason.as_deref()));
    if let (Receipt::Held, Some(reason)) = (answer.receipt, &answer.reason) {
        line.push_str(&format!("  goes on with {}", holds::lifted_by(reason)));
    }
    if answer.duplicate {
        line.push_str("  (a repeat: this key was used before)");
    }
    line
}

/// Waits until the message is answered, and prints the answer.
fn wait(sent: &SendAnswer, timeout: Duration, link: &mut Link, context: &mut Context) -> Outcome {
    if !context.printer.is_json() {
        context.printer.tell(line(sent));
    }
    let deadline = Instant::now() + timeout;
    let ended = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let receipt = rpc::Receipt {
            caller: as_caller(&context.caller),
            id: sent.id.to_string(),
            wait_s: Some(left.as_millis().div_ceil(1_000) as u64),
        };
        match link.try_call(&receipt) {
            Ok(answer) => break answer,
            // The wait belongs to the message, not to the connection: a daemon that is restarted goes on with it.
            Err(CallError::Unreachable(Unreachable::Lost)) if !left.is_zero() => {}
            Err(error) => return Err(failed(error)),
        }
    };
    conclude(sent, &ended, timeout, context)
}

fn conclude(sent: &SendAnswer, ended: &ReceiptAnswer, timeout: Duration, context: &mut Context) -> Outcome {
    let short = ended.id.short();
    let receipt = holds::receipt(ended.receipt, ended.reason.as_deref());
    let failure = match ended.verdict {
        Some(WaitVerdict::Answered) => {
            if context.printer.is_json() {
                context.printer.object(ended)?;
            } else {
                // Who chose to say nothing said nothing, not even an empty line.
                if let Some(answer) = ended.answer.as_deref().filter(|a| !a.is_empty()) {
                    context.printer.body(answer)?;
                }
                context.printer.flush()?;
                context.printer.tell(format!("{short} {receipt}"));
            }
            return Ok(exit::OK);
        }
        Some(WaitVerdict::Timeout) | None => {
            CommandError::no(format!("{short} has no answer after {}; it is {receipt}", short_age(timeout)))
                .hint(format!("minder queue {short}"))
        }
        Some(WaitVerdict::Blocked) => {
            let lifted = ended.reason.as_deref().map_or("somebody's answer", holds::lifted_by);
            CommandError::refused(format!("{short} is {receipt}: it goes on with {lifted}"))
        }
        Some(WaitVerdict::Failed) => {
            // What is not settled is tried again: to send it once more would have it done twice.
            let rest = if ended.receipt.is_settled() {
                "no answer will come"
            } else {
                "the turn that it was given failed, and it is tried again"
            };
            let failed = CommandError::new("failed", exit::FAILED, format!("{short} is {receipt}: {rest}"));
            match sent.to.session() {
                Some(to) => failed.hint(format!("minder show {}", to.short())),
                None => failed,
            }
        }
    };
    Err(CommandError { session: sent.to.session(), ..failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str], is_reply: bool, stdin: bool) -> Result<(Option<String>, Option<String>), u8> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        split(&words, &TextOptions { stdin, body_file: None }, is_reply).map_err(|e| e.exit)
    }

    #[test]
    fn whom_and_what_are_told_apart() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(words(&["api", "-"], false, false), Ok((some("api"), some("-"))));
        assert_eq!(words(&["api"], false, true), Ok((some("api"), None)));
        assert_eq!(words(&["-"], true, false), Ok((None, some("-"))));
        assert_eq!(words(&["api", "hi"], true, false), Ok((some("api"), some("hi"))));
        assert_eq!(words(&[], true, true), Ok((None, None)));
        for (bad, is_reply) in [
            (&[][..], false),
            (&[], true),
            (&["api"], false),
            (&["-"], false),
            (&["api", "two", "words"], false),
        ] {
            assert_eq!(words(bad, is_reply, false), Err(64), "{bad:?}");
        }
    }

    #[test]
    fn a_held_message_says_why_and_what_lifts_it() {
        let id = "0199c2d4-90c3-7f0e-8a17-c2b67be21c09".parse().unwrap();
        let to = minder_proto::id::Party::Operator;
        let queued = SendAnswer { id, to, seq: 3, receipt: Receipt::Queued, reason: None, duplicate: false };
        assert_eq!(line(&queued), "7be21c09 queued");
        let held = SendAnswer { receipt: Receipt::Held, reason: Some("no-wake-path".into()), ..queued };
        assert_eq!(
            line(&held),
            "7be21c09 held(no-wake-path)  goes on with its next prompt, or minder inbox take in it: nothing wakes \
             this session by itself"
        );
    }
}
