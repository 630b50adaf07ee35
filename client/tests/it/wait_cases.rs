//! `session wait`: the cases A1 to A6.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use minder_proto::stamp::Stamp;

use crate::scene::{Scene, Who, is_poll};

#[test]
fn a1_every_move_in_order() {
    let (mut scene, _) = Scene::with_supervisor();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    assert_eq!(scene.s("wait w,a --timeout 0").code, 1);
    let Scene { mut store, runner } = scene;
    let writer = std::thread::spawn(move || {
        for _ in 0..100 {
            store.state(w, "working");
            store.state(w, "review");
        }
        store.state(a, "review");
    });
    let mut results = Vec::new();
    let mut finished = false;
    loop {
        let ran = runner.s("wait w,a --json --timeout 100ms");
        match ran.code {
            0 => results.push(ran.json()),
            1 if finished => break,
            1 => finished = writer.is_finished(),
            _ => panic!("{ran:?}"),
        }
    }
    writer.join().unwrap();
    assert_eq!(results.len(), 101);
    let mut last: HashMap<String, u64> = HashMap::new();
    let mut by: HashMap<String, usize> = HashMap::new();
    for result in &results {
        let session = result["session"].as_str().unwrap().to_owned();
        let seq = result["seq"].as_u64().unwrap();
        assert!(last.insert(session.clone(), seq).is_none_or(|l| l < seq), "{result}");
        *by.entry(session).or_default() += 1;
        assert_eq!((result["event"].as_str(), result["to"].as_str()), (Some("state"), Some("review")));
    }
    assert_eq!((by[&w.to_string()], by[&a.to_string()]), (100, 1));
}

#[test]
fn a1_two_edges_of_one_millisecond_come_out_of_two_calls() {
    let (mut scene, _) = Scene::with_supervisor();
    let (w, a) = (scene.store.session("w"), scene.store.session("a"));
    assert_eq!(scene.s("wait w,a --timeout 0").code, 1);
    let at = Stamp::now();
    for id in [w, a] {
        let body =
            serde_json::json!({"at": at, "kind": "state", "from": "idle", "to": "asking", "by": "agent"});
        scene.store.line(id, body);
    }
    let sessions: HashSet<String> =
        (0..2).map(|_| scene.s("wait w,a --json --timeout 0").json()["session"].to_string()).collect();
    assert_eq!(sessions.len(), 2);
    assert_eq!(scene.s("wait w,a --timeout 0").code, 1);
}

#[test]
fn a2_an_edge_is_not_a_level() {
    let (mut scene, _) = Scene::with_supervisor();
    let w = scene.store.session("w");
    scene.store.state(w, "working");
    scene.store.state(w, "review");
    let ran = scene.s("wait w --timeout 2");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("is already in review"), "{ran:?}");
    scene.store.state(w, "done");
    scene.store.noted(w, "done", "another note");
    let ran = scene.s("wait w --timeout 0");
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("review → done\n") && ran.err.contains("done → done: another note"), "{ran:?}");
    scene.store.state(w, "working");
    scene.store.state(w, "close-pending");
    let ran = scene.s("wait w --timeout 0");
    assert_eq!(ran.code, 0);
    let short = w.short();
    assert_eq!(ran.out, format!("w worker (w, {short}) done → working → close-pending\n"));
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
}

#[test]
fn a3_a_move_just_before_the_first_wait() {
    let (mut scene, _) = Scene::with_supervisor();
    let a = scene.store.session("a");
    scene.store.bind(a, "a");
    let w = scene.store.session("w");
    scene.store.noted(w, "asking", "which database?");
    let first = scene.s("wait w --timeout 0");
    assert_eq!((first.code, first.out.as_str()), (1, ""));
    assert!(first.err.contains("is already in asking (0s): which database?  (--or-already"), "{first:?}");
    let already = scene.run(Who::Session("a"), "wait w --timeout 0 --or-already");
    assert_eq!(already.code, 0, "{already:?}");
    let short = w.short();
    assert_eq!(already.out, format!("w worker (w, {short}) idle → asking\nage: 0s\nnote: which database?\n"));
    assert_eq!(scene.run(Who::Session("a"), "wait w --timeout 0 --or-already").code, 1);
    // A first look has not told the supervisor; it may still ask for it, once.
    let already = scene.s("wait w --timeout 0 --or-already --json").json();
    assert_eq!((already["already"].as_bool(), already["to"].as_str()), (Some(true), Some("asking")));
    assert_eq!(scene.s("wait w --timeout 0 --or-already").code, 1);
}

