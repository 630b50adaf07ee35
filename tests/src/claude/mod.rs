//! The real Claude Code, from npm, in isolated surroundings, talking to the scripted model.
//!
//! [`Claude`] is an installation as a person has it: a home with configuration, first-run questions answered.
//! [`Claude::tui`] starts a session in a terminal ([`Tui`]), [`Claude::print`] one headless run. Nothing here
//! installs minder's hooks; a test does that as a user would.
//!
//! A test that uses this is marked `#[cfg_attr(not(claude), ignore = "...")]` (see the crate's `build.rs`),
//! so it is listed as ignored where the package is missing; with `REQUIRE_HARNESSES=1` that is a failure.

pub mod recorder;
mod tui;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::isolate::Isolated;
use crate::model::Model;
use crate::tmux::Tmux;

pub use tui::Tui;

/// The key that the scripted model is sent. Claude Code remembers an approved key by its last 20 characters.
const KEY: &str = "test-key";

/// The version that `tests/node` pins.
pub fn version() -> String {
    let package: Value = serde_json::from_str(include_str!("../../node/package.json")).expect("our own file");
    package["dependencies"]["@anthropic-ai/claude-code"].as_str().expect("pinned there").to_owned()
}

/// The installed program; an error if `tests/setup.sh` did not run.
fn installed() -> Result<PathBuf> {
    // By the link that npm makes, as users start it: the process list then says `claude`.
    let link = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/node_modules/.bin/claude");
    ensure!(link.exists(), "Claude Code is not installed; run tests/setup.sh");
    Ok(link)
}

/// Claude Code as installed and configured for one isolated user.
pub struct Claude {
    isolated: Arc<Isolated>,
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Claude {
    pub fn new(isolated: &Arc<Isolated>, model: &Model) -> Result<Self> {
        let program = installed()?;
        let config = isolated.home().join(".claude");
        let mut environment: Vec<(OsString, OsString)> = [
            ("ANTHROPIC_BASE_URL", model.base_url().as_str()),
            ("ANTHROPIC_API_KEY", KEY),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        environment.push(("CLAUDE_CONFIG_DIR".into(), config.clone().into()));
        let claude = Self { isolated: Arc::clone(isolated), program, environment };
        std::fs::create_dir_all(config)?;
        // Without these answers the first start asks for a theme, a login, and leave to use the key.
        claude.change_state(|state| {
            state["hasCompletedOnboarding"] = true.into();
            state["lastOnboardingVersion"] = version().into();
            state["theme"] = "dark".into();
            state["numStartups"] = 5.into();
            let tail = KEY.len().saturating_sub(20);
            state["customApiKeyResponses"] = json!({"approved": [&KEY[tail..]], "rejected": []});
        })?;
        Ok(claude)
    }

    /// The program, as a user would call it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// `CLAUDE_CONFIG_DIR`, which is where it is by default too.
    pub fn config_dir(&self) -> PathBuf {
        self.isolated.home().join(".claude")
    }

    /// The user's settings, where hooks stand.
    pub fn settings(&self) -> PathBuf {
        self.config_dir().join("settings.json")
    }

    /// Writes the user's settings, all of them.
    pub fn write_settings(&self, settings: &Value) -> Result<()> {
        std::fs::write(self.settings(), format!("{settings:#}\n")).context("settings.json")
    }

    /// A folder to run in, made if need be, that Claude Code was told to trust. Claude Code rewrites the file
    /// that says so while it runs: make a test's folders before its sessions.
    pub fn project(&self, name: &str) -> Result<PathBuf> {
        let folder = self.isolated.project(name)?;
        let key = folder.to_str().context("the folder's name is text")?.to_owned();
        self.change_state(|state| {
            state["projects"][key] =
                json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
        })?;
        Ok(folder)
    }

    /// A headless run of one prompt: `claude -p`. With no input, or it waits three seconds for some.
    pub fn print(&self, folder: &Path, prompt: &str, args: &[&str]) -> Command {
        let mut command = self.isolated.command(&self.program);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(folder).args(["-p", prompt]).args(args);
        command
    }

    /// An interactive session in a terminal, in the mode that asks before it runs a tool, ready for a prompt.
    pub fn tui(&self, tmux: &Tmux, name: &str, folder: &Path, args: &[&str]) -> Result<Tui> {
        let mut command = vec![self.program.clone().into_os_string()];
        command.extend(["--permission-mode", "manual"].iter().chain(args).map(OsString::from));
        let pane = tmux.session(name, folder, &self.environment, &command)?;
        Tui::new(pane, self.config_dir())
    }

    /// The environment that it has on top of the isolated one.
    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Changes its memory of answered questions.
    fn change_state(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        let path = self.config_dir().join(".claude.json");
        let mut state = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).context(".claude.json")?,
            Err(_) => json!({}),
        };
        change(&mut state);
        std::fs::write(path, state.to_string()).context(".claude.json")
    }
}

#[cfg(test)]
mod tests;
