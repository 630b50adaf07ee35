//! `turn run --no-supervise`: the program in place of this process. What it prints, how it ends and what it is told by
//! signals is then its own; there are no windows, there is no daemon, and no line is left.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::RunArgs;
use super::code;
use crate::fault::CommandError;

/// Becomes the program; returns only if that fails.
pub fn run(args: &RunArgs) -> CommandError {
    let program = &args.command[0];
    let mut command = Command::new(program);
    command.args(&args.command[1..]);
    match input(args) {
        Ok(stdin) => command.stdin(stdin),
        Err(error) => return error,
    };
    let error = command.exec();
    let exit = match error.kind() {
        ErrorKind::NotFound => code::NOT_FOUND,
        _ => code::NOT_EXECUTABLE,
    };
    CommandError::new("failed", exit, format!("{program}: {error}"))
}

/// As a supervised one has it: the prompt, else nothing.
fn input(args: &RunArgs) -> Result<Stdio, CommandError> {
    let dash = args.prompt.is_some() || args.text.stdin;
    match &args.text.body_file {
        Some(_) if dash => {
            Err(CommandError::usage("the prompt is given twice: take one of - or --body-file"))
        }
        Some(file) if file.as_os_str() != "-" => {
            let name = file.display();
            File::open(file).map(Stdio::from).map_err(|e| CommandError::io(name, &e))
        }
        Some(_) => Ok(Stdio::inherit()),
        None if dash => Ok(Stdio::inherit()),
        None => Ok(Stdio::null()),
    }
}
