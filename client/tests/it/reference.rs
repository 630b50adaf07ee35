//! The reference of the command line, `docs/cli.md`, is what `--help` prints, behind what is true of every command:
//! `UPDATE_EXPECT=1 cargo test -p minder reference` writes it anew.

use clap::CommandFactory;
use expect_test::expect_file;
use minder_client::cli::Cli;
use minder_client::commands::help::SELECTORS;

use crate::help::commands;

#[test]
fn reference_of_the_command_line() {
    let mut general = GENERAL.replace("@SELECTORS@", SELECTORS.trim_end()).replace("@GLOBAL@", &global());
    // Seen from where the text stands, the page is elsewhere.
    general = general.replace("](docs://", "](");
    let mut reference = String::new();
    for words in commands() {
        if words.first().is_some_and(|noun| noun == "session") {
            continue;
        }
        let name: Vec<&str> = std::iter::once("minder").chain(words.iter().map(String::as_str)).collect();
        let help = if words.is_empty() { help_of(&name) } else { without_global(&help_of(&name)) };
        reference.push_str(&format!("\n## {}\n\n```\n{}\n```\n", name.join(" "), help.trim_end()));
    }
    let heads = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|l| Some(format!("[{0}](#{1})", l.strip_prefix("## ")?, anchor(&l[3..]))))
            .collect()
    };
    let contents = format!(
        "In general: {}.\n\nCommands: {}.\n",
        heads(&general).join(" · "),
        heads(&reference).join(" · ")
    );
    general.insert_str(0, &format!("# The command line\n\n{HEAD}\n{contents}"));
    expect_file!["../../../docs/cli.md"].assert_eq(&(general + &reference));
}

const HEAD: &str = "What is true of every command, and what `--help` of each prints, without the options that all of them have. The noun
`session` may be left out, and is here.
";

/// What is true of every command.
const GENERAL: &str = include_str!("reference.md");

/// The place of a heading in a page.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

fn help_of(name: &[&str]) -> String {
    let asked = Cli::command().term_width(98).try_get_matches_from(name.iter().copied().chain(["--help"]));
    let help = asked.unwrap_err().render().to_string();
    help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

const EVERYWHERE: [&str; 3] = ["--json", "--as <SEL>", "-h, --help"];

fn is_global(line: &str) -> bool {
    EVERYWHERE.iter().any(|option| line.trim_start().starts_with(option))
}

/// The options of every command, as the bare one shows them.
fn global() -> String {
    let help = help_of(&["minder"]);
    help.lines().filter(|line| is_global(line)).collect::<Vec<_>>().join("\n")
}

/// A command's help without them, and without the head above nothing.
fn without_global(help: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut kept: Vec<&str> = Vec::new();
    let mut left_out = None;
    for line in help.lines() {
        // What is said of an option stands further in than its name.
        let name =
            if line.trim_start().starts_with("--") { indent(line).saturating_sub(4) } else { indent(line) };
        if is_global(line) {
            left_out = Some(name);
            continue;
        }
        if left_out.is_some_and(|at| line.is_empty() || indent(line) > at + 4) {
            continue;
        }
        if left_out.take().is_some() && kept.last().is_some_and(|last| !last.is_empty()) {
            kept.push("");
        }
        kept.push(line);
    }
    while kept.last().is_some_and(|last| last.is_empty()) {
        kept.pop();
    }
    kept.join("\n").replace("Options:\n\n", "").trim_end_matches("Options:").to_owned()
}

#[test]
fn what_every_command_has_is_left_out() {
    let help = "Do\n\nOptions:\n      --json      Print objects\n      --as <SEL>  Act as\n                  more\n  -h, --help      Print\n\nMore.";
    assert_eq!(without_global(help), "Do\n\nMore.");
    let help = "Do\n\nOptions:\n      --key <K>\n          The same\n\n      --json\n          Print\n\n  -h, --help\n          Print";
    assert_eq!(without_global(help), "Do\n\nOptions:\n      --key <K>\n          The same");
}
