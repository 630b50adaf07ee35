//! Why a turn is not begun: so many at once, an account without quota, a login that is dead, failures in a row.

use minder_proto::event::Receipt;
use minder_proto::rpc;
use minder_proto::state::State;

use super::{lines, session, until, written};
use crate::world::{World, must, ran};

const QUOTA: &str = "cat >> prompts; echo x >> runs; [ -e paid ] && { echo here; exit 0; }; \
    echo \"You've hit your weekly limit\" >&2; exit 1";

fn held_by(reason: &str, queue: &[(Receipt, Option<String>)]) -> bool {
    !queue.is_empty() && queue.iter().all(|(r, why)| *r == Receipt::Held && why.as_deref() == Some(reason))
}

#[test]
fn m7_a_quota_is_met_once_and_tried_now_and_then() {
    let world = World::new();
    let daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let w = session(&world, "w", QUOTA);
    for n in 0..40 {
        must(&mut client, &asker.letter(&w, format!("{n}")));
    }
    until(&w, |queue| queue.len() == 40 && held_by("circuit", queue));
    assert_eq!(written(&world, "w", "runs", |_| true), "x\n", "one launch");
    let shown = || must(&mut world.client(), &rpc::AccountList::default()).circuits;
    let [before] = &shown()[..] else { panic!("one circuit is open") };
    assert!((1..=60).contains(&before.probe_s), "{before:?}");

    daemon.kill();
    let _daemon = world.start();
    let [after] = &shown()[..] else { panic!("it is still open") };
    assert_eq!(after.circuit, before.circuit);
    assert_eq!(written(&world, "w", "runs", |_| true), "x\n");

    std::fs::write(super::folder(&world, "w").join("paid"), "").unwrap();
    assert!(world.run("account release w").ok().contains("1 session may go on"));
    until(&w, <[_]>::is_empty);
    assert_eq!(shown(), []);
    // Twenty at a time.
    assert_eq!(lines(&world, "w", 3).len(), 3);
    assert_eq!(world.run("account list").ok(), "nothing is held\n");
}

#[test]
fn three_crashes_in_a_row_open_the_circuit_of_that_session_alone() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let [w, v] =
        ["w", "v"].map(|l| session(&world, l, "cat >> prompts; echo x >> runs; [ -e well ] || exit 3"));
    let sent = must(&mut client, &asker.letter(&w, "one"));
    for n in 1..=3 {
        lines(&world, "w", n);
        // Its pause is not waited for.
        if n < 3 {
            must(&mut client, &rpc::Retry { caller: None, id: sent.id.to_string() });
        }
    }
    must(&mut client, &rpc::Retry { caller: None, id: sent.id.to_string() });
    until(&w, |queue| held_by("circuit", queue));
    let waited = ran(&mut world.minder(["send", "w", "--wait", "-"]), b"two\n");
    assert_eq!(waited.code, 3, "{waited:?}");
    std::fs::write(super::folder(&world, "v").join("well"), "").unwrap();
    must(&mut client, &asker.letter(&v, "one"));
    until(&v, <[_]>::is_empty);
}

