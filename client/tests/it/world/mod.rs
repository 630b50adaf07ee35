//! A caller's world for the tests of commands: private surroundings, a store that the test writes, a daemon that
//! answers by a script, a terminal.

pub mod daemon;
pub mod store;
pub mod terminal;
pub mod turns;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::layout::Home;
use minder_tests::isolate::Isolated;
use minder_tests::process;
use serde_json::Value;

use self::daemon::{Daemon, Reply};

/// Longer than any command takes here; a test that needs it has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Surroundings in which nothing runs that the test did not start.
pub struct World {
    isolated: Arc<Isolated>,
}

/// What a command printed and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The one object on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The one object of a failure.
    pub fn error(&self) -> Value {
        assert_eq!(self.out, "", "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.err).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts a failure: this code, nothing on standard output, one line on standard error.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!((self.code, self.out.as_str(), self.err.lines().count()), (code, "", 1), "{self:?}");
        assert!(self.err.starts_with("minder: ") && self.err.ends_with('\n'), "{self:?}");
        self.err.trim_end()
    }

    /// Asserts success without a word on standard error; gives standard output.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        &self.out
    }
}

impl World {
    pub fn new() -> Self {
        Self { isolated: Isolated::new().unwrap() }
    }

    pub fn home(&self) -> Home {
        Home::at(self.isolated.minder_home())
    }

    pub fn root(&self) -> &Path {
        self.isolated.root()
    }

    pub fn socket(&self) -> PathBuf {
        self.isolated.runtime_dir().join("scripted.sock")
    }

    /// A daemon that answers each call with what `answer` says.
    pub fn daemon(&self, answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Daemon {
        Daemon::listen(&self.socket(), answer)
    }

    /// The program, to be started with these words. No daemon is started by it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.isolated.command(env!("CARGO_BIN_EXE_minder"));
        command.args(words).env("MINDER_SOCKET", self.socket()).env("MINDER_NO_AUTOSTART", "1");
        // An absent user would change the first line of a test.
        command.env("USER", "ana").env("TZ", "UTC");
        command
    }

    /// Runs the program.
    pub fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, b"")
    }

    /// Runs the program with this on its standard input.
    pub fn run_with(&self, words: &[&str], input: &[u8]) -> Ran {
        finish(&mut self.command(words), input)
    }

    /// Runs a shell with `minder` on its path.
    pub fn shell(&self, script: &str) -> Ran {
        let mut command = self.isolated.command("/bin/sh");
        let folder = Path::new(env!("CARGO_BIN_EXE_minder")).parent().unwrap();
        command.args(["-c", script]).env("MINDER_SOCKET", self.socket()).env("MINDER_NO_AUTOSTART", "1");
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        finish(&mut command, b"")
    }

    /// Every path below the test's folder, with its length and time of change.
    pub fn tree(&self) -> Vec<String> {
        let mut paths = Vec::new();
        note(self.root(), &mut paths);
        paths.sort();
        paths
    }

    /// What lies in the spool, in order.
    pub fn spooled(&self) -> Vec<Value> {
        let Ok(entries) = std::fs::read_dir(self.home().spool()) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        let mut found = Vec::new();
        for path in paths {
            let spooled: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(uuid::Uuid::parse_str(name).is_ok_and(|id| id.get_version_num() == 7), "{name}");
            found.push(spooled);
        }
        found
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command, input: &[u8]) -> Ran {
    let output = process::run(command, input, LIMIT).unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn note(path: &Path, paths: &mut Vec<String>) {
    let meta = path.symlink_metadata().unwrap();
    // The time of the socket's folder is the scripted daemon's affair.
    let time = if meta.is_dir() { None } else { Some(meta.modified().unwrap()) };
    paths.push(format!("{} {} {time:?}", path.display(), if meta.is_dir() { 0 } else { meta.len() }));
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            note(&entry.unwrap().path(), paths);
        }
    }
}
