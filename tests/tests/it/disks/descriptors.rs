//! A daemon that may open nothing more.

use std::os::unix::net::UnixStream;

use minder_proto::state::State;
use minder_tests::process;

use super::Scene;
use crate::world::World;

fn limit(pid: u32, files: &str) {
    let mut prlimit = std::process::Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--nofile={files}:")]);
    assert!(process::run(&mut prlimit, b"", crate::world::LIMIT).unwrap().status.success());
}

fn moves(scene: &Scene) -> usize {
    let notes = scene.w.moves().into_iter().filter_map(|(_, line)| line.note);
    notes.filter(|note| note.starts_with("move")).count()
}

#[test]
fn without_a_descriptor_what_was_accepted_waits_and_nothing_is_lost() {
    let world = World::durable();
    let daemon = world.start();
    let scene = Scene::of(world);
    let mut client = scene.world.client();
    client.call(&scene.s.letter(&scene.w, "before")).unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    // Whoever is connected is served on; no file can be opened, and nobody else is heard.
    limit(daemon.pid(), &open.to_string());
    let socket = std::fs::read_link(scene.world.home().socket_link()).unwrap();
    let crowd: Vec<_> = (0..20).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let mut told = 0;
    for n in 0..20 {
        let state = if n % 2 == 0 { State::Review } else { State::Working };
        match client.call(&scene.w.declaration(state, Some(&format!("move {n}")))) {
            Ok(_) => told += 1,
            Err(error) => {
                assert_eq!(error.exit_code(), 74, "{error}");
                assert!(error.to_string().contains("Too many open files"), "{error}");
            }
        }
    }
    assert!(told < 20, "a record is written anew each time");
    // Following and reading go on without it.
    assert_eq!(scene.world.run_as(&scene.s, "wait w --timeout 0").code, 1);
    drop(crowd);
    limit(daemon.pid(), "4096");
    super::comes_back(&scene.world);
    scene.goes_on();
    assert_eq!(moves(&scene), told);
    daemon.kill();
    let daemon = scene.world.start();
    assert_eq!(moves(&scene), told);
    daemon.stop();
    scene.world.run("store check").ok();
}
