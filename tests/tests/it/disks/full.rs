//! Case J2, and its kinds: no room in memory, on a small ext4, and beyond a limit of the process.

use minder_proto::state::State;
use minder_tests::process;

use super::place::Place;
use super::{Scene, comes_back};
use crate::world::{Minderd, World, refused};

/// Fills the place during sends and declarations.
fn without_room(world: World, place: Place) {
    let daemon = world.start();
    let scene = Scene::of(world);
    let filler = place.fill();
    // More than may be left in the last block of a file.
    let (long, note) = ("x".repeat(9_000), "x".repeat(4_000));
    let mut refusals = 0;
    for round in 0..8 {
        let mut client = scene.world.client();
        let letter = scene.w.letter(&scene.s, format!("early-{round}-{long}"));
        // What stands in the journal's last block still fits, and counts.
        match client.call(&letter) {
            Ok(_) => {}
            Err(error) => {
                refusals += 1;
                assert_eq!(error.exit_code(), 74, "{error}");
            }
        }
        let declared = scene.w.declaration(State::Review, Some(&format!("{round}{note}")));
        refusals += usize::from(client.call(&declared).is_err());
    }
    assert!(refusals > 8, "it is full");
    scene.refuses("No space left");
    assert!(daemon.status().read_only.is_some_and(|why| why.contains("No space left")));

    // Room again: it goes on by itself, whether or not anybody asks.
    std::fs::remove_file(filler).unwrap();
    comes_back(&scene.world);
    scene.goes_on();
    assert!(daemon.status().read_only.is_none());
    daemon.kill();
    let daemon = scene.world.start();
    assert_eq!((scene.accepted("taken"), scene.accepted("refused")), (1, 0));
    daemon.stop();
    scene.world.run("store check").ok();
    drop(place);
}

#[test]
#[cfg_attr(not(root), ignore = "needs root: it mounts a small file system")]
fn j2_the_disk_is_full() {
    let world = World::durable();
    let place = Place::memory(&world, "1m");
    without_room(world, place);
}

#[test]
#[cfg_attr(not(loops), ignore = "needs root and loop devices: run tests/setup.sh")]
fn j2_a_small_ext4_is_full() {
    let world = World::durable();
    let place = Place::image(&world, 8 << 20);
    without_room(world, place);
}

#[test]
#[cfg_attr(not(loops), ignore = "needs root and loop devices: run tests/setup.sh")]
fn j2_the_journal_leaves_room_for_what_it_is_for() {
    // Less than a segment of the journal: what is allocated in advance must not be all there is.
    let world = World::durable();
    let place = Place::image(&world, 8 << 20);
    let daemon = world.start();
    let scene = Scene::of(world);
    let mut client = scene.world.client();
    for n in 0..20 {
        let letter = scene.w.letter(&scene.s, format!("{n} {}", "x".repeat(20_000)));
        client.call(&letter).unwrap();
    }
    assert_eq!(scene.s.messages().len(), 20);
    daemon.stop();
    drop(place);
}

#[test]
#[cfg_attr(not(root), ignore = "needs root: it mounts a small file system")]
fn j2_a_start_without_room_says_so_and_the_next_one_goes_on() {
    let world = World::durable();
    let place = Place::memory(&world, "1m");
    let daemon = world.start();
    let scene = Scene::of(world);
    daemon.kill();
    let filler = place.fill();
    let said = scene.world.run("send w refused").failed(74);
    let path = scene.world.home().root().display().to_string();
    assert!(said.contains("No space left") && said.contains(&path), "{said}");
    // Reading needs no daemon.
    assert!(scene.world.run("ls").ok().contains('w'));
    std::fs::remove_file(filler).unwrap();
    scene.goes_on();
    scene.world.run("daemon stop").ok();
    scene.world.run("store check").ok();
    drop(place);
}

/// A daemon whose files may not grow beyond what is said: a limit of the process refuses what the disk would take. Its
/// signal ends whoever does not ignore it.
fn limit(daemon: &Minderd, bytes: &str) {
    let mut prlimit = std::process::Command::new("prlimit");
    prlimit.args(["--pid", &daemon.pid().to_string(), &format!("--fsize={bytes}:")]);
    assert!(process::run(&mut prlimit, b"", crate::world::LIMIT).unwrap().status.success());
}

#[test]
fn j2_no_file_may_become_larger() {
    let world = World::durable();
    let daemon = world.start();
    let scene = Scene::of(world);
    limit(&daemon, "64");
    let mut client = scene.world.client();
    let (code, said) = refused(&mut client, &scene.w.letter(&scene.s, "x".repeat(200_000)));
    assert_eq!(code, 74, "{said}");
    scene.refuses("File too large");
    limit(&daemon, "unlimited");
    comes_back(&scene.world);
    scene.goes_on();
    client.call(&scene.w.letter(&scene.s, "y".repeat(200_000))).unwrap();
    daemon.stop();
    scene.world.run("store check").ok();
}

#[test]
fn j2_a_short_write_is_no_write() {
    let world = World::durable();
    let daemon = world.start();
    let scene = Scene::of(world);
    let mut client = scene.world.client();
    let journal = scene.world.home().journal();
    // Where the journal's last record ends: its last byte is that of a text.
    let end = || {
        let mut files: Vec<_> = std::fs::read_dir(&journal).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let bytes = std::fs::read(files.pop().unwrap()).unwrap();
        bytes.iter().rposition(|b| *b != 0).unwrap() + 1
    };
    for part in [1, 4, 15, 16, 17, 300, 2_000] {
        limit(&daemon, &(end() + part).to_string());
        let letter = scene.s.letter(&scene.w, format!("refused {part} {}", "x".repeat(4_000)));
        let (code, said) = refused(&mut client, &letter);
        assert!(code == 74 && said.contains("File too large"), "{part}: {said}");
        limit(&daemon, "unlimited");
        client.call(&scene.s.letter(&scene.w, format!("taken {part}"))).unwrap();
    }
    daemon.kill();
    let daemon = scene.world.start();
    assert_eq!((scene.accepted("taken"), scene.accepted("refused")), (7, 0));
    daemon.stop();
    scene.world.run("store check").ok();
}
