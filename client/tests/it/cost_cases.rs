//! What following costs, in system calls: the cases A7 and A8.

use std::time::Duration;

use crate::scene::{Running, Scene, Who, calls_from_now, is_poll};

#[test]
fn a7_following_needs_nobody() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    // Somebody listens who never answers, and somebody who is not there: nobody is asked.
    let run = scene.store.home().run();
    std::fs::create_dir_all(&run).unwrap();
    let _deaf = std::os::unix::net::UnixListener::bind(run.join("minder.sock")).unwrap();
    std::os::unix::fs::symlink(run.join("minder.sock"), run.join("socket")).unwrap();
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    let mut traced = scene.traced(&["-e", "trace=network,process"], "wait w --timeout 30");
    traced.running.error("wakes nobody");
    scene.store.state(w, "review");
    let (ran, calls) = traced.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let forbidden: Vec<_> =
        calls.iter().filter(|c| !c.starts_with("execve(") && !c.contains("exit")).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    assert!(!ran.err.contains("offline") && !ran.out.contains("offline"));
}

#[test]
fn a8_waiting_costs_nothing() {
    let (mut scene, s) = Scene::with_supervisor();
    let targets: Vec<_> = (0..100).map(|n| scene.store.session(&format!("w{n}"))).collect();
    let text = "x".repeat(2_000);
    for _ in 0..1_000 {
        let (id, seq) = scene.store.message(s, "operator", &text);
        scene.store.settle(s, id, seq, "seen");
    }
    scene.store.state(targets[0], "working");
    let mut command = scene.command(Who::Session("s"), crate::scene::MINDER);
    command.args(["wait", "--timeout", "3s"]).env("MINDER_FOLLOW_BACKSTOP", "500ms");
    let running = Running::spawn(command);
    running.wait_until_it_sleeps();
    let (ran, calls) = calls_from_now(&scene, running);
    assert_eq!(ran.code, 1, "{ran:?}");
    let first = calls.iter().position(|c| is_poll(c)).unwrap();
    let last = calls.iter().rposition(|c| is_poll(c)).unwrap();
    let (asleep, looks): (Vec<_>, Vec<_>) = calls[first..=last].iter().partition(|c| is_poll(c));
    // On a machine that is busy with others a sleep may be longer than asked for, and they are fewer.
    assert!(asleep.len() <= 7, "3 s over a floor of 0.5 s: {asleep:?}");
    assert!(looks.len() < asleep.len(), "one look at the feed for each: {looks:?}");
    assert!(looks.iter().all(|c| c.contains("stat") && c.contains("feed.jsonl")), "{looks:?}");
}

#[test]
fn a8_a_thousand_targets_are_ready_at_once_and_cost_one_write() {
    let (mut scene, s) = Scene::with_supervisor();
    let mut sessions = 0;
    let mut begin = |scene: &mut Scene, until: usize| {
        for n in sessions..until {
            let id = scene.store.session(&format!("w{n}"));
            scene.store.state(id, "working");
        }
        sessions = until;
        let running = scene.start(Who::Session("s"), "wait --timeout 10m");
        running.wait_until_it_sleeps();
        // The machine is shared: what it ran, not what it waited for its turn.
        let ran = running.time_on_a_processor();
        let resident = running.resident_kib();
        running.signal(rustix::process::Signal::INT);
        assert_eq!(running.end().code, 130);
        let follows = scene.cursors(s)["follows"].as_object().unwrap().len();
        assert_eq!(follows, until);
        std::fs::remove_file(scene.store.dir(s).join("cursors.json")).unwrap();
        (ran, resident)
    };
    let (some, _) = begin(&mut scene, 100);
    let (all, resident) = begin(&mut scene, 1_000);
    // A square of the number would be a hundred times as much.
    assert!(all < some * 30, "{all:?} for 1,000, {some:?} for 100");
    assert!(resident <= 4 * 1024, "{resident} KiB");
    // What it asks of the kernel is a few calls for each of them, and one to sleep.
    let traced = scene.traced_over("1h", &["-e", "trace=all"], "wait --timeout 10m");
    traced.wait_until_it_polls(1);
    let asked = traced.calls().len();
    assert!(asked <= 1_000 * 14 + 500, "{asked} calls");
    let last = scene.store.session("last");
    scene.store.state(last, "review");
    assert_eq!(traced.end().0.code, 0);
    std::fs::remove_file(scene.store.dir(s).join("cursors.json")).unwrap();
    let (ran, calls) = scene.traced(&["-e", "trace=rename,renameat,renameat2"], "wait --timeout 50ms").end();
    assert_eq!(ran.code, 1);
    assert_eq!(calls.iter().filter(|c| c.starts_with("rename")).count(), 1, "{calls:?}");
    // With all places known there is nothing to write.
    let (ran, calls) = scene.traced(&["-e", "trace=rename,renameat,renameat2"], "wait --timeout 50ms").end();
    assert_eq!((ran.code, calls.iter().filter(|c| c.starts_with("rename")).count()), (1, 0), "{calls:?}");
}

#[test]
fn a8_only_what_grew_is_opened() {
    let (mut scene, _) = Scene::with_supervisor();
    let targets: Vec<_> = (0..50).map(|n| scene.store.session(&format!("w{n}"))).collect();
    let traced = scene.traced(&["-e", "trace=open,openat,poll,ppoll"], "wait --timeout 30");
    traced.wait_until_it_polls(1);
    scene.store.state(targets[7], "working");
    traced.wait_until_it_polls(2);
    scene.store.state(targets[7], "review");
    let (ran, calls) = traced.end();
    assert_eq!(ran.code, 0);
    let first = calls.iter().position(|c| is_poll(c)).unwrap();
    let opened: Vec<_> = calls[first..].iter().filter(|c| c.contains("timeline")).collect();
    assert!(!opened.is_empty() && opened.iter().all(|c| c.contains(&targets[7].to_string())), "{opened:?}");
    assert!(opened.len() <= 3, "{opened:?}");
}

#[test]
fn a8_an_idle_stream_costs_nothing_and_ends_when_nobody_reads() {
    let mut scene = Scene::new();
    scene.store.session("w");
    let mut shell = scene.command(Who::Person, "sh");
    shell.args(["-c", "\"$0\" watch stream --json | head -n 1", crate::scene::MINDER]);
    shell.env("MINDER_FOLLOW_BACKSTOP", "1h");
    let mut running = Running::spawn(shell);
    // The pipe ends with its reader: nothing more is written, and the stream ends all the same.
    let new = loop {
        let id = scene.store.session(&format!("new-{}", uuid()));
        if let Some(line) = running.line_within(Duration::from_millis(100)) {
            assert!(line.contains(r#""event":"new""#), "{line} {id}");
            break line;
        }
    };
    assert!(!new.is_empty());
    assert_eq!(running.end().code, 0);
}

fn uuid() -> String {
    minder_proto::id::SessionId::random().short()
}
