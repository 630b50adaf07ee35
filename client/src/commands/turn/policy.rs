//! `turn policy`: the windows of an adapter's turns, as they would be for a turn from this shell, and where each comes
//! from.

use clap::Args;
use clap::builder::PossibleValuesParser;
use minder_proto::error::exit;
use minder_proto::turn::policy::{self, ADAPTERS, Asked, Origin, Resolved};
use minder_proto::{config, layout};
use serde::Serialize;

use super::words::{exact, size};
use crate::cli::Outcome;
use crate::context::Context;
use crate::look::Look;

/// Options of `turn policy`.
#[derive(Args, Debug)]
#[command(after_help = "\
A variable that cannot be used is ignored, with a line on standard error.
Reads this shell's variables and the configuration; asks no daemon.

Example:
  minder turn policy codex")]
pub struct PolicyArgs {
    /// Of which adapter's turns
    #[arg(value_name = "ADAPTER", value_parser = PossibleValuesParser::new(ADAPTERS))]
    adapter: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    adapter: &'a str,
    policy: &'a policy::Policy,
    from: Vec<Row<'a>>,
    ends_by_ms: u64,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    /// Milliseconds, or bytes of output.
    value: u64,
    from: &'a Origin,
}

/// Shows.
pub fn run(args: &PolicyArgs, context: &mut Context) -> Outcome {
    let env = |name: &str| std::env::var(name).ok();
    let file = config::load(&layout::config_file()?, env)?;
    let resolved = policy::resolve(&args.adapter, Asked::default(), None, env, &file.turn);
    if context.printer.is_json() {
        let row =
            |(name, sourced): &(&'static str, policy::Sourced)| (*name, sourced.value, sourced.from.clone());
        let rows: Vec<_> = resolved.sources.iter().map(row).collect();
        let from = rows.iter().map(|(name, value, from)| Row { name, value: *value, from }).collect();
        let ends_by_ms = ends_by(&resolved);
        let shown = Shown {
            adapter: &args.adapter,
            policy: &resolved.policy,
            from,
            ends_by_ms,
            warnings: &resolved.warnings,
        };
        context.printer.object(&shown)?;
    } else {
        for line in lines(&resolved, context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    for warning in &resolved.warnings {
        context.printer.tell(warning);
    }
    Ok(exit::OK)
}

/// When a turn has ended whatever it does.
fn ends_by(resolved: &Resolved) -> u64 {
    resolved.policy.budget_ms.saturating_add(resolved.policy.backstop_ms)
}

fn lines(resolved: &Resolved, look: Look) -> Vec<String> {
    let value = |name: &str, value: u64| match name {
        "output kept" => size(value),
        "stall" | "stall in a tool" if value == 0 => "off".to_owned(),
        _ => exact(value),
    };
    let rows: Vec<(&str, String, String)> = resolved
        .sources
        .iter()
        .map(|(name, sourced)| (*name, value(name, sourced.value), sourced.from.to_string()))
        .collect();
    let width = |text: fn(&(&str, String, String)) -> usize, least: usize| {
        rows.iter().map(text).max().unwrap_or(0).max(least)
    };
    let (names, values) = (width(|r| r.0.len(), 4), width(|r| r.1.len(), 5));
    let mut lines = vec![look.faint(&format!("{:names$}  {:values$}  FROM", "NAME", "VALUE"))];
    lines.extend(rows.iter().map(|(name, value, from)| format!("{name:names$}  {value:values$}  {from}")));
    lines.push(format!(
        "a turn is asked to end at {}, and killed at {} whatever it does",
        exact(resolved.policy.budget_ms),
        exact(ends_by(resolved))
    ));
    lines
}
