//! `daemon status`: how the daemon is, in a block of plain lines. It never starts one.

use std::time::Duration;

use minder_proto::caller::Identity;
use minder_proto::error::exit;
use minder_proto::rpc::{Status, StatusAnswer};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::one_line;
use minder_proto::{PROTOCOL, VERSION};
use serde::Serialize;

use crate::cli::Outcome;
use crate::commands::inbox::for_you;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::{Link, as_caller, failed};
use crate::rpc::{CallError, Unreachable};

/// How long a daemon that is well may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Shown<'a> {
    well: bool,
    client: &'a str,
    #[serde(flatten)]
    status: &'a StatusAnswer,
}

/// Shows.
pub fn run(context: &mut Context) -> Outcome {
    let mut link = Link::of_any_version(context.home()?, PATIENCE);
    let status =
        link.try_call(&Status { caller: as_caller(&context.caller) }).map_err(|error| match error {
            CallError::Unreachable(Unreachable::NotRunning(_)) => {
                CommandError::unavailable("minderd is not running").hint("minder daemon start")
            }
            // An answer of another form: another version.
            CallError::Broken(_) => {
                let message = format!("the daemon's answer is not of this version ({VERSION})");
                CommandError::new("version", exit::VERSION, message).hint("minder daemon restart")
            }
            error => failed(error),
        })?;
    let wrong = wrong(&status);
    if context.printer.is_json() {
        context.printer.object(&Shown { well: wrong.is_empty(), client: VERSION, status: &status })?;
    } else {
        for line in lines(&status, Stamp::now()).into_iter().chain(wrong.iter().cloned()) {
            context.printer.line(line)?;
        }
    }
    Ok(if wrong.is_empty() { exit::OK } else { exit::NO })
}

fn lines(s: &StatusAnswer, now: Stamp) -> Vec<String> {
    let replayed = if s.replayed > 0 { format!(", {} commits replayed", s.replayed) } else { String::new() };
    let mut lines = vec![
        format!("minderd {} (pid {}), minder {VERSION}", one_line(&s.version), s.pid),
        format!(
            "up       {}, since {} {}",
            short_age(s.started.age(now)),
            s.started.day(),
            s.started.clock(false)
        ),
        format!("started  in {} ms{replayed}", s.start_ms),
        format!("store    {}", one_line(&s.store)),
        format!("socket   {}", one_line(&s.socket)),
        format!("sessions {}", s.sessions),
        format!("messages {} waiting, {} held, {} dead since the start", s.waiting, s.held, s.dead),
        format!("commits  {} in {} flushes, {} of journal", s.commits, s.flushes, size(s.journal_bytes)),
    ];
    if s.you == Identity::Operator
        && let Some(line) = for_you(s.operator)
    {
        lines.push(format!("inbox    {line}"));
    }
    lines
}

/// What is not well, a line each.
fn wrong(s: &StatusAnswer) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(why) = &s.read_only {
        wrong.push(format!("WRONG    nothing new is taken: {}", one_line(why)));
    }
    for why in &s.corrupt {
        wrong.push(format!("WRONG    {}", one_line(why)));
    }
    if s.protocol != PROTOCOL {
        wrong.push(format!(
            "WRONG    it speaks protocol {}, minder {PROTOCOL}: minder daemon restart",
            s.protocol
        ));
    }
    wrong
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} bytes"),
        10_240..10_485_760 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_block_of_plain_lines() {
        let started = Stamp::from_millis(1_796_040_000_000);
        let mut status = StatusAnswer {
            version: "0.1.0".into(),
            protocol: PROTOCOL,
            pid: 41_211,
            started,
            store: "/home/ana/.local/state/minder".into(),
            socket: "/run/user/1000/minder/minder.sock".into(),
            sessions: 4,
            corrupt: vec![],
            waiting: 3,
            held: 1,
            operator: 0,
            dead: 0,
            read_only: None,
            commits: 120,
            flushes: 80,
            journal_bytes: 12_345,
            start_ms: 3,
            replayed: 7,
            second_writers: vec![],
            you: Identity::Operator,
        };
        let text = lines(&status, Stamp::from_millis(1_796_040_000_000 + 3 * 86_400_000)).join("\n");
        let text = text.replace(&started.day(), "DAY").replace(&started.clock(false), "TIME");
        expect![[r"
            minderd 0.1.0 (pid 41211), minder 0.1.0
            up       3d, since DAY TIME
            started  in 3 ms, 7 commits replayed
            store    /home/ana/.local/state/minder
            socket   /run/user/1000/minder/minder.sock
            sessions 4
            messages 3 waiting, 1 held, 0 dead since the start
            commits  120 in 80 flushes, 12 KiB of journal"]]
        .assert_eq(&text);
        assert!(wrong(&status).is_empty());
        status.operator = 2;
        assert_eq!(lines(&status, started).last().unwrap(), "inbox    2 messages for you: minder inbox");
        status.you = Identity::Session { id: "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700".parse().unwrap() };
        assert!(lines(&status, started).iter().all(|line| !line.contains("for you")));
        status.read_only = Some("/home/ana/x: No space left on device".into());
        status.corrupt = vec!["sessions/5f…/session.json: bad".into()];
        status.protocol = PROTOCOL + 1;
        assert_eq!(wrong(&status).len(), 3);
    }
}
