//! A `fake tui` on a private tmux server: steps are said to it over its control socket, and what it did is read from its
//! record.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::isolate::Isolated;
use crate::tmux::{Pane, Tmux};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// One that runs.
pub struct Actor {
    pane: Pane,
    record: PathBuf,
    control: PathBuf,
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
        let own = isolated.root().join("actors");
        std::fs::create_dir_all(&own)?;
        let (record, control) = (own.join(format!("{name}.record")), own.join(format!("{name}.control")));
        let link = own.join(name);
        if !link.exists() {
            symlink(isolated.program("fake")?, &link)?;
        }
        let head = format!("record {}\ncontrol {}\n", record.display(), control.display());
        std::fs::write(own.join(format!("{name}.script")), format!("{head}{script}\nterminal\n"))?;
        let mut command = vec![link.into_os_string()];
        command.extend(arguments.iter().map(Into::into));
        let pane = tmux.session(name, folder, &[], &command)?;
        let actor = Self { pane, record, control };
        actor.wait(|line| line["what"] == "stays")?;
        Ok(actor)
    }

    pub fn pane(&self) -> &Pane {
        &self.pane
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
