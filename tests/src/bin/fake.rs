//! `fake run`, `fake tui` and `fake server`: do what a script says; under another name, what the script beside that name says. `fake host`: runs
//! hooks as a harness would. Installed under a harness's name it is what a hook's ancestors lead
//! to. See the library's `fake` for its lines.

// It speaks to the test that started it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use minder_tests::fake::{Answer, Call, run};
use minder_tests::process::{Run, run_with};

fn main() -> ExitCode {
    if let Some(script) = run::beside() {
        return run::main(&[script.display().to_string()]);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("run" | "server") => return run::main(&arguments[1..]),
        Some("tui") => return run::main_in_terminal(&arguments[1..]),
        Some("host") => {}
        _ => {
            eprintln!("usage: fake run SCRIPT, fake tui SCRIPT, fake server SCRIPT, fake host");
            return ExitCode::from(64);
        }
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let call: Call = serde_json::from_str(&line).expect("a test writes calls");
        std::thread::spawn(move || answer(&call));
    }
    ExitCode::SUCCESS
}

fn answer(call: &Call) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &call.command]).envs(&call.environment);
    command.env("CLAUDE_PID", std::process::id().to_string());
    let begun = Instant::now();
    let how = Run { limit: Duration::from_millis(call.limit_ms), stdin_open: call.stdin_open };
    let ended = run_with(&mut command, call.payload.as_bytes(), how);
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let answer = match ended {
        Ok(out) => Answer {
            id: call.id,
            code: out.status.code(),
            stdout: text(&out.stdout),
            stderr: text(&out.stderr),
            took_ms,
        },
        Err(error) => {
            Answer { id: call.id, code: None, stdout: String::new(), stderr: error.to_string(), took_ms }
        }
    };
    let line = serde_json::to_string(&answer).expect("an answer is plain data");
    let mut out = std::io::stdout().lock();
    // A test that went away needs none.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
