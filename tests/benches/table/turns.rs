//! Supervised turns: what one costs beside `timeout`, what its shim holds, and how long the end of a tree takes.

use std::process::Stdio;
use std::time::Duration;

use minder_tests::process::{self, Process};

use crate::fleet::Fleet;
use crate::measure::{self, Kernel, median, ratio};
use crate::table::Table;

/// Processes of the tree, its root included: sessions and groups of their own, deaf to SIGTERM.
const TREE: usize = 50;

pub fn rows(table: &mut Table) {
    let fleet = Fleet::new(1);
    let plain = || measure::run(fleet.isolated.command("timeout").args(["10", "true"]), &[0]);
    let turn = || measure::run(&mut fleet.minder(&["turn", "run", "--", "true"]), &[0]);
    let figure = ratio(300, plain, turn);
    table.at_most("a supervised turn of `true`, whole process", figure, "×", 1.3, "`timeout 10 true`");
    shim(table, &fleet);
    tree(table, &fleet);
}

/// Processes of the fleet's that were started with this word as their last argument.
fn with_word(word: &str) -> Vec<Process> {
    process::find(|p| p.arguments().is_some_and(|a| a.last().is_some_and(|last| last == word)))
}

/// Comes back with this many of them.
fn wait_for(word: &str, many: usize) -> Vec<Process> {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let found = with_word(word);
        if found.len() == many {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "{} of {many} {word}", found.len());
        measure::let_pass(Duration::from_millis(5));
    }
}

fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    after.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn shim(table: &mut Table, fleet: &Fleet) {
    let word = "86391";
    let mut command = fleet.minder(&["turn", "run", "--", "sleep", word]);
    let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let root = wait_for(word, 2).into_iter().find(|p| p.comm().as_deref() == Some("sleep")).unwrap();
    let shim = Kernel(parent_of(root.pid()));
    table.at_most("… the shim's own memory", shim.private() / 1024.0, "MB", 1.5, "private, resident");
    client.kill().unwrap();
    client.wait().unwrap();
    root.signal(rustix::process::Signal::KILL);
    root.wait(Duration::from_secs(60));
}

/// From the word to the answer that nothing is left.
fn tree(table: &mut Table, fleet: &Fleet) {
    let word = "86392";
    let script = format!(
        "trap '' TERM INT HUP; n=1; while [ $n -lt {TREE} ]; do \
         if [ $((n % 2)) = 0 ]; then setsid sleep {word} & else (sleep {word} &) fi; n=$((n + 1)); done; wait; \
         exec sleep {word}"
    );
    let mut times = Vec::new();
    let mut survivors = 0;
    for _ in 0..10 {
        let mut command =
            fleet.minder(&["turn", "run", "--seat", "tree", "--grace", "0", "--", "sh", "-c", &script]);
        let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let all = wait_for(word, TREE - 1);
        times.push(measure::timed(|| {
            // SIGTERM to the caller is a cancel; it comes back when the turn is settled.
            let process = Process::open(client.id()).unwrap().unwrap();
            process.signal(rustix::process::Signal::TERM);
            client.wait().unwrap();
        }));
        survivors += all.iter().filter(|p| !p.wait(Duration::ZERO)).count();
        all.iter().for_each(|p| {
            p.signal(rustix::process::Signal::KILL);
        });
    }
    let how = format!(
        "{TREE} processes, half in sessions of their own, all deaf to SIGTERM; median of 10, with the cancel"
    );
    table.at_most("… the end of a tree", median(&mut times).as_secs_f64() * 1e3, "ms", 20.0, &how);
    table.at_most("… what it leaves", survivors as f64, "", 0.0, "processes, of 10 trees");
}
