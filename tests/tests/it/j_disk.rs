//! Case J2: a store on a file system without room.

use std::path::{Path, PathBuf};
use std::process::Command;

use minder_proto::event::Body;
use minder_proto::state::State;

use crate::world::World;

/// A small file system where the store will be.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size},mode=700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "minder-test"]).arg(at).status();
        assert!(mounted.unwrap().success());
        Self(at.to_owned())
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = std::fs::File::create(&filler).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a daemon of a test that failed may still be there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
#[cfg_attr(not(root), ignore = "needs root: it mounts a small file system")]
fn j2_the_disk_is_full() {
    let world = World::durable();
    let small = Small::mount(world.home().root(), "2m");
    let daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    w.declare(&mut client, State::Working, None);
    let accepted = |body: &str| {
        let lines = w.events();
        lines.iter().filter(|e| matches!(&e.body, Body::Message(m) if m.body.starts_with(body))).count()
    };

    let filler = small.fill();
    // More than may be left in the last block of a file.
    let (long, note) = ("x".repeat(9_000), "x".repeat(4_000));
    for round in 0..5 {
        let said = world.run(&format!("send w refused-{round}-{long}")).failed(74);
        assert!(said.contains(&*small.0.to_string_lossy()) && said.contains("No space left"), "{said}");
        let said = world.run_as(&w, &format!("state review --note {note}")).failed(74);
        assert!(said.contains("No space left"), "{said}");
    }
    // Nothing is half accepted, what stands can be read, and the daemon says how it is.
    assert_eq!(w.events().last().unwrap().seq, 3, "arrival, binding, working: {:?}", w.events());
    assert_eq!(world.run_as(&s, "wait w --timeout 0").code, 1);
    assert_eq!(world.run("daemon status").code, 1);
    assert!(daemon.status().read_only.is_some_and(|why| why.contains("No space left")));

    // Room again: it goes on by itself.
    std::fs::remove_file(filler).unwrap();
    assert!(world.run("send w taken").ok().contains("queued"));
    w.declare(&mut client, State::Review, Some("there is room"));
    assert_eq!(accepted("taken"), 1);
    assert_eq!((0..5).map(|n| accepted(&format!("refused-{n}"))).sum::<usize>(), 0);
    assert_eq!(world.run_as(&s, "wait w --since 3 --timeout 0").code, 0);
    daemon.stop();
    world.run("store check").ok();
    drop(small);
}
