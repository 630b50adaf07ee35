//! `help agent`: what an agent needs to know, as text for its instructions; `help selectors`: how things are named;
//! and the help of a command by its name.

use clap::{Args, CommandFactory, Parser};
use minder_proto::error::exit;
use serde::Serialize;

use crate::cli::{Cli, Outcome};
use crate::context::Context;
use crate::fault::CommandError;
use crate::usage;

/// Options of `help`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  minder help agent >> AGENTS.md
  minder help selectors
  minder help send")]
pub struct HelpArgs {
    /// agent, selectors, or a command [default: all commands]
    #[arg(value_name = "TOPIC")]
    words: Vec<String>,
}

/// The text for agents.
pub const AGENT: &str = include_str!("agent.md");

/// How sessions, messages and states are named.
pub const SELECTORS: &str = include_str!("selectors.md");

#[derive(Serialize)]
struct Shown<'a> {
    text: &'a str,
}

/// Prints.
pub fn run(args: &HelpArgs, context: &mut Context) -> Outcome {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        ["agent"] => AGENT.to_owned(),
        ["selectors"] => SELECTORS.to_owned(),
        words => of_command(words)?,
    };
    if context.printer.is_json() {
        context.printer.object(&Shown { text: &text })?;
    } else {
        context.printer.line(text)?;
    }
    Ok(exit::OK)
}

/// What `--help` of this command prints.
fn of_command(words: &[&str]) -> Result<String, CommandError> {
    let args: Vec<&str> = std::iter::once("minder").chain(words.iter().copied()).chain(["--help"]).collect();
    let printed = Cli::try_parse_from(args).err().and_then(|error| usage::output(&error));
    // A word that is a value and no command would pass unseen.
    let mut command = &Cli::command();
    let known = words.iter().all(|word| match command.find_subcommand(word) {
        Some(found) => {
            command = found;
            true
        }
        None => false,
    });
    printed.filter(|_| known).ok_or_else(|| {
        CommandError::usage(format!("no such command: {:?}", words.join(" "))).hint("minder --help")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_for_agents_names_only_commands_that_there_are() {
        let mut named = 0;
        for line in AGENT.lines() {
            for (at, _) in line.match_indices("minder ") {
                let rest = &line[at + "minder ".len()..];
                let word: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                // `run minder to see who you are`, and the heading.
                if word.is_empty() || word == "to" {
                    continue;
                }
                named += 1;
                of_command(&[&word]).unwrap_or_else(|e| panic!("{line}: {e}"));
            }
        }
        assert!(named >= 9, "{named}");
        assert!(AGENT.contains("minder new"), "an agent that is not registered is told the way in");
        assert_eq!(of_command(&["frobnicate"]).unwrap_err().exit, 64);
    }
}
