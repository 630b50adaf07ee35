//! The real Codex, from npm, in isolated surroundings, talking to the scripted model. It is run by whoever is given its
//! environment: here is no more than an installation as a person has it.
//!
//! A test that uses this is marked `#[cfg_attr(not(codex), ignore = "...")]`, as those of Claude Code are.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::isolate::Isolated;
use crate::model::Model;

mod app;

pub use app::{AppServer, Terminal};

/// The folder of its own program: the one that npm links is a script that starts it.
fn installed() -> Result<PathBuf> {
    let scope = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/node_modules/@openai");
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let vendors = inside(&scope).into_iter().map(|package| package.join("vendor"));
    let mut folders = vendors.flat_map(|vendor| inside(&vendor)).map(|target| target.join("bin"));
    folders.find(|bin| bin.join("codex").exists()).context("Codex is not installed; run tests/setup.sh")
}

/// Codex as installed and configured for one isolated user.
pub struct Codex {
    environment: Vec<(OsString, OsString)>,
}

impl Codex {
    /// `folders` are those in which it may run.
    pub fn new(isolated: &Isolated, model: &Model, folders: &[&Path]) -> Result<Self> {
        let bin = installed()?;
        let config = isolated.home().join(".codex");
        std::fs::create_dir_all(&config)?;
        let mut text = format!(
            "model = \"sim-1\"\nmodel_provider = \"sim\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
             [model_providers.sim]\nname = \"sim\"\nbase_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\n\
             wire_api = \"responses\"\n",
            model.base_url()
        );
        for folder in folders {
            write!(text, "[projects.\"{}\"]\ntrust_level = \"trusted\"\n", folder.display())?;
        }
        std::fs::write(config.join("config.toml"), text)?;
        let mut path = bin.into_os_string();
        for (_, value) in isolated.environment().into_iter().filter(|(name, _)| name == "PATH") {
            path.push(":");
            path.push(value);
        }
        let environment = [
            ("PATH".into(), path),
            ("CODEX_HOME".into(), config.into()),
            ("OPENAI_API_KEY".into(), "test-key".into()),
        ];
        Ok(Self { environment: environment.into() })
    }

    /// Its own program.
    pub fn program(&self) -> Result<PathBuf> {
        Ok(installed()?.join("codex"))
    }

    /// The environment that it has on top of the isolated one.
    pub fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.environment.clone().into_iter()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_there_where_harnesses_are_required() {
        assert!(cfg!(codex) || std::env::var_os("REQUIRE_HARNESSES").is_none(), "run tests/setup.sh first");
    }
}
