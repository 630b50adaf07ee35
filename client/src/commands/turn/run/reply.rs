//! What came of a turn, handed over: its output to the byte, the line of a failure, and the outcome to the daemon once
//! the output is written.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};

use minder_proto::error::Kind;
use minder_proto::rpc::{Settled, TurnAnswer, TurnDone, TurnFinish};
use minder_proto::text::one_line;
use minder_proto::turn::names::is_silent;
use minder_proto::turn::{Failure, Outcome as Word};
use minder_proto::whole;
use serde::Serialize;

use super::code;
use super::waiting::Ended;
use crate::cli::Outcome;
use crate::commands::turn::words::size;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::{Link, as_caller, failed};
use crate::rpc::{CallError, Unreachable};

/// How often the outcome is said again where the daemon went meanwhile.
const AGAIN: u32 = 4;
/// The adapter whose standard output, as it is, is the reply. What another one wrote there is a stream of its own.
const PLAIN: &str = "command";
/// Bytes of a reply that are looked at to tell a silence.
const SILENCE_MAX: u64 = 1024;

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    turn: &'a TurnAnswer,
    /// The reply as text.
    reply: &'a str,
    /// The end of standard error as text.
    errors: &'a str,
    exit: u8,
}

/// Hands over.
pub fn hand_over(ended: Ended, held: bool, mut link: Link, context: &mut Context) -> Outcome {
    let Ended { turn, said } = ended;
    let Some(settled) = &turn.settled else {
        return Err(CommandError::software("the daemon answered before the turn had ended"));
    };
    let exit = code::of(settled, said);
    let succeeded = settled.failure.is_none() && settled.outcome.is_none();
    let written = write(&turn, settled, exit, context).and_then(|silent| {
        context.printer.flush()?;
        Ok(silent)
    });
    let outcome = match &written {
        Ok(true) => Word::Silent,
        Ok(false) => Word::Delivered,
        Err(_) => Word::ReplyLost,
    };
    if succeeded && !(held && written.is_ok()) {
        finish(&turn, outcome, &mut link, context);
    }
    match written {
        // As a program that writes to nobody.
        Err(error) if error.silent => return Ok(code::unread()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    if succeeded && held && !context.printer.is_json() {
        let short = turn.turn.short();
        context.printer.tell(format!("turn {short} is held: minder turn finish {short} OUTCOME"));
    }
    tell(&turn, settled, exit, context);
    Ok(exit)
}

/// Writes the output; true if there was nothing to say.
fn write(
    turn: &TurnAnswer,
    settled: &Settled,
    exit: u8,
    context: &mut Context,
) -> Result<bool, CommandError> {
    if context.printer.is_json() {
        let reply = match &settled.text {
            Some(text) => text.clone(),
            None if turn.adapter == PLAIN => lossy(settled.stdout.as_deref())?,
            None => String::new(),
        };
        let errors = lossy(settled.stderr.as_deref())?;
        context.printer.object(&Shown { turn, reply: &reply, errors: &errors, exit })?;
        return Ok(is_silent(reply.as_bytes()));
    }
    let silent = match &settled.text {
        Some(text) => {
            if !text.is_empty() {
                context.printer.body(text)?;
            }
            is_silent(text.as_bytes())
        }
        None if turn.adapter == PLAIN => copy(settled, context)?,
        None => true,
    };
    if let Some(path) = &settled.stderr {
        match whole::read(path.as_ref()) {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => {
                // First what came first, as far as that can be known.
                context.printer.flush()?;
                context.printer.pass(&bytes);
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(CommandError::io(path, &e)),
        }
    }
    Ok(silent)
}

/// Copies the kept standard output; true if there was nothing to say.
fn copy(settled: &Settled, context: &mut Context) -> Result<bool, CommandError> {
    let Some(path) = settled.stdout.as_deref() else { return Ok(true) };
    let failed = |e: std::io::Error| CommandError::io(path, &e);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound && settled.failure.is_some() => return Ok(true),
        Err(e) => return Err(failed(e)),
    };
    let (mut first, mut length) = (Vec::new(), 0_u64);
    let mut some = vec![0; 64 * 1024];
    loop {
        let n = file.read(&mut some).map_err(failed)?;
        if n == 0 {
            break;
        }
        if length < SILENCE_MAX {
            first.extend_from_slice(&some[..n]);
        }
        length += n as u64;
        context.printer.writer().write_all(&some[..n]).map_err(|e| match e.kind() {
            ErrorKind::BrokenPipe => CommandError::nobody_reads(),
            _ => CommandError::io("standard output", &e),
        })?;
    }
    if length < settled.stdout_bytes {
        let (kept, all) = (size(length), size(settled.stdout_bytes));
        context.printer.flush()?;
        context
            .printer
            .tell(format!("standard output was {all}; the first {kept} were kept (turn.output_max)"));
    }
    Ok(length <= SILENCE_MAX && is_silent(&first))
}

fn lossy(path: Option<&str>) -> Result<String, CommandError> {
    let Some(path) = path else { return Ok(String::new()) };
    match whole::at_most(path.as_ref(), u64::MAX - 1) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(CommandError::io(path, &e)),
    }
}

/// Says what became of the reply. That it cannot be said is told, and changes nothing of what the turn was.
fn finish(turn: &TurnAnswer, outcome: Word, link: &mut Link, context: &Context) {
    let finish = TurnFinish {
        caller: as_caller(&context.caller),
        id: turn.turn.to_string(),
        outcome: outcome.as_str().to_owned(),
    };
    let mut left = AGAIN;
    let said: Result<TurnDone, CallError> = loop {
        match link.try_call(&finish) {
            Err(CallError::Unreachable(Unreachable::Lost)) if left > 0 => left -= 1,
            said => break said,
        }
    };
    match said {
        // It had been taken the first time, and the next daemon knows nothing of the turn any more.
        Err(CallError::Refused(fault)) if left < AGAIN && fault.kind == Kind::NotFound => {}
        Ok(done) if !done.counted && done.outcome != Some(outcome) => {
            let word = done.outcome.map_or("another outcome", Word::as_str);
            context.printer.tell(format!("turn {} had been finished: {word}", turn.turn.short()));
        }
        Ok(_) => {}
        Err(error) => {
            let why = failed(error);
            context.printer.tell(format!("the outcome of turn {} is not recorded: {why}", turn.turn.short()));
        }
    }
}

/// The line of a failure that its own words do not say, and what could not be killed.
fn tell(turn: &TurnAnswer, settled: &Settled, exit: u8, context: &Context) {
    // A program that ended with a code or by a signal has said why, or meant to say nothing.
    if let Some(failure) = settled.failure.filter(|f| *f != Failure::AdapterExit) {
        let killed = if settled.killed { " (killed)" } else { "" };
        let why = settled.why.as_deref().filter(|_| !speaks_for_itself(failure));
        let why = why.map_or_else(String::new, |why| format!(": {}", one_line(why)));
        let line = format!("turn failed: {failure}{killed}{why}");
        if context.printer.is_json() {
            let error = CommandError::new("turn_failed", exit, line);
            context.printer.fail(&error);
        } else {
            context.printer.tell(line);
        }
    }
    if settled.failure.is_none() && settled.outcome == Some(Word::ReplyLost) {
        let line = "the turn ended well, and its output was lost before this could write it";
        if context.printer.is_json() {
            context.printer.fail(&CommandError::new("reply_lost", exit, line));
        } else {
            context.printer.tell(line);
        }
    }
    if !settled.survivors.is_empty() {
        let list: Vec<String> =
            settled.survivors.iter().map(|s| format!("{} ({})", s.pid, one_line(&s.command))).collect();
        let short = turn.turn.short();
        context.printer.tell(format!("turn {short} could not kill: {}", list.join(", ")));
    }
}

/// Windows and cancels: what was said of them is what was asked for.
fn speaks_for_itself(failure: Failure) -> bool {
    matches!(failure, Failure::Stall | Failure::WallClock | Failure::AdapterTimeout | Failure::Cancelled)
}
