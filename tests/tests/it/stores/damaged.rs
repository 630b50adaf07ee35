//! `tests/data/damaged/<kind>/`: a damaged store, what `store check` says of it, and what `store repair` does.

use std::path::Path;

use minder_proto::rpc;
use minder_proto::state::State;

use super::{data, folders, keep, take, writes};
use crate::world::{Agent, World, must};

/// A kind of damage: its name, and what does it to the store with these two sessions in it.
type Kind = (&'static str, fn(&Path, &Agent, &Agent));

fn edit(file: impl AsRef<Path>, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(file.as_ref()).unwrap();
    std::fs::write(file, change(text)).unwrap();
}

fn lines(file: impl AsRef<Path>, change: impl FnOnce(&mut Vec<String>)) {
    edit(file, |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        lines.join("\n") + "\n"
    });
}

const KINDS: [Kind; 20] = [
    ("record-garbage", |_, api, _| std::fs::write(api.file("session.json"), "{garbage").unwrap()),
    ("record-missing", |_, api, _| std::fs::remove_file(api.file("session.json")).unwrap()),
    ("record-of-another", |_, api, web| {
        std::fs::copy(web.file("session.json"), api.file("session.json")).unwrap();
    }),
    ("record-behind", |_, api, _| edit(api.file("session.json"), |t| t.replace("\"review\"", "\"working\""))),
    ("timeline-missing", |_, api, _| std::fs::remove_file(api.file("timeline.jsonl")).unwrap()),
    ("timeline-line-garbage", |_, api, _| {
        lines(api.file("timeline.jsonl"), |l| l[3] = "\u{0}\u{0}garbage".into());
    }),
    ("timeline-line-missing", |_, api, _| lines(api.file("timeline.jsonl"), |l| drop(l.remove(3)))),
    ("timeline-line-twice", |_, api, _| lines(api.file("timeline.jsonl"), |l| l.push(l[4].clone()))),
    ("timeline-out-of-order", |_, api, _| lines(api.file("timeline.jsonl"), |l| l.swap(2, 3))),
    ("timeline-end-torn", |_, api, _| edit(api.file("timeline.jsonl"), |t| t[..t.len() - 40].to_owned())),
    ("timeline-begin-missing", |_, api, _| lines(api.file("timeline.jsonl"), |l| drop(l.drain(..2)))),
    ("ledger-missing", |_, api, _| std::fs::remove_file(api.file("queue.jsonl")).unwrap()),
    ("ledger-line-garbage", |_, api, _| lines(api.file("queue.jsonl"), |l| l[0] = "garbage".into())),
    ("watchers-garbage", |_, api, _| std::fs::write(api.file("watchers.json"), "[{").unwrap()),
    ("cursors-garbage", |_, api, _| std::fs::write(api.file("cursors.json"), "garbage").unwrap()),
    ("session-empty", |_, api, _| {
        for entry in std::fs::read_dir(api.dir()).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        std::fs::write(api.file("notes.txt"), "a foreign file").unwrap();
    }),
    ("labels-and-bindings", |root, _, web| {
        std::fs::remove_file(root.join("labels/api")).unwrap();
        std::fs::write(root.join("labels/nobody"), "garbage\n").unwrap();
        std::fs::write(root.join("bindings/claude/conversation-of-api"), format!("{}\n", web.id)).unwrap();
    }),
    ("trash-and-tombstones", |root, _, _| {
        std::fs::write(root.join("closed.jsonl"), "garbage\n").unwrap();
        let closed = std::fs::read_dir(root.join("trash")).unwrap().next().unwrap().unwrap().path();
        lines(closed.join("timeline.jsonl"), |l| drop(l.pop()));
    }),
    ("lists-and-requests", |root, _, _| {
        std::fs::write(root.join("keys.jsonl"), "garbage\n").unwrap();
        std::fs::write(root.join("feed.jsonl"), "garbage\n{\"n\":1}\n{\"n\":7}\n").unwrap();
        std::fs::create_dir_all(root.join("spool")).unwrap();
        std::fs::write(root.join("spool/0199c2d4-90c3-7f0e-8a17-c2b67be21c09.json"), "garbage").unwrap();
        std::fs::write(root.join("format"), "a store\n").unwrap();
    }),
    ("journal-hole", |root, _, _| {
        let mut segments: Vec<_> =
            std::fs::read_dir(root.join("journal")).unwrap().map(|e| e.unwrap().path()).collect();
        segments.sort();
        for segment in segments {
            let mut bytes = std::fs::read(&segment).unwrap();
            if let Some(at) = bytes.windows(6).position(|w| w == b"note 1") {
                bytes[at] ^= 0x20;
                return std::fs::write(&segment, bytes).unwrap();
            }
        }
        panic!("it was said in the first of two segments");
    }),
];

