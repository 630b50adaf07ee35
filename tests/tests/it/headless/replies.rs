//! The way of a message through a turn and back.

use minder_proto::event::{Author, Body, Class, Receipt};
use minder_proto::rpc;
use minder_proto::state::State;
use minder_proto::turn::{Failure, Outcome};
use minder_tests::files;
use minder_tests::process::Process;

use super::{folder, lines, session, until, written};
use crate::turns::scene::folders;
use crate::world::{LIMIT, World, must, ran};

#[test]
fn a_message_is_answered_by_the_turn_that_it_starts() {
    let world = World::new();
    let _daemon = world.start();
    let w = session(&world, "w", "cat > prompt; echo the answer");
    let sent = ran(&mut world.minder(["send", "w", "--wait", "-"]), b"what is it?\n");
    assert_eq!((sent.code, sent.out.as_str()), (0, "the answer\n"), "{sent:?}");
    let prompt = written(&world, "w", "prompt", |_| true);
    assert!(
        prompt.starts_with("[minder] message ") && prompt.trim_end().ends_with("what is it?"),
        "{prompt}"
    );

    let moves: Vec<_> = w.moves().into_iter().map(|(_, m)| (m.to, m.by, m.turn_end)).collect();
    assert_eq!(moves, [(State::Working, Author::Runner, false), (State::Idle, Author::Runner, true)]);
    let [line] = &lines(&world, "w", 1)[..] else { panic!("one turn") };
    assert_eq!((line.outcome, line.session), (Outcome::Delivered, Some(w.id)));
    let told = w.events().into_iter().filter(|e| matches!(e.body, Body::Turn { .. })).count();
    assert_eq!(told, 1);
    assert!(w.queue().is_empty());
    let run = world.home().turns().join("run");
    files::wait_for(&run, LIMIT, || folders(&world).is_empty().then_some(())).unwrap();
}

#[test]
fn what_stalls_is_told_as_failed_within_its_windows_and_leaves_nothing() {
    let world = World::with("[turn]\nstall = { command = \"1s\" }\ncancel_grace = \"1s\"\n");
    let _daemon = world.start();
    let w = session(&world, "w", "trap '' TERM; echo $$ > pid; sleep 600 & sleep 600");
    let sent = ran(&mut world.minder(["send", "w", "--wait", "-"]), b"hello\n");
    assert_eq!(sent.code, 4, "{sent:?}");
    let pid: u32 = written(&world, "w", "pid", |text| text.ends_with('\n')).trim().parse().unwrap();
    assert!(Process::open(pid).unwrap().is_none_or(|p| p.wait(LIMIT)));
    let line = &lines(&world, "w", 1)[0];
    assert_eq!((line.failure, line.killed, line.survivors), (Some(Failure::Stall), true, 0));
    assert!(line.killed_processes >= 2, "{line:?}");
    let (_, last) = w.moves().pop().unwrap();
    assert_eq!((last.to, last.by), (State::Error, Author::Runner));
    assert!(last.note.unwrap().starts_with("turn failed: stall"));
    until(&w, |queue| queue.iter().all(|(r, _)| *r != Receipt::Handed) && !queue.is_empty());
}

