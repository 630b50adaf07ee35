//! `session new`: registers a session and prints its id.

use std::path::{Path, PathBuf};

use clap::Args;
use minder_proto::error::exit;
use minder_proto::label;
use minder_proto::rpc::Create;
use uuid::Uuid;

use crate::channel::{self, ChannelOptions};
use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::as_caller;

/// Options of `new`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
In the shell of an agent that is not registered yet, this very conversation
becomes the session. Called by a session, that session becomes the parent and
is told of every state but working.

Examples:
  minder new --label api --dir ../api
  minder new --label alerts --channel exec -- /usr/local/bin/page-me
  minder new --label reviewer --harness claude --channel headless")]
pub struct NewArgs {
    /// The name to type for it [default: the folder's name]
    #[arg(long, value_name = "L")]
    label: Option<String>,
    /// The name to read
    #[arg(long, value_name = "T")]
    title: Option<String>,
    /// The harness it runs in: claude, codex, …
    #[arg(long, value_name = "H")]
    harness: Option<String>,
    /// Its working directory [default: here]
    #[arg(long, value_name = "D")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    channel: ChannelOptions,
    /// The session that is told of all its states
    #[arg(long, value_name = "SEL")]
    parent: Option<String>,
    /// A person talks to it
    #[arg(long)]
    primary: bool,
    /// The same key gives the same session again
    #[arg(long, value_name = "K")]
    key: Option<String>,
}

/// Registers.
pub fn run(args: NewArgs, context: &mut Context) -> Outcome {
    if let Some(label) = &args.label {
        label::check(label).map_err(|e| CommandError::usage(e.to_string()))?;
    }
    let channel = args.channel.read()?;
    let create = Create {
        env: channel::environment(channel.as_ref()),
        caller: as_caller(&context.caller),
        label: args.label,
        title: args.title,
        harness: args.harness,
        dir: args.dir.as_deref().map(folder).transpose()?,
        channel,
        parent: args.parent,
        primary: args.primary,
        // A key even where none was asked for: a daemon that ends in the middle registers nothing twice.
        key: Some(args.key.unwrap_or_else(|| Uuid::now_v7().to_string())),
    };
    let answer = context.daemon()?.call_keyed(&create)?.map_err(|absent| absent.error)?;
    if context.printer.is_json() {
        context.printer.object(&answer)?;
    } else {
        context.printer.line(answer.id.to_string())?;
    }
    Ok(exit::OK)
}

/// The absolute path of a folder that is there.
pub(super) fn folder(path: &Path) -> Result<String, CommandError> {
    let real = std::fs::canonicalize(path)
        .map_err(|e| CommandError::usage(format!("--dir {}: {e}", path.display())))?;
    if !real.is_dir() {
        return Err(CommandError::usage(format!("--dir {}: not a folder", path.display())));
    }
    real.into_os_string()
        .into_string()
        .map_err(|_| CommandError::usage(format!("--dir {}: not UTF-8", path.display())))
}
