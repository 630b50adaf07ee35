//! Many messages, many takers, many watchers: nothing is lost, nothing comes twice, order is kept, and a commit costs
//! one flush, however many are told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use minder_client::rpc::{Client, Endpoint, Start};
use minder_proto::rpc::{self, Call};
use minder_proto::state::State;

use crate::world::{Agent, LIMIT, World, is_lost, must, ran};

const SENDERS: usize = 4;
const MESSAGES: usize = 3_000;

/// Rung by whoever changes something that another one waits for.
#[derive(Default)]
struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Waits for the next ring, a moment at most: what it is about is looked at again anyway.
    fn wait(&self) {
        let rung = self.rung.lock().unwrap();
        drop(self.changed.wait_timeout(rung, Duration::from_millis(20)).unwrap());
    }
}

/// What the threads of one run share.
struct Post {
    endpoint: Endpoint,
    accepted: Bell,
    taken: Bell,
    /// Messages that were taken and acknowledged.
    done: AtomicUsize,
    /// Rung when a daemon serves.
    up: Bell,
    /// Somebody has failed: nobody goes on.
    failed: AtomicBool,
}

/// Tells the others if its thread fails.
struct Party<'a>(&'a Post);

impl Drop for Party<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Post {
    fn client(&self) -> Client {
        Client::new(self.endpoint.clone(), Start::Never("this is a test")).patience(Some(LIMIT))
    }

    /// Makes a call until it is answered, however often the daemon dies on the way, and while a queue is full.
    fn insist<C: Call>(&self, client: &mut Client, call: &C) -> C::Answer {
        loop {
            assert!(!self.failed.load(Ordering::Relaxed), "another thread has failed");
            match client.call(call) {
                Ok(answer) => return answer,
                Err(error) if is_lost(&error) => self.up.wait(),
                Err(error) if error.exit_code() == 75 => self.taken.wait(),
                Err(error) => panic!("{}: {error}", C::METHOD),
            }
        }
    }

    /// Sends every message of one sender: in turn to each receiver.
    fn send(&self, sender: &Agent, receivers: &[Agent], number: usize) {
        let _party = Party(self);
        let mut client = self.client();
        for n in 0..MESSAGES / SENDERS {
            let key = Some(format!("key-{n}"));
            let letter = sender.letter(&receivers[n % receivers.len()], format!("{number} {n}"));
            self.insist(&mut client, &rpc::Send { key, ..letter });
            self.accepted.ring();
        }
    }

    /// Takes and acknowledges until everything is there; gives what came, in order.
    fn take(&self, receiver: &Agent, expected: usize) -> Vec<(usize, usize)> {
        let _party = Party(self);
        let mut client = self.client();
        let mut came = Vec::new();
        while came.len() < expected {
            let take = rpc::Take { caller: receiver.caller(), key: None };
            let Some(taken) = self.insist(&mut client, &take).message else {
                self.accepted.wait();
                continue;
            };
            let ack = rpc::Ack { caller: receiver.caller(), id: taken.id.to_string(), key: None };
            self.insist(&mut client, &ack);
            let (sender, n) = taken.body.split_once(' ').unwrap();
            came.push((sender.parse().unwrap(), n.parse().unwrap()));
            self.done.fetch_add(1, Ordering::Relaxed);
            self.taken.ring();
        }
        came
    }
}

