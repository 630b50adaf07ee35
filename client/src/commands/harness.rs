//! `harness ls`: which harnesses are here, in which version, how their hooks stand, and what works with each.
//! `harness probe` is in `probe/`.

use std::path::PathBuf;
use std::thread;

use clap::{Args, Subcommand};
use minder_proto::error::exit;
use minder_proto::text;
use serde::Serialize;

use super::hooks::{Seen, look};
use super::probe::{self, ProbeArgs};
use crate::cli::Outcome;
use crate::context::Context;
use crate::hooks::pack::{self, Works};
use crate::hooks::probe::{TIME_LIMIT, find, version};
use crate::hooks::{Pack, Scope, Surroundings, command};
use crate::look::Look;
use crate::table::{self, Column, STAYS};

/// Options of `harness`.
#[derive(Args, Debug)]
pub struct HarnessArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// The harnesses that are here: version, hooks, and what works with each
    #[command(after_help = LS_HELP)]
    Ls,
    /// Prove that its hooks run and its channels deliver, with one real turn
    Probe(ProbeArgs),
}

const LS_HELP: &str = "\
Each program is asked for its version, at most 5 s. IDLE, BUSY and DIALOG say
what becomes of a message to a session of it: wakes, it starts a turn; waits,
until somebody types there; next tool, next step, turn end, where it enters a
turn that runs; after, once the dialog is answered; ?, was never tried. Below
each stand the ways in that a session of it can have; see minder set.

HOOKS: dead, they are there and do not run (minder hooks status HARNESS says
why); broken, the file cannot be read; with --json each has its file.";

/// One harness.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    title: &'static str,
    /// Where its program is; nothing where it is not.
    program: Option<PathBuf>,
    version: Option<String>,
    /// Why there is no version.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
    /// Whether this very version was tried.
    tried: bool,
    hooks: Hooks,
    works: &'static Works,
}

#[derive(Debug, Serialize)]
struct Hooks {
    state: &'static str,
    path: PathBuf,
    /// Why it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Does what was asked.
pub fn run(args: &HarnessArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        Verb::Ls => ls(context),
        Verb::Probe(args) => probe::run(args, context),
    }
}

fn ls(context: &mut Context) -> Outcome {
    let surroundings = Surroundings::from_env()?;
    let program = command::own_program()?;
    let rows = rows(&surroundings, &program);
    if context.printer.is_json() {
        context.printer.object(&serde_json::json!({ "harnesses": rows }))?;
    } else {
        for line in lines(&rows, context.printer.look()) {
            context.printer.line(line)?;
        }
    }
    Ok(exit::OK)
}

/// All of them, each asked at the same time.
fn rows(surroundings: &Surroundings, program: &str) -> Vec<Row> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            pack::ALL.iter().map(|pack| scope.spawn(|| row(pack, surroundings, program))).collect();
        asked.into_iter().filter_map(|one| one.join().ok()).collect()
    })
}

fn row(pack: &'static Pack, surroundings: &Surroundings, minder: &str) -> Row {
    let program = find(pack, surroundings);
    let version = program.as_deref().map(|program| version(program, TIME_LIMIT));
    let (version, unknown) = match version {
        None => (None, None),
        Some(Ok(version)) => (Some(version), None),
        Some(Err(why)) => (None, Some(why)),
    };
    let tried = version.as_deref().is_some_and(|version| pack.works.tried.contains(&version));
    let path = pack.file(surroundings, Scope::User);
    let hooks = match look(pack, surroundings, minder, Scope::User) {
        Ok(seen) => Hooks { state: state(&seen), path, error: None },
        Err(error) => Hooks { state: "broken", path, error: Some(error.to_string()) },
    };
    Row { name: pack.name, title: pack.title, program, version, unknown, tried, hooks, works: &pack.works }
}

fn state(seen: &Seen) -> &'static str {
    match seen.state {
        "installed" if !seen.is_well() => "dead",
        state => state,
    }
}

