//! `host status`.

use minder_proto::error::exit;
use minder_proto::host::episode::Stage;
use minder_proto::rpc::{HostStatus, HostStatusAnswer};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::one_line;

use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;

/// Shows; exit 1 where something is owed, or the host is off.
pub fn run(session: Option<String>, context: &mut Context) -> Outcome {
    let status = HostStatus { caller: as_caller(&context.caller), session };
    let answer = context.daemon()?.call(&status)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        for line in lines(&answer, Stamp::now()) {
            context.printer.line(line)?;
        }
    }
    let healthy = answer.enabled && answer.owed == 0 && answer.rows_broken == 0;
    Ok(if healthy { exit::OK } else { exit::NO })
}

fn lines(answer: &HostStatusAnswer, now: Stamp) -> Vec<String> {
    let age = |at: Stamp| short_age(at.age(now));
    let since = answer.since.map(|at| format!(" since {}", at.clock(false))).unwrap_or_default();
    let (on, owned) =
        (if answer.enabled { "on" } else { "off" }, if answer.owned { "owned" } else { "not owned" });
    let head = format!(
        "{} ({})  {}  {on}  {owned} by binding {}{since}",
        one_line(&answer.label),
        answer.session.short(),
        answer.harness.as_deref().unwrap_or("-"),
        answer.binding
    );
    let park = match (answer.parked, answer.working) {
        (true, false) => "a hook waits beside it",
        (true, true) => "a hook waits beside it, and a turn runs",
        (false, true) => "none: a turn runs",
        (false, false) => "none: nothing waits beside it",
    };
    let rows = answer.rows_free + answer.rows_primary;
    let mut queue = format!("{rows} rows: {} free, {} shown", answer.rows_free, answer.rows_primary);
    if let Some(at) = answer.oldest {
        queue.push_str(&format!("; oldest {}", age(at)));
    }
    match answer.due {
        Some(at) if at > now => queue.push_str(&format!("; next batch in {}", short_age(now.age(at)))),
        Some(_) => queue.push_str("; a batch waits for the primary to be idle"),
        None => {}
    }
    if answer.rows_broken > 0 {
        queue.push_str(&format!("; {} cannot be read", answer.rows_broken));
    }
    let stage = match answer.stage {
        Stage::Pending => "waits to be given",
        Stage::Handed => "given, and not known to be read",
        Stage::Seen => "read",
        Stage::Closed => "closed",
        Stage::Stuck => "given up",
    };
    let mut episode = match answer.generation {
        0 => "none yet".to_owned(),
        n => format!("generation {n} {stage}"),
    };
    if let Some(at) = answer.episode_since {
        episode.push_str(&format!(" since {}", at.clock(false)));
    }
    if answer.owed > 0 {
        episode.push_str(&format!("; {} not acknowledged", answer.owed));
    }
    if let Some(at) = answer.next_announce {
        episode.push_str(&format!("; told again at {}", at.clock(false)));
    }
    vec![head, format!("park      {park}"), format!("queue     {queue}"), format!("episode   {episode}")]
}
