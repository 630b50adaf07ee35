//! `doctor`: what is not as it should be, each with the command that mends it. It works with the daemon down and starts
//! none.
//!
//! `gather` looks at the machine and the store, `facts` is what it saw, `checks` says what that means, `finding` is the
//! form of an answer. Used by `cli`.

use std::process::{Command, Stdio};

use clap::Args;
use minder_proto::error::exit;
use minder_proto::text::{first_line, one_line};
use serde::Serialize;

use crate::cli::Outcome;
use crate::context::Context;

mod checks;
mod facts;
mod finding;
mod gather;
#[cfg(test)]
mod samples;

use finding::{Finding, Level, Mend};

/// Options of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Looks at the daemon, its socket and lock, who starts it and what its PATH
leads to, the hooks of each harness, tmux, disk and clock, the store and who
may read it, the configuration, and sessions that cannot be reached. Nothing
is started or changed, but with --fix; no daemon is needed.

A line with -> says what mends the one above. --fix runs those that are one
command and need no root and no answer of yours, then looks again. Whether
hooks run that are there, one real turn shows: minder harness probe.

Exit 0 well, 1 something to mend.

Examples:
  minder doctor
  minder doctor --fix")]
pub struct DoctorArgs {
    /// Run what mends it, where that needs no root
    #[arg(long)]
    fix: bool,
}

/// A mend that was run.
#[derive(Debug, Serialize)]
struct Done {
    command: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    well: bool,
    findings: &'a [Finding],
    done: &'a [Done],
}

/// Looks, and mends.
pub fn run(args: &DoctorArgs, context: &mut Context) -> Outcome {
    let mut found = checks::all(&gather::gather(context)?);
    let mut done = Vec::new();
    if args.fix {
        for mend in fixes(&found) {
            let error = make(&mend).err();
            if !context.printer.is_json() {
                let said =
                    error.as_deref().map_or("done".to_owned(), |why| format!("failed: {}", one_line(why)));
                context.printer.line(format!("$ {}: {said}", mend.text))?;
            }
            done.push(Done { command: mend.text, error });
        }
        if !done.is_empty() {
            found = checks::all(&gather::gather(context)?);
        }
    }
    let well = found.iter().all(|finding| finding.level != Level::Wrong);
    if context.printer.is_json() {
        context.printer.object(&Report { well, findings: &found, done: &done })?;
    } else {
        for line in lines(&found, context.printer.look().columns) {
            context.printer.line(line)?;
        }
    }
    Ok(if well { exit::OK } else { exit::NO })
}

/// What `--fix` runs, each once.
fn fixes(found: &[Finding]) -> Vec<Mend> {
    let mut fixes: Vec<Mend> = Vec::new();
    let wrong = found.iter().filter(|finding| finding.level == Level::Wrong);
    for mend in wrong.filter_map(|finding| finding.mend.as_ref()).filter(|mend| mend.fix) {
        if !fixes.contains(mend) {
            fixes.push(mend.clone());
        }
    }
    fixes
}

/// Runs one.
fn make(mend: &Mend) -> Result<(), String> {
    let (program, words) = mend.argv.split_first().ok_or("it is no command")?;
    // This very program is meant, whatever it is called here.
    let own = (program == "minder").then(std::env::current_exe).transpose().map_err(|e| e.to_string())?;
    let mut command = own.map_or_else(|| Command::new(program), Command::new);
    let output = command.args(words).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(match first_line(&said) {
        "" => output.status.to_string(),
        line => line.to_owned(),
    })
}

