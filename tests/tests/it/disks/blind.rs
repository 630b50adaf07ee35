//! Places where the kernel does not tell what changes, or not all: no watch is left, notices were dropped, the store is
//! on a file system that a program serves, or on two folders shown as one. Following goes on, at the latest with its
//! floor.

use std::path::Path;
use std::process::Command;

use minder_proto::state::State;
use minder_tests::process;

use super::Scene;
use super::place::Place;
use crate::strace::traced;
use crate::world::{LIMIT, Running, World};

/// A wait with a floor that no test would live to see wakes by what the kernel tells; a blind one has a floor of its own.
fn patient(world: &World) {
    let text = std::fs::read_to_string(world.config_file()).unwrap();
    std::fs::write(world.config_file(), text + "[follow]\nbackstop = \"1h\"\n").unwrap();
}

/// A move is told to one who waits and to one who streams.
fn is_followed(scene: &Scene, note: &str) {
    let mut client = scene.world.client();
    let mut wait = scene.world.minder_as(&scene.s, "wait w --json");
    let waiting = Running::asleep(&mut wait);
    let streaming =
        Running::asleep(&mut scene.world.minder_as(&scene.s, "watch stream w --json --no-announce"));
    scene.w.declare(&mut client, State::Asking, Some(note));
    let told = waiting.end();
    assert!(told.code == 0 && told.out.contains(note), "{told:?}");
    while !streaming.line().contains(note) {}
    scene.w.declare(&mut client, State::Working, None);
}

#[test]
#[cfg_attr(not(root), ignore = "needs root: it mounts a file system")]
fn a_store_on_an_overlay_is_followed_by_what_the_kernel_tells() {
    let world = World::durable();
    let place = Place::overlay(&world);
    patient(&world);
    let daemon = world.start();
    let scene = Scene::of(world);
    for n in 0..3 {
        is_followed(&scene, &format!("note {n}"));
    }
    daemon.kill();
    let daemon = scene.world.start();
    is_followed(&scene, "after a crash");
    daemon.stop();
    scene.world.run("store check").ok();
    drop(place);
}

#[test]
#[cfg_attr(not(fuse), ignore = "needs root, /dev/fuse and bindfs: run tests/setup.sh")]
fn a_store_that_a_program_serves_is_followed_within_the_floor() {
    let world = World::durable();
    let (place, behind) = Place::served(&world);
    patient(&world);
    let daemon = world.start();
    let scene = Scene::of(world);
    is_followed(&scene, "through it");
    // What another machine would write: the feed and the log change behind the program, and no notice comes.
    let waiting = Running::asleep(&mut scene.world.minder_as(&scene.s, "wait w --json"));
    let session = behind.join("sessions").join(scene.w.id.to_string());
    let timeline = session.join("timeline.jsonl");
    let seq = scene.w.events().last().unwrap().seq + 1;
    let line = format!(
        "{{\"seq\":{seq},\"at\":\"2026-11-30T12:00:00.000Z\",\"kind\":\"state\",\"from\":\"working\",\"to\":\"review\",\
         \"note\":\"from afar\",\"by\":\"agent\"}}\n"
    );
    append(&timeline, &line);
    append(&behind.join("feed.jsonl"), "{\"n\":1000000,\"all\":true}\n");
    let told = waiting.end();
    assert!(told.code == 0 && told.out.contains("from afar"), "{told:?}");
    daemon.stop();
    drop(place);
}

fn append(file: &Path, text: &str) {
    let mut file = std::fs::File::options().append(true).open(file).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

/// What a follower asks of the kernel fails: it falls back to its floor.
fn without(what: &str) {
    let world = World::new();
    patient(&world);
    let daemon = world.start();
    let scene = Scene::of(world);
    let (calls, _) = what.split_once(':').unwrap();
    let log = scene.world.isolated.root().join("strace");
    let wait = scene.world.minder_as(&scene.s, "wait w --json");
    let options = ["-e", &format!("trace={calls}"), "-e", &format!("inject={what}")];
    let waiting = Running::new(&mut traced(&wait, &options, &log));
    // Its first word is for the agent; it has asked the kernel before, or is about to look.
    waiting.said();
    scene.w.declare(&mut scene.world.client(), State::Asking, Some("seen"));
    let told = waiting.end();
    assert!(told.code == 0 && told.out.contains("seen"), "{what}: {told:?}");
    let asked = std::fs::read_to_string(&log).unwrap();
    assert!(asked.contains("INJECTED"), "{what}: {asked}");
    daemon.stop();
}

#[test]
fn without_a_watch_left_a_follower_has_a_floor() {
    without("inotify_add_watch:error=ENOSPC");
}

#[test]
fn without_an_instance_left_a_follower_has_a_floor() {
    without("inotify_init1:error=EMFILE");
}

/// The kernel keeps so many notices for a watch and then says only that some are missing.
#[test]
fn when_notices_were_dropped_everything_is_looked_at() {
    let most: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let world = World::new();
    patient(&world);
    let daemon = world.start();
    let scene = Scene::of(world);
    let streaming =
        Running::asleep(&mut scene.world.minder_as(&scene.s, "watch stream w --json --no-announce"));
    streaming.process.signal(rustix::process::Signal::STOP);
    scene.w.declare(&mut scene.world.client(), State::Asking, Some("among many"));
    // Other files of the store's folder come and go: two names in turn, since equal notices become one.
    let root = scene.world.home().root().to_owned();
    for n in 0..=most / 2 {
        for name in ["a", "b"] {
            let path = root.join(format!("{name}{}", n % 2));
            std::fs::write(&path, "").unwrap();
            std::fs::remove_file(&path).unwrap();
        }
    }
    scene.w.declare(&mut scene.world.client(), State::Review, Some("after them"));
    streaming.process.signal(rustix::process::Signal::CONT);
    let mut told = String::new();
    while !told.contains("after them") {
        told += &streaming.line();
    }
    assert!(told.contains("among many"), "{told}");
    daemon.stop();
}

/// Limits of the system itself: a user that has no instance left.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it takes a limit of the system down for a namespace of its own")]
fn a_limit_of_the_system_leaves_the_floor() {
    let world = World::new();
    patient(&world);
    let daemon = world.start();
    let scene = Scene::of(world);
    let wait = scene.world.minder_as(&scene.s, "wait w --json");
    // In a user namespace the limit is that namespace's own.
    let mut inside = Command::new("unshare");
    let script = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    inside
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(wait.get_program())
        .args(wait.get_args());
    inside.env_clear();
    inside.envs(wait.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let waiting = Running::asleep(&mut inside);
    scene.w.declare(&mut scene.world.client(), State::Asking, Some("seen"));
    let told = waiting.end();
    assert!(told.code == 0 && told.out.contains("seen"), "{told:?}");
    let unshared = process::run(Command::new("unshare").args(["--user", "true"]), b"", LIMIT).unwrap();
    assert!(unshared.status.success());
    daemon.stop();
}
