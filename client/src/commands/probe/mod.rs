//! `harness probe`: one real turn of a harness, in a folder and a store of its own, that shows which of its hooks run and
//! which channels deliver. The harness is the user's, with the user's settings and login; the store, and so every
//! session that comes of it, is thrown away.
//!
//! `scratch` is the folder, `act` is what is done in it, `verdict` says what it came to. Used by `harness`.

use std::path::PathBuf;

use clap::Args;
use minder_proto::error::exit;
use minder_proto::text::{fold, one_line};
use serde::Serialize;

use super::hooks::{Seen as Hooks, known, look, notifies_alone, show};
use crate::apart::{self, Ended};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::hooks::probe::{TIME_LIMIT, find, version};
use crate::hooks::{HooksError, Pack, Scope, Surroundings, command};
use crate::printer::ask;

mod act;
mod scratch;
mod verdict;

use act::Seen;
use scratch::Scratch;
use verdict::{Known, Row, Works};

/// Options of `harness probe`.
#[derive(Args, Debug)]
#[command(after_help = "\
Starts the harness once without a terminal, in a throw-away folder, with your
settings and login, and with one short prompt: that costs one turn of your
model. It asks first, or takes --yes. Its hooks speak to a daemon and a store
of their own, which are removed, as is the conversation. It takes at most five
minutes, and no process is left.

What runs in a terminal alone was not tried, and is said so.

Exit 0 all that was tried works, 1 something does not.

Example:
  minder harness probe claude")]
pub struct ProbeArgs {
    /// Which harness
    #[arg(value_name = "HARNESS")]
    harness: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Everything, for `--json`.
#[derive(Debug, Serialize)]
struct Report {
    harness: &'static str,
    program: PathBuf,
    version: Option<String>,
    /// The file of its hooks.
    hooks: PathBuf,
    /// Whether a turn was run.
    ran: bool,
    /// Whether all that was tried works.
    well: bool,
    rows: Vec<Row>,
    remarks: Vec<String>,
}

/// Probes.
pub fn run(args: &ProbeArgs, context: &mut Context) -> Outcome {
    let pack = known(&args.harness)?;
    let surroundings = Surroundings::from_env()?;
    let program = find(pack, &surroundings)
        .ok_or_else(|| HooksError::NotFound(format!("{} is not on PATH", pack.program.name)))?;
    let hooks = look(pack, &surroundings, &command::own_program()?, Scope::User)?;
    let known = known_of(&hooks);
    let mut seen = None;
    // Where none of its hooks is ours there is nothing to be proved, and nothing is spent.
    if !known.absent {
        may_spend(pack, args.yes, context)?;
        seen = Some(probe(pack, context)?);
    }
    let rows = verdict::rows(pack, &known, seen.as_ref());
    let report = Report {
        harness: pack.name,
        version: version(&program, TIME_LIMIT).ok(),
        program,
        hooks: hooks.path.clone(),
        ran: seen.is_some(),
        well: rows.iter().all(|row| row.works != Works::No),
        rows,
        remarks: remarks(pack, &hooks),
    };
    if context.printer.is_json() {
        context.printer.object(&report)?;
    } else {
        for line in lines(&report, context.printer.look().columns) {
            context.printer.line(line)?;
        }
    }
    Ok(if report.well { exit::OK } else { exit::NO })
}

/// Asks, where nobody said yes already.
fn may_spend(pack: &Pack, yes: bool, context: &Context) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    let cost =
        format!("this starts {} once, with one short prompt: it costs one turn of your model", pack.title);
    context.printer.tell(cost);
    match ask("Start it?").map_err(|e| CommandError::io("the terminal", &e))? {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::no("nothing was started")),
        None => Err(CommandError::usage("harness probe: nobody here to ask; run it again with --yes")),
    }
}

/// Does it, in a process of its own: an agent that probes is not taken for the one that is probed.
fn probe(pack: &'static Pack, context: &mut Context) -> Result<Seen, CommandError> {
    let scratch = Scratch::make()?;
    context.printer.flush()?;
    let work = |wanted: &apart::Wanted| {
        serde_json::to_string(&act::perform(&scratch, pack, wanted)).unwrap_or_default()
    };
    // Nobody is left to be told if that fails.
    let forsaken = || drop(scratch.clear());
    let ended = apart::run(work, forsaken).map_err(|e| CommandError::io("a process for the probe", &e))?;
    let cleared = scratch.clear();
    let seen: Seen = match ended {
        Ended::Said(said) => serde_json::from_str(&said)
            .map_err(|e| CommandError::software(format!("the probe's word: {e}")))?,
        Ended::Silent => return Err(CommandError::software("the probe's process is gone and said nothing")),
        Ended::Interrupted(signal) => {
            return Err(CommandError::new(
                "interrupted",
                signal.exit(),
                "the probe was broken off; nothing is left",
            ));
        }
    };
    if let Err(why) = cleared {
        context.printer.tell(format!("minder: the folder of the probe could not be removed: {why}"));
    }
    match &seen.trouble {
        Some(why) => Err(CommandError::unavailable(format!("the probe could not be made: {why}"))),
        None => Ok(seen),
    }
}

