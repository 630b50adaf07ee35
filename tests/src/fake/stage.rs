//! Those who play: a `fake tui` on a private tmux server, a `fake server`. Steps are said to them over their control
//! sockets, and what they did is read from their records.

use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::isolate::Isolated;
use crate::tmux::{Pane, Tmux};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Where one is told what to do, and where it says what it did.
pub struct Cue {
    record: PathBuf,
    control: PathBuf,
}

/// One in a terminal.
pub struct Actor {
    pane: Pane,
    cue: Cue,
}

/// An app-server.
pub struct Server {
    child: Child,
    cue: Cue,
    socket: PathBuf,
}

impl Deref for Actor {
    type Target = Cue;

    fn deref(&self) -> &Cue {
        &self.cue
    }
}

impl Deref for Server {
    type Target = Cue;

    fn deref(&self) -> &Cue {
        &self.cue
    }
}

impl Actor {
    /// Starts one under this name (`claude`, or one that is no harness's) in a tmux session of the same name, and waits
    /// until its conversation has begun. The arguments are what a harness would be given.
    pub fn start(
        tmux: &Tmux,
        isolated: &Arc<Isolated>,
        name: &str,
        folder: &Path,
        script: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let (cue, link) = Cue::prepare(isolated, name, &format!("{script}\nterminal"))?;
        let mut command = vec![link.into_os_string()];
        command.extend(arguments.iter().map(Into::into));
        let pane = tmux.session(name, folder, &[], &command)?;
        let actor = Self { pane, cue };
        actor.wait(|line| line["what"] == "stays")?;
        Ok(actor)
    }

    pub fn pane(&self) -> &Pane {
        &self.pane
    }

    /// The texts that were submitted.
    pub fn submitted(&self) -> Vec<String> {
        let text = |line: &Value| line["text"].as_str().unwrap_or_default().to_owned();
        self.noted("submitted").iter().map(text).collect()
    }

    /// All bytes that it read, as the record writes them.
    pub fn input(&self) -> String {
        self.noted("input").iter().filter_map(|line| line["bytes"].as_str().map(str::to_owned)).collect()
    }
}

impl Server {
    /// Starts one under this name, on a socket of its own or the one that is given.
    pub fn start(isolated: &Arc<Isolated>, name: &str, script: &str, socket: Option<&Path>) -> Result<Self> {
        let socket =
            socket.map_or_else(|| isolated.runtime_dir().join(format!("{name}.sock")), Path::to_owned);
        let (cue, link) = Cue::prepare(isolated, name, &format!("{script}\nserve {}", socket.display()))?;
        let mut command = isolated.command(link);
        command.stdin(Stdio::null());
        let server = Self { child: command.spawn().context("fake server")?, cue, socket };
        server.wait(|line| line["what"] == "serves")?;
        Ok(server)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cue {
    /// Puts the program under this name, and its script beside it.
    fn prepare(isolated: &Arc<Isolated>, name: &str, script: &str) -> Result<(Self, PathBuf)> {
        let own = isolated.root().join("actors");
        std::fs::create_dir_all(&own)?;
        let (record, control) = (own.join(format!("{name}.record")), own.join(format!("{name}.control")));
        let link = own.join(name);
        if !link.exists() {
            symlink(isolated.program("fake")?, &link)?;
        }
        let head = format!("record {}\ncontrol {}\n", record.display(), control.display());
        std::fs::write(own.join(format!("{name}.script")), format!("{head}{script}\n"))?;
        Ok((Self { record, control }, link))
    }

    /// Has a step done, and waits until it is.
    pub fn say(&self, step: &str) -> Result<()> {
        let mut stream = UnixStream::connect(&self.control).context("the control socket")?;
        stream.set_read_timeout(Some(LIMIT))?;
        writeln!(stream, "{step}")?;
        let mut answers = BufReader::new(stream.try_clone()?).lines();
        let answer = answers.next().context("no answer")??;
        if answer != "ok" {
            bail!("{step}: {answer}");
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // It hangs up when the step is over.
        match answers.next() {
            None => match self.noted("failed").pop() {
                None => Ok(()),
                Some(failed) => bail!("{failed}"),
            },
            Some(more) => bail!("{step}: {more:?}"),
        }
    }

    /// All that it did and saw.
    pub fn record(&self) -> Vec<Value> {
        files::json_lines(&self.record)
    }

    /// Those lines of the record that say this.
    pub fn noted(&self, what: &str) -> Vec<Value> {
        let mut lines = self.record();
        lines.retain(|line| line["what"] == what);
        lines
    }

    /// Waits for a line of the record.
    pub fn wait(&self, is: impl Fn(&Value) -> bool) -> Result<Value> {
        files::wait_for_lines(&self.record, LIMIT, |lines| lines.iter().find(|line| is(line)).cloned())
    }

    /// Waits until there are so many lines that say this; gives them.
    pub fn wait_noted(&self, what: &str, many: usize) -> Result<Vec<Value>> {
        files::wait_for(&self.record, LIMIT, || Some(self.noted(what)).filter(|lines| lines.len() >= many))
    }
}
