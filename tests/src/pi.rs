//! The real Pi, from npm, in isolated surroundings, talking to the scripted model: an installation as a person has it,
//! and [`Pi::tui`], one in a terminal.
//!
//! A test that uses this is marked `#[cfg_attr(not(pi), ignore = "...")]`, as those of Claude Code are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::isolate::Isolated;
use crate::model::Model;
use crate::tmux::{Pane, Tmux};

/// How long a start may take on a busy machine.
const START: Duration = Duration::from_secs(60);
/// How long typed text may take to show.
const ECHO: Duration = Duration::from_secs(20);

/// Pi as installed and configured for one isolated user.
pub struct Pi {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl Pi {
    pub fn new(isolated: &Isolated, model: &Model) -> Result<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/node_modules/.bin/pi");
        ensure!(program.exists(), "Pi is not installed; run tests/setup.sh");
        let folder = isolated.home().join(".pi/agent");
        std::fs::create_dir_all(&folder)?;
        let model = json!({"id": "sim-1", "name": "sim-1", "reasoning": false, "input": ["text"], "contextWindow": 200_000,
            "maxTokens": 8_000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "baseUrl": model.base_url()});
        let provider = json!({"baseUrl": model["baseUrl"], "api": "anthropic-messages", "apiKey": "test-key", "models": [model]});
        std::fs::write(folder.join("models.json"), json!({"providers": {"sim": provider}}).to_string())?;
        let settings = json!({"defaultProvider": "sim", "defaultModel": "sim-1", "quietStartup": true});
        std::fs::write(folder.join("settings.json"), settings.to_string())?;
        Ok(Self { program, environment: vec![("PI_OFFLINE".into(), "1".into())] })
    }

    /// An interactive session in a terminal, ready for a prompt.
    pub fn tui(&self, tmux: &Tmux, name: &str, folder: &Path, args: &[&str]) -> Result<Pane> {
        let mut command = vec![self.program.clone().into_os_string()];
        command.extend(args.iter().map(OsString::from));
        let pane = tmux.session(name, folder, &self.environment, &command)?;
        // The line below its input box.
        pane.wait_text(START, "sim-1").context("waiting for Pi's input box")?;
        Ok(pane)
    }
}

/// Types a prompt and sends it.
pub fn prompt(pane: &Pane, text: &str) -> Result<()> {
    pane.type_text(text)?;
    pane.wait_text(ECHO, text).context("waiting for what was typed")?;
    pane.key("Enter")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_there_where_harnesses_are_required() {
        assert!(cfg!(pi) || std::env::var_os("REQUIRE_HARNESSES").is_none(), "run tests/setup.sh first");
    }
}
