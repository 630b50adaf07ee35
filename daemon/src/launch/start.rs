//! The other end: `minderd start DOOR`, which tmux runs in the new window. It asks at the door what it is to become and
//! becomes that, so that its process is the one that the daemon has seen. Nothing of what it is told stands on a command
//! line.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::door::{Order, within};
use crate::exit::Failure;

/// Longest order.
const ORDER_MAX: u64 = 8 * 1024 * 1024;
/// What a terminal says of itself: that of the window counts, not that of who asked for it.
const TERMINAL: [&str; 6] =
    ["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "TMUX", "TMUX_PANE"];
/// As a shell ends when there is no such program.
const NOT_FOUND: u8 = 127;
/// As a shell ends when a program cannot be run.
const NOT_RUN: u8 = 126;

/// Becomes what it is told; gives why it could not.
pub fn main(door: &Path) -> Failure {
    let stream = match within(door, |short| UnixStream::connect(short)) {
        Ok(stream) => stream,
        Err(error) => return Failure::new(NOT_RUN, format!("the daemon does not wait for this: {error}")),
    };
    let mut line = Vec::new();
    let read = BufReader::new(&stream).take(ORDER_MAX).read_until(b'\n', &mut line);
    let order: Order = match read.map_err(|e| e.to_string()).and_then(|_| {
        serde_json::from_slice(&line).map_err(|_| "the daemon did not say what to start".to_owned())
    }) {
        Ok(order) => order,
        Err(why) => return Failure::new(NOT_RUN, why),
    };
    let failure = become_it(&order);
    let _ = writeln!(&stream, "{}", failure.line);
    failure
}

fn become_it(order: &Order) -> Failure {
    let Some((program, arguments)) = order.argv.split_first() else {
        return Failure::new(NOT_FOUND, "no program is given to run");
    };
    // Said apart: the system has one word for both.
    if let Err(error) = std::env::set_current_dir(&order.dir) {
        return Failure::new(NOT_RUN, format!("{}: {error}", order.dir));
    }
    let own = TERMINAL.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let own: Vec<_> = own.collect();
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&order.env).envs(own).env("PWD", &order.dir);
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    let why = if code == NOT_FOUND { "no such program".to_owned() } else { error.to_string() };
    Failure::new(code, format!("{program}: {why}"))
}
