//! Starting and stopping: one daemon per store, readiness told, failures told (E1, E2, E4, E8, E9).

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use minder_client::rpc::{CallError, Client, Start, Unreachable};
use minder_proto::rpc::Stop;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::raw::{DEADLINE, Raw, call};
use crate::surroundings::{MINDERD, Surroundings, hello, until_unlocked, who, within};

#[test]
fn help_and_version_act_on_nothing() {
    let around = Surroundings::new();
    for (flag, begins) in [("--help", "minderd minds"), ("--version", "minderd ")] {
        let output = around.minderd().arg(flag).stdout(Stdio::piped()).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().starts_with(begins));
    }
    let output =
        around.minderd().args(["--foreground", "--frobnicate"]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--frobnicate"));
    assert!(around.path("state").symlink_metadata().is_err(), "nothing was made");
}

#[test]
fn e1_what_the_lock_file_says_decides_nothing() {
    let mut zombie = std::process::Command::new("/bin/true").spawn().unwrap();
    let living = std::process::id();
    for text in [
        String::new(),
        "what?".into(),
        format!("pid {living}\n"),
        format!("pid {}\n", zombie.id()),
        format!("{living}"),
    ] {
        let around = Surroundings::new();
        std::fs::create_dir_all(around.home().run()).unwrap();
        std::fs::write(around.home().lock(), &text).unwrap();
        std::fs::write(around.home().run().join("start.lock"), &text).unwrap();
        let daemon = around.started();
        assert_eq!(who(&mut around.client()).pid, daemon.pid(), "{text:?}");
        let says = std::fs::read_to_string(around.home().lock()).unwrap();
        assert!(says.starts_with(&format!("pid {}\nsince 2", daemon.pid())), "{says}");
        assert!(says.contains(minder_proto::VERSION), "{says}");
    }
    zombie.wait().unwrap();
}

#[test]
fn e2_of_twenty_starts_one_serves_and_every_starter_is_told() {
    let around = Surroundings::new();
    let mut all: Vec<_> = (0..20).map(|_| around.launch(around.minderd())).collect();
    for one in &mut all {
        assert_eq!(one.said(), "ready\n", "{}", one.log());
    }
    let serving = who(&mut around.client()).pid;
    for one in all.iter_mut().filter(|d| d.pid() != serving) {
        assert_eq!(one.code(), Some(73));
        let log = one.log();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(&format!("(pid {serving})")), "{log}");
    }
    assert_eq!(all.iter().filter(|d| d.pid() == serving).count(), 1);
}

#[test]
fn e2_twenty_clients_that_start_one_get_answers_from_the_same() {
    let around = Surroundings::new();
    let gate = Arc::new(Barrier::new(20));
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let (mut client, gate) = (around.starting_client(), Arc::clone(&gate));
            std::thread::spawn(move || {
                gate.wait();
                who(&mut client).pid
            })
        })
        .collect();
    let pids: HashSet<_> = clients.into_iter().map(|c| c.join().unwrap()).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn a_start_waits_for_another_that_is_under_way_and_takes_over_if_it_dies() {
    let around = Surroundings::new();
    // This process is in the middle of a start.
    std::fs::create_dir_all(around.home().run()).unwrap();
    let start = std::fs::File::create(around.home().run().join("start.lock")).unwrap();
    start.lock().unwrap();
    let waiting = around.launch(around.minderd());
    let (tell, hear) = mpsc::channel();
    std::thread::spawn(move || {
        let mut waiting = waiting;
        let said = waiting.said();
        tell.send((said, waiting)).ok();
    });
    assert!(hear.recv_timeout(Duration::from_millis(200)).is_err(), "it waits");
    drop(start);
    let (said, waiting) = hear.recv_timeout(DEADLINE).unwrap();
    assert_eq!(said, "ready\n");
    assert_eq!(who(&mut around.client()).pid, waiting.pid());
}

/// A terminal multiplexer, or whoever else started it, may hold signals back in its children.
#[test]
fn signals_that_a_starter_held_back_end_it_all_the_same() {
    let around = Surroundings::new();
    let mut command = around.command("env");
    command.arg("--block-signal=TERM").arg(MINDERD);
    let mut daemon = around.start(command);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.code(), Some(0));
}

#[test]
fn one_that_comes_while_another_goes_takes_over() {
    let around = Surroundings::new();
    let mut first = around.started();
    // A call that it must still answer keeps it: half a request, for as long as its grace.
    let mut half = Raw::connect(&around.socket());
    half.send("POST / HTTP/1.1\r\n");
    first.signal(Signal::SIGTERM);
    let mut other = Raw::connect_until_gone(&around.socket());
    let second = around.started();
    assert_eq!(who(&mut around.client()).pid, second.pid());
    assert_eq!(first.code(), Some(0));
    assert!(other.take().is_none_or(|mut o| o.answer().is_none()));
}