/// It is handed from the moment at which its turn begins, and by no turn that died or never began.
#[test]
fn c13_what_a_turn_is_given_is_handed_as_it_begins_and_waits_again_where_it_died_at_once() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat > prompt; echo x >> runs; [ -e well ] || exit 3; read -r go < gate; echo here";
    let w = session(&world, "w", script);
    let sent = must(&mut client, &asker.letter(&w, "hello"));
    lines(&world, "w", 1);
    until(&w, |queue| queue.len() == 1 && queue[0].0 != Receipt::Handed);
    assert_eq!(asker.messages().len(), 0);
    let gate = folder(&world, "w").join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::write(folder(&world, "w").join("well"), "").unwrap();
    must(&mut client, &rpc::Retry { caller: None, id: sent.id.to_string() });
    written(&world, "w", "runs", |text| text.lines().count() == 2);
    // It lives, and has said nothing.
    let queue = w.queue();
    let entry = queue.get(sent.id).unwrap();
    assert_eq!((entry.receipt, entry.attempt), (Receipt::Handed, 2));
    std::fs::write(&gate, "go\n").unwrap();
    until(&w, <[_]>::is_empty);
    let answer = must(&mut client, &rpc::Receipt { id: sent.id.to_string(), ..rpc::Receipt::default() });
    let road: Vec<Receipt> = answer.history.iter().map(|line| line.r).collect();
    let of = |receipt: Receipt| road.iter().filter(|r| **r == receipt).count();
    assert_eq!((of(Receipt::Handed), of(Receipt::Seen)), (2, 1), "{road:?}");

    // A program that is not there.
    let dir = folder(&world, "w").display().to_string();
    let words = ["new", "--label", "v", "--dir", &dir, "--channel", "headless", "--", "/nowhere/program"];
    ran(&mut world.minder(words), b"").ok();
    let v = world.known("v").unwrap();
    let sent = must(&mut client, &asker.letter(&v, "hello"));
    lines(&world, "v", 1);
    until(&v, |queue| queue.len() == 1 && queue[0].0 != Receipt::Handed);
    let answer = must(&mut client, &rpc::Receipt { id: sent.id.to_string(), ..rpc::Receipt::default() });
    assert!(
        answer.history.iter().all(|line| !matches!(line.r, Receipt::Seen | Receipt::Answered)),
        "{answer:?}"
    );
}

#[test]
fn two_who_answer_by_turns_come_to_an_end() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let [a, b] = ["a", "b"].map(|l| session(&world, l, "cat >> prompts; echo 'so it is'"));
    let ask = rpc::Send { to: Some("a".to_owned()), body: "is it?".to_owned(), ..asker.letter(&a, "") };
    let asked = must(&mut client, &ask).id;
    let answered = || asker.messages().into_iter().find(|(_, m)| m.reply_to == Some(asked));
    let (_, answer) = files::wait_for(&asker.file("timeline.jsonl"), LIMIT, answered).unwrap();
    assert_eq!((answer.body.as_str(), answer.from), ("so it is", a.party()));

    // From one to the other: its answer starts a turn, and that turn's answer goes nowhere.
    let through = format!("--as {} send b -", a.id);
    ran(&mut world.minder(through.split(' ')), b"and?\n").ok();
    lines(&world, "b", 1);
    lines(&world, "a", 2);
    until(&a, <[_]>::is_empty);
    assert!(b.queue().is_empty(), "{:?}", b.queue());
    assert_eq!(b.messages().len(), 1);
}

#[test]
fn what_the_session_says_in_its_turn_is_its_own_word_and_stands() {
    let world = World::new();
    let _daemon = world.start();
    let boss = world.session("boss");
    let minder = world.isolated.program("minder").unwrap().display().to_string();
    let script =
        format!("cat > prompt; {minder} state review --note 'look at it' 2> said && echo done with it");
    let w = session(&world, "w", &script);
    boss.watch(&mut world.client(), &w);
    ran(&mut world.minder(["send", "w", "--wait", "-"]), b"do it\n").ok();
    let said = std::fs::read_to_string(folder(&world, "w").join("said")).unwrap();
    let moves: Vec<_> = w.moves().into_iter().map(|(_, m)| (m.to, m.by)).collect();
    assert_eq!(moves, [(State::Working, Author::Runner), (State::Review, Author::Agent)], "{said}");
}

#[test]
fn who_says_that_there_is_nothing_to_say_sends_nothing() {
    let world = World::new();
    let _daemon = world.start();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat > prompt; echo NO_REPLY");
    must(&mut world.client(), &asker.letter(&w, "fyi"));
    assert_eq!(lines(&world, "w", 1)[0].outcome, Outcome::Silent);
    until(&w, <[_]>::is_empty);
    assert!(asker.messages().is_empty());
}

