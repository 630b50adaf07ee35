//! A scenario once for each place at which the daemon can be killed: it is killed there, started again, and compared.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use minder_client::rpc::Client;
use minder_proto::rpc::Call;
use minder_tests::process::Process;

use crate::world::{Minderd, World, is_lost};

/// Places on the way of a commit.
pub const OF_A_COMMIT: [&str; 8] = [
    "journal.before-write",
    "journal.after-write",
    "journal.after-flush",
    "apply.before-op",
    "apply.after-op",
    "feed.before-append",
    "feed.after-append",
    "answer.before",
];

/// Places on the way of a checkpoint, which a clean stop makes.
pub const OF_A_CHECKPOINT: [&str; 3] = ["checkpoint.switched", "checkpoint.synced", "checkpoint.unlinked"];

/// Places on the way of a start that replays.
pub const OF_A_START: [&str; 3] = ["recover.before-op", "recover.after-op", "recover.done"];

/// Places that these scenarios do not walk: `make crash` dies at all of them, with files that are sealed, rewritten and
/// removed when they are short.
pub const ELSEWHERE: [&str; 13] = [
    "replace.written",
    "seal.before-rename",
    "retire.before-rename",
    "feed.rotated",
    "segment.before-create",
    "segment.written",
    "segment.created",
    "checkpoint.done",
    "recover.before-cut",
    "recover.opened",
    "spool.before-commit",
    "spool.committed",
    "spool.unlinked",
];

/// A store as it was prepared, to begin with again and again.
pub struct Prepared {
    pub world: World,
}

impl Prepared {
    /// Keeps the store as it is now; nobody serves it.
    pub fn new(world: World) -> Self {
        let home = world.home();
        copy(home.root(), &kept(&world));
        Self { world }
    }

    /// The store as it was prepared; nobody serves it.
    pub fn restore(&self) {
        let root = self.world.home().root().to_owned();
        std::fs::remove_dir_all(&root).unwrap();
        copy(&kept(&self.world), &root);
    }

    /// The prepared store again, with a daemon that dies at the `n`-th passing of `point`.
    fn again(&self, point: &str, n: u64) -> Result<Minderd, String> {
        self.restore();
        self.world.launch(&[("MINDER_KILL_POINT", &format!("{point}:{n}"))]).settle()
    }

    /// Runs `scenario` once for each passing of each of these points, and `check` after the next start, with what the
    /// scenario gave (nothing, if the daemon did not live to see it). Gives how often each point was passed.
    ///
    /// A passing that the scenario does not come to is the end of a point: there it ran to its end, and through a
    /// clean stop.
    pub fn at_every<T: Default>(
        &self,
        points: &[&'static str],
        scenario: impl Fn(&mut Client, &Process) -> T,
        check: impl Fn(&Minderd, T, &str),
    ) -> Vec<(&'static str, u64)> {
        let mut passed = Vec::new();
        for point in points {
            let mut n = 1;
            loop {
                let (outcome, reached) = match self.again(point, n) {
                    Ok(mut daemon) => {
                        let outcome = scenario(&mut self.world.client(), &daemon.process);
                        daemon.process.signal(rustix::process::Signal::TERM);
                        let status = daemon.ended();
                        let reached = status.signal() == Some(9);
                        assert!(reached || status.success(), "{point}:{n}: {status}: {}", daemon.log());
                        (outcome, reached)
                    }
                    Err(how) => {
                        assert!(how.contains("signal: 9"), "{point}:{n}: {how}");
                        (T::default(), true)
                    }
                };
                self.compare(outcome, &check, &format!("{point}:{n}"));
                if !reached {
                    break;
                }
                n += 1;
            }
            passed.push((*point, n - 1));
        }
        passed
    }

    /// The same with a second death at every point of the start that follows one at `first:n`.
    pub fn at_every_start<T>(
        &self,
        (first, n): (&str, u64),
        scenario: impl Fn(&mut Client, &Process) -> T,
        check: impl Fn(&Minderd, T, &str),
    ) -> Vec<(&'static str, u64)> {
        let mut passed = Vec::new();
        for point in OF_A_START {
            let mut m = 1;
            loop {
                let mut daemon = self.again(first, n).unwrap_or_else(|e| panic!("{first}:{n}: {e}"));
                let outcome = scenario(&mut self.world.client(), &daemon.process);
                daemon.process.signal(rustix::process::Signal::TERM);
                assert_eq!(daemon.ended().signal(), Some(9), "{first}:{n} is not reached");
                let second = self.world.launch(&[("MINDER_KILL_POINT", &format!("{point}:{m}"))]).settle();
                let lived = second.is_ok();
                drop(second);
                self.compare(outcome, &check, &format!("{first}:{n}, {point}:{m}"));
                if lived {
                    break;
                }
                m += 1;
            }
            passed.push((point, m - 1));
        }
        passed
    }
}

impl Prepared {
    /// Starts again, checks, ends, and looks whether the files are as they should be.
    fn compare<T>(&self, outcome: T, check: impl Fn(&Minderd, T, &str), at: &str) {
        let daemon = self.world.start();
        check(&daemon, outcome, at);
        daemon.kill();
        let checked = self.world.run("store check");
        assert_eq!(checked.code, 0, "{at}: {checked:?}");
    }
}

/// A call that may be cut off: none if nobody knows whether it was done.
pub fn told<C: Call>(client: &mut Client, call: &C) -> Option<C::Answer> {
    match client.call(call) {
        Ok(answer) => Some(answer),
        Err(error) if is_lost(&error) => None,
        Err(error) => panic!("{}: {error}", C::METHOD),
    }
}

fn kept(world: &World) -> std::path::PathBuf {
    world.isolated.root().join("prepared")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            copy(&path, &to.join(name));
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&path).unwrap(), to.join(name)).unwrap();
        } else {
            // A segment of the journal is allocated in advance: of that only what was written.
            let mut bytes = std::fs::read(&path).unwrap();
            if path.extension().is_some_and(|e| e == "wal") {
                bytes.truncate(bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
            }
            let copied = to.join(name);
            std::fs::write(&copied, bytes).unwrap();
            std::fs::set_permissions(&copied, path.metadata().unwrap().permissions()).unwrap();
        }
    }
    std::fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
}
