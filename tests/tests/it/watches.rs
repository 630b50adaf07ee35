//! Watches, and what they send.

use std::sync::Barrier;
use std::time::Duration;

use minder_client::rpc::Client;
use minder_proto::event::{NoticeKind, Receipt};
use minder_proto::record::Channel;
use minder_proto::rpc;
use minder_proto::state::State;
use minder_tests::files;
use minder_tests::process::Process;
use serde_json::json;

use crate::crash::{OF_A_COMMIT, Prepared, told};
use crate::world::{Agent, LIMIT, Minderd, World, must, ran};

#[test]
fn b1_one_record_one_notice() {
    let world = World::new();
    let daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    w.declare(&mut client, State::Working, None);
    assert!(world.run_as(&s, "watch w").ok().starts_with("watching w"));
    let relation = std::fs::read(w.file("watchers.json")).unwrap();

    for _ in 0..100 {
        w.declare(&mut client, State::Idle, None);
    }
    daemon.stop();
    for entry in std::fs::read_dir(w.dir()).unwrap() {
        let file = std::fs::File::options().append(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
    }
    let _daemon = world.start();
    let mut client = world.client();
    for _ in 0..5 {
        assert!(world.run_as(&s, "session watch w").ok().starts_with("already watching w"));
        w.declare(&mut client, State::Idle, None);
    }
    let moves = w.moves();
    let idle: Vec<u64> = moves.iter().filter(|(_, m)| m.to == State::Idle).map(|(seq, _)| *seq).collect();
    assert_eq!(idle.len(), 1, "one line in the log");
    assert_eq!(s.told_of(w.id), idle, "one notice");
    let snapshots = s.messages().into_iter().filter_map(|(_, m)| m.about);
    assert_eq!(snapshots.filter(|a| a.notice == NoticeKind::Snapshot).count(), 1);
    assert_eq!(std::fs::read(w.file("watchers.json")).unwrap(), relation);
}

#[test]
fn b2_watching_each_other() {
    let world = World::new();
    let daemon = world.start();
    let heard = world.isolated.root().join("heard");
    // One reads by itself what it is sent; the others have mailboxes.
    let script = format!("cat >> {}", heard.display());
    let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
    let s = world.session_by("s", Channel::Exec { argv });
    let ring = [s, world.session("w"), world.session("third")];
    let mut client = world.client();
    for a in &ring {
        a.declare(&mut client, State::Asking, Some("which?"));
    }
    for a in &ring {
        for b in ring.iter().filter(|b| b.id != a.id) {
            a.watch(&mut client, b);
        }
    }
    let settled = |a: &Agent| a.queue().is_empty();
    files::wait_for(&ring[0].file("queue.jsonl"), LIMIT, || settled(&ring[0]).then_some(())).unwrap();
    let before = daemon.status().commits;

    let seq = ring[1].declare(&mut client, State::Review, Some("look")).seq.unwrap();
    files::wait_for(&ring[0].file("queue.jsonl"), LIMIT, || settled(&ring[0]).then_some(())).unwrap();
    // The move, and that the program took its notice. Nothing comes of that.
    let feed = world.home().feed();
    let len = std::fs::metadata(&feed).unwrap().len();
    let grown = || (std::fs::metadata(&feed).unwrap().len() > len).then_some(());
    files::wait_for(&feed, Duration::from_secs(2), grown).unwrap_err();
    assert_eq!(daemon.status().commits, before + 2);
    for watcher in [&ring[0], &ring[2]] {
        assert_eq!(watcher.told_of(ring[1].id), [seq]);
        assert_eq!(watcher.moves().len(), 1, "{}: its own state is as it was", watcher.label);
    }
    assert!(ring[1].told_of(ring[0].id).is_empty());
    let text = std::fs::read_to_string(&heard).unwrap();
    assert_eq!(text.matches("asking → review — look").count(), 1, "{text}");
}

#[test]
fn b3_a_burst_while_the_supervisor_is_busy() {
    let world = World::new();
    let _daemon = world.start();
    let s = world.session_by("s", Channel::Hook);
    let w = world.session("w");
    let mut client = world.client();
    s.watch(&mut client, &w);
    s.take_all(&mut client);
    s.hook(&mut client, "UserPromptSubmit", "p1", json!({"prompt": "go on"}));
    for n in 0..50 {
        let state = if n % 2 == 0 { State::Asking } else { State::Done };
        w.declare(&mut client, state, Some(&format!("move {n}")));
    }
    assert_eq!(s.queue().len(), 50, "all wait");
    let given = s.hook(&mut client, "Stop", "p1", json!({}));
    assert_eq!((given.exit, given.stdout.as_str()), (2, ""));
    assert_eq!(given.stderr.matches("[minder]").count(), 1, "{}", given.stderr);
    assert!(given.stderr.contains("asking → done (50 notices) — move 49"), "{}", given.stderr);
    assert_eq!(given.stderr.split_once("(notices ").unwrap().1.split(", ").count(), 50);
    // What was given is not given again.
    let again = s.hook(&mut client, "Stop", "p1", json!({"stop_hook_active": true}));
    assert_eq!(again, rpc::HookAnswer::default());
    assert!(s.queue().iter().all(|e| e.receipt == Receipt::Handed));
}

#[test]
fn b3_where_a_target_stands_wakes_only_who_asked_for_such_states() {
    use minder_proto::event::Class;
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let w = world.session("w");
    w.declare(&mut client, State::Done, None);
    for (label, states, class) in [
        ("default", None, Class::Now),
        ("of-done", Some("done,error"), Class::Now),
        ("of-idle", Some("idle"), Class::WithNext),
        ("of-asking", Some("asking,review"), Class::WithNext),
    ] {
        let s = world.session(label);
        let states = states.map(|s| s.parse().unwrap());
        must(&mut client, &rpc::WatchAdd { states, ..s.watching(&w) });
        let told: Vec<Class> = s.messages().into_iter().map(|(_, m)| m.class).collect();
        assert_eq!(told, [class], "{label}");
    }
}

#[test]
fn b4_ended_relations_stay_silent_also_in_the_queue() {
    let world = World::new();
    let daemon = world.start();
    let [s, w, a] = ["s", "w", "a"].map(|l| world.session(l));
    let mut client = world.client();
    s.watch(&mut client, &w);
    s.watch(&mut client, &a);
    for state in [State::Asking, State::Review, State::Done] {
        w.declare(&mut client, state, None);
        a.declare(&mut client, state, None);
    }
    let cancelled = world.run_as(&s, "watch cancel a").ok();
    assert!(cancelled.contains("4 notices taken back"), "three and the first: {cancelled}");
    world.run("close w --note merged").ok();
    a.declare(&mut client, State::Working, None);
    a.declare(&mut client, State::Asking, None);

    let about = |id| {
        let queue = s.queue();
        let about = queue.iter().filter(|e| e.brief.as_ref().and_then(|b| b.about) == Some(id));
        about.map(|e| e.id).collect::<Vec<_>>()
    };
    let check = |client: &mut Client| {
        assert_eq!(about(a.id), []);
        assert_eq!(about(w.id).len(), 5, "a snapshot, three moves, the end");
        let (_, last) = s.messages().into_iter().rfind(|(_, m)| m.about.is_some()).unwrap();
        assert_eq!(last.about.as_ref().map(|a| (a.session, a.notice)), Some((w.id, NoticeKind::Closed)));
        for (_, m) in s.messages().iter().filter(|(_, m)| m.about.as_ref().unwrap().session == a.id) {
            let receipt = must(client, &rpc::Receipt { id: m.id.to_string(), ..rpc::Receipt::default() });
            assert_eq!((receipt.receipt, receipt.reason.as_deref()), (Receipt::Dead, Some("cancelled")));
        }
    };
    check(&mut client);
    daemon.stop();
    let _daemon = world.start();
    check(&mut world.client());
    let texts = s.take_all(&mut world.client());
    assert!(texts.last().unwrap().text.contains("merged"), "{:?}", texts.last());
}

#[test]
fn b5_the_last_notice_is_the_last_state() {
    let world = World::new();
    let _daemon = world.start();
    let w = world.session("w");
    let followers: Vec<Agent> = (0..5).map(|n| world.session(&format!("f{n}"))).collect();
    let mut client = world.client();
    for follower in &followers {
        let states = Some("all".parse().unwrap());
        must(&mut client, &rpc::WatchAdd { states, ..follower.watching(&w) });
    }
    let rounds = 200;
    let gate = Barrier::new(3);
    let declared: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = [State::Working, State::Review, State::Done]
            .into_iter()
            .map(|state| {
                let (world, w, gate) = (&world, &w, &gate);
                scope.spawn(move || {
                    let mut client = world.client();
                    let mut seqs = Vec::new();
                    for round in 0..rounds {
                        gate.wait();
                        let note = format!("{round}");
                        seqs.extend(w.declare(&mut client, state, Some(&note)).seq);
                    }
                    seqs
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let moves = w.moves();
    assert_eq!((moves.len(), declared.len()), (3 * rounds, 3 * rounds), "one line a declaration");
    for pair in moves.windows(2) {
        assert_eq!(pair[0].1.to, pair[1].1.from);
    }
    let seqs: Vec<u64> = moves.iter().map(|(seq, _)| *seq).collect();
    let stands = must(&mut client, &rpc::Get { session: Some("w".into()), ..rpc::Get::default() });
    assert_eq!(stands.record.state, moves.last().unwrap().1.to);
    for follower in &followers {
        assert_eq!(follower.told_of(w.id), seqs);
    }
}

#[test]
fn b6_line_notice_and_queue_entry_are_one_commit() {
    let world = World::new();
    let daemon = world.start();
    let w = world.session("w");
    let watchers = ["a", "b", "c"].map(|l| world.session(l));
    let mut client = world.client();
    watchers.iter().for_each(|s| s.watch(&mut client, &w));
    daemon.stop();

    let prepared = Prepared::new(world);
    let declaration = w.declaration(State::Review, Some("look"));
    let scenario = |client: &mut Client, _: &Process| told(client, &declaration);
    let check = |_: &Minderd, answer: Option<rpc::DeclareAnswer>, at: &str| {
        let line: Vec<u64> = w.moves().iter().map(|(seq, _)| *seq).collect();
        for watcher in &watchers {
            assert_eq!(watcher.told_of(w.id), line, "{at}: {}", watcher.label);
            let waiting = watcher.queue();
            assert_eq!(waiting.len(), 1 + line.len(), "{at}: {}", watcher.label);
        }
        if let Some(answer) = answer {
            assert_eq!(line, [answer.seq.unwrap()], "{at}: what was told holds");
        }
        // The relation reports every later move, and none from before it.
        let mut client = prepared.world.client();
        let later = w.declare(&mut client, State::Asking, None).seq.unwrap();
        let all: Vec<u64> = line.iter().copied().chain([later]).collect();
        let record = must(&mut client, &rpc::Get { session: Some("w".into()), ..rpc::Get::default() });
        assert_eq!(record.record.state, State::Asking);
        for watcher in &watchers {
            assert_eq!(watcher.told_of(w.id), all, "{at}: {}", watcher.label);
        }
    };
    let passed = prepared.at_every(&OF_A_COMMIT, scenario, check);
    assert!(passed.iter().all(|(_, n)| *n >= 1), "{passed:?}");
    let passed = prepared.at_every_start(("journal.after-flush", 1), scenario, check);
    // The record, the line, and a line and an entry for each of three watchers.
    assert_eq!(passed, [("recover.before-op", 8), ("recover.after-op", 8), ("recover.done", 1)]);
}

#[test]
fn b7_the_notice_says_what_happened() {
    let world = World::new();
    let _daemon = world.start();
    let (s, w) = (world.session("s"), world.session_by("w", Channel::Hook));
    let mut client = world.client();
    s.watch(&mut client, &w);
    s.take_all(&mut client);
    w.hook(&mut client, "UserPromptSubmit", "p1", json!({"prompt": "do it"}));
    let note = "merged as 12\nbuild is green\nnothing is left";
    ran(&mut world.minder_as(&w, "state done --note -"), note.as_bytes()).ok();
    let answer = format!("What I did. {}", "word ".repeat(800));
    assert!(answer.len() > 4_000);
    w.hook(&mut client, "Stop", "p1", json!({"last_assistant_message": answer}));

    let taken = s.take_all(&mut client);
    assert_eq!(taken.len(), 1, "{taken:?}");
    let text = &taken[0].text;
    assert!(text.contains("\"w\"") && text.contains("working → done — merged as 12"), "{text}");
    for line in note.lines() {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.contains(&answer[..1_500]), "{text}");
    assert!(text.contains(&format!("all of it: minder show {}", w.id.short())), "{text}");

    // The person says it for the session: that is said.
    world.run("state review w --note please").ok();
    let text = &s.take_all(&mut client)[0].text;
    assert!(text.contains("done → review — please") && text.contains("declared by the person"), "{text}");
}

#[test]
fn b8_what_was_read_elsewhere_wakes_nobody() {
    for ack_alone in [false, true] {
        let world = World::new();
        let _daemon = world.start();
        let s = world.session_by("s", Channel::Hook);
        let w = world.session("w");
        let mut client = world.client();
        s.watch(&mut client, &w);
        s.take_all(&mut client);
        let nothing = rpc::HookAnswer::default();
        assert_eq!(s.hook(&mut client, "UserPromptSubmit", "p1", json!({"prompt": "go on"})), nothing);
        w.declare(&mut client, State::Asking, Some("which?"));
        if ack_alone {
            let listed = world.run_as(&s, "inbox list --json").json();
            let id = listed["messages"][0]["id"].as_str().unwrap().to_owned();
            world.run_as(&s, &format!("inbox ack {id}")).ok();
        } else {
            assert!(world.run_as(&s, "inbox take").ok().contains("which?"));
        }
        assert_eq!(s.hook(&mut client, "Stop", "p1", json!({})), nothing, "nothing is given");
        assert!(s.queue().is_empty());
        // A waiter beside the idle conversation is not woken.
        let waiter = rpc::HookWait {
            harness: "claude".into(),
            payload: json!({"session_id": s.conversation, "hook_event_name": "Stop"}),
            env: rpc::HookEnv::default(),
            resume: "w1".into(),
        };
        let mut waits = world.client();
        let silent =
            waits.call_method::<rpc::HookAnswer>("hook.wait", &waiter, Some(Duration::from_millis(700)));
        assert_eq!(silent.unwrap_err().exit_code(), 69, "it goes on waiting");
    }
}

#[test]
fn b10_a_hung_watcher_delays_nobody() {
    // Its program is given ten minutes: whoever waited for it would be here still.
    let world = World::with("[exec]\ntimeout = \"10m\"\n");
    let _daemon = world.start();
    let argv = ["/bin/sh", "-c", "exec sleep 1000"].map(str::to_owned).to_vec();
    let s = world.session_by("s", Channel::Exec { argv });
    let (w, other) = (world.session("w"), world.session("other"));
    let mut client = world.client();
    s.watch(&mut client, &w);
    other.watch(&mut client, &w);
    w.declare(&mut client, State::Review, Some("look"));
    assert!(other.take_all(&mut client).iter().any(|t| t.text.contains("look")));
}

#[test]
fn b10_a_watcher_that_hung_is_told_once_it_lives() {
    let world = World::with("[exec]\ntimeout = \"1s\"\n");
    let _daemon = world.start();
    let lives = world.isolated.root().join("lives");
    let heard = world.isolated.root().join("heard");
    let script = format!("[ -e {} ] || exec sleep 1000; cat >> {}", lives.display(), heard.display());
    let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
    let s = world.session_by("s", Channel::Exec { argv });
    let w = world.session("w");
    let mut client = world.client();
    s.watch(&mut client, &w);
    w.declare(&mut client, State::Review, Some("look"));
    let held = || {
        let queue = s.queue();
        let head = queue.iter().next().unwrap();
        (head.receipt == Receipt::Held).then(|| head.reason.clone())
    };
    let reason = files::wait_for(&s.file("queue.jsonl"), LIMIT, held).unwrap();
    assert_eq!(reason.as_deref(), Some("offline"));
    let shown = world.run_as(&s, "queue").ok();
    assert!(shown.contains("held(offline)"), "{shown}");

    std::fs::write(&lives, "").unwrap();
    files::wait_for(&s.file("queue.jsonl"), LIMIT, || s.queue().is_empty().then_some(())).unwrap();
    let text = std::fs::read_to_string(&heard).unwrap();
    assert_eq!(text.matches("idle → review — look").count(), 1, "{text}");
}
