//! `host drain`: what waits for the primary, on standard output; how to acknowledge it, on standard error. What was shown
//! beside the rows counts as shown once it is written, and not before.

use minder_proto::error::exit;
use minder_proto::rpc::{HostDrain, HostDrainAnswer, HostDrained};

use super::ack_command;
use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Shows.
pub fn run(session: Option<String>, context: &mut Context) -> Outcome {
    let caller = as_caller(&context.caller);
    let mut link = context.daemon()?;
    let answer = link.call(&HostDrain { caller: caller.clone(), session })?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for line in lines(&answer) {
            context.printer.line(line)?;
        }
    }
    context.printer.flush()?;
    if answer.through > 0 {
        context.printer.tell(ack_command(answer.through, answer.generation));
    }
    if !answer.notice_ids.is_empty() || !answer.unseen_lines.is_empty() || answer.broken_count > 0 {
        link.call(&HostDrained {
            caller,
            session: Some(answer.session.to_string()),
            notices: answer.notice_ids,
            unseen: answer.unseen_lines,
            broken: answer.broken_count,
        })?;
    }
    Ok(exit::OK)
}

fn lines(answer: &HostDrainAnswer) -> Vec<String> {
    let mut lines = answer.wakes.clone();
    for (head, items) in [
        ("ALSO", &answer.notices),
        ("OPEN QUESTIONS", &answer.questions),
        ("UNSEEN", &answer.unseen),
        ("UNREADABLE ROWS", &answer.broken),
    ] {
        if !items.is_empty() {
            lines.push(head.to_owned());
            lines.extend(items.iter().cloned());
        }
    }
    if let more @ 1.. = answer.broken_count.saturating_sub(answer.broken.len()) {
        lines.push(format!("and {more} more"));
    }
    if lines.is_empty() {
        lines.push("nothing waits".to_owned());
    }
    lines
}
