//! `turn ls`: the turns that run or are held, from the daemon, and those that ended last, from the logs.

use clap::Args;
use minder_proto::error::exit;
use minder_proto::rpc::{TurnList, TurnRow};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::one_line;
use minder_proto::turn::line::Line;
use serde::Serialize;
use std::time::Duration;

use super::words::plural;
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;
use crate::look::Look;
use crate::table::{self, Column, STAYS};
use crate::turn_log;

/// Options of `turn ls`.
#[derive(Args, Debug)]
#[command(after_help = "\
AGE is the time since a turn began, or since it ended, SILENCE that since its
last progress, LEFT what is left of the window that is nearest. A turn that is
held waits for its turn finish; the STATE of one that ended is its outcome, or
what failed.")]
pub struct LsArgs {
    /// Only turns that have not ended
    #[arg(long)]
    running: bool,
}

/// Turns that ended, at most.
const ENDED: usize = 10;

#[derive(Serialize)]
struct Shown<'a> {
    turns: &'a [TurnRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a [Line]>,
}

/// Lists.
pub fn run(args: &LsArgs, context: &mut Context) -> Outcome {
    let turns = context.daemon()?.call(&TurnList { caller: as_caller(&context.caller) })?.turns;
    let ended = if args.running {
        Vec::new()
    } else {
        let folder = context.home()?.turn_logs()?;
        let failed = |e: std::io::Error| CommandError::io(folder.display(), &e);
        let lines = turn_log::newest(&folder, ENDED).map_err(failed)?;
        // One may have ended between the two looks.
        lines.into_iter().filter(|line| turns.iter().all(|row| row.turn != line.turn)).collect()
    };
    if context.printer.is_json() {
        let ended = (!args.running).then_some(ended.as_slice());
        context.printer.object(&Shown { turns: &turns, ended })?;
    } else {
        for line in lines(&turns, &ended, Stamp::now(), context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

/// What a row shows.
struct Row {
    turn: String,
    state: String,
    seat: String,
    adapter: String,
    age: String,
    silence: String,
    left: String,
    tools: String,
    pid: String,
}

fn lines(turns: &[TurnRow], ended: &[Line], now: Stamp, look: Look) -> Vec<String> {
    let mut rows: Vec<Row> = turns.iter().map(running).collect();
    rows.extend(ended.iter().rev().map(|line| over(line, now)));
    let count = match turns.len() {
        0 => "no turn runs".to_owned(),
        n => {
            let held = turns.iter().filter(|t| t.held).count();
            let held = if held > 0 { format!(", {held} held") } else { String::new() };
            format!("{} not ended{held}", plural(n as u64, "turn has", "turns have"))
        }
    };
    let count = if ended.is_empty() { count } else { format!("{count}; ended last: {}", ended.len()) };
    if rows.is_empty() {
        return vec![count];
    }
    let column = |head, stays, cell: fn(&Row) -> &String| {
        Column::new(head, stays, rows.iter().map(|row| cell(row).clone()))
    };
    let columns = vec![
        column("TURN", STAYS, |r| &r.turn),
        column("STATE", STAYS, |r| &r.state),
        column("SEAT", 9, |r| &r.seat).giving_way_before(),
        column("ADAPTER", 8, |r| &r.adapter).distinct(),
        column("AGE", STAYS, |r| &r.age),
        column("SILENCE", 7, |r| &r.silence).distinct(),
        column("LEFT", 6, |r| &r.left).distinct(),
        column("TOOLS", 5, |r| &r.tools).distinct(),
        column("PID", 4, |r| &r.pid).distinct(),
    ];
    let mut lines =
        table::lines(
            columns,
            look,
            |row, _, text| {
                if row < turns.len() { text.to_owned() } else { look.faint(text) }
            },
        );
    lines.push(count);
    lines
}

fn age(ms: u64) -> String {
    short_age(Duration::from_millis(ms))
}

fn running(row: &TurnRow) -> Row {
    let window =
        row.window.as_deref().map(|w| if w == "wall_clock" { "wall".to_owned() } else { one_line(w) });
    let left = row.left_ms.map(age).map(|left| match window {
        Some(window) => format!("{left} {window}"),
        None => left,
    });
    Row {
        turn: row.turn.short(),
        state: if row.held { "held" } else { "running" }.to_owned(),
        seat: one_line(&row.seat),
        adapter: one_line(&row.adapter),
        age: age(row.age_ms),
        silence: if row.held { String::new() } else { age(row.silence_ms) },
        left: left.unwrap_or_default(),
        tools: if row.tools > 0 { row.tools.to_string() } else { String::new() },
        pid: row.pid.filter(|_| !row.held).map_or_else(String::new, |pid| pid.to_string()),
    }
}

/// One that ended: its word, and since when it is over.
fn over(line: &Line, now: Stamp) -> Row {
    let state = line.failure.map_or_else(|| line.outcome.as_str(), |f| f.as_str());
    Row {
        turn: line.turn.short(),
        state: state.to_owned(),
        seat: one_line(&line.seat),
        adapter: one_line(&line.adapter),
        age: short_age(line.ts.age(now)),
        silence: String::new(),
        left: String::new(),
        tools: String::new(),
        pid: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use minder_proto::id::TurnId;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_turns_at_eighty_columns() {
        let now: Stamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let id = |n: u8| format!("0199c2d4-90c3-7f0e-8a17-c2b67be21c{n:02x}").parse::<TurnId>().unwrap();
        let row = |n: u8, more: serde_json::Value| -> TurnRow {
            let mut row = json!({"turn": id(n), "seat": "api", "adapter": "codex", "asked": now, "age_ms": 62_000,
                "silence_ms": 3_000, "tools": 0, "held": false, "adopted": 0});
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(row).unwrap()
        };
        let turns = [
            row(1, json!({"pid": 4711, "left_ms": 897_000, "window": "stall"})),
            row(
                2,
                json!({"seat": "reviewer-of-everything-that-was-written", "adapter": "claude", "pid": 4712,
                "tools": 2, "silence_ms": 62_000, "left_ms": 2_698_000, "window": "wall_clock"}),
            ),
            row(3, json!({"adapter": "command", "held": true, "left_ms": 540_000, "window": "finish"})),
        ];
        let look = Look { columns: Some(80), ..Look::default() };
        expect![[r#"
            TURN      STATE    SEAT                  ADAPTER  AGE  SILENCE  LEFT       TOOLS
            7be21c01  running  api                   codex    1m   3s       14m stall
            7be21c02  running  reviewer-of-everyth…  claude   1m   1m       44m wall   2
            7be21c03  held     api                   command  1m            9m finish
            3 turns have not ended, 1 held"#]]
        .assert_eq(&lines(&turns, &[], now, look).join("\n"));
        expect![["no turn runs"]].assert_eq(&lines(&[], &[], now, look).join("\n"));
    }
}
