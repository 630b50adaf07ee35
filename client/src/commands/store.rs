//! `store path`, `store check`, `store repair` and `store compact`: where the store is, whether its files are whole, what
//! can be done about it, and how it gets smaller. The daemon's program checks and repairs, since only it knows the journal.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, Subcommand};
use minder_proto::error::exit;
use minder_proto::rpc::Compact;
use serde::Serialize;

use crate::autostart::{StartError, find_program};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `store`.
#[derive(Args, Debug)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand, Debug)]
enum StoreCommand {
    /// Print the folder of the store
    Path,
    /// Check the files of the store, and change nothing; with or without a daemon
    Check(CheckArgs),
    /// Set aside what cannot be read, and rebuild what can be; no daemon may run
    Repair(RepairArgs),
    /// Make the store as small as it can be without anything that counts
    #[command(after_help = COMPACT_HELP)]
    Compact,
}

const COMPACT_HELP: &str = "\
What the daemon does by itself, at once: rewrites ledgers without what is
settled, empties the journal, begins the feed anew, and takes away what is
older than store.trash_days and store.keep_days say.";

/// Options of `store check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints a line for each file with what is wrong, in the order of their paths;
a line that begins with note: is worth knowing and no damage.

Exit 0: nothing is damaged; 65: something is; 2: no store there; 74:
something cannot be read; 76: a newer minder wrote it.")]
struct CheckArgs {
    /// A store, or a copy of one [default: the store]
    path: Option<PathBuf>,
}

/// Options of `store repair`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints a line for each thing that was done, in the order of paths, and what
is still damaged. What is written anew or set aside is kept in quarantine/,
each file with its reason beside it in a .why. A repair that was cut off is
begun again; a second one does nothing.

Exit 0: nothing is damaged any more; 65: something still is; 2: no store
there; 73: a daemon holds the store; 74: something cannot be read or written;
76: a newer minder wrote it.")]
struct RepairArgs {
    /// A store, or a copy of one [default: the store]
    path: Option<PathBuf>,
}

#[derive(Serialize)]
struct Place<'a> {
    path: std::borrow::Cow<'a, str>,
    exists: bool,
}

/// Does what was asked of the store.
pub fn run(args: &StoreArgs, context: &mut Context) -> Outcome {
    match &args.command {
        StoreCommand::Path => path(context),
        StoreCommand::Check(args) => become_daemon("--check", args.path.as_ref(), context),
        StoreCommand::Repair(args) => become_daemon("--repair", args.path.as_ref(), context),
        StoreCommand::Compact => compact(context),
    }
}

fn path(context: &mut Context) -> Outcome {
    let home = context.home()?.clone();
    if context.printer.is_json() {
        context
            .printer
            .object(&Place { path: home.root().to_string_lossy(), exists: home.root().is_dir() })?;
    } else {
        context.printer.line(home.root().display().to_string())?;
    }
    Ok(exit::OK)
}

fn compact(context: &mut Context) -> Outcome {
    let call = Compact { caller: as_caller(&context.caller) };
    let answer = context.daemon()?.call(&call)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
        return Ok(exit::OK);
    }
    let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let lines = [
        format!("{} rewritten, {} bytes shorter", plural(answer.rewritten, "ledger"), answer.shorter),
        format!("{} bytes of journal gone", answer.journal),
        format!("{} gone from the trash", plural(answer.trashed, "closed session")),
        format!("{} of old history dropped", plural(answer.segments, "segment")),
    ];
    for line in lines {
        context.printer.line(line)?;
    }
    Ok(exit::OK)
}

/// Becomes the program that does it: its output and exit code are the answer.
fn become_daemon(what: &str, path: Option<&PathBuf>, context: &Context) -> Outcome {
    let store = match path {
        // So that no path looks like a flag.
        Some(path) => std::path::absolute(path).map_err(|e| CommandError::usage(format!("PATH: {e}")))?,
        None => context.home()?.root().to_owned(),
    };
    let program =
        find_program().ok_or_else(|| CommandError::unavailable(StartError::NoProgram.to_string()))?;
    let mut command = Command::new(&program);
    // What it says on standard error is said under this program's name.
    command.arg0("minder").arg(what).arg(store).args(context.printer.is_json().then_some("--json"));
    let error = command.exec();
    Err(CommandError::unavailable(StartError::Execute { program, source: error }.to_string()))
}
