//! Cases J: what a crash, a full disk and a foreign hand leave of the store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use minder_client::rpc::Client;
use minder_proto::event::Body;
use minder_proto::rpc::{self, Call};
use minder_proto::state::State;
use minder_tests::process::Process;

use crate::crash::{ELSEWHERE, OF_A_CHECKPOINT, OF_A_COMMIT, OF_A_START, Prepared};
use crate::world::{Agent, Minderd, Running, World, is_lost, must};

/// One step of a scenario: made once, and made again where nobody knows whether it was done.
type Step = Box<dyn Fn(&mut Client) -> Outcome>;

enum Outcome {
    /// It was answered.
    Told,
    /// The daemon went away.
    Lost,
}

fn step<C: Call + 'static>(call: C) -> Step {
    Box::new(move |client| match client.call(&call) {
        Ok(_) => Outcome::Told,
        Err(error) if is_lost(&error) => Outcome::Lost,
        // Done before, by the same step: a closed session, a message that does not wait any more.
        Err(error) if matches!(error.exit_code(), 2 | 3) => Outcome::Told,
        Err(error) => panic!("{}: {error}", C::METHOD),
    })
}

/// Takes the oldest message of a mailbox, and acknowledges it.
fn read_one(agent: &Agent) -> Step {
    let caller = agent.caller();
    Box::new(move |client| {
        let take = rpc::Take { caller: caller.clone(), key: None };
        let taken = match client.call(&take) {
            Ok(answer) => answer.message,
            Err(error) if is_lost(&error) => return Outcome::Lost,
            Err(error) => panic!("{error}"),
        };
        // Nothing: the acknowledgement before the crash counted.
        let Some(taken) = taken else { return Outcome::Told };
        let ack = rpc::Ack { caller: caller.clone(), id: taken.id.to_string(), key: None };
        match client.call(&ack) {
            Ok(_) => Outcome::Told,
            Err(error) if is_lost(&error) => Outcome::Lost,
            Err(error) => panic!("{error}"),
        }
    })
}

/// Every kind of change, on three sessions.
fn every_change(w: &Agent, s: &Agent, gone: &Agent) -> Vec<Step> {
    let key = |k: &str| Some(k.to_owned());
    let born =
        rpc::Create { label: key("born"), dir: key("/"), key: key("create"), ..rpc::Create::default() };
    let letter = rpc::Send { key: key("letter"), ..w.letter(s, "hello") };
    let notice = rpc::WatchAdd { states: Some("all".parse().unwrap()), ..s.watching(w) };
    let doomed = rpc::Send { key: key("doomed"), ..w.letter(gone, "never read") };
    vec![
        step(born),
        step(letter),
        read_one(s),
        step(notice),
        step(rpc::Declare { key: key("move"), ..w.declaration(State::Review, Some("look")) }),
        step(rpc::WatchCancel { caller: s.caller(), sessions: w.id.to_string() }),
        step(rpc::Set { session: w.id.to_string(), label: key("renamed"), ..rpc::Set::default() }),
        step(doomed),
        step(rpc::Close { session: gone.id.to_string(), ..rpc::Close::default() }),
    ]
}

/// What a store says, without what differs from run to run: ids of messages and new sessions, and times.
pub fn summary(world: &World) -> Vec<String> {
    let home = world.home();
    let mut lines = Vec::new();
    let folders = [("sessions", home.sessions()), ("trash", home.trash()), ("operator", home.operator())];
    for (name, folder) in folders {
        let sessions: Vec<PathBuf> = match name {
            "operator" => vec![folder],
            _ => std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect(),
        };
        for dir in sessions {
            let Ok(events) = minder_proto::timeline::last(&dir, usize::MAX) else { continue };
            let label = events.iter().find_map(|e| match &e.body {
                Body::Created { label, .. } => Some(label.clone()),
                _ => None,
            });
            let label = format!("{name} {}", label.unwrap_or_default());
            for event in &events {
                lines.push(format!("{label} {} {}", event.seq, said(&event.body)));
            }
            let queue = minder_proto::snapshot::queue(&dir).unwrap();
            lines.extend(queue.iter().map(|e| format!("{label} waits {} {:?}", e.seq, e.receipt)));
            let watchers = std::fs::read_to_string(dir.join("watchers.json")).unwrap_or_default();
            lines.push(format!("{label} watched {}", watchers.matches("\"watcher\"").count()));
            if let Ok(text) = std::fs::read_to_string(dir.join("session.json")) {
                let record: minder_proto::record::SessionRecord = serde_json::from_str(&text).unwrap();
                let (state, note) = (record.state, record.note);
                lines.push(format!("{label} is {:?} {state} {note:?} {}", record.label, record.state_seq));
            }
        }
    }
    for folder in ["labels", "bindings/claude"] {
        let Ok(entries) = std::fs::read_dir(home.root().join(folder)) else { continue };
        lines.extend(entries.map(|e| format!("{folder} {}", e.unwrap().file_name().display())));
    }
    let closed = std::fs::read_to_string(home.closed()).unwrap_or_default();
    lines.push(format!("{} closed", closed.lines().filter(|l| !l.is_empty()).count()));
    lines.sort_unstable();
    lines
}

