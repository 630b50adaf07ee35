//! Ten thousand sessions with a million lines, beside a hundred: what a call, a declaration, a follower at rest and a
//! daemon at rest cost does not grow with the number of sessions; what must read every session costs as much for each.

use std::path::PathBuf;

use minder_proto::record::Channel;
use minder_proto::rpc;
use minder_proto::state::State;
use minder_tests::fleet;

use crate::strace::{Attached, traced};
use crate::world::{Minderd, Running, World, must};

/// Sessions of the small and of the large store.
const SMALL: usize = 100;
const LARGE: usize = 10_000;
/// Turns whose hooks are measured.
const HOOKS: usize = 100;
/// Lines of each session.
const LINES: u64 = 100;

/// A world with so many sessions, and some that are closed.
fn world(sessions: usize, lines: u64, closed: usize) -> World {
    let world = World::new();
    fleet::write(&world.home(), sessions, lines, closed).unwrap();
    world
}

/// How strace writes a call in which a thread was when it was looked at, and one that it was in at the end.
const BEGUN_BEFORE: [&str; 4] = ["resumed>", "resuming interrupted", "<unfinished ...>", "<detached ...>"];

/// A person's declaration for a session.
fn declaration(n: usize, state: State, note: Option<String>) -> rpc::Declare {
    let session = Some(fleet::label(n));
    rpc::Declare { caller: None, session, state, note, only_if: None, key: None }
}