#[test]
fn f6_a_turn_of_a_queue_goes_on_without_a_daemon_and_is_answered_once() {
    let world = World::new();
    let daemon = world.start();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat >> prompts; echo x >> runs; read -r go < gate; echo 'the answer'");
    let gate = folder(&world, "w").join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    must(&mut world.client(), &asker.letter(&w, "one"));
    written(&world, "w", "runs", |text| text.ends_with('\n'));
    daemon.kill();
    let daemon = world.start();
    daemon.kill();
    // It ends while nobody is there.
    std::fs::write(&gate, "go\n").unwrap();
    let result = folders(&world)[0].join("result.json");
    files::wait_for(&result, LIMIT, || result.exists().then_some(())).unwrap();
    let _daemon = world.start();
    let line = &lines(&world, "w", 1)[0];
    assert_eq!((line.outcome, line.adopted), (Outcome::Delivered, 2));
    until(&w, <[_]>::is_empty);
    let answers: Vec<_> = asker.messages().into_iter().map(|(_, m)| m.body).collect();
    assert_eq!(answers, ["the answer"]);
    assert_eq!(written(&world, "w", "runs", |_| true), "x\n", "nothing ran twice");
}

#[test]
fn f7_what_was_cancelled_or_closed_does_not_run_again() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat >> prompts; echo $$ >> runs; exec sleep 600";
    let [w, v] = ["w", "v"].map(|l| session(&world, l, script));
    for to in [&w, &v] {
        must(&mut client, &asker.letter(to, "one"));
    }
    let pids =
        ["w", "v"].map(|l| written(&world, l, "runs", |t| t.ends_with('\n')).trim().parse::<u32>().unwrap());
    let rows = must(&mut client, &rpc::TurnList::default()).turns;
    let turn = rows.iter().find(|row| row.session == Some(w.id)).unwrap().turn;
    must(&mut client, &rpc::TurnCancel { caller: None, id: turn.to_string() });
    assert_eq!(world.run("close v").code, 0);
    let told = || (asker.messages().len() >= 2).then_some(());
    files::wait_for(&asker.file("timeline.jsonl"), LIMIT, told).unwrap();
    for pid in pids {
        assert!(Process::open(pid).unwrap().is_none_or(|p| p.wait(LIMIT)));
    }
    until(&w, <[_]>::is_empty);
    daemon.kill();
    let _daemon = world.start();
    assert_eq!(must(&mut world.client(), &rpc::TurnList::default()).turns, []);
    for label in ["w", "v"] {
        assert_eq!(lines(&world, label, 1).len(), 1);
        assert_eq!(written(&world, label, "runs", |_| true).lines().count(), 1);
    }
}

#[test]
fn what_only_goes_along_keeps_nothing_from_starting_a_turn() {
    let world = World::with("[headless]\nbatch = 2\n");
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat >> prompts; echo here");
    let along = |n| rpc::Send { class: Class::WithNext, ..asker.letter(&w, format!("along {n}")) };
    for n in 0..70 {
        must(&mut client, &along(n));
    }
    assert_eq!(w.moves().len(), 0, "by itself it starts nothing");
    let waited = ran(&mut world.minder(["send", "w", "--wait", "-"]), b"go\n");
    assert_eq!((waited.code, waited.out.as_str()), (0, "here\n"), "{waited:?}");
    let prompts = written(&world, "w", "prompts", |_| true);
    assert!(prompts.contains("along 0") && prompts.contains("\ngo"), "{prompts}");
}

#[test]
fn a_turn_that_the_surroundings_end_is_run_again() {
    let world = World::new();
    let daemon = world.start();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat >> prompts; echo $$ >> runs; [ -e well ] || exec sleep 600; echo here");
    must(&mut world.client(), &asker.letter(&w, "one"));
    let pid: u32 = written(&world, "w", "runs", |t| t.ends_with('\n')).trim().parse().unwrap();
    let shim = crate::turns::scene::shim_of(&Process::open(pid).unwrap().unwrap());
    std::fs::write(folder(&world, "w").join("well"), "").unwrap();
    // As at the end of a login.
    assert!(shim.signal(rustix::process::Signal::TERM));
    daemon.kill();
    let _daemon = world.start();
    until(&w, <[_]>::is_empty);
    let answers: Vec<_> = asker.messages().into_iter().map(|(_, m)| m.body).collect();
    assert_eq!(answers, ["here"]);
}
