//! Whether the harness finds what it looks for: each seeded fault is made, and the methods are run until one of them
//! finds something.

use std::time::Instant;

use anyhow::Result;
use minder_proto::trial::{FAULTS, Seeded, Shown};

use super::points::{Walker, Which};
use super::rounds::{self, Plan};
use super::table::Caught;

/// Most rounds before the points are walked, and after.
const ROUNDS: [usize; 2] = [10, 100];

/// Those that a kill shows; the others are for a harness of power losses.
pub fn shown_by_a_kill() -> impl Iterator<Item = &'static Seeded> {
    FAULTS.iter().filter(|f| f.shown == Shown::ByKill)
}

/// Looks for one.
pub fn look_for(fault: &'static str, seed: u64) -> Result<Caught> {
    let begun = Instant::now();
    let caught =
        |by, after, first: &str| Caught { fault, by, after, took: begun.elapsed(), first: first.to_owned() };
    let mut rounds_done = 0;
    for (part, rounds) in ROUNDS.into_iter().enumerate() {
        let plan = Plan {
            rounds,
            seed: seed + part as u64,
            fault: Some(fault),
            wide: false,
            on_one_store: 4,
            progress: |_| {},
        };
        let done = rounds::run(&plan)?;
        rounds_done += done.rounds;
        if let Some(first) = done.findings.0.first() {
            return Ok(caught(Some("random rounds"), rounds_done, first));
        }
        if part == 0 {
            let walk = Walker::new(seed, Which::Sample(20), Some(fault))?.kill_points(true)?;
            if let Some(first) = walk.findings.0.first() {
                return Ok(caught(Some("kill points"), walk.points, first));
            }
        }
    }
    Ok(caught(None, rounds_done, "none"))
}
