//! What it costs to wait, and how soon a wait is over.

use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use crate::fleet::{Fleet, move_of};
use crate::measure::{self, Kernel, median, percentile};
use crate::table::Table;

/// How long an idle follower is watched.
const IDLE: Duration = Duration::from_secs(10);

pub fn rows(table: &mut Table) {
    for sessions in [10, 1_000] {
        let fleet = Fleet::new(sessions);
        calls(table, &fleet, sessions);
        if sessions == 1_000 {
            idle(table, &fleet);
            ready(table, &fleet);
            latency(table, &fleet);
        }
    }
}

/// A wait that has come to rest. It has a position, so that nothing is missed before it sleeps.
fn waiting(fleet: &Fleet, sessions: &[&str]) -> Child {
    let mut args = vec!["wait", "--name", "bench", "--timeout", "10m"];
    args.extend(sessions);
    let mut command = fleet.minder(&args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    Kernel(child.id()).wait_for_poll();
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn calls(table: &mut Table, fleet: &Fleet, sessions: usize) {
    let child = waiting(fleet, &[]);
    let trace = fleet.isolated.root().join("trace");
    let mut strace = Command::new("strace")
        .args(["-f", "-qq", "-o", trace.to_str().unwrap(), "-p", &child.id().to_string()])
        .stdin(Stdio::null())
        .spawn()
        .expect("strace is installed by tests/setup.sh");
    measure::let_pass(IDLE);
    let interrupt = rustix::process::Pid::from_child(&strace);
    rustix::process::kill_process(interrupt, rustix::process::Signal::INT).unwrap();
    strace.wait().unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    let looks = text.lines().filter(|line| line.contains("stat")).count() as f64;
    // A call that was under way when the trace began, and one when it ended.
    let all =
        text.lines().filter(|line| !line.contains("resumed") && !line.contains("detached")).count() as f64;
    let second = IDLE.as_secs_f64();
    let what = format!("idle `wait` on {sessions} sessions: looks at a file");
    table.at_most(&what, looks / second, "/s", 0.5, "counted with strace over 10 s");
    table.at_most(
        "… system calls beside those and the sleeps between them",
        ((all - 2.0 * looks) / second).max(0.0),
        "/s",
        0.2,
        "the same",
    );
    end(child);
}

fn idle(table: &mut Table, fleet: &Fleet) {
    let child = waiting(fleet, &[]);
    let kernel = Kernel(child.id());
    let before = kernel.ticks();
    measure::let_pass(IDLE);
    let spent = (kernel.ticks() - before) * 10.0 / IDLE.as_secs_f64();
    table.at_most("… processor time, 1,000 sessions", spent, "ms/s", 0.1, "the kernel's count");
    table.at_most(
        "… memory, 1,000 sessions",
        kernel.kilobytes("VmRSS:") / 1024.0,
        "MB",
        4.0,
        "resident, of which the program's file is a part",
    );
    end(child);
}

fn ready(table: &mut Table, fleet: &Fleet) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..30 {
        let start = Instant::now();
        let child = waiting(fleet, &[]);
        times.push(start.elapsed());
        end(child);
    }
    table.at_most(
        "`wait` on 1,000 sessions: start to asleep",
        ms(median(&mut times)),
        "ms",
        20.0,
        "median of 30",
    );
}

/// From the moment at which a program that only sleeps on the feed is woken.
fn latency(table: &mut Table, fleet: &Fleet) {
    let feed = fleet.isolated.minder_home().join("feed.jsonl");
    let mut rpc = fleet.rpc();
    let mut late = Vec::new();
    for round in 0..200 {
        let moved = round * 2 + 1;
        rpc.call(&move_of(7, moved - 1));
        let mut child = waiting(fleet, &["s7"]);
        let notify = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&notify, &feed, inotify::WatchFlags::MODIFY).unwrap();
        let (bell, left) = std::thread::scope(|scope| {
            let bell = scope.spawn(|| {
                let mut watched = [PollFd::from_borrowed_fd(notify.as_fd(), PollFlags::IN)];
                poll(&mut watched, None).unwrap();
                Instant::now()
            });
            let left = scope.spawn(|| {
                assert!(child.wait().unwrap().success());
                Instant::now()
            });
            rpc.call(&move_of(7, moved));
            (bell.join().unwrap(), left.join().unwrap())
        });
        late.push(left.saturating_duration_since(bell));
    }
    table.at_most(
        "commit → `wait` has exited, median",
        ms(median(&mut late)),
        "ms",
        2.0,
        "from the wake-up of a program that only sleeps on the feed; 200 times, 1,000 sessions",
    );
    table.at_most("… 99 of 100", ms(percentile(&mut late, 99)), "ms", 20.0, "the same");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
