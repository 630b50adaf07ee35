//! `turn report`: what the log of turns says, from its files alone: outcomes and failures, how long turns ran and were
//! silent, how near they came to their windows, and what they cost.

mod figures;
mod page;

use std::time::Duration;

use clap::Args;
use minder_proto::error::exit;
use minder_proto::stamp::{Stamp, parse_duration};
use minder_proto::text::one_line;
use minder_proto::turn::line;

use self::figures::Report;
use super::words::plural;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::turn_log;

/// Options of `turn report`.
#[derive(Args, Debug)]
#[command(after_help = "\
p50, p90 and p99 are the nearest rank: the least value that so many of a
hundred turns do not exceed. REACHED counts the turns that came to the window,
NEAREST is what the nearest of the others had left. Exit 1 where there is no
turn. Reads files only.

Examples:
  minder turn report --since 7d
  minder turn report --seat api --json")]
pub struct ReportArgs {
    /// Of this seat alone
    #[arg(long, value_name = "S")]
    seat: Option<String>,
    /// Of turns that ended this long ago at most
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    since: Option<Duration>,
}

/// Reports.
pub fn run(args: &ReportArgs, context: &mut Context) -> Outcome {
    let folder = context.home()?.turn_logs()?;
    let seat = args.seat.as_deref().map(line::seat);
    let found =
        turn_log::all(&folder, seat.as_deref()).map_err(|e| CommandError::io(folder.display(), &e))?;
    let since = args.since.map(|age| Stamp::now().minus(age));
    let report = Report::of(&found.lines, since, found.unreadable);
    for closed in &found.closed {
        context.printer.tell(one_line(closed));
    }
    if found.unreadable > 0 {
        let lines = plural(found.unreadable as u64, "line", "lines");
        context.printer.tell(format!("{lines} cannot be read and count for nothing"));
    }
    if report.turns == 0 {
        let whose = args.seat.as_deref().map_or_else(String::new, |seat| format!(" of {}", one_line(seat)));
        let when = if args.since.is_some() { " in that time" } else { "" };
        return Err(CommandError::no(format!("no turn{whose} has ended{when}")));
    }
    if context.printer.is_json() {
        context.printer.object(&report)?;
    } else {
        for line in page::lines(&report, context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}
