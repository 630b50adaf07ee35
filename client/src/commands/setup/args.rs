//! The command line of `setup`, and its steps that need the daemon.

use clap::Args;
use minder_proto::error::Kind;
use minder_proto::rpc::{Adopt, Send};

use super::{Adopted, Options, Steps};
use crate::cli::Outcome;
use crate::commands::hooks::{self, Output};
use crate::context::Context;
use crate::fault::CommandError;
use crate::hooks::packs::claude;
use crate::hooks::probe::RunningAgent;
use crate::hooks::service::{self, Service};
use crate::hooks::{Surroundings, command};
use crate::link::{Link, as_caller};
use crate::printer;

/// Options of `setup`.
#[derive(Args, Debug)]
#[command(after_help = "\
Finds your harnesses, shows file by file what it would change, asks once,
installs the hooks, takes in the sessions that already run, and sends you one
notice as a test. It may be repeated. --undo takes all of it back, byte for
byte, and keeps the store. Codex's sandbox stays as it is, with --yes too, but
for --codex-sandbox: that opens one folder to what runs in it.

Examples:
  minder setup --dry-run
  minder setup")]
pub struct SetupArgs {
    /// Which harnesses [default: those that are found]
    #[arg(value_name = "HARNESS")]
    harnesses: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Offer also to let every command in Codex's sandbox write to minder's spool
    #[arg(long, conflicts_with = "undo")]
    codex_sandbox: bool,
    /// Take everything back
    #[arg(long)]
    undo: bool,
}

/// Sets up, or takes it back.
pub fn run(args: SetupArgs, context: &mut Context) -> Outcome {
    let options = Options {
        harnesses: args.harnesses,
        yes: args.yes,
        dry_run: args.dry_run,
        codex_sandbox: args.codex_sandbox,
        undo: args.undo,
        json: context.printer.is_json(),
        terminal: context.printer.look().terminal,
        columns: context.printer.look().columns,
    };
    for harness in &options.harnesses {
        hooks::known(harness)?;
    }
    let surroundings = Surroundings::from_env()?;
    let program = command::own_program()?;
    let mut steps = Through { link: context.daemon()?, caller: as_caller(&context.caller) };
    let mut err = context.printer.teller();
    let mut output = Output { out: &mut context.printer.writer(), err: &mut err };
    super::run(&options, &surroundings, &program, &service::look_here(), &mut steps, &mut output)
        .map_err(CommandError::from)
}

/// The steps, through the daemon.
struct Through {
    link: Link,
    caller: Option<minder_proto::caller::Caller>,
}

impl Steps for Through {
    fn ask(&mut self, question: &str) -> std::io::Result<Option<bool>> {
        printer::ask(question)
    }

    fn adopt(&mut self, agent: &RunningAgent) -> Result<Adopted, String> {
        let adopt = Adopt {
            caller: self.caller.clone(),
            harness: claude::PACK.name.to_owned(),
            harness_id: agent.session_id.clone(),
            pid: i32::try_from(agent.pid).map_err(|e| e.to_string())?,
            dir: agent.cwd.clone(),
            attended: agent.kind.as_deref().map(|kind| kind == "interactive"),
        };
        match self.link.call(&adopt) {
            Ok(answer) if answer.known => Ok(Adopted::Known(answer.label)),
            Ok(answer) => Ok(Adopted::Taken(answer.label)),
            Err(error) if error.kind == Kind::Refused.as_str() => Ok(Adopted::Left(error.message)),
            Err(error) => Err(error.message),
        }
    }

    fn service(&mut self, service: &Service) -> Result<String, String> {
        Ok(service.line().to_owned())
    }

    fn undo_service(&mut self, _: &Service) -> Result<Option<String>, String> {
        // Nothing of the service manager was changed.
        Ok(None)
    }

    fn test_notice(&mut self) -> Result<String, String> {
        let send = Send {
            caller: self.caller.clone(),
            to: Some("@operator".to_owned()),
            body: "minder is set up: this is the way its notices come".to_owned(),
            ..Send::default()
        };
        let answer = self.link.call(&send).map_err(|error| error.message)?;
        Ok(format!("sent one to you as a test ({}): minder inbox shows it", answer.id.short()))
    }
}
