//! What a person is told who waits at a terminal: that something goes on, and how it ends.

use minder_tests::files;
use serde_json::json;

use crate::scene::{MINDER, Scene, Who};
use crate::world::store::Session;
use crate::world::{LIMIT, World, terminal};

fn shown(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_wait_says_how_long_it_waits_at_most() {
    let world = World::new();
    Session::new(&world.home(), "api", &json!({}));
    let (code, bytes) = terminal::run(&mut world.command(&["wait", "api", "--timeout", "1s"]), 80);
    let text = shown(&bytes);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("waiting up to 1s, Ctrl-C ends it\n"), "{text}");
    let once = terminal::run(&mut world.command(&["wait", "api", "--timeout", "0"]), 80);
    assert!(!shown(&once.1).contains("waiting"), "it looks once");
    let program = world.run(&["wait", "api", "--timeout", "1s"]);
    assert_eq!(program.failed(1), "minder: nothing in 1s", "a program is told nothing of it");
}

#[test]
fn a_stream_says_that_it_follows_and_one_event_is_one_row() {
    let mut scene = Scene::new();
    let api = scene.store.session("api");
    let mut command = scene.command(Who::Person, MINDER);
    command.args(["watch", "stream", "api", "--no-announce", "--name", "t"]);
    let stream = std::thread::spawn(move || terminal::run(&mut command, 60));
    // It has looked at what was there when it keeps its position.
    let followers = scene.store.home().followers();
    let kept = || std::fs::read_dir(&followers).ok()?.next().map(drop);
    files::wait_for(&followers, LIMIT, kept).unwrap();
    scene.store.noted(api, "review", &"long ".repeat(40));
    scene.store.close(api, "bye");
    let (code, bytes) = stream.join().unwrap();
    let text = shown(&bytes);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("following 1 session, Ctrl-C ends it\n"), "{text}");
    let row = text.lines().find(|line| line.contains("idle → review")).unwrap();
    assert!(row.chars().count() == 60 && row.ends_with('…'), "{row}");
}
