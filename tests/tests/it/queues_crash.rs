//! Queues with many messages or a crash: what is removed from one, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use minder_client::rpc::Client;
use minder_proto::event::Receipt;
use minder_proto::rpc;
use minder_tests::files;
use minder_tests::process::Process;

use crate::crash::{OF_A_COMMIT, Prepared, told};
use crate::queues::{of_program, program, until_empty};
use crate::world::{LIMIT, Minderd, World, is_lost, must};

/// Writes down which message it was given.
const TAKES: &str =
    "echo \"$MINDER_MESSAGE\" | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/' >> taken; cat > /dev/null";

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
    const MESSAGES: usize = 400;
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
        files::wait_for(&taken, LIMIT, || (lines() > MESSAGES / 4).then_some(())).unwrap();
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
fn c11_many_senders_many_drains() {
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
