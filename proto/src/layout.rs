//! Where everything is: the store's folder and every path in it, the configuration file, the socket.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::id::{SessionId, TurnId};

/// Longest path of a Unix socket address in bytes, without the final NUL.
#[cfg(target_os = "macos")]
pub const SOCKET_PATH_MAX: usize = 103;
/// Longest path of a Unix socket address in bytes, without the final NUL.
#[cfg(not(target_os = "macos"))]
pub const SOCKET_PATH_MAX: usize = 107;

/// Why the store's place is not known.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// No home folder, and nothing that names the store.
    #[error("no home folder: set HOME, XDG_STATE_HOME or MINDER_HOME")]
    NoHome,
    /// A variable that must hold an absolute path holds another.
    #[error("{name} must be an absolute path: {value:?}")]
    NotAbsolute {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: OsString,
    },
}

/// The store's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

fn absolute(name: &'static str) -> Result<Option<PathBuf>, LayoutError> {
    match std::env::var_os(name).filter(|v| !v.is_empty()) {
        None => Ok(None),
        Some(value) if Path::new(&value).is_absolute() => Ok(Some(value.into())),
        Some(value) => Err(LayoutError::NotAbsolute { name, value }),
    }
}

impl Home {
    /// The store in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `$MINDER_HOME`, else the platform's folder for state (`$XDG_STATE_HOME/minder`, `~/.local/state/minder`;
    /// macOS `~/Library/Application Support/minder`).
    pub fn from_env() -> Result<Self, LayoutError> {
        match absolute("MINDER_HOME")? {
            Some(root) => Ok(Self::at(root)),
            None => Self::default_place(),
        }
    }

    /// Where the store is when `MINDER_HOME` does not say.
    pub fn default_place() -> Result<Self, LayoutError> {
        absolute("XDG_STATE_HOME").ok();
        let base = directories::BaseDirs::new().ok_or(LayoutError::NoHome)?;
        let state = base.state_dir().unwrap_or_else(|| base.data_local_dir());
        Ok(Self::at(state.join("minder")))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder with symbolic links resolved, where it exists.
    pub fn real(&self) -> PathBuf {
        std::fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone())
    }

    /// Held by the daemon for its life.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }

    /// The store's format, `minder-store 1`.
    pub fn format(&self) -> PathBuf {
        self.root.join("format")
    }

    /// The write-ahead journal.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// The doorbell of every follower.
    pub fn feed(&self) -> PathBuf {
        self.root.join("feed.jsonl")
    }

    /// All sessions.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// One session's folder.
    pub fn session(&self, id: SessionId) -> PathBuf {
        self.sessions().join(id.to_string())
    }

    /// Closed sessions until retention removes them.
    pub fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// One closed session's folder.
    pub fn trashed(&self, id: SessionId) -> PathBuf {
        self.trash().join(id.to_string())
    }

    /// The person's own timeline and queue.
    pub fn operator(&self) -> PathBuf {
        self.root.join("operator")
    }

    /// What the supervision hosts of primaries keep.
    pub fn hosts(&self) -> PathBuf {
        self.root.join("hosts")
    }

    /// What the host of one primary keeps.
    pub fn host(&self, id: SessionId) -> PathBuf {
        self.hosts().join(id.to_string())
    }

    /// Requests left while no daemon could be reached.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Unreadable files, each with a `.why` beside it.
    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    /// There from before a journal with a hole is set aside until the repair that follows is done.
    pub fn repair_needed(&self) -> PathBuf {
        self.root.join("repair-needed")
    }

    /// In the throw-away store of `harness probe` alone: a hook that finds it notes there that it ran.
    pub fn probe(&self) -> PathBuf {
        self.root.join("probe")
    }

    /// One line per closed session.
    pub fn closed(&self) -> PathBuf {
        self.root.join("closed.jsonl")
    }

