//! Sessions whose messages are turns: what waits is given to a supervised run, and the answer goes back.

mod cuts;
mod holds;
mod limits;
mod replies;

use std::path::PathBuf;

use minder_proto::event::Receipt;
use minder_proto::turn::line::Line;
use minder_tests::files;

use crate::world::{Agent, LIMIT, World, ran};

/// A session whose turns run this with `sh`, in a folder of the test's own.
fn session(world: &World, label: &str, script: &str) -> Agent {
    let folder = folder(world, label);
    std::fs::create_dir_all(&folder).unwrap();
    let dir = folder.to_str().unwrap();
    let words =
        ["new", "--label", label, "--dir", dir, "--channel", "headless", "--", "/bin/sh", "-c", script];
    ran(&mut world.minder(words), b"").ok();
    world.known(label).unwrap()
}

fn folder(world: &World, label: &str) -> PathBuf {
    world.isolated.root().join("headless").join(label)
}

/// Waits for a file of a session's program, until this is found in it.
fn written(world: &World, label: &str, name: &str, wanted: impl Fn(&str) -> bool) -> String {
    let file = folder(world, label).join(name);
    files::wait_for_text(&file, LIMIT, |text| wanted(text).then(|| text.to_owned())).unwrap()
}

/// Waits until the session's messages are so.
fn until(agent: &Agent, wanted: impl Fn(&[(Receipt, Option<String>)]) -> bool) {
    let look = || {
        let queue = agent.queue();
        let now: Vec<_> = queue.iter().map(|e| (e.receipt, e.reason.clone())).collect();
        wanted(&now).then_some(())
    };
    files::wait_for(&agent.file("queue.jsonl"), LIMIT, look).unwrap();
}

/// The lines of a session's turns once there are so many.
fn lines(world: &World, label: &str, many: usize) -> Vec<Line> {
    let file = world.home().turns().join(format!("{label}.jsonl"));
    let whole = |lines: &[serde_json::Value]| (lines.len() >= many).then(|| lines.to_vec());
    let lines = files::wait_for_lines(&file, LIMIT, whole).unwrap();
    lines.into_iter().map(|line| serde_json::from_value(line).unwrap()).collect()
}
