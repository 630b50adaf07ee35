//! Bad disks: without room, with errors at every kind of call, read-only, without descriptors, and places where the
//! kernel tells nobody of changes. Each time: nobody is told what did not happen, whoever calls gets 74 and the path,
//! what stands can be read and followed, and service goes on by itself when the disk is well again.

use minder_client::rpc::Client;
use minder_proto::event::Body;
use minder_proto::state::State;

use crate::world::{Agent, World};

mod blind;
mod descriptors;
mod errors;
mod full;
mod place;
mod read_only;

/// Where nothing may be skipped, a place that cannot be had is a failure.
#[test]
fn no_disk_is_skipped_where_that_is_forbidden() {
    let all = cfg!(root) && cfg!(fuse) && cfg!(loops);
    let missing = "needs root, loop devices and /dev/fuse; run tests/setup.sh as root";
    assert!(all || std::env::var_os("REQUIRE_HARNESSES").is_none(), "{missing}");
}

/// A store on a disk, a session that moves and one that follows it.
struct Scene {
    world: World,
    s: Agent,
    w: Agent,
}

impl Scene {
    /// With sessions; a daemon serves.
    fn of(world: World) -> Self {
        let (s, w) = (world.session("s"), world.session("w"));
        w.declare(&mut world.client(), State::Working, None);
        Self { world, s, w }
    }

    /// How often a message that begins so is in the log.
    fn accepted(&self, body: &str) -> usize {
        let lines = self.w.events();
        lines.iter().filter(|e| matches!(&e.body, Body::Message(m) if m.body.starts_with(body))).count()
    }

    /// Whoever changes something is refused with this text, as is whoever looks how the daemon is told; what stands
    /// can be read and waited for.
    fn refuses(&self, because: &str) {
        let path = self.world.home().root().display().to_string();
        let commands = [("send w refused", None), ("state review --note refused", Some(&self.w))];
        for (line, by) in commands {
            let ran = match by {
                Some(agent) => self.world.run_as(agent, line),
                None => self.world.run(line),
            };
            let said = ran.failed(74);
            assert!(said.contains(&path) && said.contains(because), "{line}: {said}");
            let lines = said.lines().filter(|l| l.starts_with("minder: ")).count();
            assert_eq!(lines, 1, "{line}: one line that says it: {said}");
        }
        let status = self.world.run("daemon status");
        assert!(status.code == 1 && status.out.contains(because), "{status:?}");
        assert_eq!(self.world.run_as(&self.s, "wait w --timeout 0").code, 1);
        assert!(self.world.run("ls").ok().contains('w'));
        assert_eq!(self.accepted("refused"), 0);
    }

    /// The disk is well again, and so is everything else.
    fn goes_on(&self) {
        assert!(self.world.run("send w taken").ok().contains("queued"));
        let mut client = self.world.client();
        self.w.declare(&mut client, State::Working, None);
        let before = self.w.events().len() as u64;
        self.w.declare(&mut client, State::Review, Some("well again"));
        assert_eq!((self.accepted("taken"), self.accepted("refused")), (1, 0));
        let notes = self.w.moves().into_iter().filter_map(|(_, line)| line.note);
        assert!(!notes.collect::<Vec<_>>().contains(&"refused".to_owned()));
        let since = format!("wait w --since {before} --timeout 0");
        assert_eq!(self.world.run_as(&self.s, &since).code, 0);
        assert!(is_well(&mut client));
    }
}

/// Whether a daemon says that it takes what comes.
fn is_well(client: &mut Client) -> bool {
    client.call(&minder_proto::rpc::Status::default()).is_ok_and(|s| s.read_only.is_none())
}

/// Waits until a daemon says by itself that it takes what comes: nobody writes meanwhile.
fn comes_back(world: &World) {
    let deadline = std::time::Instant::now() + crate::world::LIMIT;
    let mut client = world.client();
    while !is_well(&mut client) {
        assert!(std::time::Instant::now() < deadline, "it never takes anything again");
        std::thread::yield_now();
    }
}
