//! Waiters: the hooks that stay beside an idle conversation. One a session; none outlives what it waits for.

use minder_proto::event::Receipt;
use minder_tests::fake::Host;
use rustix::process::Signal;

use super::bench::{Bench, is_silent};
use crate::scene::LIMIT;

#[test]
fn an_idle_session_is_woken_by_one_of_its_waiters() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    // Which of the two asked last is up to the machine.
    let (one, other) = (bench.wait("SessionStart"), bench.wait("UserPromptSubmit"));
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for waiter in [one, other] {
            let ended = ended.clone();
            scope.spawn(move || ended.send(waiter.wait(LIMIT).unwrap()));
        }
        assert!(is_silent(&end.recv_timeout(LIMIT).unwrap()), "the older one ends without a word");
        bench.quietly("UserPromptSubmit");
        let sent = bench.send(id, &["wake up"]);
        bench.reaches(id, sent, Receipt::Held);
        // The turn is kept going; the other one has nothing to bring when it is over.
        assert_eq!(bench.tell(&bench.payload("Stop")).code, Some(2));
        bench.quietly("Stop-after-block");
        bench.send(id, &["now then"]);
        let woken = end.recv_timeout(LIMIT).unwrap();
        assert_eq!((woken.code, woken.stdout.as_str()), (Some(2), ""));
        assert!(woken.stderr.contains("now then") && !woken.stderr.contains("wake up"), "{woken:?}");
    });
}

#[test]
fn a_waiter_outlives_a_restart_of_the_daemon() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let waiter = bench.wait("SessionStart");
    // Killed, and started again by the next command.
    assert!(bench.scene.isolated.daemon().unwrap().signal(Signal::KILL));
    let sent = bench.send(id, &["are you there?"]);
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("are you there?"), "{woken:?}");
    bench.reaches(id, sent, Receipt::Handed);
    let waiter = bench.wait("Stop");
    bench.scene.minder(&["daemon", "restart"]).ok();
    let sent = bench.send(id, &["and now?"]);
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("and now?"), "{woken:?}");
    assert!(woken.stderr.contains(&sent.short()));
}

#[test]
fn a_waiter_ends_with_its_conversation_and_with_its_harness() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let waiter = bench.wait("SessionStart");
    bench.quietly("SessionEnd-clear");
    assert!(is_silent(&waiter.wait(LIMIT).unwrap()), "of the old conversation");
    bench.quietly("SessionStart-clear");
    assert_eq!(bench.scene.record(id).bindings.len(), 2);
    let waiter = bench.wait("SessionStart-clear");
    let process = waiter.process(LIMIT).unwrap();
    // The harness is killed: nobody ends its waiter for it.
    assert!(bench.host.process().unwrap().signal(Signal::KILL));
    assert!(process.wait(LIMIT), "it stays after its harness");
    let sent = bench.send(id, &["hello"]);
    bench.reaches(id, sent, Receipt::Held);
    assert_eq!(bench.scene.road(id, sent), "queued, held(offline)");
}

#[test]
fn a_waiter_that_comes_after_the_end_of_its_conversation_stays_only_if_it_begins_again() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.quietly("SessionEnd-clear");
    let late = bench.wait("SessionStart");
    assert!(is_silent(&late.wait(LIMIT).unwrap()), "nothing wakes what is over");
    let sent = bench.send(id, &["hello again"]);
    let waiter = bench.wait("SessionStart");
    waiter.process(LIMIT).unwrap();
    bench.quietly("SessionStart");
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("hello again"), "{woken:?}");
    bench.reaches(id, sent, Receipt::Handed);
}

#[test]
fn a_conversation_that_is_taken_up_again_has_a_waiter_again() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    assert!(bench.host.process().unwrap().signal(Signal::KILL));
    bench.scene.wait_record(id, "its end", |r| r.process.as_ref().is_some_and(|p| p.ended.is_some()));
    let sent = bench.send(id, &["welcome back"]);
    bench.host = Host::start(&bench.scene.isolated, "claude").unwrap();
    // Both hooks of its start run at once, and this one is the first to ask.
    let waiter = bench.wait("SessionStart");
    waiter.process(LIMIT).unwrap();
    let mut again = bench.payload("SessionStart");
    again["source"] = "resume".into();
    assert!(is_silent(&bench.tell(&again)));
    let woken = waiter.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("welcome back"), "{woken:?}");
    assert!(bench.scene.road(id, sent).starts_with("queued, held(offline)"));
    assert_eq!((bench.scene.record(id).incarnation, bench.scene.records().len()), (1, 1));
}

#[test]
fn a_second_process_of_a_conversation_is_not_heard_and_takes_nothing() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let first = bench.wait("SessionStart");
    let mut second = Host::start(&bench.scene.isolated, "claude").unwrap();
    let prompt = second.call(bench.call(&bench.payload("UserPromptSubmit"), false)).unwrap();
    assert!(is_silent(&prompt), "{prompt:?}");
    let waiter = second.begin(bench.call(&bench.payload("SessionStart"), true)).unwrap();
    assert!(is_silent(&waiter.wait(LIMIT).unwrap()));
    assert_eq!(bench.scene.path(id), []);
    let doctor = || bench.scene.minder(&["doctor", "--json"]).stdout;
    let writes = format!("another claude (pid {}) writes the conversation", second.pid());
    assert!(doctor().contains(&writes), "{}", doctor());
    drop(second);
    assert!(!doctor().contains("another claude"), "it is over when one of them is");
    bench.send(id, &["for the first"]);
    let woken = first.wait(LIMIT).unwrap();
    assert!(woken.code == Some(2) && woken.stderr.contains("for the first"), "{woken:?}");
}

#[test]
fn without_a_waiter_a_message_says_that_nothing_wakes_the_session() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let waiter = bench.wait("SessionStart");
    assert!(waiter.process(LIMIT).unwrap().signal(Signal::KILL));
    waiter.wait(LIMIT).unwrap();
    let asked = bench.scene.minder(&["send", "p", "--wait", "hello"]);
    assert_eq!(asked.code, 3, "{asked:?}");
    assert!(asked.stderr.contains("no-wake-path"), "{asked:?}");
    let sent = bench.scene.messages(id)[0].id;
    let prompt = bench.tell(&bench.payload("UserPromptSubmit"));
    assert!(prompt.stdout.contains("hello"), "{prompt:?}");
    bench.reaches(id, sent, Receipt::Handed);
}

#[test]
fn a_waiter_never_holds_up_a_run_that_nobody_sits_at() {
    let mut bench = Bench::new("");
    for (name, value) in
        [("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_SESSION_ATTENDED", "0"), ("MINDER_TURN", "t")]
    {
        let mut call = bench.call(&bench.payload("SessionStart"), true);
        call.environment.insert(name.to_owned(), value.to_owned());
        call.limit_ms = 5_000;
        assert!(is_silent(&bench.host.call(call).unwrap()), "{name}");
    }
}
