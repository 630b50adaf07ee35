//! `daemon start`, `stop` and `restart`.

use std::time::Duration;

use minder_proto::error::exit;
use minder_proto::rpc::{Call, Status, Stop};
use serde::{Deserialize, Serialize};

use crate::autostart::{Starter, is_in_turn};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::{Link, unreachable};
use crate::process::Process;
use crate::rpc::{PATIENCE, Unreachable};
use crate::service;

/// How long a daemon that was told to stop may take: longer than it grants to calls that run.
const LEAVE: Duration = Duration::from_secs(20);
/// The same of one that ends its turns before: a grace, and what a ladder takes besides.
const LEAVE_WITH_TURNS: Duration = Duration::from_secs(120);

/// What these commands need of `daemon.status`; a daemon of any version says it.
#[derive(Deserialize, Serialize)]
struct Found {
    version: String,
    pid: u32,
}

#[derive(Serialize)]
struct Shown<'a> {
    running: bool,
    #[serde(flatten)]
    daemon: Option<&'a Found>,
    /// True if the command changed that.
    changed: bool,
}

/// Starts it, if it does not run.
pub fn start(context: &mut Context) -> Outcome {
    if let Some(found) = look(context)? {
        return tell(
            context,
            Some(&found),
            false,
            &format!("minderd {} runs already (pid {})", found.version, found.pid),
        );
    }
    refuse_in_turn()?;
    let found = bring_up(context)?;
    tell(context, Some(&found), true, &format!("minderd {} is running (pid {})", found.version, found.pid))
}

/// Stops it, if it runs; `now` also ends the turns that run.
pub fn stop(now: bool, context: &mut Context) -> Outcome {
    match bring_down(now, context)? {
        Some(found) => tell(context, None, true, &format!("minderd is stopped (pid {})", found.pid)),
        None => tell(context, None, false, "minderd is not running"),
    }
}

/// Stops and starts it.
pub fn restart(context: &mut Context) -> Outcome {
    refuse_in_turn()?;
    let old = match look(context)? {
        Some(found) if service::runs(found.pid) => {
            service::control("restart", &[service::UNIT])?;
            Some(found)
        }
        _ => bring_down(false, context)?,
    };
    let found = match look(context)? {
        Some(found) => found,
        None => bring_up(context)?,
    };
    let was = old.map_or_else(String::new, |old| format!(", it was pid {}", old.pid));
    tell(
        context,
        Some(&found),
        true,
        &format!("minderd {} is running (pid {}{was})", found.version, found.pid),
    )
}

/// A daemon that a turn starts would end with the turn.
fn refuse_in_turn() -> Result<(), CommandError> {
    if is_in_turn() {
        return Err(CommandError::refused(
            "this is a turn: it does not start the daemon, which would end with it",
        ));
    }
    Ok(())
}

fn tell(context: &mut Context, daemon: Option<&Found>, changed: bool, line: &str) -> Outcome {
    if context.printer.is_json() {
        context.printer.object(&Shown { running: daemon.is_some(), daemon, changed })?;
    } else {
        context.printer.line(minder_proto::text::one_line(line))?;
    }
    Ok(exit::OK)
}

/// The daemon that runs, if one does.
fn look(context: &Context) -> Result<Option<Found>, CommandError> {
    ask(&mut Link::of_any_version(context.home()?, PATIENCE))
}

fn ask(link: &mut Link) -> Result<Option<Found>, CommandError> {
    match link.call_method(Status::METHOD, &Status::default()) {
        Ok(found) => Ok(Some(found)),
        Err(crate::rpc::CallError::Unreachable(Unreachable::NotRunning(_))) => Ok(None),
        Err(error) => Err(crate::link::failed(error)),
    }
}

fn bring_up(context: &Context) -> Result<Found, CommandError> {
    if service::has_charge() {
        service::control("start", &[service::UNIT])?;
    } else {
        let started = Starter::from_env().and_then(|starter| starter.start());
        started.map_err(|e| unreachable(&Unreachable::Start(e)))?;
    }
    look(context)?.ok_or_else(|| {
        CommandError::unavailable("minderd was started and does not listen").hint("minder daemon logs")
    })
}

/// Ends the daemon and waits until it is gone, so that the next one finds the store free.
fn bring_down(now: bool, context: &Context) -> Result<Option<Found>, CommandError> {
    let mut link = Link::of_any_version(context.home()?, PATIENCE);
    let Some(found) = ask(&mut link)? else { return Ok(None) };
    if service::runs(found.pid) {
        if now {
            end(&found, true, &mut link)?;
        }
        // The socket too, or the next client would bring the daemon back.
        let units: &[&str] = if service::is_active(service::SOCKET_UNIT) {
            &[service::SOCKET_UNIT, service::UNIT]
        } else {
            &[service::UNIT]
        };
        service::control("stop", units)?;
        return Ok(Some(found));
    }
    end(&found, now, &mut link)?;
    Ok(Some(found))
}

/// Tells a daemon to end, and waits until it is gone.
fn end(found: &Found, now: bool, link: &mut Link) -> Result<(), CommandError> {
    // Held while it answers on this very connection: the number cannot be another's yet.
    let process = Process::open(found.pid);
    link.call_method::<serde_json::Value>(Stop::METHOD, &Stop { now }).map_err(crate::link::failed)?;
    let leave = if now { LEAVE_WITH_TURNS } else { LEAVE };
    if process.is_some_and(|p| !p.wait(leave)) {
        let message = format!("minderd (pid {}) was told to stop and is still there", found.pid);
        return Err(CommandError::unavailable(message).hint("minder daemon logs"));
    }
    Ok(())
}