fn said(body: &Body) -> String {
    match body {
        Body::State(t) => format!("{} to {} {:?}", t.from, t.to, t.note),
        Body::Message(m) => {
            let about = m.about.as_ref().map(|a| (a.notice, a.seq, a.to));
            format!("message {:?} {about:?} {:?}", m.body.lines().next(), m.key)
        }
        Body::Receipt { receipt, reason, .. } => format!("receipt {receipt:?} {reason:?}"),
        Body::Note { what, .. } => format!("note {what}"),
        Body::Created { .. } => "created".to_owned(),
        Body::Binding { .. } => "binding".to_owned(),
        Body::Record { what, to, .. } => format!("record {what} {to:?}"),
        Body::Turn { id, outcome, .. } => format!("turn {id} {outcome}"),
        Body::Closed { .. } => "closed".to_owned(),
    }
}

fn no_temporary_file_stays(root: &Path, at: &str) {
    let left: Vec<String> =
        crate::world::tree(root).into_keys().filter(|name| name.contains("tmp-")).collect();
    assert!(left.is_empty(), "{at}: {left:?}");
}

/// Makes the steps until one is lost; gives how many were answered.
fn until_lost(steps: &[Step], client: &mut Client) -> usize {
    steps.iter().take_while(|step| matches!(step(client), Outcome::Told)).count()
}

#[test]
fn j1_killed_while_writing() {
    let world = World::new();
    let daemon = world.start();
    let [w, s, gone] = ["w", "s", "gone"].map(|l| world.session(l));
    daemon.stop();
    let prepared = Prepared::new(world);
    let steps = every_change(&w, &s, &gone);

    // The store that they make of it undisturbed.
    let whole = std::cell::OnceCell::new();
    let finish = |_: &Minderd, told: usize, at: &str| {
        let mut client = prepared.world.client();
        // What was told is there: the summary shows it, since no step that was answered is made again.
        for step in &steps[told..] {
            assert!(matches!(step(&mut client), Outcome::Told), "{at}");
        }
        let found = summary(&prepared.world);
        let expected = whole.get_or_init(|| found.clone());
        let odd: Vec<_> = BTreeSet::from_iter(&found)
            .symmetric_difference(&BTreeSet::from_iter(expected))
            .copied()
            .collect::<Vec<_>>();
        assert!(found == *expected, "{at}, after {told} steps: {odd:#?}");
        no_temporary_file_stays(prepared.world.home().root(), at);
    };
    let scenario = |client: &mut Client, _: &Process| until_lost(&steps, client);
    let last = prepared.at_every(&["answer.before"], |_, _| 0, finish);
    assert_eq!(last, [("answer.before", 0)], "undisturbed first");
    let mut reached = prepared.at_every(&OF_A_COMMIT, scenario, finish);
    reached.extend(prepared.at_every(&OF_A_CHECKPOINT, scenario, finish));
    // A start that replays everything, and one that replays a close cut off in the middle.
    reached.extend(prepared.at_every_start(("checkpoint.switched", 1), scenario, finish));
    let not_reached: Vec<_> = reached.iter().filter(|(_, n)| *n == 0).collect();
    assert!(not_reached.is_empty(), "{not_reached:?} of {reached:?}");
}

#[test]
fn j1_every_kill_point_has_its_place() {
    let named = BTreeSet::from(minder_proto::trial::KILL_POINTS);
    let ours: BTreeSet<&str> =
        OF_A_COMMIT.iter().chain(&OF_A_CHECKPOINT).chain(&OF_A_START).copied().collect();
    assert_eq!(named, &ours | &BTreeSet::from(ELSEWHERE));
}

#[test]
fn j1_killed_while_a_log_is_sealed_and_a_ledger_rewritten() {
    let world = World::new();
    let daemon = world.start();
    let [w, s] = ["w", "s"].map(|l| world.session(l));
    let mut client = world.client();
    let large = "x".repeat(250 * 1024);
    for _ in 0..17 {
        must(&mut client, &w.letter(&s, large.clone()));
    }
    daemon.stop();
    // What was settled long ago fills the ledger: blank lines are as good.
    let ledger = std::fs::File::options().append(true).open(s.file("queue.jsonl")).unwrap();
    std::io::Write::write_all(&mut &ledger, &b"\n".repeat(1024 * 1024)).unwrap();
    let prepared = Prepared::new(world);
    let letter = rpc::Send { key: Some("k".to_owned()), ..w.letter(&s, "one more") };
    let scenario = |client: &mut Client, _: &Process| matches!(step_once(&letter, client), Outcome::Told);
    let points = [&OF_A_COMMIT[..], &OF_A_CHECKPOINT].concat();
    let finish = |_: &Minderd, _told: bool, at: &str| {
        must(&mut prepared.world.client(), &letter);
        let messages = s.messages();
        assert_eq!(messages.len(), 18, "{at}");
        let seqs: Vec<u64> = s.events().iter().map(|e| e.seq).collect();
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{at}: {seqs:?}");
        assert_eq!(s.queue().len(), 18, "{at}");
        no_temporary_file_stays(prepared.world.home().root(), at);
    };
    let reached = prepared.at_every(&points, scenario, finish);
    assert!(reached.iter().all(|(_, n)| *n > 0), "{reached:?}");
    assert_eq!(minder_proto::timeline::sealed(&s.dir()).unwrap().len(), 1, "it was sealed");
    let len = s.file("queue.jsonl").metadata().unwrap().len();
    assert!(len < 64 * 1024, "it was rewritten: {len}");
}

