//! The supervision host: a primary is a stand-in for Claude Code with the hooks that minder installed, and what it
//! supervises are sessions that move. Tests carry the number of their case.

mod drains;
mod wakes;

use minder_proto::host::episode::Episode;
use minder_proto::host::row::{self, Queue};
use minder_proto::id::SessionId;
use minder_tests::fake::{Answer, Pending};
use minder_tests::files;
use serde::de::DeserializeOwned;

use crate::hooks::bench::{Bench, is_silent};
use crate::scene::{LIMIT, Ran};

/// A primary with a host, and its sessions.
struct Fleet {
    bench: Bench,
    primary: SessionId,
}

impl Fleet {
    /// Every batch is due at once.
    fn new() -> Self {
        Self::with("[host]\ncoalesce = 0\n")
    }

    fn with(config: &str) -> Self {
        let mut bench = Bench::new(config);
        let primary = bench.begin();
        bench.scene.minder(&["host", "enable", "p"]).ok();
        Self { bench, primary }
    }

    /// A session that the primary started, by its label.
    fn child(&self, label: &str) -> SessionId {
        self.minder(&["new", "--label", label, "--harness", "pi", "--parent", "p"]).ok();
        self.bench.scene.session(label)
    }

    /// A person's shell.
    fn minder(&self, words: &[&str]) -> Ran {
        self.bench.scene.minder(words)
    }

    /// A session comes to a state.
    fn state(&self, label: &str, state: &str, note: &str) {
        self.minder(&["--as", label, "state", state, "--note", note]).ok();
    }

    /// What a waiter of the idle primary brings.
    fn wake(&mut self) -> String {
        let waiter = self.bench.wait("Stop");
        Self::woken(waiter)
    }

    fn woken(waiter: Pending) -> String {
        let woken: Answer = waiter.wait(LIMIT).unwrap();
        assert_eq!((woken.code, woken.stdout.as_str()), (Some(2), ""), "{woken:?}");
        woken.stderr
    }

    /// The primary's turn that a wake begins.
    fn turn(&mut self, text: &str, turn: &str) {
        let mut prompt = self.bench.of_turn("UserPromptSubmit-woken", turn);
        prompt["prompt"] = prompt["prompt"].as_str().unwrap().replace("TEXT-OF-WAKE", text).into();
        assert!(is_silent(&self.bench.tell(&prompt)));
    }

    fn stop(&mut self, turn: &str) {
        let stop = self.bench.of_turn("Stop", turn);
        let answer = self.bench.tell(&stop);
        assert!(is_silent(&answer), "{answer:?}");
    }

    /// The primary drains; gives what stands on standard output, and the acknowledgement.
    fn drain(&self) -> (String, String) {
        let ran = self.minder(&["host", "drain", "p"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        (ran.stdout, ran.stderr.trim().to_owned())
    }

    /// Runs the acknowledgement that a drain printed.
    fn ack(&self, command: &str) -> Ran {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        self.minder(&[&words[..], &["p"]].concat())
    }

    fn read<T: DeserializeOwned>(&self, file: &str) -> Option<T> {
        let bytes = std::fs::read(self.bench.scene.home.host(self.primary).join(file)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn queue(&self) -> Queue {
        let file = self.bench.scene.home.host(self.primary).join("queue.json");
        std::fs::read(file).map_or_else(|_| Queue::default(), |bytes| row::read(&bytes).unwrap())
    }

    fn episode(&self) -> Episode {
        self.read("episode.json").unwrap_or_default()
    }

    /// Waits until the host's files show something.
    fn until(&self, what: &str, found: impl Fn(&Self) -> bool) {
        let folder = self.bench.scene.home.host(self.primary);
        files::wait_for(&folder, LIMIT, || found(self).then_some(()))
            .unwrap_or_else(|e| panic!("{what}: {e}: {:?} {:?}", self.queue(), self.episode()));
    }
}
