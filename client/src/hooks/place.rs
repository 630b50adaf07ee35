//! Where a harness keeps its settings, for a person and for a project.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use minder_proto::layout::Home;
use serde::Serialize;

use super::HooksError;

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All sessions of this user.
    User,
    /// Sessions in this folder.
    Project,
}

impl Scope {
    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }

    /// From what was typed.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::User, Self::Project].into_iter().find(|scope| scope.word() == word)
    }
}

/// What of the caller's environment decides which files and programs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The home folder.
    pub home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`, if set.
    pub claude_config_dir: Option<PathBuf>,
    /// The working directory.
    pub here: PathBuf,
    /// `PATH`.
    pub path: Option<OsString>,
    /// The store, in which receipts are kept.
    pub minder_home: PathBuf,
}

impl Surroundings {
    /// From the environment of this process.
    pub fn from_env() -> Result<Self, HooksError> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let store = Home::from_env().map_err(|error| HooksError::Usage(error.to_string()))?;
        let here = env::current_dir().map_err(|source| HooksError::io(Path::new("."), source))?;
        Ok(Self {
            home: home.ok_or_else(|| HooksError::Usage("HOME is not set to a folder".to_owned()))?,
            claude_config_dir: set("CLAUDE_CONFIG_DIR").map(PathBuf::from),
            path: env::var_os("PATH"),
            here,
            minder_home: store.root().to_owned(),
        })
    }

    /// The folder of Claude Code's user settings.
    pub fn claude_folder(&self) -> PathBuf {
        match &self.claude_config_dir {
            Some(folder) => self.here.join(folder),
            None => self.home.join(".claude"),
        }
    }

    /// The settings file of Claude Code.
    pub fn claude_settings(&self, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => self.claude_folder().join("settings.json"),
            Scope::Project => self.here.join(".claude/settings.json"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_folder_of_the_harness_wins_over_home() {
        let mut surroundings = Surroundings {
            home: "/home/ana".into(),
            claude_config_dir: None,
            here: "/src/web".into(),
            path: None,
            minder_home: "/s".into(),
        };
        let file =
            |surroundings: &Surroundings, scope| surroundings.claude_settings(scope).display().to_string();
        assert_eq!(file(&surroundings, Scope::User), "/home/ana/.claude/settings.json");
        assert_eq!(file(&surroundings, Scope::Project), "/src/web/.claude/settings.json");
        surroundings.claude_config_dir = Some("/odd $folder".into());
        assert_eq!(file(&surroundings, Scope::User), "/odd $folder/settings.json");
        surroundings.claude_config_dir = Some("conf".into());
        assert_eq!(file(&surroundings, Scope::User), "/src/web/conf/settings.json");
        assert_eq!(file(&surroundings, Scope::Project), "/src/web/.claude/settings.json");
    }

    #[test]
    fn scopes_are_two_words() {
        assert_eq!(Scope::from_word("user"), Some(Scope::User));
        assert_eq!(Scope::from_word("project"), Some(Scope::Project));
        assert_eq!(Scope::from_word("User"), None);
    }
}
