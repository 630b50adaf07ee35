//! The reference of the command line, `docs/cli.md`, is what `--help` prints: `UPDATE_EXPECT=1 cargo test -p
//! minder reference` writes it anew.

use clap::CommandFactory;
use expect_test::expect_file;
use minder_client::cli::Cli;

use crate::help::commands;

#[test]
fn reference_of_the_command_line() {
    let root = Cli::command().term_width(98);
    let mut text = "# The command line\n\nWhat `--help` of each command prints. The noun `session` may be left out, and is here. \
        Exit codes, selectors and how a caller is known: see the end.\n"
        .to_owned();
    for words in commands() {
        if words.first().is_some_and(|noun| noun == "session") {
            continue;
        }
        let name: Vec<&str> = std::iter::once("minder").chain(words.iter().map(String::as_str)).collect();
        let asked = root.clone().try_get_matches_from(name.iter().copied().chain(["--help"]));
        let help = asked.unwrap_err().render().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        text.push_str(&format!("\n## {}\n\n```\n{}\n```\n", name.join(" "), help.join("\n").trim_end()));
    }
    text.push_str(TAIL);
    expect_file!["../../../docs/cli.md"].assert_eq(&text);
}

/// What is true of every command.
const TAIL: &str = include_str!("reference.md");
