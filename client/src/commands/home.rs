//! `minder` alone: who you are and how the daemon is, over the list of sessions. Reads files; a daemon that runs
//! is asked, briefly, and none is started.

use std::time::Duration;

use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::rpc::{Status, StatusAnswer};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::{one_line, width};
use serde::Serialize;

use crate::cli::Outcome;
use crate::commands::ls::Listing;
use crate::context::Context;
use crate::fleet::Fleet;
use crate::link::{Link, as_caller};

/// How long a running daemon may take to say how it is.
const BRIEFLY: Duration = Duration::from_millis(300);

/// The whole of it, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    you: &'a Identity,
    /// `null` if none runs.
    daemon: Option<StatusAnswer>,
    #[serde(flatten)]
    listing: &'a Listing,
}

/// Shows.
pub fn run(context: &mut Context) -> Outcome {
    let mut listing = Listing::read(context, &[], false)?;
    let fleet = context.fleet()?;
    let (status, well) = ask(context)?;
    let you = match (&status, context.identity(&fleet)) {
        // The daemon asks the kernel; files know the variables only.
        (Some(status), _) if context.caller.acting_as.is_none() => status.you.clone(),
        (_, found) => found?,
    };
    if you != Identity::Operator {
        listing.for_you = None;
    }
    if context.printer.is_json() {
        context.printer.object(&Shown { you: &you, daemon: status, listing: &listing })?;
        return Ok(exit::OK);
    }
    let look = context.printer.look();
    let mut lines = listing.lines(look);
    let table = lines.iter().map(|l| width(&plain(l))).max().unwrap_or(0);
    let you = format!("you: {}", whom(context, &fleet, &you)?);
    lines.insert(0, apart(&you, &well, table.min(look.columns.unwrap_or(usize::MAX))));
    if listing.is_empty() {
        lines.push("minder setup: finds your harnesses, shows every change, asks, installs".to_owned());
    }
    for line in lines {
        context.printer.line(line)?;
    }
    for line in &listing.unreadable {
        context.printer.tell(one_line(line));
    }
    Ok(exit::OK)
}

/// What a running daemon says, and how it is in a few words.
fn ask(context: &Context) -> Result<(Option<StatusAnswer>, String), crate::fault::CommandError> {
    let mut link = Link::of_any_version(context.home()?, BRIEFLY);
    Ok(match link.call_or_absent(&Status { caller: as_caller(&context.caller) }) {
        Ok(Ok(status)) => {
            let well = well(&status, Stamp::now());
            (Some(status), well)
        }
        Ok(Err(_)) => (None, "minderd is not running".to_owned()),
        Err(error) => (None, format!("minderd: {error}")),
    })
}

fn well(status: &StatusAnswer, now: Stamp) -> String {
    let mut words =
        format!("minderd {}, up {}", one_line(&status.version), short_age(status.started.age(now)));
    if status.read_only.is_some() || !status.corrupt.is_empty() {
        words.push_str(", not well (minder daemon status)");
    }
    words
}

/// Whom minder takes the caller for.
fn whom(context: &Context, fleet: &Fleet, you: &Identity) -> Result<String, crate::fault::CommandError> {
    Ok(match you {
        Identity::Operator => format!("{}, a person's shell", one_line(&user())),
        Identity::Session { id } => {
            let state = fleet.get(*id).map_or_else(String::new, |r| format!(", {}", r.state));
            format!("{}{state}", fleet.named(context.home()?, *id))
        }
        Identity::Unregistered { harness, .. } => {
            format!("a conversation of {} that is not registered (minder new)", one_line(harness))
        }
    })
}

/// The person's name at this machine.
fn user() -> String {
    let named = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|u| u.name);
    std::env::var("USER").ok().filter(|u| !u.is_empty()).or_else(named).unwrap_or_else(|| "you".to_owned())
}

/// Two texts at the two ends of a line of this width; wider where they need it.
fn apart(left: &str, right: &str, columns: usize) -> String {
    let space = columns.saturating_sub(width(left) + width(right)).max(2);
    format!("{left}{}{right}", " ".repeat(space))
}

/// A line without its colours.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        rest = rest[at..].find('m').map_or("", |end| &rest[at + end + 1..]);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ends_of_the_first_line() {
        assert_eq!(apart("you: ana", "up 3d", 20), "you: ana       up 3d");
        assert_eq!(apart("you: ana", "up 3d", 4), "you: ana  up 3d");
        assert_eq!(plain("\x1b[1;33masking\x1b[0m  x"), "asking  x");
    }
}