    /// Idempotency keys of the last 24 hours.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys.jsonl")
    }

    /// Turns: the logs of the seats and, in `run/`, what runs.
    pub fn turns(&self) -> PathBuf {
        self.root.join("turns")
    }

    /// The folder with the logs of the seats: `$MINDER_TURN_LOG_DIR`, else [`Home::turns`].
    pub fn turn_logs(&self) -> Result<PathBuf, LayoutError> {
        Ok(absolute("MINDER_TURN_LOG_DIR")?.unwrap_or_else(|| self.turns()))
    }

    /// The folder of one turn while it runs, and until its line is written.
    pub fn turn(&self, id: TurnId) -> PathBuf {
        self.turns().join("run").join(id.to_string())
    }

    /// Cursors of callers without a record that gave a name.
    pub fn followers(&self) -> PathBuf {
        self.root.join("followers")
    }

    /// The session that a harness's conversation is bound to, as a one-line file.
    pub fn binding(&self, harness: &str, harness_id: &str) -> PathBuf {
        self.root.join("bindings").join(file_name(harness)).join(file_name(harness_id))
    }

    /// The session that has a label, as a one-line file.
    pub fn label(&self, label: &str) -> PathBuf {
        self.root.join("labels").join(file_name(label))
    }

    /// The folder of the socket's symbolic link.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// A symbolic link to the live socket, written by the daemon under its lock.
    pub fn socket_link(&self) -> PathBuf {
        self.run().join("socket")
    }

    /// The daemon's log, where no service manager keeps it.
    pub fn log(&self) -> PathBuf {
        self.root.join("log").join("minderd.log")
    }

    /// The socket that a daemon of this store listens on: `$MINDER_SOCKET`; else in the runtime folder,
    /// `minder/minder.sock` for the default store and `minder/<8 hex of a hash of the real path>.sock` for any
    /// other; without a runtime folder `run/minder.sock` in the store.
    pub fn socket(&self) -> Result<PathBuf, LayoutError> {
        if let Some(path) = absolute("MINDER_SOCKET")? {
            return Ok(path);
        }
        Ok(match runtime_dir()? {
            Some(dir) => dir.join("minder").join(self.socket_name()),
            None => self.run().join("minder.sock"),
        })
    }

    /// The file name of this store's socket in the runtime folder.
    pub fn socket_name(&self) -> String {
        let real = self.real();
        if Self::default_place().is_ok_and(|d| d.real() == real) {
            return "minder.sock".to_owned();
        }
        format!("{:08x}.sock", crc32c::crc32c(real.as_os_str().as_encoded_bytes()))
    }
}

/// `$XDG_RUNTIME_DIR`, where it is set and a folder.
pub fn runtime_dir() -> Result<Option<PathBuf>, LayoutError> {
    Ok(absolute("XDG_RUNTIME_DIR")?.filter(|d| d.is_dir()))
}

/// `$XDG_CONFIG_HOME/minder/config.toml`, or what `MINDER_CONFIG` names.
pub fn config_file() -> Result<PathBuf, LayoutError> {
    if let Some(path) = absolute("MINDER_CONFIG")? {
        return Ok(path);
    }
    let base = directories::BaseDirs::new().ok_or(LayoutError::NoHome)?;
    Ok(base.config_dir().join("minder").join("config.toml"))
}

/// A file name for a text from outside: itself where it is a plain name, else what is plain of it and a checksum.
pub fn file_name(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if !text.is_empty() && text.len() <= 128 && !text.starts_with('.') && text.bytes().all(plain) {
        return text.to_owned();
    }
    let kept: String = text.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    format!("_{kept}-{:08x}", crc32c::crc32c(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_stay_inside_their_folder() {
        assert_eq!(file_name("0199c2d4-90c3-7f0e-8a17-c2b67be21c09"), "0199c2d4-90c3-7f0e-8a17-c2b67be21c09");
        for evil in ["", ".", "..", "../../x", "a/b", "a\0b", &"x".repeat(500)] {
            let name = file_name(evil);
            assert!(!name.contains('/') && name.starts_with('_') && name.len() < 64, "{name}");
        }
        assert_ne!(file_name("a/b"), file_name("a:b"));
    }
}