#[test]
fn e8_a_start_that_fails_is_told_at_once_with_its_code() {
    let failing = |prepare: &dyn Fn(&Surroundings) -> Vec<(&'static str, PathBuf)>,
                   code: i32,
                   names: &str| {
        let around = Surroundings::new();
        let mut command = around.minderd();
        command.envs(prepare(&around));
        let mut daemon = around.launch(command);
        let said = daemon.said();
        assert!(said.starts_with(&format!("error {code} ")) && said.contains(names), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert_eq!(daemon.code(), Some(code));
        assert!(daemon.log().contains(said.trim_end().splitn(3, ' ').nth(2).unwrap()), "{}", daemon.log());
    };
    failing(&|_| vec![("MINDER_HOME", "relative/place".into())], 78, "MINDER_HOME");
    failing(&|_| vec![("MINDER_SOCKET", "s.sock".into())], 78, "MINDER_SOCKET");
    failing(&|_| vec![("MINDER_HOME", "/proc/minder".into())], 74, "/proc/minder");
    failing(
        &|around| {
            std::fs::write(around.path("file"), "").unwrap();
            vec![("MINDER_HOME", around.path("file"))]
        },
        77,
        "no folder",
    );
    failing(
        &|around| {
            std::fs::write(around.path("file.sock"), "precious").unwrap();
            vec![("MINDER_SOCKET", around.path("file.sock"))]
        },
        78,
        "no socket",
    );
}

#[test]
fn e8_the_client_passes_a_failed_start_on() {
    let around = Surroundings::new();
    let mut starter = around.starter(MINDERD.into());
    starter.environment.push(("MINDER_HOME".into(), "/proc/minder".into()));
    let start = Start::This(starter);
    // Far more patience than the test has: what it is told is not that its time ran out.
    let patience = Some(Duration::from_secs(600));
    let mut client = Client::new(around.endpoint(), start).patience(patience);
    let error = within(move || client.call(&hello()).unwrap_err());
    assert_eq!(error.exit_code(), 74, "{error}");
    assert!(error.to_string().contains("/proc/minder"), "{error}");
}

#[test]
fn e4_a_frozen_daemon_is_not_answering_and_no_second_one_is_started() {
    let around = Surroundings::new();
    let daemon = around.started();
    daemon.signal(Signal::SIGSTOP);
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let mut client = around.starting_client().patience(Some(Duration::from_millis(300)));
            std::thread::spawn(move || client.call(&hello()).unwrap_err())
        })
        .collect();
    for caller in callers {
        let error = caller.join().unwrap();
        assert!(matches!(error, CallError::Unreachable(Unreachable::NotAnswering(Some(_)))), "{error}");
        assert_eq!(error.exit_code(), 69);
        assert!(error.to_string().contains("not answering"), "{error}");
    }
    // A start by hand is answered in time too: who holds the lock is served by, as far as anybody can tell.
    let mut second = around.launch(around.minderd());
    assert_eq!(second.said(), "ready\n");
    assert_eq!(second.code(), Some(73));
    daemon.signal(Signal::SIGCONT);
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
}

#[test]
fn e9_restarts_lose_no_call() {
    let around = Surroundings::new();
    let mut watching = around.starting_client();
    who(&mut watching);
    let (stop, stopped) = mpsc::channel::<()>();
    let (tell, hear) = mpsc::channel();
    let (endpoint, starter) = (around.endpoint(), around.starter(PathBuf::from(MINDERD)));
    let fresh = move || Client::new(endpoint.clone(), Start::This(starter.clone()));
    let caller = std::thread::spawn(move || {
        let mut calls = 0;
        let mut calling = fresh();
        while stopped.try_recv().is_err() {
            // Both ways: on a kept connection, and on a new one.
            if calls % 3 == 0 {
                calling = fresh();
            }
            tell.send(who(&mut calling).pid).unwrap();
            calls += 1;
        }
        calls
    });
    for _ in 0..10 {
        let before = who(&mut watching).pid;
        kill(Pid::from_raw(i32::try_from(before).unwrap()), Signal::SIGTERM).unwrap();
        let begun = Instant::now();
        let after = loop {
            let pid = who(&mut watching).pid;
            if pid != before {
                break pid;
            }
            assert!(begun.elapsed() < DEADLINE);
        };
        // Each of the daemons has had a call of the other one.
        while hear.recv_timeout(DEADLINE).unwrap() != after {}
    }
    stop.send(()).unwrap();
    assert!(caller.join().unwrap() >= 10);
}

