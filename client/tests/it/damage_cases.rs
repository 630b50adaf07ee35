//! Positions and files that are not as they were left: the cases A9 and A10.

use std::io::Write;

use minder_proto::id::SessionId;
use rustix::process::Signal;
use serde_json::Value;

use crate::scene::{Ran, Running, Scene, Who};

fn write_cursors(scene: &Scene, s: SessionId, text: &str) {
    std::fs::write(scene.store.dir(s).join("cursors.json"), text).unwrap();
}

/// The objects on standard error that tell of a gap.
fn gaps(ran: &Ran) -> Vec<Value> {
    let objects = ran.err.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    objects.filter(|o| o["event"] == "gap").collect()
}

#[test]
fn a9_a_lost_position_is_a_gap_and_not_a_beginning() {
    let (mut scene, s) = Scene::with_supervisor();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    for id in [w, a] {
        scene.store.state(id, "working");
        scene.store.state(id, "review");
        scene.store.state(id, "working");
    }
    assert_eq!(scene.s("wait w,a --timeout 0").code, 1);

    write_cursors(&scene, s, "\0\0 not json");
    let ran = scene.s("wait w,a --timeout 0 --json");
    assert_eq!(ran.code, 1, "working is no news: {ran:?}");
    let told = gaps(&ran);
    assert_eq!(told.len(), 2, "{ran:?}");
    for gap in &told {
        assert_eq!(gap["to"], "working");
        assert!(gap["age_s"].is_u64(), "{gap}");
    }
    assert!(gaps(&scene.s("wait w,a --timeout 0 --json")).is_empty());

    // One entry alone: the other keeps its place.
    scene.store.state(a, "done");
    let mut cursors = scene.cursors(s);
    cursors["follows"][w.to_string()] = Value::String("garbage".into());
    write_cursors(&scene, s, &cursors.to_string());
    let ran = scene.s("wait w,a --timeout 0 --json");
    assert_eq!((ran.code, ran.json()["session"].as_str()), (0, Some(a.to_string().as_str())));
    assert_eq!(gaps(&ran).len(), 1, "{ran:?}");
    assert_eq!(gaps(&ran)[0]["session"], w.to_string());

    // Beyond the end, and the session stands in a state that is waited for.
    scene.store.noted(w, "asking", "which?");
    let mut cursors = scene.cursors(s);
    cursors["follows"][w.to_string()] = serde_json::json!({"seq": 999, "offset": 99_999, "segment": 1});
    write_cursors(&scene, s, &cursors.to_string());
    let ran = scene.s("wait w,a --timeout 0 --json");
    let event = ran.json();
    assert_eq!(
        (ran.code, event["gap"].as_bool(), event["to"].as_str()),
        (0, Some(true), Some("asking")),
        "{ran:?}"
    );
    assert_eq!(gaps(&ran).len(), 1, "{ran:?}");
    let ran = scene.s("wait w,a --timeout 0 --json");
    assert_eq!((ran.code, gaps(&ran).len()), (1, 0), "told once: {ran:?}");
}

#[test]
fn a9_of_several_gaps_with_news_each_is_told_by_a_call_of_its_own() {
    let (mut scene, s) = Scene::with_supervisor();
    let targets = ["w", "a", "b"].map(|l| scene.store.session(l));
    assert_eq!(scene.s("wait w,a,b --timeout 0").code, 1);
    for id in targets {
        scene.store.state(id, "review");
    }
    write_cursors(&scene, s, "[]");
    let mut told: Vec<String> = (0..3)
        .map(|_| {
            let ran = scene.s("wait w,a,b --timeout 0 --json");
            assert_eq!(ran.code, 0, "{ran:?}");
            ran.json()["session"].to_string()
        })
        .collect();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 3);
    assert_eq!(scene.s("wait w,a,b --timeout 0").code, 1);
}

