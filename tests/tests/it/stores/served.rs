//! A store that was damaged and repaired, in the hands of a daemon: what it says, takes and gives, in literals. A check
//! and a repair that were wrong in the same way would agree with each other.

use std::path::Path;

use minder_client::rpc::Client;
use minder_proto::rpc;
use minder_proto::state::State;

use super::{data, folders, take};
use crate::world::{Agent, World, must};

/// What a session says of itself, and of what it was sent, oldest first; `~` stands for a notice.
fn said(world: &World, client: &mut Client, agent: &Agent) -> String {
    let shown = minder_proto::snapshot::record(&world.home(), agent.id).unwrap();
    let note = shown.note.as_deref().unwrap_or("-");
    let taken = agent.take_all(client);
    let bodies: Vec<&str> = taken.iter().map(|t| if t.body.is_empty() { "~" } else { &t.body }).collect();
    format!("{} is {} ({note}), took {}", agent.label, shown.state, bodies.join(" "))
}

/// Sends, takes and declares in a store that was repaired.
fn served(world: &World) -> String {
    let daemon = world.start();
    let mut client = world.client();
    let web = world.known("web").expect("it was not damaged");
    let api = world.known("api");
    let told = match &api {
        None => "api is gone".to_owned(),
        Some(api) => {
            must(&mut client, &rpc::Send { key: Some("after".to_owned()), ..web.letter(api, "after") });
            let told = said(world, &mut client, api);
            let last = api.events().last().unwrap().seq;
            let answer = api.declare(&mut client, State::Error, Some("anew"));
            assert_eq!(answer.seq, Some(last + 1));
            told
        }
    };
    let of_web = said(world, &mut client, &web);
    daemon.stop();
    world.run("store check").ok();
    if let Some(api) = api {
        assert_eq!(api.moves().last().unwrap().1.note.as_deref(), Some("anew"));
        let seqs: Vec<u64> = api.events().iter().map(|e| e.seq).collect();
        let first = seqs[0];
        assert!(seqs.iter().copied().eq(first..first + seqs.len() as u64), "{seqs:?}");
    }
    format!("{told}; {of_web}")
}

#[test]
fn what_was_repaired_is_served() {
    let mut all = String::new();
    for kept in folders(&data("damaged")) {
        let world = World::new();
        take(&kept.join("store"), world.home().root());
        world.run("store repair").ok();
        let name = kept.file_name().unwrap().to_str().unwrap();
        all.push_str(&format!("{name}: {}\n", served(&world)));
    }
    expect_test::expect![[r#"
        cursors-garbage: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        journal-hole: api is review (look), took two three after; web is asking (note 5), took ~ ~ ~
        labels-and-bindings: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        ledger-line-garbage: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        ledger-missing: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        lists-and-requests: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        record-behind: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        record-garbage: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        record-missing: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        record-of-another: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        session-empty: api is gone; web is idle (-), took ~ ~
        timeline-begin-missing: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        timeline-end-torn: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        timeline-line-garbage: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        timeline-line-missing: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        timeline-line-twice: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        timeline-missing: api is review (look), took after; web is idle (-), took ~ ~ ~
        timeline-out-of-order: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        trash-and-tombstones: api is review (look), took two three after; web is idle (-), took ~ ~ ~
        watchers-garbage: api is review (look), took two three after; web is idle (-), took ~ ~
    "#]]
    .assert_eq(&all);
}

/// What may have the name of a file, and is none.
fn put_odd(path: &Path, what: &str) {
    let _ = std::fs::remove_file(path);
    match what {
        "folder" => std::fs::create_dir(path).unwrap(),
        "link" => std::os::unix::fs::symlink(path, path).unwrap(),
        _ => {
            let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).status();
            assert!(made.unwrap().success());
        }
    }
    if what == "folder" {
        super::permit(path, 0o700);
    }
}

#[test]
fn what_is_no_file_is_named_and_set_aside_and_the_store_is_served() {
    let mut all = String::new();
    for what in ["folder", "link", "pipe"] {
        for name in ["session.json", "timeline.jsonl", "queue.jsonl"] {
            let world = World::new();
            take(&data("damaged").join("watchers-garbage/store"), world.home().root());
            world.run("store repair").ok();
            let api = world.known("api").unwrap();
            put_odd(&api.file(name), what);
            let found = world.run("store check");
            assert_eq!(found.code, 65, "{what} {name}: {found:?}");
            assert!(found.out.contains(&format!("{}/{name}: ", api.id)), "{what} {name}: {found:?}");
            // Beside it the others are served, before a repair and after it.
            let daemon = world.start();
            let web = world.known("web").unwrap();
            web.declare(&mut world.client(), State::Working, None);
            daemon.stop();
            world.run("store repair").ok();
            all.push_str(&format!("{name} a {what}: {}\n", served(&world)));
        }
    }
    let world = World::new();
    take(&data("damaged").join("watchers-garbage/store"), world.home().root());
    world.run("store repair").ok();
    let stray = world.home().sessions().join(uuid::Uuid::new_v4().to_string());
    std::fs::write(&stray, "plain").unwrap();
    super::permit(&stray, 0o600);
    assert!(world.run("store check").out.contains("not a folder"));
    world.start().stop();
    world.run("store repair").ok();
    all.push_str(&format!("a file for a folder: {}\n", served(&world)));
    expect_test::expect![[r#"
        session.json a folder: api is review (look), took two three after; web is working (-), took ~ ~
        timeline.jsonl a folder: api is review (look), took after; web is working (-), took ~ ~
        queue.jsonl a folder: api is review (look), took two three after; web is working (-), took ~ ~
        session.json a link: api is review (look), took two three after; web is working (-), took ~ ~
        timeline.jsonl a link: api is review (look), took after; web is working (-), took ~ ~
        queue.jsonl a link: api is review (look), took two three after; web is working (-), took ~ ~
        session.json a pipe: api is review (look), took two three after; web is working (-), took ~ ~
        timeline.jsonl a pipe: api is review (look), took after; web is working (-), took ~ ~
        queue.jsonl a pipe: api is review (look), took two three after; web is working (-), took ~ ~
        a file for a folder: api is review (look), took two three after; web is idle (-), took ~ ~
    "#]]
    .assert_eq(&all);
}