fn known_of(hooks: &Hooks) -> Known {
    let standing = &hooks.standing;
    let gone = hooks.missing_programs.first().map(|program| format!("{} is not there", one_line(program)));
    Known {
        absent: standing.is_absent(),
        missing: standing.missing.clone(),
        unreviewed: hooks.unreviewed.clone(),
        hindrance: standing.hindrances.first().cloned().or(gone),
    }
}

/// What the file itself has wrong, a line each.
fn remarks(pack: &Pack, hooks: &Hooks) -> Vec<String> {
    let mut remarks = Vec::new();
    let file = show(&hooks.path);
    if let Some(config) = &hooks.only_notifies {
        remarks.push(notifies_alone(config));
    }
    let standing = &hooks.standing;
    for name in &standing.surplus {
        remarks.push(if standing.missing.is_empty() {
            format!("{file}: one too many at `{}`", one_line(name))
        } else {
            format!("{file}: nothing of minder's belongs at `{}`", one_line(name))
        });
    }
    if hooks.standing.is_absent() {
        remarks.push(format!("minder setup {} puts its hooks in", pack.name));
    } else if !hooks.standing.is_current() {
        remarks.push(format!("minder hooks install {} brings its hooks up to date", pack.name));
    }
    remarks
}

/// Columns of the first two parts of a row.
const FIRST: usize = 26;
const SECOND: usize = 11;

fn lines(report: &Report, columns: Option<usize>) -> Vec<String> {
    let version = report.version.as_deref().unwrap_or("(version unknown)");
    let mut lines = vec![format!("{} {}  {}", report.harness, one_line(version), show(&report.program))];
    let row = |name: &str, works: &str, why: &str| {
        let line = format!("{name:<FIRST$}{works:<SECOND$}{why}");
        let line = columns.map_or_else(|| line.clone(), |columns| fold(&line, FIRST + SECOND, columns));
        line.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    lines.push(row("WHAT", "WORKS", "WHY"));
    for one in &report.rows {
        lines.push(row(&format!("{} {}", one.kind, one.name), one.works.word(), &one.why));
    }
    lines.extend(report.remarks.iter().cloned());
    let count = |works| report.rows.iter().filter(|row| row.works == works).count();
    let (yes, no) = (count(Works::Yes), count(Works::No));
    lines.push(match no {
        _ if !report.ran => "nothing was run, and nothing spent".to_owned(),
        0 => format!("all {yes} that were tried work"),
        no => format!("{no} of {} that were tried do not work", yes + no),
    });
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_report_as_people_see_it() {
        let row =
            |kind, name: &str, works, why: &str| Row { kind, name: name.into(), works, why: why.into() };
        let mut report = Report {
            harness: "codex",
            program: "/usr/bin/codex".into(),
            version: Some("0.171.0".into()),
            hooks: "/h/hooks.json".into(),
            ran: true,
            well: false,
            rows: vec![
                row("hook", "SessionStart", Works::Yes, ""),
                row("hook", "PermissionRequest", Works::NotTried, "only at a dialog, in a terminal"),
                row("hook", "Stop", Works::No, "not in the file"),
                row("channel", "hook", Works::No, "a message was handed, and nothing shows that it was read"),
            ],
            remarks: vec!["/h/hooks.json: nothing of minder's belongs at `Stopp`".into()],
        };
        expect![[r"
            codex 0.171.0  /usr/bin/codex
            WHAT                      WORKS      WHY
            hook SessionStart         works
            hook PermissionRequest    not tried  only at a dialog, in a terminal
            hook Stop                 no         not in the file
            channel hook              no         a message was handed, and nothing shows
                                                 that it was read
            /h/hooks.json: nothing of minder's belongs at `Stopp`
            2 of 3 that were tried do not work"]]
        .assert_eq(&lines(&report, Some(80)).join("\n"));
        report.rows.truncate(2);
        assert_eq!(lines(&report, None).last().unwrap(), "all 1 that were tried work");
    }
}
