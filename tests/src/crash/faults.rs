//! Whether the harness finds what it looks for: each seeded fault is made, and the methods are run until one of them
//! finds something.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use minder_proto::trial::{Seeded, Shown};

use super::Findings;
use super::points::{Walker, Which};
use super::rounds::{self, Plan};
use super::table::Caught;

/// Most rounds before the points are walked, and after.
const ROUNDS: [usize; 2] = [10, 100];
/// Of the passings of each point one in so many is walked, in turn.
const WALKS: [u64; 4] = [20, 10, 5, 2];
/// Most states that are rebuilt after a loss of power.
const STATES: &str = "200";

/// Looks for one.
pub fn look_for(fault: &'static Seeded, seed: u64) -> Result<Caught> {
    match fault.shown {
        Shown::ByKill => by_kills(fault, seed),
        Shown::ByPowerLoss => by_losses_of_power(fault.name),
    }
}

/// A kill shows nothing of it while the kernel lives: the harness of power losses looks for it, which lies beside this
/// program.
fn by_losses_of_power(fault: &'static str) -> Result<Caught> {
    let begun = Instant::now();
    let power = std::env::current_exe()?.with_file_name("power");
    let ran = Command::new(&power).args(["--fault", fault, "--cycles", "0", "--states", STATES]).output();
    let out = ran.with_context(|| power.display().to_string())?.stdout;
    let out = String::from_utf8_lossy(&out);
    // It says at its end: by what, and after how many states.
    let said = out.lines().find_map(|line| line.strip_prefix(&format!("fault {fault}: found by ")));
    let after = said.and_then(|said| said.split(|c: char| !c.is_ascii_digit()).find_map(|n| n.parse().ok()));
    let first = out.lines().nth(1).unwrap_or_default().trim().to_owned();
    let by = said.map(|_| "losses of power");
    Ok(Caught { fault, by, after: after.unwrap_or(0), took: begun.elapsed(), first })
}

fn by_kills(seeded: &'static Seeded, seed: u64) -> Result<Caught> {
    let (begun, fault) = (Instant::now(), seeded.name);
    let of_it = |found: &Findings| {
        found.0.iter().find(|f| seeded.found_as.iter().any(|words| f.contains(words))).cloned()
    };
    let caught =
        |by, after, first: &str| Caught { fault, by, after, took: begun.elapsed(), first: first.to_owned() };
    let (mut rounds_done, mut other) = (0, None);
    for (part, most) in ROUNDS.into_iter().enumerate() {
        let mut left = most;
        while left > 0 {
            let seed = seed + rounds_done as u64;
            let plan = Plan {
                rounds: left,
                seed,
                fault: Some(fault),
                wide: false,
                on_one_store: 4,
                progress: |_| {},
            };
            let done = rounds::run(&plan)?;
            rounds_done += done.rounds;
            if let Some(first) = of_it(&done.findings) {
                return Ok(caught(Some("random rounds"), rounds_done, &first));
            }
            // Rounds end with any finding: what does not show this fault is no reason to look no further.
            other = other.or(done.findings.0.into_iter().next());
            left -= done.rounds.clamp(1, left);
        }
        if part == 0 {
            // Some faults show at few of the points: ever more of them are walked until one does.
            for (walk, one_in) in (0..).zip(WALKS) {
                let walk = Walker::new(seed + walk, Which::Sample(one_in), Some(fault))?.kill_points(true)?;
                if let Some(first) = of_it(&walk.findings) {
                    return Ok(caught(Some("kill points"), walk.points, &first));
                }
                other = other.or(walk.findings.0.into_iter().next());
            }
        }
    }
    let other = other.map_or_else(|| "none".to_owned(), |other| format!("none of it, but: {other}"));
    Ok(caught(None, rounds_done, &other))
}