fn step_once<C: Call>(call: &C, client: &mut Client) -> Outcome {
    match client.call(call) {
        Ok(_) => Outcome::Told,
        Err(error) if is_lost(&error) => Outcome::Lost,
        Err(error) => panic!("{}: {error}", C::METHOD),
    }
}

#[test]
fn j3_a_torn_last_line() {
    let world = World::new();
    let _daemon = world.start();
    let [s, w] = ["s", "w"].map(|l| world.session(l));
    let mut client = world.client();
    let stream = Running::asleep(&mut world.minder_as(&s, "watch stream w --json --no-announce"));
    w.declare(&mut client, State::Review, Some("note 0"));
    let said = |stream: &Running, note: &str| loop {
        let line: serde_json::Value = serde_json::from_str(&stream.line()).unwrap();
        if line["note"] == note {
            return;
        }
    };
    said(&stream, "note 0");
    let torn = w.file("timeline.jsonl");
    for kept in 0.. {
        let text = std::fs::read(&torn).unwrap();
        let start = text[..text.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        if start + kept >= text.len() {
            assert!(kept > 100, "a line has more bytes than {kept}");
            break;
        }
        let file = std::fs::File::options().write(true).open(&torn).unwrap();
        file.set_len((start + kept) as u64).unwrap();
        let state = if kept % 2 == 0 { State::Asking } else { State::Review };
        let note = format!("note {}", kept % 10);
        let seq = w.declare(&mut client, state, Some(&note)).seq.unwrap();
        said(&stream, &note);
        let events = w.events();
        let last = events.last().unwrap();
        assert_eq!(last.seq, seq, "{kept} bytes kept");
        assert!(matches!(&last.body, Body::State(t) if t.to == state && t.note.as_deref() == Some(&note)));
        let notes = events.iter().filter(|e| matches!(e.body, Body::Note { .. })).count();
        assert_eq!(notes, kept + 1, "{kept} bytes kept: one note about each");
    }
}

#[test]
fn j3_a_torn_last_line_of_any_other_file() {
    let world = World::new();
    let mut daemon = world.start();
    let [s, w] = ["s", "w"].map(|l| world.session(l));
    let home = world.home();
    let operator = |name: &str| home.operator().join(name);
    let mut letters = 0;
    let mut closed = 0;
    for kept in [1, 7, 40] {
        let files = [
            s.file("queue.jsonl"),
            home.keys(),
            home.closed(),
            home.feed(),
            operator("timeline.jsonl"),
            operator("queue.jsonl"),
        ];
        for file in files {
            // Something is at the end of each.
            let act = |letters: &mut usize, closed: &mut usize| {
                let mut client = world.client();
                let key = Some(format!("key {letters}"));
                must(&mut client, &rpc::Send { key, ..w.letter(&s, format!("letter {letters}")) });
                let person = Some("@operator".to_owned());
                must(&mut client, &rpc::Send { to: person, ..w.letter(&s, "to the person") });
                let passing = world.session(&format!("passing-{closed}"));
                must(&mut client, &rpc::Close { session: passing.id.to_string(), ..rpc::Close::default() });
                (*letters, *closed) = (*letters + 1, *closed + 1);
                passing.id
            };
            act(&mut letters, &mut closed);
            let text = std::fs::read(&file).unwrap();
            let start = text[..text.len() - 1].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            std::fs::write(&file, &text[..start + kept]).unwrap();
            let at = format!("{} cut after {kept} bytes", file.display());
            for restart in [false, true] {
                if restart {
                    daemon.kill();
                    daemon = world.start();
                }
                // The next line is whole, and so is everything before the torn one.
                let last = act(&mut letters, &mut closed);
                assert_eq!(s.messages().len(), letters, "{at}");
                assert!(minder_proto::snapshot::tombstone(&home, last).is_some(), "{at}");
                let repeat = rpc::Send {
                    key: Some(format!("key {}", letters - 1)),
                    ..w.letter(&s, format!("letter {}", letters - 1))
                };
                assert!(must(&mut world.client(), &repeat).duplicate, "{at}");
            }
        }
    }
    daemon.stop();
    world.run("store repair").ok();
    world.run("store check").ok();
}
