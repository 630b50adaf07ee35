//! `session watch cancel`: the caller is not told any more, nor of what already waits.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::{Cancelled, WatchCancel};
use minder_proto::text::named;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `watch cancel`.
#[derive(Args, Debug)]
#[command(after_help = "\
Notices that wait are taken back. A parent's watch of its child goes too and
does not come back.

Example:
  minder watch cancel api")]
pub struct CancelArgs {
    /// Which sessions
    #[arg(value_name = "SEL", required = true)]
    sessions: Vec<String>,
}

/// Cancels.
pub fn run(args: &CancelArgs, context: &mut Context) -> Outcome {
    let cancel = WatchCancel { caller: as_caller(&context.caller), sessions: args.sessions.join(",") };
    let mut link = context.daemon_of_session()?.ok_or_else(|| {
        CommandError::refused("this shell has no address, and so no watch")
            .hint("minder --as SEL watch cancel …")
    })?;
    let answer = link.call(&cancel)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for cancelled in &answer.cancelled {
            context.printer.line(line(cancelled))?;
        }
    }
    Ok(exit::OK)
}

fn line(cancelled: &Cancelled) -> String {
    let who = named(&cancelled.title, &cancelled.label, Some(&cancelled.session.short()));
    match (cancelled.was, cancelled.notices) {
        (false, _) => format!("{who} was not watched"),
        (true, 0) => format!("{who} is not watched any more"),
        (true, 1) => format!("{who} is not watched any more; 1 notice taken back"),
        (true, n) => format!("{who} is not watched any more; {n} notices taken back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_back_is_counted() {
        let session = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap();
        let of = |was, notices| {
            line(&Cancelled { session, label: "api".into(), title: "api worker".into(), was, notices })
        };
        assert_eq!(of(true, 2), "api worker (api, 5f1c2d4a) is not watched any more; 2 notices taken back");
        assert_eq!(of(false, 0), "api worker (api, 5f1c2d4a) was not watched");
    }
}