#[test]
fn so_many_turns_at_once_and_the_next_is_queued() {
    let world = World::with("[headless]\ncapacity = 1\n");
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let script = "cat > prompt; echo x > runs; read -r go < gate; echo here";
    let all = ["w", "v"].map(|l| session(&world, l, script));
    let gates = ["w", "v"].map(|l| super::folder(&world, l).join("gate"));
    for (agent, gate) in all.iter().zip(&gates) {
        nix::unistd::mkfifo(gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
        must(&mut client, &asker.letter(agent, "one"));
    }
    written(&world, "w", "runs", |_| true);
    until(&all[1], |queue| held_by("capacity", queue));
    let queued = || all[1].moves().last().is_some_and(|(_, m)| m.to == State::Queued).then_some(());
    minder_tests::files::wait_for(&all[1].file("timeline.jsonl"), crate::world::LIMIT, queued).unwrap();
    for (agent, gate) in all.iter().zip(&gates) {
        std::fs::write(gate, "go\n").unwrap();
        until(agent, <[_]>::is_empty);
    }
    let states: Vec<_> = all[1].moves().into_iter().map(|(_, m)| m.to).collect();
    assert_eq!(states, [State::Queued, State::Working, State::Idle]);
}

#[test]
fn c10_where_there_is_no_room_it_waits_until_there_is() {
    let world = World::with("[headless]\ncapacity = 0\n");
    let daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat >> prompts; echo x >> runs; echo here");
    let sent: Vec<_> =
        ["one", "two"].iter().map(|body| must(&mut client, &asker.letter(&w, *body)).id).collect();
    until(&w, |queue| queue.len() == 2 && held_by("capacity", queue));
    daemon.kill();
    let daemon = world.start();
    let again = || must(&mut world.client(), &rpc::Retry { caller: None, id: sent[0].to_string() });
    again();
    until(&w, |queue| queue.len() == 2 && held_by("capacity", queue));
    assert!(!super::folder(&world, "w").join("runs").exists());
    daemon.kill();
    let config = std::fs::read_to_string(world.config_file()).unwrap();
    std::fs::write(world.config_file(), config.replace("capacity = 0", "capacity = 1")).unwrap();
    let _daemon = world.start();
    until(&w, <[_]>::is_empty);
    assert_eq!(lines(&world, "w", 1).len(), 1);
    let prompt = written(&world, "w", "prompts", |_| true);
    assert!(prompt.find("one") < prompt.find("two"), "{prompt}");
    let states: Vec<_> = w.moves().into_iter().map(|(_, m)| m.to).collect();
    assert_eq!(states, [State::Queued, State::Working, State::Idle]);
}

#[test]
fn a_variable_that_nobody_has_is_named() {
    let world = World::with("[turn]\nenv_pass = [\"SECRET_OF_MINE\"]\n");
    let values = world.isolated.root().join("values");
    let before = std::fs::read_to_string(world.config_file()).unwrap();
    let with_file = format!("{before}env_file = \"{}\"\n", values.display());
    std::fs::write(world.config_file(), with_file).unwrap();
    let write = |text: &str| {
        std::fs::write(&values, text).unwrap();
        std::fs::set_permissions(&values, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    write("");
    let _daemon = world.start();
    let folder = super::folder(&world, "w");
    std::fs::create_dir_all(&folder).unwrap();
    let dir = folder.to_str().unwrap();
    let words =
        ["new", "--label", "w", "--dir", dir, "--channel", "headless", "--", "/bin/sh", "-c", "echo here"];
    ran(world.minder(words).env("SECRET_OF_MINE", "the value"), b"").ok();
    let w = world.known("w").unwrap();
    ran(&mut world.minder(["send", "w", "-"]), b"hello\n").ok();
    until(&w, |queue| {
        queue.iter().any(|(_, why)| why.as_deref().is_some_and(|w| w.starts_with("auth(SECRET_OF_MINE")))
    });
    for (path, bytes) in crate::world::tree(world.home().root()) {
        assert!(!String::from_utf8_lossy(&bytes).contains("the value"), "{path}");
    }
    let shown = world.run("account list").ok();
    assert!(shown.contains("w  auth") && shown.contains("SECRET_OF_MINE"), "{shown}");
    write("SECRET_OF_MINE=the value\n");
    assert!(world.run("account release w").ok().contains("1 session may go on"));
    until(&w, <[_]>::is_empty);
}

#[test]
fn what_no_turn_can_be_given_is_dead_and_blocks_nothing_behind_it() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let asker = world.session("asker");
    let w = session(&world, "w", "cat > prompt; echo here");
    // Its folder of turns cannot be made: a turn that is refused after it was asked for gives everything back.
    let turns = world.home().turns();
    std::fs::rename(turns.join("run"), turns.join("away")).unwrap();
    std::fs::write(turns.join("run"), "").unwrap();
    let sent = must(&mut client, &asker.letter(&w, "one"));
    until(&w, |queue| queue.iter().any(|(r, _)| *r == Receipt::Handed));
    until(&w, |queue| queue.iter().all(|(r, _)| *r != Receipt::Handed));
    std::fs::remove_file(turns.join("run")).unwrap();
    std::fs::rename(turns.join("away"), turns.join("run")).unwrap();
    must(&mut client, &rpc::Retry { caller: None, id: sent.id.to_string() });
    until(&w, <[_]>::is_empty);
    assert_eq!(lines(&world, "w", 1).len(), 1);
}
