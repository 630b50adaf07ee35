//! One interactive Claude Code session: its terminal, what it says of itself, and its transcript.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files;
use crate::process::Process;
use crate::tmux::Pane;

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);
/// How long typed text may take to show.
const ECHO: Duration = Duration::from_secs(20);

/// A session in a terminal.
pub struct Tui {
    pane: Pane,
    config: PathBuf,
}

impl Tui {
    pub(super) fn new(pane: Pane, config: PathBuf) -> Result<Self> {
        let tui = Self { pane, config };
        // The file can come before the input box, and the box before it takes keys; the pair is reliable.
        tui.pane.wait_text(START, "manual mode on").context("waiting for Claude Code's input box")?;
        tui.wait_status(START, "idle")?;
        Ok(tui)
    }

    pub fn pane(&self) -> &Pane {
        &self.pane
    }

    /// The harness's own process.
    pub fn process(&self) -> &Process {
        self.pane.process()
    }

    /// What the session says of itself in `sessions/<pid>.json`; `None` if there is no such file (yet).
    pub fn state(&self) -> Option<Value> {
        serde_json::from_str(&std::fs::read_to_string(self.state_file()).ok()?).ok()
    }

    pub fn state_file(&self) -> PathBuf {
        self.config.join("sessions").join(format!("{}.json", self.process().pid()))
    }

    /// Waits for a status by the harness's own word: `idle`, `busy`, `waiting`.
    pub fn wait_status(&self, limit: Duration, status: &str) -> Result<Value> {
        files::wait_for(&self.state_file(), limit, || self.state().filter(|s| s["status"] == status))
            .with_context(|| format!("waiting for status {status}; screen:\n{}", self.shown()))
    }

    /// Claude Code's id of the conversation.
    pub fn session_id(&self) -> Result<String> {
        let state = self.state().context("the session has no state file")?;
        Ok(state["sessionId"].as_str().context("the state has a sessionId")?.to_owned())
    }

    /// The conversation's transcript; it may not be there before the first prompt.
    pub fn transcript(&self) -> Result<PathBuf> {
        let state = self.state().context("the session has no state file")?;
        let folder = state["cwd"].as_str().context("the state has a cwd")?;
        Ok(transcript(&self.config, Path::new(folder), &self.session_id()?))
    }

    /// Puts a prompt into the input box and submits it. Long ones (more than about 800 characters or 4 lines)
    /// reach the model as an attachment.
    pub fn prompt(&self, text: &str) -> Result<()> {
        self.enter_text(text)?;
        self.pane.key("Enter")
    }

    /// Puts text into the input box and waits until it stands there.
    pub fn enter_text(&self, text: &str) -> Result<()> {
        self.pane.paste(text)?;
        // The box breaks lines: the beginning is enough, and a collapsed paste shows none of it.
        let beginning: String = text.lines().next().unwrap_or_default().chars().take(40).collect();
        let wanted = |screen: &str| {
            (screen.contains(beginning.trim_end()) || screen.contains("[Pasted text")).then_some(())
        };
        self.pane.wait_screen(ECHO, wanted).with_context(|| format!("entering {text:?}"))
    }

    /// Waits for a dialog and answers it with one key: `1` or `Enter` for its first choice, `Escape` to refuse.
    /// A dialog takes no key in its first moments, so one that was not taken is pressed again.
    pub fn answer_dialog(&self, limit: Duration, key: &str) -> Result<()> {
        self.wait_status(limit, "waiting")?;
        // It is announced before it is shown, and a key that comes between goes into the input box, which then keeps
        // the dialog away.
        self.pane.wait_text(limit, "Esc to cancel")?;
        let answered = || self.state().filter(|state| state["status"] != "waiting");
        for _ in 0..10 {
            self.pane.key(key)?;
            if files::wait_for(&self.state_file(), Duration::from_secs(1), answered).is_ok() {
                return Ok(());
            }
        }
        bail!("the dialog takes no {key}; screen:\n{}", self.shown())
    }

    fn shown(&self) -> String {
        self.pane.screen().unwrap_or_else(|error| error.to_string())
    }
}

/// Where Claude Code keeps a conversation: the folder's path with everything but letters and digits as `-`.
pub(super) fn transcript(config: &Path, folder: &Path, session: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = folder.to_string_lossy().chars().map(plain).collect();
    config.join("projects").join(name).join(format!("{session}.jsonl"))
}