/// A small store for the damages: two sessions and one that was closed.
fn write() {
    let world = World::new();
    let root = world.home().root().to_owned();
    let daemon = world.start();
    let [api, web, old] = ["api", "web", "old"].map(|l| world.session(l));
    let mut client = world.client();
    web.watch(&mut client, &api);
    api.declare(&mut client, State::Working, Some("begins"));
    must(&mut client, &rpc::Send { key: Some("k".to_owned()), ..web.letter(&api, "one") });
    must(&mut client, &web.letter(&api, "two"));
    let taken = must(&mut client, &rpc::Take { caller: api.caller(), key: None });
    let id = taken.message.unwrap().id.to_string();
    must(&mut client, &rpc::Ack { caller: api.caller(), id, key: None });
    must(&mut client, &web.letter(&api, "three"));
    must(&mut client, &rpc::Close { session: old.id.to_string(), ..rpc::Close::default() });
    api.declare(&mut client, State::Review, Some("look"));
    world.run_as(&api, "wait --timeout 0");
    daemon.stop();
    let base = world.isolated.root().join("base");
    keep(&root, &base);
    // And with a journal of two segments that no checkpoint has removed.
    let notes = [["note 0", "note 1", "note 2"], ["note 3", "note 4", "note 5"]];
    for said in notes {
        let daemon = world.start();
        for note in said {
            web.declare(&mut world.client(), State::Asking, Some(note));
        }
        daemon.kill();
    }
    let full = world.isolated.root().join("full");
    keep(&root, &full);
    for (name, damage) in KINDS {
        let kept = data("damaged").join(name).join("store");
        let from = if name == "journal-hole" { &full } else { &base };
        // Damaged where its agents know it, then kept.
        std::fs::remove_dir_all(&root).unwrap();
        take(from, &root);
        damage(&root, &api, &web);
        keep(&root, &kept);
    }
}

#[test]
fn every_kind_of_damage_is_named_and_mended() {
    if writes() {
        write();
    }
    let there = folders(&data("damaged"));
    let names: Vec<_> = there.iter().map(|k| k.file_name().unwrap().to_str().unwrap()).collect();
    let mut expected: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for kept in there {
        let world = World::new();
        let root = world.isolated.root().join("copy");
        take(&kept.join("store"), &root);
        let place = root.display().to_string();
        let told = |what: &str| {
            let ran = world.run(&format!("store {what} {place}"));
            assert_eq!(ran.err, "", "{}", kept.display());
            format!("{}exit {}\n", ran.out.replace(&place, "STORE"), ran.code)
        };
        expect_test::expect_file![kept.join("check.txt")].assert_eq(&told("check"));
        expect_test::expect_file![kept.join("repair.txt")].assert_eq(&told("repair"));
        let after = told("check");
        assert!(after.ends_with("nothing is damaged\nexit 0\n"), "{}: {after}", kept.display());
        assert_eq!(told("repair"), "STORE: nothing to repair\nexit 0\n", "{}", kept.display());
    }
}
