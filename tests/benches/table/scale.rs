//! Ten thousand sessions with a million lines: as ratios to a store a tenth or a hundredth of that size.

use std::process::Command;
use std::time::Duration;

use minder_proto::layout::Home;
use minder_tests::fleet;
use minder_tests::isolate::Isolated;

use crate::fleet::Fleet;
use crate::measure::{self, Kernel, median, timed};
use crate::rpc::Rpc;
use crate::table::Table;

const LINES: u64 = 100;
const ROUNDS: usize = 5;

pub fn rows(table: &mut Table) {
    let [small, middle, large] = [100, 1_000, 10_000].map(store);
    starts(table, &middle, &large);
    readers(table, &middle, &large);
    small.start();
    commits(table, &small, &large);
    let memory = |fleet: &Fleet| Kernel(fleet.status().pid).kilobytes("VmRSS:");
    let each = (memory(&large) - memory(&small)) / 9_900.0;
    table.at_most(
        "memory of the daemon for each idle session",
        each,
        "KiB",
        2.0,
        "10,000 sessions, less 100",
    );
}

fn store(sessions: usize) -> Fleet {
    let isolated = Isolated::new().unwrap();
    fleet::write(&Home::at(isolated.minder_home()), sessions, LINES, 0).unwrap();
    Fleet { isolated }
}

fn seconds(mut work: impl FnMut() -> Duration) -> f64 {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| work()).collect();
    median(&mut times).as_secs_f64()
}

fn starts(table: &mut Table, middle: &Fleet, large: &Fleet) {
    let start = |fleet: &Fleet| {
        let took = timed(|| fleet.start());
        measure::run(&mut fleet.minder(&["daemon", "stop"]), &[0]);
        took
    };
    let (base, ours) = (seconds(|| start(middle)), seconds(|| start(large)));
    let how = "to the first answer; 1,000,000 lines, beside 1,000 sessions of 100 lines";
    table.at_most("10,000 sessions: daemon start", ours / base, "×", 12.0, how);
    large.start();
    middle.start();
}

fn readers(table: &mut Table, middle: &Fleet, large: &Fleet) {
    let records = large.isolated.minder_home().join("sessions");
    let cat = || {
        let mut find = Command::new("find");
        find.arg(&records).args(["-name", "session.json", "-exec", "cat", "{}", "+"]);
        timed(|| measure::run(&mut find, &[0]))
    };
    let ls = || timed(|| measure::run(&mut large.minder(&["ls", "--json"]), &[0]));
    let (base, ours) = (seconds(cat), seconds(ls));
    table.at_most("… `ls`", ours / base, "×", 4.0, "beside `find -exec cat` of the same records");
    let wait = |fleet: &Fleet| {
        timed(|| measure::run(&mut fleet.minder(&["wait", "@all", "--timeout", "0"]), &[0, 1]))
    };
    let (base, ours) = (seconds(|| wait(middle)), seconds(|| wait(large)));
    table.at_most("… `wait @all`, looking once", ours / base, "×", 12.0, "beside 1,000 sessions");
}

fn commits(table: &mut Table, small: &Fleet, large: &Fleet) {
    let step = |rpc: &mut Rpc, round: usize| {
        rpc.call(&crate::fleet::move_of(7, round));
    };
    let (mut few, mut many) = (small.rpc(), large.rpc());
    let (mut a, mut b) = (0, 0);
    let ratio = measure::ratio(
        40,
        || {
            a += 1;
            step(&mut few, a);
        },
        || {
            b += 1;
            step(&mut many, b);
        },
    );
    table.at_most("… one declaration, durable", ratio, "×", 1.2, "beside 100 sessions");
}