/// Four senders, two receivers, a taker each; beside them `disturb`, which is over when all has been taken.
fn traffic(world: &World, disturb: impl FnOnce(&Post)) {
    let receivers: Vec<Agent> = ["left", "right"].iter().map(|l| world.session(l)).collect();
    let senders: Vec<Agent> = (0..SENDERS).map(|n| world.session(&format!("sender-{n}"))).collect();
    let socket = std::fs::read_link(world.home().socket_link()).unwrap();
    let post = Arc::new(Post {
        endpoint: Endpoint::at(world.home(), socket),
        accepted: Bell::default(),
        taken: Bell::default(),
        done: AtomicUsize::new(0),
        up: Bell::default(),
        failed: AtomicBool::new(false),
    });
    let came: Vec<Vec<(usize, usize)>> = std::thread::scope(|scope| {
        for (number, sender) in senders.iter().enumerate() {
            let (post, receivers) = (&post, &receivers);
            scope.spawn(move || post.send(sender, receivers, number));
        }
        let takers: Vec<_> = receivers
            .iter()
            .map(|receiver| {
                let (post, expected) = (&post, MESSAGES / receivers.len());
                scope.spawn(move || post.take(receiver, expected))
            })
            .collect();
        disturb(&post);
        takers.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (which, came) in came.iter().enumerate() {
        for number in 0..SENDERS {
            let of_one: Vec<usize> = came.iter().filter(|(s, _)| *s == number).map(|(_, n)| *n).collect();
            let sent: Vec<usize> = (0..MESSAGES / SENDERS).filter(|n| n % receivers.len() == which).collect();
            assert_eq!(of_one, sent, "from sender {number} to {}", receivers[which].label);
        }
        assert_eq!(receivers[which].messages().len(), MESSAGES / receivers.len());
        assert!(receivers[which].queue().is_empty());
    }
}

#[test]
fn three_thousand_messages_arrive_once_each_and_in_order() {
    let world = World::new();
    let daemon = world.start();
    traffic(&world, |_| {});
    assert_eq!(daemon.status().waiting, 0);
}

#[test]
fn three_thousand_messages_arrive_once_each_though_the_daemon_is_killed_ten_times() {
    let world = World::new();
    let mut daemon = Some(world.start());
    traffic(&world, |post| {
        for kill in 1..=10 {
            while post.done.load(Ordering::Relaxed) < kill * MESSAGES / 11 {
                assert!(!post.failed.load(Ordering::Relaxed));
                post.taken.wait();
            }
            daemon.take().unwrap().kill();
            daemon = Some(world.start());
            post.up.ring();
        }
    });
    assert_eq!(daemon.unwrap().status().waiting, 0);
}

#[test]
fn through_the_program_every_message_arrives_once_and_in_order_too() {
    let world = World::new();
    let _daemon = world.start();
    let receiver = world.session("receiver");
    let senders: Vec<Agent> = (0..SENDERS).map(|n| world.session(&format!("sender-{n}"))).collect();
    let each = 15;
    let came = std::thread::scope(|scope| {
        for (number, sender) in senders.iter().enumerate() {
            let world = &world;
            scope.spawn(move || {
                for n in 0..each {
                    let line = format!("send receiver --key k{n} -");
                    // Twice with one key is once.
                    for _ in 0..2 {
                        let text = format!("{number} {n}");
                        ran(&mut world.minder_as(sender, &line), text.as_bytes()).ok();
                    }
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (world, receiver) = (&world, &receiver);
                scope.spawn(move || {
                    let mut came = Vec::new();
                    let mut client = world.client();
                    loop {
                        let taken = world.run_as(receiver, "inbox take --json");
                        if taken.code == 0 {
                            came.push(taken.json()["message"]["body"].as_str().unwrap().to_owned());
                            continue;
                        }
                        taken.failed(1);
                        let arrived = receiver.messages().len();
                        if arrived == SENDERS * each
                            && must(&mut client, &rpc::Status::default()).waiting == 0
                        {
                            return came;
                        }
                    }
                })
            })
            .collect();
        takers.into_iter().map(|t| t.join().unwrap()).collect::<Vec<Vec<String>>>()
    });
    let mut all: Vec<&String> = came.iter().flatten().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), came.iter().flatten().count()), (SENDERS * each, SENDERS * each));
    for bodies in &came {
        for number in 0..SENDERS {
            let own = bodies.iter().filter_map(|b| b.strip_prefix(&format!("{number} ")));
            let own: Vec<usize> = own.map(|n| n.parse().unwrap()).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
    }
}

#[test]
fn a_hundred_watchers_get_every_move_in_order_for_one_flush_a_commit() {
    let world = World::durable();
    let daemon = world.start();
    let watched = world.session("watched");
    let watchers: Vec<Agent> = (0..100).map(|n| world.session(&format!("watcher-{n}"))).collect();
    let mut client = world.client();
    for watcher in &watchers {
        let states = Some("all".parse().unwrap());
        must(&mut client, &rpc::WatchAdd { states, ..watcher.watching(&watched) });
    }

    let before = daemon.status();
    let calls = world.isolated.root().join("flushes");
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,syncfs,msync", "-o"]);
    strace.arg(&calls).args(["-p", &daemon.pid().to_string()]);
    let strace = crate::strace::Attached::new(&mut strace, daemon.pid());
    let states = [State::Working, State::Review];
    let moves: Vec<u64> = (0..50)
        .map(|n| watched.declare(&mut client, states[n % 2], Some(&format!("move {n}"))).seq.unwrap())
        .collect();
    strace.detach();

    let after = daemon.status();
    assert_eq!(after.commits - before.commits, 50);
    assert_eq!(after.flushes - before.flushes, 50);
    let calls = std::fs::read_to_string(&calls).unwrap();
    assert_eq!(calls.lines().filter(|l| l.contains("= 0")).count(), 50, "{calls}");
    for watcher in &watchers {
        assert_eq!(watcher.told_of(watched.id), moves);
    }
}
