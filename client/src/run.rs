//! From the arguments to the exit code. A harness's hook takes a short way of its own, before the command line is
//! even built.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Parser;
use minder_proto::error::exit;

use crate::cli::{Cli, Outcome};
use crate::commands::{hook, turn};
use crate::context::Context;
use crate::fault::CommandError;
use crate::printer::{Printer, say};
use crate::usage;

/// The program; gives what it exits with.
pub fn run() -> u8 {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = hook::fast(&args) {
        return code;
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        let what = panic.payload();
        let what = what.downcast_ref::<String>().map(String::as_str).or(what.downcast_ref::<&str>().copied());
        let what = what.unwrap_or("no reason given").replace('\n', " ");
        say(&format!("minder: a fault in minder{place}: {what}"));
    }));
    catch_unwind(AssertUnwindSafe(|| command(&args))).unwrap_or(exit::SOFTWARE)
}

fn command(args: &[OsString]) -> u8 {
    let cli = match turn::run::direct(args).map_or_else(|| Cli::try_parse_from(args), Ok) {
        Ok(cli) => cli,
        Err(error) => return not_run(args, &error),
    };
    let mut context = Context::new(cli.global.json, cli.global.acting_as.clone());
    let outcome = context.check_acting().and_then(|()| cli.run(&mut context));
    finish(outcome, &mut context.printer)
}

/// Writes what is held back, or what went wrong, and gives the exit code.
fn finish(outcome: Outcome, printer: &mut Printer) -> u8 {
    let outcome = outcome.and_then(|code| printer.flush().map(|()| code));
    outcome.unwrap_or_else(|error| {
        printer.fail(&error);
        error.exit
    })
}

/// Help and version are output; everything else is wrong usage.
fn not_run(args: &[OsString], error: &clap::Error) -> u8 {
    let json = args.iter().skip(1).take_while(|a| *a != "--").any(|a| a == "--json");
    let mut printer = Printer::new(json);
    let outcome = match usage::output(error) {
        Some(text) if json => printer.object(&serde_json::json!({ "text": text })).map(|()| exit::OK),
        Some(text) => printer.line(text).map(|()| exit::OK),
        None => Err::<u8, CommandError>(usage::fault(error, args)),
    };
    finish(outcome, &mut printer)
}