fn lines(found: &[Finding], columns: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = found.iter().flat_map(|finding| finding.lines(columns)).collect();
    let wrong = found.iter().filter(|finding| finding.level == Level::Wrong).count();
    let fixes = fixes(found).len();
    lines.push(match (wrong, fixes) {
        (0, _) => "all is well".to_owned(),
        (wrong, 0) => format!("{wrong} to mend"),
        (wrong, fixes) => format!("{wrong} to mend; minder doctor --fix runs {fixes} of the commands"),
    });
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use minder_proto::VERSION;
    use minder_proto::text::width;

    use super::facts::{Hooks, There};
    use super::samples::{facts, harness, there};
    use super::*;

    fn shown(found: &[Finding]) -> String {
        lines(found, Some(80)).join("\n").replace(VERSION, "VERSION")
    }

    #[test]
    fn a_machine_on_which_all_is_well() {
        let found = checks::all(&facts());
        expect![[r"
            ok     daemon      minderd VERSION (pid 41211), up 3d
            ok     socket      /run/user/1000/minder/minder.sock
            ok     lock        held by process 41211
            ok     service     no systemd here; none needed: the first command or hook
                               starts the daemon
            ok     path        the daemon finds what this shell finds
            ok     hooks       codex: /h/hooks.json
            ok     tmux        tmux 3.3a
            ok     disk        50 GiB free
            ok     clock       is not behind the store
            ok     permissions the store is yours alone
            ok     config      /c/config.toml
            ok     store       /s
            ok     sessions    all can be reached
            all is well"]]
        .assert_eq(&shown(&found));
        assert!(fixes(&found).is_empty());
    }

    #[test]
    fn what_is_wrong_has_what_mends_it_below() {
        let mut facts = facts();
        facts.lock.named = Some(7);
        facts.modes.wide = 2;
        facts.modes.first_wide = Some("/s/sessions".into());
        facts.files.quarantined = vec!["queue.jsonl".into()];
        facts.harnesses = vec![harness("claude"), harness("codex")];
        facts.harnesses[0].hooks = Hooks::OnlyNotifies("/home/ana/.codex/config.toml".into());
        facts.harnesses[1].hooks = there();
        facts.harnesses[1].there = There::Nowhere;
        let found = checks::all(&facts);
        let text = shown(&found);
        expect![[r"
            ok     daemon      minderd VERSION (pid 41211), up 3d
            ok     socket      /run/user/1000/minder/minder.sock
            WRONG  lock        the daemon that answers is process 41211, and process 7 has
                               the store's lock
                               -> minder daemon restart
            ok     service     no systemd here; none needed: the first command or hook
                               starts the daemon
            WRONG  path        the daemon's PATH does not lead to codex (/usr/bin/codex is
                               it here)
                               -> minder daemon restart
            WRONG  hooks       claude: `notify` in /home/ana/.codex/config.toml tells of
                               ended turns alone, of no question and no permission
                               -> minder setup claude
            ok     hooks       codex: /h/hooks.json
            ok     tmux        tmux 3.3a
            ok     disk        50 GiB free
            ok     clock       is not behind the store
            WRONG  permissions others may use /s/sessions and 1 more
                               -> chmod -R go= /s
            ok     config      /c/config.toml
            ok     store       /s
            WRONG  quarantine  set aside as unreadable: queue.jsonl
                               -> /s/quarantine: the .why beside each says what it was;
                               remove what you do not need
            ok     sessions    all can be reached
            5 to mend; minder doctor --fix runs 2 of the commands"]]
        .assert_eq(&text);
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        // The restart mends two, and is run once.
        let fixes: Vec<_> = fixes(&found).into_iter().map(|mend| mend.text).collect();
        assert_eq!(fixes, ["minder daemon restart", "chmod -R go= /s"]);
    }

    #[test]
    fn a_mend_that_fails_says_why() {
        let mend = |argv: &[&str]| Finding::wrong("x", "y").fixed_by(argv).mend.unwrap();
        assert_eq!(make(&mend(&["true"])), Ok(()));
        assert!(make(&mend(&["sh", "-c", "echo no >&2; exit 3"])).unwrap_err().contains("no"));
        assert!(make(&mend(&["false"])).unwrap_err().contains("exit status: 1"));
        assert!(make(&mend(&["/nowhere/program"])).is_err());
    }
}
