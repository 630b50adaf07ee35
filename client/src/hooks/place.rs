//! What of the surroundings of a command decides whose settings are meant, and where they are.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use minder_proto::layout::Home;
use serde::Serialize;

use super::HooksError;
use super::pack;

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
    /// The variables that are set by which harnesses are told where their settings are.
    pub variables: BTreeMap<&'static str, PathBuf>,
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
        let names = pack::ALL.iter().filter_map(|pack| Some(pack.user.variable?.0));
        let variables = names.filter_map(|name| Some((name, set(name)?.into()))).collect();
        let here = env::current_dir().map_err(|source| HooksError::io(Path::new("."), source))?;
        Ok(Self {
            home: home.ok_or_else(|| HooksError::Usage("HOME is not set to a folder".to_owned()))?,
            variables,
            path: env::var_os("PATH"),
            here,
            minder_home: store.root().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_two_words() {
        assert_eq!(Scope::from_word("user"), Some(Scope::User));
        assert_eq!(Scope::from_word("project"), Some(Scope::Project));
        assert_eq!(Scope::from_word("User"), None);
    }
}
