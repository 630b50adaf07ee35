//! A report as a page of at most 80 columns.

use minder_proto::stamp::Stamp;
use minder_proto::text::{fit, one_line};
use minder_proto::turn::Outcome;

use super::figures::{Adapter, Against, Report, Usage};
use crate::commands::turn::words::{count, exact, plural, rough};
use crate::look::Look;

/// Columns of an adapter's name.
const NAME: usize = 12;

/// The lines of the page.
pub fn lines(report: &Report, look: Look) -> Vec<String> {
    let mut lines = vec![head(report), String::new()];
    lines.push(look.faint("OUTCOME             TURNS"));
    for (outcome, n) in &report.outcomes {
        let share = share(*n, report.turns);
        lines.push(format!("{outcome:18}{n:>7}  {share:>4}"));
        if *outcome == Outcome::Failed {
            for (failure, failed) in &report.failures {
                let classes: Vec<String> = failed.classes.iter().map(|(c, n)| format!("{c} {n}")).collect();
                let line = format!("  {failure:16}{:>7}        {}", failed.turns, classes.join(", "));
                lines.push(line.trim_end().to_owned());
            }
        }
    }
    table(&mut lines, look, "RAN", "WALL CLOCK", &report.adapters, |a| a.duration);
    table(&mut lines, look, "SILENT", "STALL", &report.adapters, |a| a.silence);
    lines.extend(usage(report.usage));
    lines
}

fn head(report: &Report) -> String {
    let day = |stamp: Option<Stamp>| stamp.map(Stamp::day).unwrap_or_default();
    let (from, to) = (day(report.from), day(report.to));
    let when = if from == to { format!("on {from}") } else { format!("{from} to {to}") };
    let whose = match report.seats.as_slice() {
        [seat] => fit(&one_line(seat), 30).trim_end().to_owned(),
        seats => format!("{} seats", seats.len()),
    };
    format!("{} of {whose}, {when}", plural(report.turns as u64, "turn", "turns"))
}

/// A share in whole parts of a hundred; what is there is never 0, and what is not all never 100.
fn share(n: usize, all: usize) -> String {
    let percent = (n * 100 + all / 2) / all.max(1);
    let percent = if n == all { 100 } else { percent.clamp(1, 99) };
    format!("{percent}%")
}

fn table(
    lines: &mut Vec<String>,
    look: Look,
    name: &str,
    window: &str,
    adapters: &[Adapter],
    of: impl Fn(&Adapter) -> Against,
) {
    lines.push(String::new());
    lines.push(look.faint(&format!(
        "{name:NAME$}{:>6}{:>8}{:>8}{:>8}{:>8}{window:>12}{:>8}{:>9}",
        "TURNS", "P50", "P90", "P99", "LONGEST", "REACHED", "NEAREST"
    )));
    for adapter in adapters {
        let a = of(adapter);
        let reached = if a.window == 0 && a.reached == 0 { String::new() } else { a.reached.to_string() };
        let window = if a.window == 0 { "off".to_owned() } else { exact(a.window) };
        let nearest = a.nearest.map(rough).unwrap_or_default();
        let line = format!(
            "{:NAME$}{:>6}{:>8}{:>8}{:>8}{:>8}{:>12}{:>8}{:>9}",
            fit(&one_line(&adapter.name), NAME - 1),
            adapter.turns,
            rough(a.p50),
            rough(a.p90),
            rough(a.p99),
            rough(a.longest),
            fit(&window, 11).trim_end(),
            reached,
            nearest
        );
        lines.push(line.trim_end().to_owned());
    }
}

fn usage(usage: Usage) -> Vec<String> {
    let mut lines = Vec::new();
    if usage.with_cost > 0 {
        let of = plural(usage.with_cost as u64, "turn", "turns");
        lines.push(format!("cost    ${:.2} of {of}", usage.cost_usd));
    }
    if usage.with_tokens > 0 {
        let of = plural(usage.with_tokens as u64, "turn", "turns");
        let [input, output] = [usage.input_tokens, usage.output_tokens].map(count);
        let [read, written] = [usage.cache_read_tokens, usage.cache_write_tokens].map(count);
        lines
            .push(format!("tokens  {input} in, {output} out, cache {read} read, {written} written, of {of}"));
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}