/// A line of `/proc/PID/status`, in KiB.
fn kib(pid: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Nanoseconds that all threads of a process have run.
fn ran(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |task: std::fs::DirEntry| {
        let times = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        times.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.map(of).sum()
}

/// The system calls of a process while `work` is done.
fn calls_during(world: &World, pid: u32, work: impl FnOnce()) -> Vec<String> {
    let log = world.isolated.root().join("calls");
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).args(["-p", &pid.to_string()]);
    let strace = Attached::new(&mut strace, pid);
    work();
    strace.detach();
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    text.lines().filter(|l| !l.contains("resumed>")).map(str::to_owned).collect()
}

/// The system calls of a program that runs to its end.
fn calls_of(world: &World, line: &str) -> (Vec<String>, i32) {
    let log = world.isolated.root().join("calls");
    let command = world.minder(line.split_whitespace());
    let ran = crate::world::ran(&mut traced(&command, &[], &log), b"");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    (text.lines().map(str::to_owned).collect(), ran.code)
}

/// What one store costs.
#[derive(Debug)]
struct Cost {
    /// System calls of the daemon for 20 declarations.
    declarations: usize,
    /// Its processor time for each of many calls that name a session, in nanoseconds.
    call: u64,
    /// System calls of a client that declares.
    state: usize,
    /// System calls of a client that shows one session.
    show: usize,
    /// Memory of the daemon, in KiB.
    memory: u64,
}

fn cost(world: &World, daemon: &Minderd) -> Cost {
    let mut client = world.client();
    let step = |client: &mut minder_client::rpc::Client, n: usize| {
        let state = if n.is_multiple_of(2) { State::Review } else { State::Working };
        must(client, &declaration(7, state, Some(format!("round {n}"))));
    };
    step(&mut client, 1);
    let memory = kib(daemon.pid(), "VmRSS:");
    let declarations = calls_during(world, daemon.pid(), || (0..20).for_each(|n| step(&mut client, n))).len();
    let get = rpc::Get { session: Some(fleet::label(7)), ..rpc::Get::default() };
    (0..100).for_each(|_| drop(must(&mut client, &get)));
    let before = ran(daemon.pid());
    (0..500).for_each(|_| drop(must(&mut client, &get)));
    let call = (ran(daemon.pid()) - before) / 500;
    let (state, code) = calls_of(world, "state review s9");
    assert_eq!(code, 0);
    let (show, code) = calls_of(world, "show s9 --json");
    assert_eq!(code, 0);
    Cost { declarations, call, state: state.len(), show: show.len(), memory }
}

#[test]
fn what_a_call_costs_does_not_grow_with_the_number_of_sessions() {
    let (small, large) = (world(SMALL, LINES, 0), world(LARGE, LINES, 0));
    each_costs_the_same(&small, &large);
    let few = cost(&small, &small.start());
    let daemon = large.start();
    let many = cost(&large, &daemon);
    let shown = format!("{few:?} with {SMALL} sessions, {many:?} with {LARGE}");
    // Counts vary with how the daemon's threads take turns; what grows with the sessions is a hundred times as much.
    let same = |a: usize, b: usize| b <= 2 * a;
    assert!(same(few.declarations, many.declarations), "{shown}");
    assert!(same(few.state, many.state) && same(few.show, many.show), "{shown}");
    // A look at each session would cost a hundred times as much.
    assert!(many.call < few.call * 4, "{shown}");
    let idle = (many.memory - few.memory) * 1024 / (LARGE - SMALL) as u64;
    assert!(idle <= 2_048, "{idle} bytes for each idle session: {shown}");

    // At rest neither the daemon nor a follower of all of them asks the kernel for anything.
    let mut follower = large.minder(["wait", "@all", "--timeout", "10m"]);
    follower.env("MINDER_FOLLOW_BACKSTOP", "1h");
    let follower = Running::asleep(&mut follower);
    let mut rest = large.minder(["wait", "s3", "--timeout", "3s"]);
    rest.env("MINDER_FOLLOW_BACKSTOP", "1h");
    let calls = calls_during(&large, follower.process.pid(), || {
        let calls = calls_during_rest(&large, daemon.pid(), &mut rest);
        assert!(calls.is_empty(), "the daemon, at rest: {calls:?}");
    });
    assert!(calls.len() <= 1, "the follower, at rest: {calls:?}");
    // One move wakes it, and one timeline is opened.
    let calls = calls_during(&large, follower.process.pid(), || {
        must(&mut large.client(), &declaration(5_000, State::Review, None));
        assert!(follower.process.wait(crate::world::LIMIT), "it goes on waiting");
    });
    let opened: Vec<&String> =
        calls.iter().filter(|c| c.contains("open") && c.contains("/sessions/")).collect();
    assert!(
        opened.len() <= 6 && opened.iter().all(|c| c.contains(&fleet::id(5_000).to_string())),
        "{opened:?}"
    );
}

fn calls_during_rest(world: &World, pid: u32, rest: &mut std::process::Command) -> Vec<String> {
    // Connections end in the order in which they did: those of others are done with once this one is answered.
    let mut client = world.client();
    must(&mut client, &rpc::Status::default());
    let log: PathBuf = world.isolated.root().join("rest");
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).args(["-p", &pid.to_string()]);
    let strace = Attached::new(&mut strace, pid);
    assert_eq!(crate::world::ran(rest, b"").code, 1);
    strace.detach();
    let text = std::fs::read_to_string(&log).unwrap();
    // A thread of the runtime that had work before goes after a while, once.
    let of = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let gone: Vec<String> = text.lines().filter(|l| l.contains(" exit(")).map(of).collect();
    let text = text.lines().filter(|l| !gone.contains(&of(l))).collect::<Vec<_>>().join("\n");
    // What it was in when it was looked at is not new.
    text.lines().filter(|l| !BEGUN_BEFORE.iter().any(|w| l.contains(w))).map(str::to_owned).collect()
}

/// What must read every session costs as much for each.
fn each_costs_the_same(small: &World, large: &World) {
    for line in ["ls --json", "wait @all --timeout 0"] {
        let (few, _) = calls_of(small, line);
        let (many, _) = calls_of(large, line);
        let (base, _) = calls_of(&world(1, LINES, 0), line);
        // In hundredths of a call.
        let each = |calls: usize, n: usize| (calls - base.len()) * 100 / n;
        let (few, many) = (each(few.len(), SMALL), each(many.len(), LARGE));
        assert!(many <= few + few / 5 + 100, "{line}: {many} for each of {LARGE} sessions, {few} of {SMALL}");
    }
}

