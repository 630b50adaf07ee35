//! The daemon at rest and at its start, with 1,000 sessions that have 20 watchers each.

use std::time::Duration;

use minder_tests::process::Process;

use crate::fleet::{Fleet, move_of};
use crate::measure::{self, Kernel, median};
use crate::table::Table;

const SESSIONS: usize = 1_000;
const WATCHERS: usize = 20;
const IDLE: Duration = Duration::from_secs(20);
/// After this long without a commit there is a checkpoint; it is not what is measured.
const CHECKPOINT: Duration = Duration::from_secs(35);

pub fn rows(table: &mut Table) {
    let fleet = Fleet::new(SESSIONS);
    fleet.each(SESSIONS, |rpc, n| {
        let next = |k: usize| format!("s{}", (n + k) % SESSIONS);
        let watched: Vec<String> = (1..=WATCHERS).map(next).collect();
        Fleet::watch(rpc, n, &watched.join(","));
    });
    starts(table, &fleet);
    rest(table, &fleet);
}

fn starts(table: &mut Table, fleet: &Fleet) {
    let mut clean = Vec::new();
    for _ in 0..5 {
        measure::run(&mut fleet.minder(&["daemon", "stop"]), &[0]);
        clean.push(measure::timed(|| fleet.start()));
    }
    let what = "daemon start with 1,000 sessions: to the first answer";
    table.at_most(
        what,
        median(&mut clean).as_secs_f64(),
        "s",
        0.3,
        "`minder daemon start` after a clean stop, median of 5",
    );
    let mut killed = Vec::new();
    for round in 0..5 {
        fleet.each(SESSIONS, |rpc, n| {
            rpc.call(&move_of(n, round));
        });
        let process = Process::open(fleet.status().pid).unwrap().unwrap();
        process.end(Duration::ZERO);
        killed.push(measure::timed(|| fleet.start()));
    }
    let replayed = fleet.status().replayed;
    let how = format!("the same after kill -9, {replayed} commits replayed");
    table.at_most("… after kill -9", median(&mut killed).as_secs_f64(), "s", 1.0, &how);
}

fn rest(table: &mut Table, fleet: &Fleet) {
    measure::let_pass(CHECKPOINT);
    let kernel = Kernel(fleet.status().pid);
    let before = kernel.switches();
    measure::let_pass(IDLE);
    let awake = (kernel.switches() - before) / IDLE.as_secs_f64();
    table.at_most(
        "idle daemon, 1,000 sessions of 20 watchers: wake-ups",
        awake,
        "/s",
        0.05,
        "of all its threads, over 20 s",
    );
    table.at_most("… memory", kernel.kilobytes("VmRSS:") / 1024.0, "MB", 16.0, "resident");
}