#[test]
fn a3_a_session_that_appears_is_read_from_its_first_line() {
    let (mut scene, _) = Scene::with_supervisor();
    scene.store.session("w");
    let running = scene.start(Who::Session("s"), "wait --json --timeout 30");
    running.wait_until_it_sleeps();
    let new = scene.store.session("late");
    scene.store.state(new, "asking");
    let ran = running.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["session"], new.to_string());
    assert!(ran.err.contains(r#""event":"new""#), "the arrival is narrated: {ran:?}");
    // One that appears between two waits, too.
    let between = scene.store.session("between");
    scene.store.state(between, "review");
    assert_eq!(scene.s("wait --json --timeout 0").json()["session"], between.to_string());
    assert_eq!(scene.s("wait --timeout 0").code, 1);
}

#[test]
fn a4_a_message_wakes_once_and_not_those_who_wait_for_a_session() {
    let (mut scene, s) = Scene::with_supervisor();
    let w = scene.store.session("w");
    let (id, _) = scene.store.message(s, &w.to_string(), "are you there?");
    let ran = scene.s("wait --timeout 0");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, format!("message {} from w worker (w, {})\n", id.short(), w.short()));
    assert_eq!(scene.s("wait --timeout 0").code, 1);
    assert_eq!(scene.cursors(s)["told"], 2);

    for n in 0..3 {
        scene.store.message(s, "operator", &format!("unread {n}"));
    }
    let files = |scene: &Scene| {
        let dir = scene.store.dir(s);
        ["queue.jsonl", "timeline.jsonl", "session.json"].map(|f| std::fs::read(dir.join(f)).unwrap())
    };
    let before = files(&scene);
    assert_eq!(scene.s("wait w --only sessions --timeout 0").code, 1);
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(w, "review");
    let ran = scene.s("wait w --only sessions --json --timeout 0");
    assert_eq!((ran.code, ran.json()["event"].as_str()), (0, Some("state")));
    scene.store.state(w, "working");
    scene.store.state(w, "review");
    let told: Vec<String> = (0..3)
        .map(|_| {
            let ran = scene.s("wait w --only inbox --json --timeout 0").json();
            assert_eq!((ran["event"].as_str(), ran["sender"].as_str()), (Some("message"), Some("operator")));
            ran["id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(told.is_sorted(), "the oldest first: {told:?}");
    assert_eq!(scene.s("wait w --only inbox --timeout 0").code, 1);
    assert_eq!(files(&scene), before, "what a hook will show is untouched");
    assert_eq!(scene.s("wait w --timeout 0").code, 0, "the edge is still there");
}

#[test]
fn a4_what_was_read_is_not_told() {
    let (mut scene, s) = Scene::with_supervisor();
    for receipt in ["seen", "dead", "returned"] {
        let (id, seq) = scene.store.message(s, "operator", "x");
        scene.store.settle(s, id, seq, receipt);
    }
    assert_eq!(scene.s("wait --timeout 0").code, 1);
    // One that comes while the wait sleeps ends it.
    let running = scene.start(Who::Session("s"), "wait --timeout 30");
    running.wait_until_it_sleeps();
    let (id, _) = scene.store.message(s, "operator", "now");
    let ran = running.end();
    assert_eq!((ran.code, ran.out), (0, format!("message {} from operator\n", id.short())));
}

#[test]
fn a5_two_waits_of_one_caller() {
    let (mut scene, s) = Scene::with_supervisor();
    let targets: Vec<_> = (0..58).map(|n| scene.store.session(&format!("w{n}"))).collect();
    let half = |range: std::ops::Range<usize>| {
        let labels: Vec<String> = range.map(|n| format!("w{n}")).collect();
        labels.join(",")
    };
    let halves = [half(0..29), half(29..58)];
    for half in &halves {
        assert_eq!(scene.s(&format!("wait {half} --timeout 0")).code, 1);
    }
    for id in &targets {
        scene.store.state(*id, "working");
        scene.store.state(*id, "review");
    }
    let scene = &scene;
    let told: Vec<String> = std::thread::scope(|scope| {
        let both = halves.each_ref().map(|half| {
            scope.spawn(move || {
                let mut told = Vec::new();
                loop {
                    let ran = scene.s(&format!("wait {half} --json --timeout 0"));
                    match ran.code {
                        0 => told.push(ran.json()["session"].as_str().unwrap().to_owned()),
                        1 => break told,
                        _ => panic!("{ran:?}"),
                    }
                }
            })
        });
        both.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert_eq!((told.len(), told.iter().collect::<HashSet<_>>().len()), (58, 58));
    assert_eq!(scene.cursors(s)["follows"].as_object().unwrap().len(), 58);
    for half in &halves {
        assert_eq!(scene.s(&format!("wait {half} --timeout 0")).code, 1);
    }
}

#[test]
fn a5_two_waits_for_the_same_sessions_tell_each_event_once() {
    let (mut scene, _) = Scene::with_supervisor();
    let targets: Vec<_> = (0..5).map(|n| scene.store.session(&format!("w{n}"))).collect();
    assert_eq!(scene.s("wait --timeout 0").code, 1);
    let Scene { mut store, runner } = scene;
    let over = Arc::new(AtomicBool::new(false));
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let (runner, over) = (runner.clone(), Arc::clone(&over));
            std::thread::spawn(move || {
                let mut told = Vec::new();
                loop {
                    let last = over.load(SeqCst);
                    let ran = runner.s("wait --json --timeout 50ms");
                    match ran.code {
                        0 => {
                            let json = ran.json();
                            told.push((json["session"].to_string(), json["seq"].as_u64().unwrap()));
                        }
                        1 if last => break told,
                        1 => {}
                        _ => panic!("{ran:?}"),
                    }
                }
            })
        })
        .collect();
    for _ in 0..20 {
        for id in &targets {
            store.state(*id, "working");
            store.state(*id, "review");
        }
    }
    over.store(true, SeqCst);
    let told: Vec<_> = waits.into_iter().flat_map(|w| w.join().unwrap()).collect();
    assert_eq!((told.len(), told.iter().collect::<HashSet<_>>().len()), (100, 100));
}

#[test]
fn a6_one_gone_target_of_several() {
    let (mut scene, _) = Scene::with_supervisor();
    let (b, w) = (scene.store.session("b"), scene.store.session("w"));
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(b, "working");
    scene.store.close(b, "no longer needed");
    let (ran, calls) = scene.traced(&["-e", "trace=poll,ppoll"], "wait b").end();
    assert!(!calls.iter().any(|c| is_poll(c)), "it ends at once: {calls:?}");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert!(ran.err.contains("is closed") && ran.err.contains("its last state was working"), "{ran:?}");
    assert!(ran.err.contains("no longer needed"), "{ran:?}");
    scene.store.state(w, "review");
    let ran = scene.s("wait b,w --keep-going");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("→ review") && ran.err.contains("b worker"), "{ran:?}");
    let running = scene.start(Who::Session("s"), "wait b,w --keep-going --timeout 30");
    running.wait_until_it_sleeps();
    scene.store.close(w, "bye");
    assert_eq!(running.end().code, 2);
    let ran = scene.s("wait b,w --json");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let object: serde_json::Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    assert_eq!(object["exit"], 2);
    assert_eq!(scene.s("wait nobody").code, 2);
}

#[test]
fn a6_an_edge_before_the_end_is_told_first() {
    let (mut scene, s) = Scene::with_supervisor();
    let w = scene.store.session("w");
    assert_eq!(scene.s("wait w --timeout 0").code, 1);
    scene.store.state(w, "working");
    scene.store.noted(w, "done", "merged");
    scene.store.close(w, "bye");
    let ran = scene.s("wait w");
    assert_eq!(
        (ran.code, ran.out),
        (0, format!("w worker (w, {}) idle → working → done\nnote: merged\n", w.short()))
    );
    let ran = scene.s("wait w --json");
    assert_eq!(ran.code, 2);
    let object: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        (object["exit"].as_u64(), object["event"].as_str(), object["to"].as_str()),
        (Some(2), Some("gone"), Some("done"))
    );
    assert_eq!(scene.cursors(s)["follows"].as_object().unwrap().len(), 0, "closed sessions have no entry");
}

#[test]
fn a6_a_swept_session_that_goes_is_narrated() {
    let (mut scene, _) = Scene::with_supervisor();
    let (b, w) = (scene.store.session("b-1"), scene.store.session("b-2"));
    let running = scene.start(Who::Session("s"), "wait b-* --timeout 30");
    running.wait_until_it_sleeps();
    scene.store.close(b, "bye");
    scene.store.state(w, "review");
    let ran = running.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("b-1 worker") && ran.err.contains("is closed"), "{ran:?}");
}