#[test]
fn a9_a_session_that_this_wait_does_not_follow_has_its_gap_later() {
    let (mut scene, s) = Scene::with_supervisor();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    assert_eq!(scene.s("wait w,a --timeout 0").code, 1);
    scene.store.state(a, "review");
    write_cursors(&scene, s, "garbage");
    assert_eq!(gaps(&scene.s("wait w --timeout 0 --json")).len(), 1);
    scene.store.state(w, "working");
    let ran = scene.s("wait a --timeout 0 --json");
    assert_eq!((ran.code, ran.json()["gap"].as_bool(), gaps(&ran).len()), (0, Some(true), 1), "{ran:?}");
}

/// Every line of a stream's standard output until that of a session, as objects.
fn until(running: &mut Running, session: SessionId, seq: u64) -> Vec<Value> {
    until_all(running, &[(session, seq)])
}

/// The same until each of these has come, in whatever order: of two sessions none is told first.
fn until_all(running: &mut Running, last: &[(SessionId, u64)]) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    let mut wanted: Vec<(String, u64)> =
        last.iter().map(|(session, seq)| (session.to_string(), *seq)).collect();
    while !wanted.is_empty() {
        let object: Value = serde_json::from_str(&running.line()).unwrap();
        wanted.retain(|(session, seq)| object["session"] != **session || object["seq"] != *seq);
        seen.push(object);
    }
    seen
}

fn seqs(objects: &[Value], session: SessionId) -> Vec<u64> {
    let own = objects.iter().filter(|o| o["session"] == session.to_string());
    own.filter_map(|o| o["seq"].as_u64()).collect()
}

fn stream(scene: &Scene, backstop: &str, args: &str) -> Running {
    let mut command = scene.command(Who::Person, crate::scene::MINDER);
    command.args(["watch", "stream", "--json"]).args(args.split_whitespace());
    command.env("MINDER_FOLLOW_BACKSTOP", backstop);
    let running = Running::spawn(command);
    running.wait_until_it_sleeps();
    running
}

#[test]
fn a10_files_that_move_under_the_reader() {
    let mut scene = Scene::new();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    let mut running = stream(&scene, "1h", "");
    let mut expected = 0;
    for round in 0..5 {
        scene.store.state(w, "working");
        scene.store.seal(w);
        scene.store.state(w, "review");
        if round % 2 == 0 {
            scene.store.rotate_feed();
        }
        expected = scene.store.state(w, "working");
        scene.store.state(w, "parked");
        scene.store.seal(w);
        scene.store.rotate_feed();
        scene.store.state(a, if round % 2 == 0 { "working" } else { "idle" });
    }
    let last = scene.store.state(w, "done");
    assert_eq!(expected + 2, last);
    let seen = until_all(&mut running, &[(w, last), (a, 6)]);
    assert_eq!(seqs(&seen, w), (2..=last).collect::<Vec<_>>());
    assert_eq!(seqs(&seen, a), (2..=6).collect::<Vec<_>>());
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
}

#[test]
fn a10_a_burst_is_seen_whole_and_in_order() {
    let mut scene = Scene::new();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    let mut running = stream(&scene, "1h", "");
    scene.store.burst(w, 50_000);
    let last = scene.store.state(a, "working");
    let mut seen = until(&mut running, a, last);
    if seqs(&seen, w).last() != Some(&50_001) {
        seen.extend(until(&mut running, w, 50_001));
    }
    assert_eq!(seqs(&seen, w), (2..=50_001).collect::<Vec<_>>());
    assert_eq!(seen.iter().rfind(|o| o["session"] == w.to_string()).unwrap()["to"], "review");
}

#[test]
fn a10_a_wait_through_a_burst_finds_the_one_edge() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    let running = scene.start(Who::Session("s"), "wait w --json --timeout 60");
    running.wait_until_it_sleeps();
    scene.store.burst(w, 50_000);
    let ran = running.end();
    let event = ran.json();
    assert_eq!((event["to"].as_str(), event["seq"].as_u64()), (Some("review"), Some(50_001)));
    assert_eq!(event["states"].as_array().unwrap().len(), 32, "a long path keeps its ends");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
}

