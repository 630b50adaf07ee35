//! `turn show`: one turn. A finished one is its line in the log, from files alone; of another the daemon knows.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::{TurnAnswer, TurnGet, TurnList, TurnRow};
use minder_proto::stamp::Stamp;
use minder_proto::text::one_line;
use minder_proto::turn::line::{Line, Usage};
use minder_proto::turn::{Class, Failure, Source};
use serde::Serialize;

use super::which;
use super::words::{count, exact, plural, rough};
use crate::cli::Outcome;
use crate::context::Context;
use crate::link::as_caller;
use crate::look::Look;

/// Options of `turn show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The turn: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a TurnAnswer>,
    /// How it stands, as `turn ls` has it, while it runs or is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<&'a TurnRow>,
    /// The folder with its output, while it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Shows.
pub fn run(args: &ShowArgs, context: &mut Context) -> Outcome {
    let home = context.home()?.clone();
    let found = which::one(&home, &args.id)?;
    let folder = home.turn(found.id).display().to_string();
    let look = context.printer.look();
    let (answer, row);
    let (shown, lines) = if let Some(line) = &found.line {
        let kept = found.kept.then_some(folder);
        let lines = finished(line, kept.as_deref(), look);
        (Shown { line: Some(line), turn: None, now: None, kept }, lines)
    } else {
        let get = TurnGet { caller: as_caller(&context.caller), id: found.id.to_string(), wait: false };
        let mut daemon = context.daemon()?;
        answer = daemon.call(&get)?;
        let rows = daemon.call(&TurnList { caller: as_caller(&context.caller) })?.turns;
        row = rows.into_iter().find(|row| row.turn == answer.turn);
        let lines = running(&answer, row.as_ref(), Stamp::now(), look);
        (Shown { line: None, turn: Some(&answer), now: row.as_ref(), kept: Some(folder) }, lines)
    };
    if context.printer.is_json() {
        context.printer.object(&shown)?;
    } else {
        for line in lines {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

/// Named values, one a line.
struct Page {
    lines: Vec<String>,
    look: Look,
}

impl Page {
    fn field(&mut self, name: &str, value: impl AsRef<str>) {
        self.lines.push(format!("{}  {}", self.look.faint(&format!("{name:<9}")), one_line(value.as_ref())));
    }
}

fn finished(line: &Line, kept: Option<&str>, look: Look) -> Vec<String> {
    let mut page = Page { lines: Vec::new(), look };
    page.field("turn", line.turn.to_string());
    page.field("outcome", outcome(line));
    page.field("seat", &line.seat);
    page.field("adapter", &line.adapter);
    if let Some(session) = line.session {
        page.field("session", session.to_string());
    }
    if let Some(word) = &line.event_type {
        page.field("event", word);
    }
    let suspended = match line.suspended_ms {
        0 => String::new(),
        ms => format!(", suspended {}", rough(ms)),
    };
    let started = format!("{} {}", line.turn_start.day(), line.turn_start.clock(false));
    page.field("ran", format!("{}, since {started}{suspended}", rough(line.duration_ms)));
    page.field("process", process(line));
    let first = line.first_output_ms.map_or("none".to_owned(), |ms| format!("first after {}", rough(ms)));
    let events = if line.events > 0 {
        format!(", {}", plural(line.events, "event of progress", "events of progress"))
    } else {
        String::new()
    };
    let tools = if line.tool_calls > 0 {
        format!(", {}", plural(line.tool_calls, "tool call", "tool calls"))
    } else {
        String::new()
    };
    page.field("output", format!("{}, {first}{events}{tools}", plural(line.output_bytes, "byte", "bytes")));
    let stall = if line.stall_ms == 0 { "off".to_owned() } else { exact(line.stall_ms) };
    page.field("silent", format!("{} at the longest; stall window {stall}", rough(line.longest_silence_ms)));
    let (wall, grace) = (exact(line.timeout_ms), exact(line.cancel_grace_ms));
    page.field("windows", format!("wall clock {wall}, cancel grace {grace}"));
    if line.killed_processes > 0 || line.survivors > 0 {
        let killed = plural(u64::from(line.killed_processes), "process", "processes");
        page.field(
            "tree",
            format!(
                "{killed} killed, {} of them after the first had ended; {} alive",
                line.left_behind, line.survivors
            ),
        );
    }
    let memory = line.max_rss_kb.div_ceil(1024);
    page.field("used", format!("{} of CPU, {memory} MiB at most", rough(line.cpu_ms)));
    if let Some(usage) = usage(line.usage) {
        page.field("model", usage);
    }
    if line.adopted > 0 {
        page.field(
            "adopted",
            plural(u64::from(line.adopted), "restart of the daemon", "restarts of the daemon"),
        );
    }
    if let Some(kept) = kept {
        page.field("kept", kept);
    }
    page.lines
}

/// `failed: stall (supervisor, runtime), cancelled, killed`
fn outcome(line: &Line) -> String {
    let mut text = line.outcome.to_string();
    if let Some(failure) = line.failure {
        let words = [line.failure_source.map(Source::as_str), line.failure_class.map(Class::as_str)];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        text.push_str(&format!(": {failure} ({})", words.join(", ")));
    }
    let stalled = line.stalled && line.failure != Some(Failure::Stall);
    for (said, word) in [
        (stalled, "stalled meanwhile"),
        (line.cancelled, "cancelled"),
        (line.killed, "killed"),
        (line.late, "answered late"),
    ] {
        if said {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    text
}

fn process(line: &Line) -> String {
    let Some(pid) = line.pid else { return "none was started".to_owned() };
    let end = match (&line.signal, line.exit_code) {
        (Some(signal), _) => format!("died of {}", signal.as_str()),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => "its end was not seen".to_owned(),
    };
    let attempts = if line.attempts > 1 { format!(", {} attempts", line.attempts) } else { String::new() };
    format!("{pid}, {end}{attempts}")
}

/// What the model's side counted.
fn usage(usage: Usage) -> Option<String> {
    let mut parts = Vec::new();
    for (tokens, what) in [
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "read from a cache"),
        (usage.cache_write_tokens, "written to one"),
    ] {
        parts.extend(tokens.map(|n| format!("{} {what}", count(n))));
    }
    let tokens = (!parts.is_empty()).then(|| format!("tokens {}", parts.join(", ")));
    let cost = usage.cost_usd.map(|usd| format!("${usd:.4}"));
    let all: Vec<String> = tokens.into_iter().chain(cost).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn running(turn: &TurnAnswer, row: Option<&TurnRow>, now: Stamp, look: Look) -> Vec<String> {
    let mut page = Page { lines: Vec::new(), look };
    let age = rough(u64::try_from(turn.asked.age(now).as_millis()).unwrap_or(u64::MAX));
    page.field("turn", turn.turn.to_string());
    let state = match &turn.settled {
        None => format!("running, asked for {age} ago"),
        Some(settled) => match (settled.outcome, settled.failure) {
            (_, Some(failure)) => format!("failed: {failure}"),
            (Some(outcome), None) => outcome.to_string(),
            (None, None) => format!("held for its outcome: minder turn finish {} OUTCOME", turn.turn.short()),
        },
    };
    page.field("state", state);
    page.field("seat", &turn.seat);
    page.field("adapter", &turn.adapter);
    if let Some(session) = turn.session {
        page.field("session", session.to_string());
    }
    page.field("asked", format!("{} {}", turn.asked.day(), turn.asked.clock(false)));
    if let Some(row) = row {
        page.field("process", row.pid.map_or_else(|| "none yet".to_owned(), |pid| pid.to_string()));
        let tools = match row.tools {
            0 => String::new(),
            n => format!(", {} open", plural(u64::from(n), "tool call", "tool calls")),
        };
        page.field("silent", format!("{}{tools}", rough(row.silence_ms)));
        if let (Some(left), Some(window)) = (row.left_ms, &row.window) {
            page.field("left", format!("{} ({})", rough(left), window.replace('_', " ")));
        }
    }
    let p = &turn.policy;
    let stall = if p.stall_ms == 0 { "off".to_owned() } else { exact(p.stall_ms) };
    let (wall, grace) = (exact(p.budget_ms.saturating_add(p.backstop_ms)), exact(p.grace_ms));
    page.field("windows", format!("wall clock {wall}, stall {stall}, cancel grace {grace}"));
    if let Some(settled) = &turn.settled {
        page.field("ran", rough(settled.duration_ms));
        if let Some(why) = &settled.why {
            page.field("why", why);
        }
        if let Some(usage) = usage(settled.usage) {
            page.field("model", usage);
        }
    }
    page.lines
}
