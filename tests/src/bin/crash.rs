//! Kills the daemon, again and again, and looks whether anything that was told is lost (`minder_tests::crash`).
//!
//! ```text
//! crash [--rounds N] [--points all|sample] [--seed S]   random rounds, then exact points
//! crash --faults [--seed S]                             whether each seeded fault is found
//! crash --fault NAME [--seed S]                         one of them: exits 1 if it is found, 0 if not
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use minder_proto::trial::{FAULTS, Seeded};
use minder_tests::crash::points::{Walk, Walker, Which};
use minder_tests::crash::rounds::{self, ON_ONE_STORE, Plan};
use minder_tests::crash::table::{self, Row};
use minder_tests::crash::{Findings, faults};

struct Options {
    rounds: usize,
    points: Option<Which>,
    seed: u64,
    fault: Option<&'static Seeded>,
    faults: bool,
}

fn options() -> Result<Options> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut options = Options {
        rounds: 50,
        points: Some(Which::Sample(8)),
        seed: now.as_secs(),
        fault: None,
        faults: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => options.rounds = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--points" => {
                options.points = match value()?.as_str() {
                    "all" => Some(Which::All),
                    "sample" => Some(Which::Sample(8)),
                    "none" => None,
                    other => bail!("--points all, sample or none, and not {other}"),
                };
            }
            "--fault" => {
                let name = value()?;
                let fault = FAULTS.iter().find(|f| f.name == name);
                options.fault = Some(fault.with_context(|| format!("no fault is called {name}"))?);
            }
            "--faults" => options.faults = true,
            other => bail!("what is {other}?"),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("crash: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// True if all is well.
fn run(options: &Options) -> Result<bool> {
    println!("seed {}", options.seed);
    if let Some(fault) = options.fault {
        let caught = faults::look_for(fault, options.seed)?;
        println!("{}", table::faults(std::slice::from_ref(&caught)));
        return Ok(caught.by.is_none());
    }
    if options.faults {
        let mut rows = Vec::new();
        for fault in &FAULTS {
            eprintln!("{}: {}", fault.name, fault.what);
            rows.push(faults::look_for(fault, options.seed)?);
        }
        println!("{}", table::faults(&rows));
        return Ok(rows.iter().all(|row| row.by.is_some()));
    }
    look(options)
}

fn look(options: &Options) -> Result<bool> {
    let mut rows = Vec::new();
    let mut all = Findings::default();
    let begun = Instant::now();
    let plan = Plan {
        rounds: options.rounds,
        seed: options.seed,
        fault: None,
        wide: true,
        on_one_store: ON_ONE_STORE,
        progress: |line| eprintln!("{line}"),
    };
    let rounds = rounds::run(&plan)?;
    println!("{} rounds; {} calls were told as done", rounds.rounds, rounds.told);
    let method = "kill -9 at a random moment under load";
    rows.push(Row { method, times: rounds.rounds, violations: rounds.findings.len(), took: begun.elapsed() });
    all.absorb("rounds", rounds.findings);
    if let Some(which) = options.points {
        let mut walker = Walker::new(options.seed, which, None)?;
        let mut walk = |method, walk: &mut dyn FnMut(&mut Walker) -> Result<Walk>| -> Result<()> {
            let begun = Instant::now();
            let done = walk(&mut walker)?;
            rows.push(Row {
                method,
                times: done.points,
                violations: done.findings.len(),
                took: begun.elapsed(),
            });
            all.absorb("points", done.findings);
            Ok(())
        };
        walk("kill points", &mut |w| w.kill_points(false))?;
        walk("system calls of commits and checkpoints", &mut Walker::calls_of_the_owner)?;
        walk("system calls of a start after a crash", &mut Walker::calls_of_a_start)?;
    }
    for finding in all.0.iter().take(40) {
        println!("{finding}");
    }
    println!("{}", table::methods(&rows));
    Ok(all.is_empty())
}
