//! `turn run`: a program, or a harness with a prompt, as a supervised turn; exits as `timeout` would.
//!
//! `waiting` asks the daemon and waits, through signals and restarts; `display` is what a terminal shows meanwhile;
//! `reply` hands over what came of it and names the outcome; `code` is the exit; `plain` is the way without all that.

mod code;
mod display;
mod plain;
mod reply;
mod waiting;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser};
use minder_proto::error::exit;
use minder_proto::id::TurnId;
use minder_proto::rpc::{Hold, TurnRun};
use minder_proto::stamp::parse_duration;
use minder_proto::turn::line;
use minder_proto::turn::policy::{ADAPTERS, Asked, WINDOW_MAX_MS};

use super::TurnArgs;
use crate::cli::{Cli, Command, Global, Outcome};
use crate::context::Context;
use crate::fault::CommandError;
use crate::input::TextOptions;
use crate::link::{as_caller, unreachable};

/// Longest prompt: with the rest of the call it fits into a request.
const PROMPT_MAX: usize = 2 * 1024 * 1024;

/// Options of `turn run`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
The output is printed when the turn has ended, to the byte. The exit is the
program's own (1 where that is 0 and the turn failed or was refused), 124 the
budget, the wall clock or a stall, 125 a fault of minder's, 126 it cannot be
executed, 127 not found, 128+N it died of signal N, 143 somebody else has
cancelled it; 64, 65 and 78 as everywhere, before anything is run. What failed
is one line on standard error.

SIGTERM and SIGINT end the turn (exit 143 and 130); the second one at once.
Windows: minder turn policy ADAPTER. --timeout is at least 1s and at most 24
days; --stall 0 is off, --grace 0 kills at once.

Examples:
  minder turn run --timeout 10m -- make test
  minder turn run --adapter claude --stall 15m - <<'EOF'
  Which tests fail on this branch?
  EOF
  minder turn run --hold --json --adapter codex --body-file task.md")]
pub struct RunArgs {
    /// - reads the prompt from standard input
    #[arg(value_name = "-")]
    prompt: Option<String>,
    #[command(flatten)]
    text: TextOptions,
    /// Whose log gets the line [default: the session's label, else the program's name]
    #[arg(long, value_name = "S", value_parser = seat)]
    seat: Option<String>,
    /// Whose turn it is
    #[arg(long, value_name = "SEL")]
    session: Option<String>,
    /// Which harness is run, with CMD as further arguments [default: command]
    #[arg(long, value_name = "A", value_parser = PossibleValuesParser::new(ADAPTERS))]
    adapter: Option<String>,
    /// When it is asked to end
    #[arg(long, value_name = "D", value_parser = budget)]
    timeout: Option<u64>,
    /// After how much silence it is stalled
    #[arg(long, value_name = "D", value_parser = window)]
    stall: Option<u64>,
    /// From the cancel to the kill
    #[arg(long, value_name = "D", value_parser = window)]
    grace: Option<u64>,
    /// What is added to the timeout until the kill
    #[arg(long, value_name = "D", value_parser = window)]
    backstop: Option<u64>,
    /// What brought it about: 1 to 40 of A-Za-z0-9._-
    #[arg(long, value_name = "T", value_parser = event_type)]
    event_type: Option<String>,
    /// Leave the outcome to minder turn finish
    #[arg(long)]
    hold: bool,
    /// Run CMD without any of this, for comparison
    #[arg(long, conflicts_with_all = ["seat", "session", "adapter", "timeout", "stall", "grace", "backstop",
        "event_type", "hold"])]
    no_supervise: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// A window in milliseconds, and no longer than the longest there is.
fn window(text: &str) -> Result<u64, String> {
    let window = parse_duration(text).map_err(|e| e.to_string())?;
    Ok(u64::try_from(window.as_millis()).unwrap_or(u64::MAX).min(WINDOW_MAX_MS))
}

/// A window that cannot be nothing: it is the one that ends every turn.
fn budget(text: &str) -> Result<u64, String> {
    match window(text)? {
        0 => Err("it cannot be switched off".to_owned()),
        ms => Ok(ms),
    }
}

fn seat(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a seat has a name".to_owned()) } else { Ok(text.to_owned()) }
}

fn event_type(text: &str) -> Result<String, String> {
    line::event_type(text).ok_or_else(|| "1 to 40 of A-Za-z0-9._- are wanted".to_owned())
}

/// The short way to this command, on which no other is built: what it pays for a command line is a part of what a
/// turn costs. `None` where the words are not quite right; the whole command line says what is wrong.
pub fn direct(args: &[OsString]) -> Option<Cli> {
    #[derive(Parser)]
    #[command(name = "minder turn run")]
    struct Direct {
        #[command(flatten)]
        global: Global,
        #[command(flatten)]
        run: RunArgs,
    }
    let words = [args.get(1)?, args.get(2)?];
    if words != ["turn", "run"] {
        return None;
    }
    if let Some(command) = bare(args) {
        let run = RunArgs { command, ..RunArgs::default() };
        return Some(Cli { global: Global::default(), command: Some(Command::Turn(TurnArgs::of_run(run))) });
    }
    let Direct { global, run } = Direct::try_parse_from(&args[2..]).ok()?;
    Some(Cli { global, command: Some(Command::Turn(TurnArgs::of_run(run))) })
}

