//! `minder hooks install|uninstall|status|diff HARNESS`: the parts of `setup`, for scripts.

pub mod args;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use minder_proto::error::exit;
use minder_proto::text;
use serde::Serialize;

use crate::hooks::change::{SandboxConfig, SandboxOffer};
use crate::hooks::ours::Standing;
use crate::hooks::pack::Body;
use crate::hooks::{Change, HooksError, Pack, Scope, Settings, Surroundings, pack};

/// Harnesses that minder will know and whose hooks this build cannot put in.
pub const NOT_BUILT: &[&str] = &["grok"];

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Put the hooks in, or bring them up to date.
    Install,
    /// Take them out.
    Uninstall,
    /// Say how it stands; exit 0 if they are in and nothing keeps them from running, else 1.
    Status,
    /// Show what `install` would change; exit 0 if nothing, else 1.
    Diff,
}

/// The command line of `hooks`.
#[derive(Debug, Clone)]
pub struct Options {
    /// What.
    pub action: Action,
    /// For which harness.
    pub harness: String,
    /// Where; default: the user's settings, and for `status` those of the project too.
    pub scope: Option<Scope>,
    /// Show, and write nothing.
    pub dry_run: bool,
    /// One JSON object instead of lines.
    pub json: bool,
    /// The output is a terminal: nothing of the file's text may act on it.
    pub terminal: bool,
}

/// Where the command's lines go.
pub struct Output<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// What is to be known besides.
    pub err: &'a mut dyn Write,
}

/// What became of one settings file.
#[derive(Debug, Serialize)]
struct Done<'a> {
    harness: &'static str,
    scope: Scope,
    path: &'a Path,
    result: &'static str,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// Runs the command for a minder at `program`.
pub fn run(
    options: &Options,
    surroundings: &Surroundings,
    program: &str,
    output: &mut Output<'_>,
) -> Result<u8, HooksError> {
    let pack = known(&options.harness)?;
    if options.action == Action::Status {
        return status(pack, options, surroundings, program, output);
    }
    let scope = options.scope.unwrap_or(Scope::User);
    let settings = Settings::read(surroundings, pack, scope)?;
    warn(&settings, output.err)?;
    let path = settings.path().to_owned();
    let dry_run = options.dry_run || options.action == Action::Diff;
    let (change, would, is, unchanged) = if options.action == Action::Uninstall {
        (settings.uninstall()?, "would be taken out", "taken out", "nothing of minder's in it")
    } else {
        for line in settings.standing(program)?.hindrances {
            writeln!(output.err, "minder: {}: {line}", show(&path))?;
        }
        (settings.install(program)?, "would be installed", "installed", "already installed")
    };
    let diff = change.as_ref().filter(|_| dry_run).map(Change::diff);
    let result = match change {
        None => unchanged,
        Some(_) if dry_run => would,
        Some(change) => {
            change.make()?;
            is
        }
    };
    let code = if options.action == Action::Diff && diff.is_some() { exit::NO } else { exit::OK };
    if options.json {
        print_json(output.out, &Done { harness: pack.name, scope, path: &path, result, dry_run, diff })?;
    } else if let Some(diff) = diff {
        print_diff(output.out, &diff, options.terminal)?;
    } else if options.action != Action::Diff {
        writeln!(output.out, "{} {}  {}: {result}", pack.name, scope.word(), show(&path))?;
    }
    if result == "installed" {
        say_what_is_left(pack, surroundings, output.err)?;
    }
    Ok(code)
}

/// What only a person can do after an installation.
fn say_what_is_left(
    pack: &'static Pack,
    surroundings: &Surroundings,
    err: &mut dyn Write,
) -> Result<(), HooksError> {
    if pack.reader.reviews.is_some() || matches!(pack.body, Body::Script(..)) {
        writeln!(err, "minder: {}", pack.then)?;
    }
    let Some(sandbox) = SandboxConfig::read(surroundings, pack)? else { return Ok(()) };
    let (path, lines) = (show(sandbox.path()), sandbox.lines());
    if matches!(sandbox.offer(), SandboxOffer::Given) {
        return Ok(());
    }
    writeln!(
        err,
        "minder: what tools say from inside {}'s sandbox gets through with this in {path}:",
        pack.title
    )?;
    for line in lines.lines() {
        writeln!(err, "    {}", text::one_line(line))?;
    }
    Ok(())
}

/// The pack of a harness; if there is none, why.
pub fn known(harness: &str) -> Result<&'static Pack, HooksError> {
    let there = pack::names();
    pack::of(harness).ok_or_else(|| {
        HooksError::Usage(if NOT_BUILT.contains(&harness) {
            format!("hooks for {harness} are not built yet; there are those for {there}")
        } else {
            format!("no harness is called {}; there are {there}", text::one_line(harness))
        })
    })
}

/// How one settings file stands.
#[derive(Debug, Serialize)]
pub(super) struct Seen {
    scope: Scope,
    pub(super) path: PathBuf,
    /// `absent`, `installed`, `outdated`.
    pub(super) state: &'static str,
    /// Programs that our commands run and that are not there.
    pub(super) missing_programs: Vec<String>,
    /// Events whose hooks the harness has not shown its user yet: it does not run them.
    pub(super) unreviewed: Vec<String>,
    /// The file in which the harness is told of an older way that knows ended turns alone, where nothing else is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) only_notifies: Option<PathBuf>,
    pub(super) standing: Standing,
}

