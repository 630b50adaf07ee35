//! Queues with many messages or a crash: what is removed from one, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use minder_client::rpc::Client;
use minder_proto::event::Receipt;
use minder_proto::record::Channel;
use minder_proto::rpc;
use minder_tests::files;
use minder_tests::process::Process;
use serde_json::{Value, json};

use crate::crash::{OF_A_COMMIT, Prepared, told};
use crate::queues::{of_program, program, until_empty};
use crate::world::{Agent, LIMIT, Minderd, World, is_lost, must};

/// Writes down which message it was given. Of one process: a stream of a thousand is as many of these.
const TAKES: &str =
    r#"m=${MINDER_MESSAGE#*\"id\":\"}; echo "${m%%\"*}" >> taken; while read -r line; do :; done"#;

#[test]
fn c1_removed_only_on_evidence() {
    let world = World::new();
    let daemon = world.start();
    let s = world.session_by("s", program(&world, TAKES));
    let w = world.session("w");
    let mut client = world.client();
    must(&mut client, &w.letter(&s, "first"));
    until_empty(&s);
    daemon.stop();
    let prepared = Prepared::new(world);
    let taken = of_program(&prepared.world, "taken");
    let letter = rpc::Send { key: Some("k".to_owned()), ..w.letter(&s, "hello") };

    let scenario = |client: &mut Client, daemon: &Process| {
        std::fs::write(&taken, "").unwrap();
        let answer = told(client, &letter);
        // Until it is seen, or the daemon is gone on the way.
        while answer.is_some() && !s.queue().is_empty() && !daemon.wait(Duration::from_millis(5)) {}
        answer
    };
    let check = |_: &Minderd, answer: Option<rpc::SendAnswer>, at: &str| {
        let again = must(&mut prepared.world.client(), &letter);
        if let Some(answer) = answer {
            assert_eq!((again.id, again.duplicate), (answer.id, true), "{at}: what was told holds");
        }
        until_empty(&s);
        let text = std::fs::read_to_string(&taken).unwrap();
        let id = again.id.to_string();
        let times = text.lines().filter(|line| **line == id).count();
        assert!((1..=2).contains(&times), "{at}: at most the one in flight again: {times} times");
        let history = must(&mut prepared.world.client(), &rpc::Receipt { id, ..rpc::Receipt::default() });
        let last = history.history.last().unwrap();
        assert_eq!((last.r, s.messages().len()), (Receipt::Seen, 2), "{at}");
        assert!(last.attempt >= 1, "{at}");
    };
    let passed = prepared.at_every(&OF_A_COMMIT, scenario, check);
    // It is accepted, and it is handed and seen.
    assert!(passed.iter().all(|(_, n)| *n >= 2), "{passed:?}");
}

