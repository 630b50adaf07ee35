//! What the parser of the command line says, in minder's own form: help and version are output, a mistake is one
//! line with the command whose help shows the right way.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::fault::CommandError;

/// The text that was asked for by `--help` or `--version`.
pub fn output(error: &clap::Error) -> Option<String> {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
        .then(|| error.render().to_string())
}

/// A mistake as one line.
pub fn fault(error: &clap::Error, args: &[OsString]) -> CommandError {
    let help = format!("{} --help", program(args));
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return CommandError::usage("a command is needed").hint(help);
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let mut message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    if let Some(tip) = paragraphs.find_map(|p| p.strip_prefix("tip: ").map(str::to_owned)) {
        message.push_str(&format!(" ({tip})"));
    }
    CommandError::usage(message).hint(help)
}

/// The command that the arguments mean, as far as they mean one.
fn program(args: &[OsString]) -> String {
    let mut words = "minder".to_owned();
    let root = Cli::command();
    let mut command = &root;
    for arg in args.iter().skip(1).filter_map(|a| a.to_str()).filter(|a| !a.starts_with('-')) {
        let Some(found) = command.find_subcommand(arg) else { break };
        words.push(' ');
        words.push_str(arg);
        command = found;
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_mistake_is_one_line_with_the_help_that_helps() {
        let mut told = String::new();
        for line in [
            "ls --al",
            "session retry",
            "store",
            "frobnicate",
            "stat review",
            "send --class soon api x",
            "set api --harness claude",
            "send api x --timeout 9s",
            "state review --if busy",
            "new --channel pigeon",
            "show --timeline -1",
        ] {
            let args: Vec<OsString> =
                std::iter::once("minder").chain(line.split(' ')).map(OsString::from).collect();
            let error = Cli::try_parse_from(&args).unwrap_err();
            assert_eq!(output(&error), None);
            let fault = fault(&error, &args);
            assert_eq!(fault.exit, 64);
            told.push_str(&format!("{line}\n  {}\n", fault.to_line()));
        }
        expect![[r#"
            ls --al
              minder: unexpected argument '--al' found (a similar argument exists: '--all'): minder ls --help
            session retry
              minder: the following required arguments were not provided: <MID>: minder session retry --help
            store
              minder: a command is needed: minder store --help
            frobnicate
              minder: unrecognized subcommand 'frobnicate': minder --help
            stat review
              minder: unrecognized subcommand 'stat' (some similar subcommands exist: 'set', 'state'): minder --help
            send --class soon api x
              minder: invalid value 'soon' for '--class <C>': no such class (now, next-tool, turn-end, idle, with-next): minder send --help
            set api --harness claude
              minder: the following required arguments were not provided: --harness-id <ID>: minder set --help
            send api x --timeout 9s
              minder: the following required arguments were not provided: --wait: minder send --help
            state review --if busy
              minder: invalid value 'busy' for '--if <STATE>': no such state: "busy" (queued, working, idle, parked, asking, review, done, close-pending, error): minder state --help
            new --channel pigeon
              minder: invalid value 'pigeon' for '--channel <C>' [possible values: mailbox, hook, exec, headless, codex, opencode, tmux]: minder new --help
            show --timeline -1
              minder: unexpected argument '-1' found (to pass '-1' as a value, use '-- -1'): minder show --help
        "#]].assert_eq(&told);
    }
}