#[test]
fn a10_a_reader_that_stops_goes_on_at_its_own_line() {
    let mut scene = Scene::new();
    let w = scene.store.session("w");
    let mut running = stream(&scene, "1h", "");
    running.signal(Signal::STOP);
    scene.store.burst(w, 1_000);
    // More notices than the kernel keeps: the one for the last line is among the lost.
    for n in 0..17_000 {
        drop(std::fs::File::create(scene.store.home().root().join(format!("x{n}"))).unwrap());
    }
    let last = scene.store.state(w, "working");
    running.signal(Signal::CONT);
    let seen = until(&mut running, w, last);
    assert_eq!(seqs(&seen, w), (2..=last).collect::<Vec<_>>());
}

#[test]
fn a10_without_a_watch_of_the_kernel_the_floor_does_all() {
    for call in ["inotify_init1:error=EMFILE", "inotify_add_watch:error=ENOSPC"] {
        let (mut scene, _) = Scene::with_supervisor();
        let w = scene.store.session("w");
        let name = call.split(':').next().unwrap();
        let options = ["-e", &format!("trace={name},poll,ppoll"), "-e", &format!("inject={call}")];
        // Neither its own floor nor its time is up while the test waits for it.
        let traced = scene.traced_over("10m", &options, "wait w --timeout 10m");
        traced.wait_until_it_polls(1);
        scene.store.state(w, "review");
        let (ran, calls) = traced.end();
        assert_eq!(ran.code, 0, "{call}: {ran:?}");
        assert!(calls.iter().any(|c| c.contains("INJECTED")), "{calls:?}");
    }
}

#[test]
fn a10_lines_that_the_feed_does_not_name_are_found_by_the_jump_in_its_numbers() {
    let mut scene = Scene::new();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    let mut running = stream(&scene, "1h", "");
    let at = minder_proto::stamp::Stamp::now();
    let line = format!(r#"{{"seq":2,"at":"{at}","kind":"state","from":"idle","to":"working","by":"agent"}}"#);
    let mut timeline = std::fs::File::options().append(true).open(scene.store.timeline(w)).unwrap();
    timeline.write_all(format!("{line}\n").as_bytes()).unwrap();
    scene.store.lose_feed_lines(1);
    scene.store.state(a, "working");
    let seen = until(&mut running, w, 2);
    assert_eq!(seqs(&seen, w), [2]);
}

#[test]
fn a10_a_log_that_was_cut_is_one_gap_and_the_follow_goes_on() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    for _ in 0..10 {
        scene.store.state(w, "working");
        scene.store.state(w, "review");
    }
    let mut running = stream(&scene, "1h", "w --no-announce");
    let wait = scene.start(Who::Session("s"), "wait w --json --timeout 60");
    wait.wait_until_it_sleeps();
    let half = std::fs::metadata(scene.store.timeline(w)).unwrap().len() / 2;
    scene.store.cut(w, half);
    // The daemon closes the torn line and goes on behind it.
    let mut timeline = std::fs::File::options().append(true).open(scene.store.timeline(w)).unwrap();
    timeline.write_all(b"\n").unwrap();
    scene.store.state(w, "working");
    let first: Value = serde_json::from_str(&running.line()).unwrap();
    assert_eq!(first["event"], "gap", "{first}");
    let last = scene.store.state(w, "asking");
    let seen = until(&mut running, w, last);
    assert!(seen.iter().all(|o| o["event"] != "gap"), "{seen:?}");
    let ran = wait.end();
    assert_eq!((ran.code, gaps(&ran).len()), (0, 1), "{ran:?}");
    assert_eq!(ran.json()["to"], "asking", "{ran:?}");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
}

#[test]
fn a_torn_line_swallows_nothing() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    let mut timeline = std::fs::File::options().append(true).open(scene.store.timeline(w)).unwrap();
    timeline.write_all(b"{\"seq\":2,\"at\":\"20").unwrap();
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    timeline.write_all(b"\n").unwrap();
    let unknown = serde_json::json!({"kind": "hologram", "x": 1});
    scene.store.line(w, unknown);
    scene.store.state(w, "review");
    let ran = scene.s("wait w --timeout 0");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err.matches("a damaged line").count(), 1, "{ran:?}");
    assert!(ran.err.contains("hologram"), "{ran:?}");
    assert_eq!(scene.s("wait w --timeout 0").err.matches("damaged").count(), 0);
}