#[test]
fn c1_a_kill_in_the_middle_of_a_stream_repeats_at_most_what_was_in_flight() {
    const MESSAGES: usize = 1_000;
    let world = World::new();
    let daemon = world.start();
    let s = world.session_by("s", program(&world, TAKES));
    let w = world.session("w");
    let taken = of_program(&world, "taken");
    let lines = || std::fs::read_to_string(&taken).unwrap_or_default().lines().count();
    std::thread::scope(|scope| {
        let sender =
            scope.spawn(|| {
                let mut client = world.client();
                for n in 0..MESSAGES {
                    let send = rpc::Send { key: Some(format!("{n}")), ..w.letter(&s, format!("{n}")) };
                    loop {
                        match client.call(&send) {
                            Ok(_) => break,
                            // While nobody serves, each attempt is answered at once: a moment between them.
                            Err(error) if is_lost(&error) => {
                                let _ =
                                    files::wait_for(&world.home().run(), Duration::from_millis(20), || {
                                        None::<()>
                                    });
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        files::wait_for(&taken, LIMIT, || (lines() > MESSAGES / 2).then_some(())).unwrap();
        daemon.kill();
        let _daemon = world.start();
        sender.join().unwrap();
        until_empty(&s);
    });
    let text = std::fs::read_to_string(&taken).unwrap();
    let mut ids: Vec<&str> = text.lines().collect();
    assert!(ids.len() <= MESSAGES + 1, "{} for {MESSAGES}", ids.len());
    ids.dedup();
    let sent: Vec<String> = s.messages().iter().map(|(_, m)| m.id.to_string()).collect();
    assert_eq!(ids, sent, "each once, in order");
}

#[test]
fn c11_many_senders_many_takers() {
    const EACH: usize = 250;
    let world = World::new();
    let _daemon = world.start();
    let s = world.session("s");
    let senders: Vec<_> = (0..4).map(|n| world.session(&format!("w{n}"))).collect();
    let (done, all) = (&AtomicUsize::new(0), 4 * EACH);
    // What each drain took, with whether it let go of it.
    let drains: Vec<Vec<(rpc::Taken, bool)>> = std::thread::scope(|scope| {
        for (number, sender) in senders.iter().enumerate() {
            let (world, s) = (&world, &s);
            scope.spawn(move || {
                let mut client = world.client();
                for n in 0..EACH {
                    must(&mut client, &sender.letter(s, format!("{number} {n}")));
                }
            });
        }
        for _ in 0..3 {
            let (world, s) = (&world, &s);
            scope.spawn(move || {
                let mut client = world.client();
                for _ in 0..200 {
                    let Some(id) = s.queue().iter().next().map(|e| e.id.to_string()) else { continue };
                    // It may be settled by now.
                    let _ = client.call(&rpc::Retry { caller: s.caller(), id });
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (world, s) = (&world, &s);
                scope.spawn(move || {
                    let mut client = world.client();
                    let mut came: Vec<(rpc::Taken, bool)> = Vec::new();
                    while done.load(Ordering::Relaxed) < all {
                        let take = rpc::Take { caller: s.caller(), key: None };
                        let Some(taken) = must(&mut client, &take).message else { continue };
                        let refuses = came.len() % 50 == 49;
                        if refuses {
                            client = world.client();
                        } else {
                            let id = taken.id.to_string();
                            must(&mut client, &rpc::Ack { caller: s.caller(), id, key: None });
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        came.push((taken, refuses));
                    }
                    came
                })
            })
            .collect();
        takers.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let let_go: BTreeSet<_> = drains.iter().flatten().filter(|(_, r)| *r).map(|(t, _)| t.id).collect();
    for drain in &drains {
        // One that was let go of comes again later; all others come in the order of acceptance.
        let orderly: Vec<u64> =
            drain.iter().filter(|(t, _)| !let_go.contains(&t.id)).map(|(t, _)| t.seq).collect();
        assert!(orderly.is_sorted(), "{orderly:?}");
        for (taken, _) in drain.iter().filter(|(_, r)| !r) {
            *seen.entry(taken.body.clone()).or_default() += 1;
        }
    }
    assert!(let_go.len() >= 10, "some were let go of: {}", let_go.len());
    assert_eq!(seen.len(), 4 * EACH);
    let twice: Vec<_> = seen.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    // A sender's messages were accepted in its order.
    for number in 0..4 {
        let prefix = format!("{number} ");
        let bodies = s.messages();
        let own = bodies.iter().filter_map(|(_, m)| m.body.strip_prefix(&prefix)?.parse::<usize>().ok());
        assert!(own.eq(0..EACH));
    }
    assert!(s.queue().is_empty());
}

/// What two hooks of one session print, shown to its model as a harness shows it, but for one text that is dropped; and three
/// who want tried again whatever is on its way.
#[test]
fn c11_many_senders_many_drains() {
    const EACH: usize = 1_500;
    const SENDERS: usize = 4;
    let world = World::with("[delivery]\nevidence_timeout = \"1s\"\n[queue]\nmax_messages = 6000\n");
    let _daemon = world.start();
    let s = world.session_by("s", Channel::Hook);
    let senders: Vec<_> = (0..SENDERS).map(|n| world.session(&format!("w{n}"))).collect();
    let file = world.isolated.root().join("transcript.jsonl");
    std::fs::write(&file, "").unwrap();
    let start = json!({"transcript_path": file, "source": "startup"});
    s.hook(&mut world.client(), "SessionStart", "p0", start);
    let model = Mutex::new(Model { file, turn: 1, calls: 0, bodies: vec![Vec::new(); SENDERS], last: None });
    model.lock().unwrap().hook(&s, &mut world.client(), "UserPromptSubmit", false);
    let sent = Mutex::new(Vec::new());
    let given = |model: &Model| model.bodies.iter().map(Vec::len).sum::<usize>();
    let (over, bell) = (AtomicBool::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let (world, s, model, sent, over, bell) = (&world, &s, &model, &sent, &over, &bell);
        for (number, sender) in senders.iter().enumerate() {
            scope.spawn(move || {
                let mut client = world.client();
                for n in 0..EACH {
                    let id = must(&mut client, &sender.letter(s, format!("body {number} {n}"))).id;
                    sent.lock().unwrap().push(id);
                }
            });
        }
        for behind in 0..3 {
            scope.spawn(move || {
                let (mut client, mut seen) = (world.client(), 0);
                loop {
                    let same = |model: &mut Model| model.calls == seen && !over.load(Ordering::Relaxed);
                    let model = bell.wait_while(model.lock().unwrap(), same).unwrap();
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    seen = model.calls;
                    // About the head: it waits, or was just handed.
                    let at = given(&model) + behind;
                    drop(model);
                    let id = sent.lock().unwrap().get(at).map(ToString::to_string);
                    if let Some(id) = id {
                        let _ = client.call(&rpc::Retry { caller: s.caller(), id });
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                let mut client = world.client();
                while given(&model.lock().unwrap()) < EACH * SENDERS {
                    let mut model = model.lock().unwrap();
                    // In the middle one is dropped. The turn ends, and what was in it waits again.
                    let drops = model.calls == 10;
                    model.hook(s, &mut client, "PostToolUse", drops);
                    bell.notify_all();
                    if drops {
                        model.hook(s, &mut client, "Stop", false);
                        let dropped = format!("{}\"", model.last.clone().expect("the one that was dropped"));
                        let waits = |text: &str| {
                            let line = text.get(text.rfind(&dropped)?..)?.lines().next()?;
                            (!line.contains("handed")).then_some(())
                        };
                        files::wait_for_text(&s.file("queue.jsonl"), LIMIT, waits).unwrap();
                        model.turn += 1;
                        model.hook(s, &mut client, "UserPromptSubmit", false);
                    }
                }
                let _model = model.lock().unwrap();
                over.store(true, Ordering::Relaxed);
                bell.notify_all();
            });
        }
    });
    let mut model = model.into_inner().unwrap();
    for (sender, bodies) in model.bodies.iter().enumerate() {
        let out = bodies.iter().enumerate().find(|(n, body)| n != *body);
        assert_eq!((bodies.len(), out), (EACH, None), "of sender {sender}: each once, in its order");
    }
    assert!(model.turn == 2 && model.calls > 12, "{} calls", model.calls);
    model.hook(&s, &mut world.client(), "Stop", false);
    until_empty(&s);
}

/// What a model was given by hooks: the numbers of the bodies of each sender, in order.
struct Model {
    file: std::path::PathBuf,
    turn: usize,
    calls: usize,
    bodies: Vec<Vec<usize>>,
    /// The last message of the last text.
    last: Option<String>,
}

impl Model {
    /// Runs the hook of an event, and writes down what it printed, as evidence too; or drops it.
    fn hook(&mut self, s: &Agent, client: &mut Client, event: &str, drops: bool) {
        let more = json!({
            "transcript_path": self.file, "prompt": "go on", "tool_name": "Bash", "stop_hook_active": true,
        });
        let shown = s.hook(client, event, &format!("p{}", self.turn), more).stdout;
        if shown.is_empty() {
            return;
        }
        self.calls += 1;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let text = shown["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        let last = text.rsplit_once("[minder] message ").and_then(|(_, rest)| rest.split(' ').next());
        self.last = last.map(str::to_owned);
        if drops {
            return;
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("body ")) {
            let (sender, n) = line.split_once(' ').unwrap();
            self.bodies[sender.parse::<usize>().unwrap()].push(n.parse().unwrap());
        }
        let attachment = json!({"type": "hook_additional_context", "content": text});
        let line = json!({"type": "attachment", "attachment": attachment});
        let mut file = std::fs::File::options().append(true).open(&self.file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
