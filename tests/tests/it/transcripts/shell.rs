//! A person's shell for a transcript: bash in private surroundings, given one command after the other, whose output is
//! what both streams print until the command's end.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder_tests::isolate::Isolated;

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Ends the output of a command.
const MARK: &str = "\u{1}\n";

/// Reads commands, each ended by NUL, and runs them as if they were typed one after the other: variables, jobs and
/// `$?` live on. Nothing reads the next command as its own input.
const LOOP: &str = r#"s=0; while IFS= read -r -d '' c <&3; do eval "(exit $s)
$c" </dev/null; s=$?; printf '\001\n'; done"#;

/// The shell.
pub struct Shell {
    isolated: Arc<Isolated>,
    outer: Child,
    commands: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    /// What was printed since the last command's end, by what it left running.
    rest: Vec<u8>,
}

impl Shell {
    pub fn start() -> Result<Self> {
        let isolated = Isolated::new()?;
        // Built, and not older than its sources.
        isolated.program("minder")?;
        isolated.program("minderd")?;
        let (mut reader, writer) = std::io::pipe()?;
        // The outer shell ends at once: whoever runs these tests, an agent too, is no ancestor of the inner one.
        let detached = format!("exec 3<&0; (exec bash -c '{}') </dev/null &", LOOP.replace('\'', r"'\''"));
        let mut command: Command = isolated.command("bash");
        command.args(["-c", &detached]).env("USER", "ana");
        // The store is where a person's is.
        command.env_remove("MINDER_HOME");
        command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer);
        let mut outer = command.spawn()?;
        drop(command);
        let commands = outer.stdin.take();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { isolated, outer, commands, output, rest: Vec::new() })
    }

    /// Runs a command and gives its lines, with the places of these surroundings as they would be for a person.
    pub fn run(&mut self, command: &str) -> Result<Vec<String>> {
        let commands = self.commands.as_mut().context("the shell has ended")?;
        commands.write_all(command.as_bytes())?;
        commands.write_all(b"\0")?;
        let deadline = Instant::now() + LIMIT;
        let mut printed = std::mem::take(&mut self.rest);
        let end = loop {
            let mark = printed.windows(MARK.len()).position(|bytes| bytes == MARK.as_bytes());
            if let Some(end) = mark {
                break end;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => printed.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => bail!("the shell ended in {command:?}"),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{command:?} still runs; it printed {:?}", String::from_utf8_lossy(&printed))
                }
            }
        };
        self.rest = printed.split_off(end + MARK.len());
        printed.truncate(end);
        let text = String::from_utf8(printed)?
            .replace(path(&self.isolated.home())?, "/home/ana")
            .replace(path(&self.isolated.runtime_dir())?, "/run/user/1000")
            .replace(path(self.isolated.root())?, "");
        Ok(text.lines().map(|line| line.trim_end().to_owned()).collect())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its input ends, and with it the shell; what it left running ends with the surroundings.
        drop(self.commands.take());
        let _ = self.outer.wait();
    }
}

fn path(path: &std::path::Path) -> Result<&str> {
    path.to_str().context("a path of ours is text")
}
