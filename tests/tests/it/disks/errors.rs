//! Errors at every kind of call, made by `strace` in a daemon that runs.

use std::path::Path;
use std::process::Command;

use minder_proto::state::State;

use super::{Scene, comes_back};
use crate::strace::Attached;
use crate::world::World;

/// Lets calls of a daemon fail from now on: all of them, or those for one file.
fn failing(scene: &Scene, pid: u32, what: &str, file: Option<&Path>) -> Attached {
    let log = scene.world.isolated.root().join("strace");
    let mut strace = Command::new("strace");
    let (calls, _) = what.split_once(':').expect("calls and what becomes of them");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-e", &format!("inject={what}"), "-o"]);
    strace.arg(log).args(file.iter().flat_map(|file| [Path::new("-P"), file]));
    Attached::new(strace.args(["-p", &pid.to_string()]), pid)
}

/// While these calls fail nothing is accepted that did not happen; when they do not, all goes on by itself, and a crash
/// right after it loses nothing.
fn with_failing(what: &str, file: Option<&str>, refuses: impl Fn(&Scene)) {
    let world = World::durable();
    let daemon = world.start();
    let scene = Scene::of(world);
    let file = file.map(|name| scene.w.file(name));
    let strace = failing(&scene, daemon.pid(), what, file.as_deref());
    refuses(&scene);
    strace.detach();
    comes_back(&scene.world);
    scene.goes_on();
    daemon.kill();
    let daemon = scene.world.start();
    assert_eq!((scene.accepted("taken"), scene.accepted("refused")), (1, 0), "{what}");
    daemon.stop();
    scene.world.run("store check").ok();
}

#[test]
fn a_write_that_fails_is_a_refusal() {
    with_failing("pwrite64:error=EIO", None, |scene| scene.refuses("Input/output error"));
}

#[test]
fn a_flush_that_fails_is_a_refusal() {
    with_failing("fdatasync,fsync:error=EIO", None, |scene| scene.refuses("Input/output error"));
}

#[test]
fn a_flush_that_fails_once_is_a_refusal_and_the_next_one_is_another() {
    let world = World::durable();
    let daemon = world.start();
    let scene = Scene::of(world);
    let strace = failing(&scene, daemon.pid(), "fdatasync:error=EIO:when=1", None);
    let mut client = scene.world.client();
    let letter = |body: &str| scene.w.letter(&scene.w, body);
    let (code, said) = crate::world::refused(&mut client, &letter("refused"));
    assert!(code == 74 && said.contains(".wal"), "{said}");
    client.call(&letter("taken")).unwrap();
    strace.detach();
    // What was written whole and refused does not happen later.
    daemon.kill();
    let _daemon = scene.world.start();
    assert_eq!((scene.accepted("taken"), scene.accepted("refused")), (1, 0));
}

/// What passed the journal has happened: its caller is told so, and it is shown as soon as that can be.
fn accepted_and_late(what: &str, file: &str, because: &str) {
    with_failing(what, Some(file), |scene| {
        let mut client = scene.world.client();
        scene.w.declare(&mut client, State::Asking, Some("accepted"));
        scene.refuses(because);
        let status = scene.world.run("daemon status").out;
        assert!(status.contains("what was accepted before waits"), "{status}");
    });
}

#[test]
fn a_rename_that_fails_delays_what_was_accepted() {
    accepted_and_late("rename,renameat,renameat2:error=EIO", ".tmp-session.json", "Input/output error");
}

#[test]
fn a_file_that_cannot_be_opened_delays_what_was_accepted() {
    // The record is written anew in each commit: its file is opened each time.
    accepted_and_late("openat:error=EIO", ".tmp-session.json", "Input/output error");
}

#[test]
fn a_checkpoint_that_cannot_flush_keeps_the_journal() {
    let world = World::durable();
    let daemon = world.launch(&[("MINDER_SIZES", "small")]).settle().unwrap();
    let scene = Scene::of(world);
    let journal = scene.world.home().journal();
    let segments = || std::fs::read_dir(&journal).unwrap().count();
    let mut client = scene.world.client();
    let told =
        |n: usize| client.call(&scene.w.letter(&scene.s, format!("{n} {}", "x".repeat(4_000)))).is_ok();
    let mut told = told;
    assert!((0..5).all(&mut told));
    let strace = failing(&scene, daemon.pid(), "fsync,syncfs:error=EIO", None);
    // Once a checkpoint could not begin, or a segment is full that cannot be followed by another, it refuses.
    let more = (5..45).take_while(|n| told(*n)).count();
    let kept = scene.s.messages().len();
    assert_eq!(kept, 5 + more);
    strace.detach();
    daemon.kill();
    assert!(segments() > 0);
    let daemon = scene.world.start();
    assert_eq!(scene.s.messages().len(), kept);
    daemon.stop();
    scene.world.run("store check").ok();
}

#[test]
fn a_folder_that_cannot_be_looked_at_is_not_gone() {
    let world = World::durable();
    let daemon = world.launch(&[("MINDER_SIZES", "small")]).settle().unwrap();
    let scene = Scene::of(world);
    let mut client = scene.world.client();
    let looks = "stat,lstat,newfstatat,statx:error=EIO";
    let strace = failing(&scene, daemon.pid(), looks, Some(&scene.w.dir()));
    // A timeline that is due to be sealed, and a first file of its kind: each is looked for.
    for n in 0..8 {
        let letter = scene.s.letter(&scene.w, format!("letter {n};{}", "x".repeat(3_000)));
        let _ = client.call(&letter);
    }
    strace.detach();
    comes_back(&scene.world);
    scene.goes_on();
    daemon.kill();
    let daemon = scene.world.start();
    assert_eq!((scene.accepted("taken"), scene.world.run("ls").ok().contains('w')), (1, true));
    daemon.stop();
    scene.world.run("store check").ok();
}