/// The program of a command line that says nothing else: for that no parser is built at all, which would cost as much as
/// the rest of the client's work.
fn bare(args: &[OsString]) -> Option<Vec<String>> {
    let [_, _, _, end, command @ ..] = args else { return None };
    if end != "--" {
        return None;
    }
    command.iter().map(|word| word.to_str().map(str::to_owned)).collect()
}

/// Runs.
pub fn run(args: RunArgs, context: &mut Context) -> Outcome {
    if args.prompt.as_deref().is_some_and(|p| p != "-") {
        return Err(CommandError::usage(
            "the command stands after --, and a prompt comes by - or --body-file",
        )
        .hint("minder turn run --help"));
    }
    if args.command.is_empty() && (args.no_supervise || (args.adapter.is_none() && args.session.is_none())) {
        return Err(CommandError::usage("what is to be run? give -- CMD, or --adapter and a prompt")
            .hint("minder turn run --help"));
    }
    if args.no_supervise {
        return Err(plain::run(&args));
    }
    let held = args.hold;
    let id = TurnId::now();
    let mut link = context.daemon().map_err(ours)?;
    if args.prompt.is_none() && !args.text.is_given() {
        // The daemon looks at who calls while this writes down what for.
        link.connect().map_err(|error| ours(unreachable(&error)))?;
    }
    let request = request(args, id, context)?;
    let waited = waiting::Waiting::new(context, id)?.run(&request, link);
    let (ended, link) = waited.map_err(ours)?;
    reply::hand_over(ended, held, link, context).map_err(ours)
}

/// What `timeout` would exit with where the fault is its own; what is wrong with the command line, its input or the
/// configuration keeps its code.
fn ours(error: CommandError) -> CommandError {
    let kept = [exit::USAGE, exit::DATA, exit::CONFIG].contains(&error.exit) || error.silent;
    if kept { error } else { CommandError { exit: code::FAULT, ..error } }
}

fn request(args: RunArgs, id: TurnId, context: &Context) -> Result<TurnRun, CommandError> {
    let prompt = args.text.read(args.prompt.as_deref(), "the prompt", PROMPT_MAX)?;
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let dir = match &context.caller.dir {
        Some(dir) => dir.clone(),
        // It is gone, or its name is no text: then what the shell calls it is said to be missing.
        None => {
            env.get("PWD").cloned().ok_or_else(|| CommandError::data("the working directory has no name"))?
        }
    };
    Ok(TurnRun {
        caller: as_caller(&context.caller),
        turn: Some(id),
        seat: args.seat,
        session: args.session,
        adapter: args.adapter,
        event_type: args.event_type,
        policy: Asked {
            timeout_ms: args.timeout,
            stall_ms: args.stall,
            grace_ms: args.grace,
            backstop_ms: args.backstop,
        },
        hold: if args.hold { Hold::Id } else { Hold::Connection },
        // An object is written in any case.
        empty_is_silent: !args.hold && !context.printer.is_json(),
        prompt,
        argv: args.command,
        dir: Some(dir),
        env,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct_of(line: &str) -> Option<Cli> {
        direct(&std::iter::once("minder").chain(line.split(' ')).map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_short_way_reads_what_the_long_one_reads() {
        for line in [
            "turn run -- true",
            "turn run -- make test -- --json",
            "turn run --",
            "turn run --json --timeout 10m --stall 0 --seat a -- make test --json",
            "turn run --adapter claude --as api -",
            "turn run --hold --body-file x --adapter codex",
            "turn run",
        ] {
            let words = std::iter::once("minder").chain(line.split(' '));
            let long = Cli::try_parse_from(words).unwrap();
            assert_eq!(format!("{:?}", direct_of(line).unwrap()), format!("{long:?}"), "{line}");
        }
        for other in
            ["turn ls", "turn", "ls", "--json turn run -- true", "turn run --help", "turn run --stall x"]
        {
            assert!(direct_of(other).is_none(), "{other}");
        }
    }

    /// G7, the options.
    #[test]
    fn g7_a_window_of_the_command_line_is_strict() {
        for option in ["--timeout", "--stall", "--grace", "--backstop"] {
            let parsed = |value: &str| {
                let words = ["minder", "turn", "run", option, value, "--", "true"];
                Cli::try_parse_from(words).map_err(|e| e.to_string())
            };
            let huge = "100000000000000000000";
            for bad in ["", "abc", "-1", "1.5h", "1e3", "0x10", " 5", "5 ", huge, "5 m"] {
                assert!(parsed(bad).is_err(), "{option} {bad:?}");
            }
            assert!(parsed("90s").is_ok() && parsed("365d").is_ok(), "{option}");
            assert_eq!(parsed("0").is_ok(), option != "--timeout");
        }
        assert_eq!(window("365d"), Ok(WINDOW_MAX_MS));
        assert_eq!(window("250ms"), Ok(250));
    }
}