#[test]
fn a_stop_by_call_answers_first() {
    let around = Surroundings::new();
    let mut daemon = around.started();
    let answer = around.client().unchecked().call(&Stop::default()).unwrap();
    assert_eq!(answer["pid"], daemon.pid());
    assert_eq!(daemon.code(), Some(0));
}

#[test]
fn what_the_client_started_stands_alone_and_keeps_a_log() {
    let around = Surroundings::new();
    let mut client = around.starting_client();
    let pid = who(&mut client).pid;
    let proc = PathBuf::from(format!("/proc/{pid}"));
    assert_eq!(std::fs::read_link(proc.join("cwd")).unwrap(), PathBuf::from("/"));
    for standard in 0..3 {
        assert_eq!(
            std::fs::read_link(proc.join(format!("fd/{standard}"))).unwrap(),
            PathBuf::from("/dev/null")
        );
    }
    let log = around.home().log();
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(log.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(std::fs::read_to_string(&log).unwrap().contains("serves"), "{log:?}");
    client.call(&Stop::default()).unwrap();
    until_unlocked(&around.home());
    assert!(std::fs::read_to_string(&log).unwrap().contains("minderd ends"));
}

#[test]
fn a_hangup_ends_nothing() {
    let around = Surroundings::new();
    let daemon = around.started();
    daemon.signal(Signal::SIGHUP);
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
}

#[test]
fn every_descriptor_of_the_daemon_is_its_own() {
    let around = Surroundings::new();
    // Some that its starter left open, as shells do.
    let mut command = around.command("/bin/sh");
    command.args(["-c", "exec 5</dev/null 7>/dev/null 9<>/dev/null; exec \"$0\" \"$@\"", MINDERD]);
    let daemon = around.start(command);
    who(&mut around.client());
    let mut seen = 0;
    for entry in std::fs::read_dir(format!("/proc/{}/fdinfo", daemon.pid())).unwrap() {
        let entry = entry.unwrap();
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        if number < 3 {
            continue;
        }
        let Ok(info) = std::fs::read_to_string(entry.path()) else { continue };
        let flags = info.lines().find_map(|l| l.strip_prefix("flags:")).unwrap().trim();
        assert!(
            u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000 != 0,
            "descriptor {number} would be inherited"
        );
        let target = std::fs::read_link(format!("/proc/{}/fd/{number}", daemon.pid())).unwrap_or_default();
        assert_ne!(target, PathBuf::from("/dev/null"), "descriptor {number} was left open");
        seen += 1;
    }
    assert!(seen >= 3, "the locks and the socket at least");
}

#[test]
fn p5_without_descriptors_it_waits_and_does_not_spin() {
    let around = Surroundings::new();
    let mut command = around.command("/bin/sh");
    command.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\"", MINDERD]);
    let daemon = around.start(command);
    // Each in the middle of its request, so that none is closed as idle meanwhile.
    let crowd: Vec<_> = (0..60)
        .map(|_| {
            let mut one = Raw::connect(&around.socket());
            one.send("POST / HTTP/1.1\r\n");
            one
        })
        .collect();
    let before = ran(&format!("/proc/{}", daemon.pid()));
    let spinning = Arc::new(AtomicBool::new(true));
    let spinner = {
        let spinning = Arc::clone(&spinning);
        std::thread::spawn(move || {
            while spinning.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            ran("/proc/thread-self")
        })
    };
    let refused = around.client().patience(Some(Duration::from_millis(800))).call(&hello()).unwrap_err();
    assert!(matches!(refused, CallError::Unreachable(Unreachable::NotAnswering(_))), "{refused}");
    let spent = ran(&format!("/proc/{}", daemon.pid())).saturating_sub(before);
    spinning.store(false, Ordering::Relaxed);
    let spun = spinner.join().unwrap();
    assert!(spent * 4 < spun, "{spent:?}, where one that spins had {spun:?}");
    assert_eq!(daemon.log().matches("no connection can be accepted").count(), 1, "{}", daemon.log());
    drop(crowd);
    assert_eq!(who(&mut around.client()).pid, daemon.pid());
    assert_eq!(Raw::connect(&around.socket()).call(&call(1, "no.such")).status, 200);
}

/// How long what this folder of `/proc` is about has run so far, without what it waited.
fn ran(folder: &str) -> Duration {
    let times = std::fs::read_to_string(format!("{folder}/schedstat")).unwrap();
    Duration::from_nanos(times.split_whitespace().next().unwrap().parse().unwrap())
}
