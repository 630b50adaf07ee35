//! `power`: takes the power away from daemons under load, and compares what is left with what their callers were
//! answered. See the library's `power`.

// It speaks to whoever runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use minder_tests::power::{Options, USAGE, run};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("power: {error:#}\n{USAGE}");
            return ExitCode::from(64);
        }
    };
    match run(&options) {
        Ok((text, good)) => {
            print!("{text}");
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("power: {error:#}");
            ExitCode::from(70)
        }
    }
}
