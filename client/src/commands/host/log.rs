//! `host log`: what a host did, from its file.

use std::time::Duration;

use clap::Args;
use minder_proto::error::exit;
use minder_proto::host::ledger::Line;
use minder_proto::rpc::HostStatus;
use minder_proto::stamp::{Stamp, parse_duration};
use minder_proto::text::one_line;
use minder_proto::whole;
use serde_json::Value;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `host log`.
#[derive(Args, Debug)]
#[command(after_help = "\
The newest 400 to 600 events are kept. No text of a message is among them.")]
pub struct LogArgs {
    /// The primary [default: this session, or the only host there is]
    #[arg(value_name = "SEL")]
    session: Option<String>,
    /// What happened this long ago at most
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    since: Option<Duration>,
}

/// Shows.
pub fn run(args: &LogArgs, context: &mut Context) -> Outcome {
    let status = HostStatus { caller: as_caller(&context.caller), session: args.session.clone() };
    let id = context.daemon()?.call(&status)?.session;
    let file = context.home()?.host(id).join("log.jsonl");
    let oldest = args.since.map(|age| Stamp::now().minus(age));
    let mut found: Vec<(Line, String)> = Vec::new();
    let mut unreadable = 0;
    let read = whole::lines(&file, |bytes| match serde_json::from_slice::<Line>(bytes) {
        Ok(line) if oldest.is_none_or(|oldest| line.at >= oldest) => {
            found.push((line, String::from_utf8_lossy(bytes).into_owned()));
        }
        Ok(_) => {}
        Err(_) if bytes.is_empty() => {}
        Err(_) => unreadable += 1,
    });
    match read {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(CommandError::io(file.display(), &e));
        }
        _ => {}
    }
    for (line, text) in &found {
        let shown = if context.printer.is_json() { text.clone() } else { words(line, text) };
        context.printer.line(shown)?;
    }
    if unreadable > 0 {
        context.printer.tell(format!("{unreadable} lines cannot be read"));
    }
    Ok(exit::OK)
}

/// `16:42:01 handback rows=3,4 generation=2`.
fn words(line: &Line, text: &str) -> String {
    let mut out = line.at.clock(false);
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { return out };
    if let Some(Value::String(event)) = fields.get("ev") {
        out.push_str(&format!(" {event}"));
    }
    for (name, value) in fields.iter().filter(|(name, _)| !matches!(name.as_str(), "at" | "ev")) {
        out.push_str(&format!(" {name}={}", value_of(value)));
    }
    out
}

fn value_of(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(' ') => format!("\"{}\"", one_line(text)),
        Value::String(text) => one_line(text),
        Value::Array(list) => list.iter().map(value_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