#[test]
fn j6_what_is_closed_costs_nothing_any_more() {
    let none = world(SMALL, 3, 0);
    let without = cost(&none, &none.start());
    let many = world(SMALL, 3, 5_000);
    let daemon = many.start();
    let with = cost(&many, &daemon);
    let shown = format!("{without:?} with none closed, {with:?} with 5,000");
    let same = |a: usize, b: usize| b <= 2 * a;
    assert!(same(without.declarations, with.declarations) && same(without.state, with.state), "{shown}");
    assert!(same(without.show, with.show) && with.call < without.call * 4, "{shown}");
    // Sessions that were kept would be more than a KiB each; what an allocator holds back is up to one MiB or two.
    assert!(with.memory <= without.memory + 3_072, "{shown}");
    let mut rest = many.minder(["wait", "s3", "--timeout", "3s"]);
    rest.env("MINDER_FOLLOW_BACKSTOP", "1h");
    assert_eq!(calls_during_rest(&many, daemon.pid(), &mut rest), [] as [&str; 0]);
}

#[test]
fn j6_ten_thousand_events_leave_descriptors_and_memory_flat() {
    let world = world(20, 3, 0);
    let daemon = world.start();
    let mut client = world.client();
    let round = |client: &mut minder_client::rpc::Client, from: usize, to: usize| {
        for n in from..to {
            let state = if (n / 20).is_multiple_of(2) { State::Review } else { State::Working };
            must(client, &declaration(n % 20, state, Some("on it".to_owned())));
        }
    };
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    round(&mut client, 0, 2_000);
    let (descriptors, memory) = (open(), kib(daemon.pid(), "VmRSS:"));
    round(&mut client, 2_000, 12_000);
    let (after, grown) = (open(), kib(daemon.pid(), "VmRSS:"));
    assert!(after <= descriptors + 2, "{after} descriptors, {descriptors} before");
    assert!(grown <= memory + 4_096, "{grown} KiB, {memory} KiB before");
    let log = std::fs::metadata(world.home().log()).map_or(0, |m| m.len());
    assert!(log < 1 << 20, "{log} bytes of log");
}

/// The slowest of a hundred hooks, by the daemon's processor time, with so many other sessions in the store; and what the
/// hook's own program asks of the kernel.
fn of_hooks(sessions: usize) -> (u64, usize) {
    let world = world(sessions, 3, 0);
    let daemon = world.start();
    let (s, w) = (world.session_by("worker", Channel::Hook), world.session("asker"));
    let mut client = world.client();
    let mut times = Vec::new();
    for n in 0..HOOKS {
        let turn = format!("p{n}");
        if n % 10 == 0 {
            must(&mut client, &w.letter(&s, "hello"));
        }
        for event in ["UserPromptSubmit", "PostToolUse", "Stop"] {
            let before = ran(daemon.pid());
            s.hook(&mut client, event, &turn, serde_json::json!({"prompt": "go on", "tool_name": "Bash"}));
            times.push(ran(daemon.pid()) - before);
        }
    }
    times.sort_unstable();
    let log = world.isolated.root().join("calls");
    let payload = serde_json::json!({
        "session_id": s.conversation, "hook_event_name": "PostToolUse", "prompt_id": "p0", "tool_name": "Bash",
    });
    let hook = world.minder(["hook", "claude"]);
    let done = crate::world::ran(&mut traced(&hook, &[], &log), payload.to_string().as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    let calls = std::fs::read_to_string(&log).unwrap().lines().count();
    (times[times.len() * 99 / 100], calls)
}

#[test]
fn h4_the_slowest_hook_of_a_hundred_costs_no_more_with_a_thousand_sessions() {
    let (few, many) = (of_hooks(1), of_hooks(1_000));
    let shown = format!("{few:?} with one session, {many:?} with a thousand");
    // A look at each session would be a thousand times as much.
    assert!(many.0 < few.0 * 10 && many.1 <= few.1 + few.1 / 4, "{shown}");
}
