//! `session watch stream`: shows every event as it happens. It reads files only; the following itself is in
//! `follow`. The one thing it sends is a word to the sessions that it was given by name.

use std::time::Duration;

use clap::Args;
use minder_proto::caller::Caller;
use minder_proto::event::Class;
use minder_proto::layout::Home;
use minder_proto::rpc::{self, Call, Spooled};
use minder_proto::stamp::{Stamp, parse_duration};
use minder_proto::state::StateSet;
use uuid::Uuid;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::follow::{self, Announcement, Since, StreamOptions};
use crate::link::{Link, as_caller};
use crate::spool;

/// How long a running daemon may take over a word to a session: the stream waits for it.
const BRIEFLY: Duration = Duration::from_secs(1);

/// Options of `watch stream`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
One line an event, from now on, for ever: time, title, what. Without SEL:
every session. A session that is given by name gets one message that says who
follows it; it is shown with whatever it is given next and starts no turn.

SEL: minder help selectors.

Examples:
  minder watch stream
  minder watch stream api --since 1h --no-announce
  minder watch stream --states asking,error --name alarms --json")]
pub struct StreamArgs {
    /// Which sessions
    #[arg(value_name = "SEL")]
    sessions: Vec<String>,
    /// Only moves to these states: a comma list, all, or actionable
    #[arg(long, value_name = "STATES")]
    states: Option<StateSet>,
    /// Start after this line of each timeline, or so long ago (1h, 90s)
    #[arg(long, value_name = "SEQ|D", value_parser = since)]
    since: Option<Since>,
    /// Keep the position under this name, and go on there the next time
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// Tell the sessions nothing
    #[arg(long)]
    no_announce: bool,
}

impl StreamArgs {
    /// What `watch` means to a person.
    pub fn of(sessions: Vec<String>, states: Option<StateSet>) -> Self {
        Self { sessions, states, ..Self::default() }
    }
}

/// A bare number is a line; a duration has its unit.
fn since(text: &str) -> Result<Since, String> {
    match text.parse() {
        Ok(line) => Ok(Since::Line(line)),
        Err(_) => parse_duration(text).map(Since::Ago).map_err(|e| e.to_string()),
    }
}

/// Streams.
pub fn run(args: StreamArgs, context: &mut Context) -> Outcome {
    let options = StreamOptions {
        selectors: args.sessions,
        states: args.states,
        since: args.since,
        name: args.name,
        no_announce: args.no_announce,
    };
    let home = context.home()?.clone();
    let follower = context.follower(&home)?;
    let caller = context.caller.clone();
    let announce =
        |announcement: &Announcement| announce(announcement, &home, &caller).map_err(|e| e.message);
    follow::stream(&follower, &options, &announce, &mut context.printer)
}

/// Tells a session that it is followed, by the ordinary send; without a daemon it finds it when one starts.
fn announce(announcement: &Announcement, home: &Home, caller: &Caller) -> Result<(), CommandError> {
    let send = rpc::Send {
        caller: as_caller(caller),
        to: Some(announcement.target.to_string()),
        body: announcement.body.clone(),
        class: Class::WithNext,
        key: Some(announcement.key.clone()),
        ..rpc::Send::default()
    };
    match Link::running(home, BRIEFLY).call_keyed(&send)? {
        Ok(_) => Ok(()),
        Err(_absent) => {
            let params = serde_json::to_value(&send).map_err(|e| CommandError::software(e.to_string()))?;
            let spooled = Spooled { method: rpc::Send::METHOD.to_owned(), params, at: Stamp::now() };
            Ok(spool::put(home, Uuid::now_v7(), &spooled)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_a_line_and_a_duration_has_its_unit() {
        assert_eq!(since("17"), Ok(Since::Line(17)));
        assert_eq!(since("1h"), Ok(Since::Ago(Duration::from_secs(3_600))));
        assert_eq!(since("90s"), Ok(Since::Ago(Duration::from_secs(90))));
        assert!(since("yesterday").is_err());
    }
}
