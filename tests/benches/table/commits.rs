//! What it costs to be durable: declarations with watchers, messages from many senders.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use minder_proto::rpc::Send;

use crate::fleet::{Fleet, caller, move_of};
use crate::measure::{self, Log, ratio};
use crate::table::Table;

/// Senders at one time, and messages of each.
const SENDERS: usize = 64;
const EACH: usize = 30;

pub fn rows(table: &mut Table) {
    for (watchers, most) in [(1, 1.5), (100, 1.5), (1_000, 3.0)] {
        declared(table, watchers, most);
    }
    senders(table);
}

fn declared(table: &mut Table, watchers: usize, most: f64) {
    let fleet = Fleet::new(watchers + 1);
    fleet.each(watchers, |rpc, n| Fleet::watch(rpc, n + 1, "s0"));
    let mut log = Log::new(&fleet.isolated.root().join("floor"));
    let mut rpc = fleet.rpc();
    let before = fleet.status();
    let mut round = 0;
    let declare = || {
        round += 1;
        rpc.call(&move_of(0, round));
    };
    let rounds = 200;
    let figure = ratio(rounds, || log.append(), declare);
    let after = fleet.status();
    let what = format!("a state with {watchers} watchers, durable");
    table.at_most(&what, figure, "×", most, "one append with fdatasync");
    let flushes = (after.flushes - before.flushes) as f64 / (rounds + 1) as f64;
    table.at_most(
        &format!("… flushes of the journal for each, {watchers} watchers"),
        flushes,
        "",
        1.0,
        "counted by the daemon",
    );

    if watchers == 100 {
        let folder = fleet.isolated.root().join("naive");
        std::fs::create_dir(&folder).unwrap();
        let mut logs: Vec<Log> = (0..=watchers).map(|n| Log::new(&folder.join(n.to_string()))).collect();
        let each = || logs.iter_mut().for_each(Log::append);
        let declare = || {
            round += 1;
            rpc.call(&move_of(0, round));
        };
        let figure = 1.0 / ratio(10, each, declare);
        table.at_least(
            "… against a flush for each file, 100 watchers",
            figure,
            "×",
            20.0,
            "101 appends with fdatasync; how much longer they take",
        );
    }
}

fn senders(table: &mut Table) {
    let fleet = Fleet::new(2);
    let mut log = Log::new(&fleet.isolated.root().join("floor"));
    let count = SENDERS * EACH;
    let alone = measure::timed(|| (0..count / 10).for_each(|_| log.append())) * 10;
    let before = fleet.status();
    let started = Instant::now();
    let sent = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                let mut rpc = fleet.rpc();
                for _ in 0..EACH {
                    let n = sent.fetch_add(1, Ordering::Relaxed);
                    // Two queues, neither of which may be full.
                    let to = format!("s{}", n % 2);
                    let body = format!("message {n}");
                    rpc.call(&Send {
                        caller: Some(caller(1 - n % 2)),
                        to: Some(to),
                        body,
                        ..Send::default()
                    });
                }
            });
        }
    });
    let together = started.elapsed();
    let after = fleet.status();
    let flushes = (after.flushes - before.flushes) as f64;
    let figure = alone.as_secs_f64() / together.as_secs_f64();
    table.at_least(
        &format!("{count} messages of {SENDERS} senders, durable"),
        figure,
        "×",
        20.0,
        "as fast as one append with fdatasync for each",
    );
    table.at_least("… messages for each flush", count as f64 / flushes, "", 20.0, "counted by the daemon");
}
