//! What can go wrong while hooks are put in or taken out, and the exit code that says so.

use std::io;
use std::path::{Path, PathBuf};

use minder_proto::error::exit;

/// An error of this module. No variant leaves a settings file changed.
#[derive(Debug, thiserror::Error)]
pub enum HooksError {
    /// The command line asks for what there is not.
    #[error("{0}")]
    Usage(String),
    /// A rule forbids it.
    #[error("{0}")]
    Refused(String),
    /// What was named is not here.
    #[error("{0}")]
    NotFound(String),
    /// A settings file that is no JSON, or whose `hooks` are none.
    #[error("{}:{line}:{column}: {what}; nothing was written", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A settings file that cannot be one: no regular file, not UTF-8, too large.
    #[error("{}: {what}; nothing was written", path.display())]
    NoSettings {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// Somebody else wrote the file between our reading and our writing.
    #[error("{}: was changed by another program at this moment; nothing was written, try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The path of this program is not known or cannot stand in a settings file.
    #[error("the path of this program: {0}")]
    OwnPath(String),
    /// Input or output failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

impl HooksError {
    /// An input or output error about a path.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// The exit code that says it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => exit::USAGE,
            Self::Refused(_) => exit::REFUSED,
            Self::NotFound(_) => exit::GONE,
            Self::Broken { .. } | Self::NoSettings { .. } => exit::DATA,
            Self::Changed { .. } => exit::BUSY,
            Self::OwnPath(_) => exit::SOFTWARE,
            Self::Io { .. } | Self::Output(_) => exit::IO,
        }
    }
}
