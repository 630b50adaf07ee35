//! `session attach`: brings the pane of a session's harness to the front. Types nothing.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::Args;
use minder_proto::error::exit;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::text::one_line;
use serde::Serialize;

use crate::channel::tmux_sockets;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;

/// Options of `attach`.
#[derive(Args, Debug)]
#[command(after_help = "\
In that tmux server it switches to the pane, elsewhere it attaches this
terminal. With --json it says where the pane is and does no more. A session
that is in no pane: exit 3, with what is known of it.

SEL: minder help selectors.

Example:
  minder attach api")]
pub struct AttachArgs {
    /// The session
    #[arg(value_name = "SEL")]
    session: String,
}

/// Where a session's harness can be seen.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Seat {
    socket: String,
    pane: String,
}

/// Attaches.
pub fn run(args: &AttachArgs, context: &mut Context) -> Outcome {
    let home = context.home()?;
    let fleet = context.fleet_for(Some(&args.session))?;
    let caller = context.identity(&fleet)?.session();
    let record = fleet.one(home, &args.session, caller)?;
    let seat = seat(record).ok_or_else(|| CommandError::refused(nowhere(record)))?;
    if context.printer.is_json() {
        context.printer.object(&seat)?;
        return Ok(exit::OK);
    }
    let inside = tmux_sockets().0.is_some_and(|own| own == seat.socket);
    let mut tmux = Command::new("tmux");
    tmux.args([
        "-S",
        &seat.socket,
        if inside { "switch-client" } else { "attach-session" },
        "-t",
        &seat.pane,
    ]);
    if !inside {
        // A terminal of another server may show this one too.
        tmux.env_remove("TMUX");
    }
    context.printer.flush()?;
    Err(CommandError::unavailable(format!("tmux: {}", tmux.exec())))
}

/// Its own pane: the one that it is typed to, else the one that has its process's terminal.
fn seat(record: &SessionRecord) -> Option<Seat> {
    if let Channel::Tmux { socket, pane } = &record.channel {
        return Some(Seat { socket: socket.clone(), pane: pane.clone() });
    }
    let tty = record.process.as_ref().filter(|p| p.ended.is_none())?.tty.as_deref()?;
    let (own, usual) = tmux_sockets();
    own.into_iter().chain([usual]).find_map(|socket| {
        let listed = Command::new("tmux")
            .args(["-S", &socket, "list-panes", "-a", "-F", "#{pane_tty} #{pane_id}"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let pane = pane_of(&String::from_utf8_lossy(&listed.stdout), tty)?;
        Some(Seat { socket, pane })
    })
}

/// The pane that has a terminal.
fn pane_of(listed: &str, tty: &str) -> Option<String> {
    let panes = listed.lines().filter_map(|line| line.split_once(' '));
    let mut here = panes.filter(|(found, _)| found.strip_prefix("/dev/") == Some(tty));
    here.next().map(|(_, pane)| pane.to_owned())
}

/// What is known of a session that is in no pane.
fn nowhere(record: &SessionRecord) -> String {
    let mut known = Vec::new();
    match &record.process {
        Some(process) if process.ended.is_some() => known.push("its process has ended".to_owned()),
        Some(process) => {
            known.push(format!("pid {}", process.pid));
            known.extend(process.tty.as_ref().map(|tty| format!("terminal {}", one_line(tty))));
        }
        None => known.push("no process of it is known".to_owned()),
    }
    if let Some(binding) = record.live_binding().or(record.bindings.last()) {
        let resume = match binding.harness.as_str() {
            "claude" => Some("claude --resume"),
            "codex" => Some("codex resume"),
            _ => None,
        };
        known.push(match resume {
            Some(command) => format!("to resume it: {command} {}", one_line(&binding.id)),
            None => format!("{} {}", one_line(&binding.harness), one_line(&binding.id)),
        });
    }
    format!("{} is in no pane of tmux: {}", record.label, known.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fields: &serde_json::Value) -> SessionRecord {
        let mut record = serde_json::json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
            "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": "working",
            "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 2,
        });
        let fields = fields.as_object().unwrap().clone();
        record.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn the_pane_of_the_channel_is_its_own() {
        let channel = serde_json::json!({"channel": {"kind": "tmux", "socket": "/s", "pane": "%4"}});
        assert_eq!(seat(&record(&channel)), Some(Seat { socket: "/s".into(), pane: "%4".into() }));
        let listed = "/dev/pts/30 %1\n/dev/pts/3 %2\n/dev/pts/4 %3\n";
        assert_eq!(pane_of(listed, "pts/3"), Some("%2".to_owned()));
        assert_eq!(pane_of(listed, "pts/5"), None);
        assert_eq!(seat(&record(&serde_json::json!({}))), None);
    }

    #[test]
    fn of_a_session_in_no_pane_all_that_is_known_is_said() {
        let text = nowhere(&record(&serde_json::json!({
            "process": {"pid": 41, "start": 1, "boot": "b", "tty": "pts/3"},
            "bindings": [{"harness": "claude", "id": "c-1", "since": "2026-11-30T12:00:00Z", "why": "startup"}],
        })));
        let expected = "api is in no pane of tmux: pid 41; terminal pts/3; to resume it: claude --resume c-1";
        assert_eq!(text, expected);
        let text = nowhere(&record(&serde_json::json!({})));
        assert_eq!(text, "api is in no pane of tmux: no process of it is known");
    }
}
