//! `hook HARNESS`: what a harness runs at its own boundaries. One reading of its input, one call, its answer
//! printed; and whatever goes wrong, the harness goes on: exit 0 with nothing on standard output.
//!
//! This is the one command that every tool call pays for, so it is reached before the command line is built.

mod above;
mod event;
mod input;
pub mod payload;
pub mod trace;
mod wait;

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use minder_proto::caller::{SESSION_VAR, TOKEN_VAR};
use minder_proto::error::exit;
use minder_proto::rpc::{HookAnswer, HookEnv};

use crate::cli::Outcome;
use crate::context::Context;

/// Harnesses whose hooks are understood.
const KNOWN: [&str; 6] = ["claude", "codex", "opencode", "pi", "gemini", "cursor"];

/// Options of `hook`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads one JSON object from standard input, asks the daemon, prints what it
says; all within 300 ms. Without a daemon, or if it does not answer in time,
the event is left in the spool. It never fails: whatever is wrong, the exit
code is 0 and nothing is printed. --wait ends when something waits for an
idle session: exit 2, with the text on standard error.")]
pub struct HookArgs {
    /// Which harness: claude, codex, opencode, pi, gemini, cursor
    #[arg(value_name = "HARNESS")]
    harness: String,
    /// Wait until something may enter
    #[arg(long)]
    wait: bool,
}

/// The way of a parsed command line: with global options, in another order.
pub fn run(args: &HookArgs, _: &mut Context) -> Outcome {
    Ok(serve(&args.harness, args.wait))
}

/// The short way, for exactly `minder hook HARNESS [--wait]`.
pub fn fast(args: &[OsString]) -> Option<u8> {
    let word = |i: usize| args.get(i).and_then(|a| a.to_str());
    if word(1) != Some("hook") {
        return None;
    }
    let harness = word(2).filter(|h| !h.starts_with('-'))?;
    match (args.len(), word(3)) {
        (3, _) => Some(serve(harness, false)),
        (4, Some("--wait")) => Some(serve(harness, true)),
        _ => None,
    }
}

/// Answers one hook. Nothing that happens in it is the harness's trouble.
fn serve(harness: &str, waits: bool) -> u8 {
    if !KNOWN.contains(&harness) {
        return exit::OK;
    }
    std::panic::set_hook(Box::new(|_| {}));
    let harness = harness.to_owned();
    std::panic::catch_unwind(move || if waits { wait::serve(harness) } else { event::serve(harness) })
        .ok()
        .flatten()
        .map_or(exit::OK, |answer| print(&answer))
}

/// Prints an answer; where that fails, the harness must not act on half of it.
fn print(answer: &HookAnswer) -> u8 {
    let out = std::io::stdout().write_all(answer.stdout.as_bytes()).and_then(|()| std::io::stdout().flush());
    let err = std::io::stderr().write_all(answer.stderr.as_bytes());
    if out.and(err).is_ok() { answer.exit } else { exit::OK }
}

/// What the environment of a hook says. A harness in a harness has the outer one's variables too: each is asked for
/// its own. OpenCode and Pi name their process through minder's own plugin; the others are found by their ancestry.
fn environment(harness: &str) -> HookEnv {
    let text = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
    let pid = |name| text(name).and_then(|v| v.parse().ok());
    let token = text(TOKEN_VAR);
    let any = HookEnv {
        turn: text("MINDER_TURN"),
        session: token.as_ref().and_then(|_| text(SESSION_VAR)),
        token,
        ..HookEnv::default()
    };
    match harness {
        "claude" => HookEnv {
            pid: pid("CLAUDE_PID"),
            attended: text("CLAUDE_CODE_SESSION_ATTENDED").map(|v| v != "0"),
            entrypoint: text("CLAUDE_CODE_ENTRYPOINT"),
            ..any
        },
        "opencode" | "pi" => HookEnv { pid: pid("MINDER_HARNESS_PID"), ..any },
        _ => any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast_of(args: &[&str]) -> Option<u8> {
        fast(&std::iter::once(&"minder").chain(args).map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_exact_form_takes_the_short_way() {
        for other in [
            &["ls"][..],
            &["hook"],
            &["hook", "--help"],
            &["hook", "claude", "--help"],
            &["hook", "-h"],
            &["hook", "claude", "--wait", "--json"],
            &["--json", "hook", "claude"],
        ] {
            assert_eq!(fast_of(other), None, "{other:?}");
        }
        assert_eq!(fast_of(&["hook", "some-other"]), Some(0));
        assert_eq!(fast_of(&["hook", "some-other", "--wait"]), Some(0));
    }
}