impl Seen {
    /// Whether it runs.
    pub(super) fn is_well(&self) -> bool {
        let standing = &self.standing;
        standing.is_current()
            && standing.hindrances.is_empty()
            && self.missing_programs.is_empty()
            && self.unreviewed.is_empty()
    }
}

/// Looks at a harness's settings.
pub(super) fn look(
    pack: &'static Pack,
    surroundings: &Surroundings,
    program: &str,
    scope: Scope,
) -> Result<Seen, HooksError> {
    seen_in(&Settings::read(surroundings, pack, scope)?, surroundings, program, scope)
}

fn seen_in(
    settings: &Settings,
    surroundings: &Surroundings,
    program: &str,
    scope: Scope,
) -> Result<Seen, HooksError> {
    let standing = settings.standing(program)?;
    let missing_programs =
        standing.programs.iter().filter(|file| !Path::new(file).exists()).cloned().collect();
    let unreviewed = settings.unreviewed(surroundings)?;
    let only_notifies = if standing.is_absent() { settings.notifies(surroundings)? } else { None };
    let path = settings.path().to_owned();
    let state = state(&standing);
    Ok(Seen { scope, path, state, missing_programs, unreviewed, only_notifies, standing })
}

fn status(
    pack: &'static Pack,
    options: &Options,
    surroundings: &Surroundings,
    program: &str,
    output: &mut Output<'_>,
) -> Result<u8, HooksError> {
    let mut seen = Vec::new();
    let scopes = options.scope.map_or_else(|| vec![Scope::User, Scope::Project], |scope| vec![scope]);
    for scope in scopes {
        let settings = Settings::read(surroundings, pack, scope)?;
        // Nobody asked about the project's, and in the home folder it is the same file.
        let same = pack.file(surroundings, Scope::User) == settings.path();
        if options.scope.is_none() && scope == Scope::Project && (same || !settings.exists()) {
            continue;
        }
        warn(&settings, output.err)?;
        seen.push(seen_in(&settings, surroundings, program, scope)?);
    }
    // In one place is enough, and what is in a second place must be well too.
    let installed: Vec<_> = seen.iter().filter(|one| !one.standing.is_absent()).collect();
    let well = !installed.is_empty() && installed.iter().all(|one| one.is_well());
    if options.json {
        print_json(output.out, &serde_json::json!({ "harness": pack.name, "well": well, "scopes": seen }))?;
    } else {
        for one in &seen {
            print_seen(output.out, pack, one)?;
        }
    }
    Ok(if well { exit::OK } else { exit::NO })
}

/// What an older way to be told is worth.
pub(super) fn notifies_alone(config: &Path) -> String {
    format!("`notify` in {} tells of ended turns alone, of no question and no permission", show(config))
}

fn state(standing: &Standing) -> &'static str {
    if standing.is_absent() {
        "absent"
    } else if standing.is_current() {
        "installed"
    } else {
        "outdated"
    }
}

fn print_seen(out: &mut dyn Write, pack: &Pack, seen: &Seen) -> io::Result<()> {
    let Seen { scope, path, state, missing_programs, unreviewed, only_notifies, standing } = seen;
    writeln!(out, "{} {}  {}: {state}", pack.name, scope.word(), show(path))?;
    if let Some(config) = only_notifies {
        writeln!(out, "    {}", notifies_alone(config))?;
    }
    if *state == "absent" {
        return Ok(());
    }
    let events = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("    {what}: {}\n", text::one_line(&names.join(", "))),
    };
    let program = format!("    runs: {}\n", text::one_line(&standing.programs.join(", ")));
    let lines = [
        program,
        events("missing", &standing.missing),
        events("of another version or path", &standing.outdated),
        events("one too many", &standing.surplus),
        events("not there (the hooks do nothing)", missing_programs),
        events("not reviewed yet, so not run", unreviewed),
    ];
    out.write_all(lines.concat().as_bytes())?;
    for line in &standing.hindrances {
        writeln!(out, "    {}", text::one_line(line))?;
    }
    if *state == "outdated" {
        writeln!(
            out,
            "    minder hooks install {} --scope {} brings it up to date",
            pack.name,
            scope.word()
        )?;
    }
    Ok(())
}

/// Says what was wrong with a receipt.
pub(super) fn warn(settings: &Settings, err: &mut dyn Write) -> io::Result<()> {
    match settings.warning() {
        Some(line) => writeln!(err, "minder: {}", text::one_line(line)),
        None => Ok(()),
    }
}

/// A diff as it is, for `patch`; on a terminal with what could act on it escaped.
pub(super) fn print_diff(out: &mut dyn Write, diff: &str, terminal: bool) -> io::Result<()> {
    if terminal { out.write_all(text::block(diff).as_bytes()) } else { out.write_all(diff.as_bytes()) }
}

pub(super) fn print_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(value).map_err(io::Error::other)?;
    writeln!(out, "{line}")
}

/// A path on one line.
pub(super) fn show(path: &Path) -> String {
    text::one_line(&path.display().to_string())
}