fn lines(rows: &[Row], look: Look) -> Vec<String> {
    let (here, missing): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.program.is_some());
    let mut lines = Vec::new();
    if here.is_empty() {
        lines.push("no harness found".to_owned());
    } else {
        let column = |head, stays, cell: &dyn Fn(&Row) -> String| {
            Column::new(head, stays, here.iter().map(|row| text::one_line(&cell(row)))).distinct()
        };
        let columns = vec![
            column("HARNESS", STAYS, &|row| row.name.to_owned()),
            column("VERSION", STAYS, &|row| row.version.clone().unwrap_or_else(|| "?".to_owned())),
            column("HOOKS", STAYS, &|row| row.hooks.state.to_owned()),
            column("IDLE", 3, &|row| row.works.idle.to_owned()),
            column("BUSY", 2, &|row| row.works.busy.to_owned()),
            column("DIALOG", 1, &|row| row.works.dialog.to_owned()),
        ];
        let mut table = table::lines(columns, look, |_, _, cell| cell.to_owned()).into_iter();
        lines.extend(table.next());
        for (line, row) in table.zip(&here) {
            let ways = format!("  --channel {}", row.works.channels.join("|"));
            lines.push(line);
            lines.push(look.columns.map_or(ways.clone(), |columns| text::fit(&ways, columns)));
        }
    }
    for row in &here {
        lines.extend(remarks(row));
    }
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|row| row.name).collect();
        lines.push(format!("not found: {}", names.join(", ")));
    }
    lines
}

/// What the row has no room for.
fn remarks(row: &Row) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = &row.unknown {
        lines.push(format!("{}: its version is not known: {}", row.name, text::one_line(why)));
    }
    if let (Some(version), false) = (&row.version, row.tried) {
        let tried = match row.works.tried {
            [] => "nor was any other".to_owned(),
            tried => format!("{} was", tried.join(", ")),
        };
        lines.push(format!("{}: {} was not tried; {tried}", row.name, text::one_line(version)));
    }
    match row.hooks.state {
        "dead" | "broken" => {
            lines.push(format!("{0}: minder hooks status {0} says what is wrong", row.name));
        }
        "outdated" => {
            lines.push(format!("{0}: minder hooks install {0} brings its hooks up to date", row.name));
        }
        _ => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn of(name: &str, version: Option<&str>, state: &'static str) -> Row {
        let pack = pack::of(name).unwrap();
        Row {
            name: pack.name,
            title: pack.title,
            program: version.map(|_| "/usr/bin/x".into()),
            version: version.filter(|version| *version != "?").map(str::to_owned),
            unknown: version.filter(|version| *version == "?").map(|_| "did not answer in 5 s".to_owned()),
            tried: version.is_some_and(|version| pack.works.tried.contains(&version)),
            hooks: Hooks { state, path: "/f".into(), error: None },
            works: &pack.works,
        }
    }

    #[test]
    fn a_list_as_people_see_it() {
        let rows = [
            of("claude", Some("2.1.332"), "installed"),
            of("codex", Some("0.171.0"), "dead"),
            of("opencode", Some("1.20.0"), "outdated"),
            of("pi", Some("?"), "absent"),
            of("gemini", None, "absent"),
            of("cursor", Some("2026.1"), "installed"),
        ];
        let look = Look { columns: Some(80), ..Look::default() };
        expect![[r#"
            HARNESS   VERSION  HOOKS      IDLE   BUSY       DIALOG
            claude    2.1.332  installed  wakes  next tool  after
              --channel hook|headless|tmux
            codex     0.171.0  dead       wakes  next tool  after
              --channel hook|codex|headless|tmux
            opencode  1.20.0   outdated   wakes  next step  after
              --channel hook|opencode|headless
            pi        ?        absent     wakes  next step  has none
              --channel hook|headless
            cursor    2026.1   installed  ?      ?          ?
              --channel hook|headless
            codex: minder hooks status codex says what is wrong
            opencode: 1.20.0 was not tried; 1.18.33 was
            opencode: minder hooks install opencode brings its hooks up to date
            pi: its version is not known: did not answer in 5 s
            cursor: 2026.1 was not tried; nor was any other
            not found: gemini"#]]
        .assert_eq(&lines(&rows, look).join("\n"));
        let narrow = Look { columns: Some(40), ..Look::default() };
        assert!(lines(&rows[..2], narrow).iter().take(5).all(|line| text::width(line) <= 40));
    }

    #[test]
    fn nothing_here_is_said() {
        let lines = lines(&[of("claude", None, "absent")], Look::default());
        assert_eq!(lines, ["no harness found", "not found: claude"]);
    }
}
