//! Records what the real Claude Code sends to hooks and writes to its files, as fixtures below
//! `tests/data/claude/<version>/`. Run it after a new version was pinned and read the difference:
//!
//! ```sh
//! cargo run -p minder-tests --bin record-claude
//! ```
//!
//! `scenes` plays the situations, `normal` takes out of the records what differs from run to run.
#![allow(clippy::print_stdout)] // A program for a developer at a terminal; it has no other output.

mod normal;
mod scenes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use minder_tests::claude::recorder::Recorder;
use minder_tests::claude::{self, Claude, Tui};
use minder_tests::files;
use minder_tests::isolate::Isolated;
use minder_tests::model::Model;
use minder_tests::tmux::Tmux;
use serde_json::Value;

use normal::Normal;

/// The limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);

/// One situation: a fresh home with recording hooks, and one session in it.
struct Scene {
    model: Model,
    tui: Tui,
    recorder: Recorder,
    claude: Claude,
    folder: PathBuf,
    normal: Normal,
    data: PathBuf,
    // The last to go, since the session runs in it.
    _tmux: Tmux,
}

impl Scene {
    /// Starts a session. `hooks` may change the recording hooks before.
    fn start(hooks: impl FnOnce(&Recorder, &mut Value)) -> Result<Self> {
        let model = Model::start()?;
        let isolated = Isolated::new()?;
        let claude = Claude::new(&isolated, &model)?;
        let folder = claude.project("p")?;
        let recorder = Recorder::new(&isolated)?;
        let mut entries = recorder.hooks();
        hooks(&recorder, &mut entries);
        claude.write_settings(&serde_json::json!({"hooks": entries}))?;
        let tmux = Tmux::start(&isolated)?;
        let tui = claude.tui(&tmux, "s", &folder, &[])?;
        let normal = Normal::new(isolated.root(), model.port(), tui.process().pid());
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/claude").join(claude::version());
        Ok(Self { model, tui, recorder, claude, folder, normal, data, _tmux: tmux })
    }

    /// Keeps the payload of the `n`th call (from 1) of a hook.
    fn keep_call(&mut self, label: &str, n: usize, name: &str) -> Result<()> {
        let payload = self.recorder.wait_nth(LIMIT, label, n)?.payload;
        self.keep(name, &payload)
    }

    /// Keeps the state file that has this status.
    fn keep_state(&mut self, status: &str, name: &str) -> Result<()> {
        let state = self.tui.wait_status(LIMIT, status)?;
        self.keep(name, &state)
    }

    fn keep(&mut self, name: &str, value: &Value) -> Result<()> {
        let value = self.normal.apply(value);
        self.write(&format!("{name}.json"), &format!("{value:#}\n"))
    }

    /// Waits until the transcript shows `marker` in a line of this kind (its `type`, or its attachment's or
    /// its `subtype`), and keeps all lines so far that hold it.
    fn keep_transcript(&mut self, marker: &str, kind: &str, name: &str) -> Result<()> {
        let transcript = self.tui.transcript()?;
        let holds = |line: &Value| line.to_string().contains(marker);
        let is = |line: &Value| {
            [&line["type"], &line["attachment"]["type"], &line["subtype"]].iter().any(|k| **k == kind)
        };
        // Lines that repeat whole requests, and the scripted model's own words.
        let bulky = |line: &Value| {
            let kind = line["type"].as_str().unwrap_or_default();
            kind.starts_with("api-request")
                || kind == "last-prompt"
                || kind == "assistant"
                || line["attachment"]["type"] == "prompt_snapshot"
        };
        let lines = files::wait_for_lines(&transcript, LIMIT, |lines| {
            let there = lines.iter().any(|line| is(line) && holds(line));
            there.then(|| lines.iter().filter(|l| holds(l) && !bulky(l)).cloned().collect::<Vec<_>>())
        })
        .with_context(|| format!("a line {kind} with {marker}"))?;
        let lines: Vec<_> = lines.iter().map(|line| format!("{}\n", self.normal.apply(line))).collect();
        self.write(&format!("{name}.jsonl"), &lines.concat())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::create_dir_all(&self.data)?;
        println!("  {name}");
        std::fs::write(self.data.join(name), text).with_context(|| name.to_owned())
    }

    /// Waits for the end of the `n`th turn that has a Stop.
    fn stopped(&self, n: usize) -> Result<()> {
        self.recorder.wait_nth(LIMIT, "Stop", n)?;
        self.tui.wait_status(LIMIT, "idle").map(drop)
    }
}

fn main() -> Result<()> {
    for (name, scene) in scenes::ALL {
        println!("{name}");
        scene().with_context(|| format!("scene {name}"))?;
    }
    Ok(())
}
