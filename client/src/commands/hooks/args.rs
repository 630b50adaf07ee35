//! The command line of `hooks`.

use clap::{Args, Subcommand, ValueEnum};

use super::{Action, Options, Output};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::hooks::{Scope, Surroundings, command};

/// Options of `hooks`.
#[derive(Args, Debug)]
#[command(after_help = "\
The parts of minder setup, for scripts. What is put in is taken out again
without a trace.

Examples:
  minder hooks install claude --dry-run
  minder hooks status claude")]
pub struct HooksArgs {
    #[command(subcommand)]
    command: HooksCommand,
}

#[derive(Subcommand, Debug)]
enum HooksCommand {
    /// Put the hooks into the harness's settings, or bring them up to date
    Install(WriteArgs),
    /// Take the hooks out
    Uninstall(WriteArgs),
    /// Say how it stands: exit 0 if they are in and run, 1 otherwise
    Status(LookArgs),
    /// Show what install would change: exit 0 if nothing, 1 otherwise
    Diff(LookArgs),
}

#[derive(Args, Debug)]
struct LookArgs {
    /// The harness: claude, codex, opencode, pi, gemini, cursor
    #[arg(value_name = "HARNESS")]
    harness: String,
    /// Whose settings [default: the user's]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<ScopeWord>,
}

#[derive(Args, Debug)]
struct WriteArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeWord {
    /// All sessions of this user.
    User,
    /// Sessions in this folder.
    Project,
}

/// Does what was asked of the hooks.
pub fn run(args: HooksArgs, context: &mut Context) -> Outcome {
    let (action, look, dry_run) = match args.command {
        HooksCommand::Install(args) => (Action::Install, args.look, args.dry_run),
        HooksCommand::Uninstall(args) => (Action::Uninstall, args.look, args.dry_run),
        HooksCommand::Status(look) => (Action::Status, look, false),
        HooksCommand::Diff(look) => (Action::Diff, look, true),
    };
    let options = Options {
        action,
        harness: look.harness,
        scope: look.scope.map(|word| match word {
            ScopeWord::User => Scope::User,
            ScopeWord::Project => Scope::Project,
        }),
        dry_run,
        json: context.printer.is_json(),
        terminal: context.printer.look().terminal,
    };
    // What is not known here is wrong usage first, whatever else is wrong.
    super::known(&options.harness)?;
    let surroundings = Surroundings::from_env()?;
    let program = command::own_program()?;
    let mut err = context.printer.teller();
    let mut output = Output { out: &mut context.printer.writer(), err: &mut err };
    super::run(&options, &surroundings, &program, &mut output).map_err(CommandError::from)
}
