//! `store path`: where the store is.

use clap::{Args, Subcommand};
use minder_proto::error::exit;
use serde::Serialize;

use crate::cli::Outcome;
use crate::context::Context;

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
}

#[derive(Serialize)]
struct Place<'a> {
    path: std::borrow::Cow<'a, str>,
    exists: bool,
}

/// Does what was asked of the store.
pub fn run(args: &StoreArgs, context: &mut Context) -> Outcome {
    match args.command {
        StoreCommand::Path => path(context),
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
