//! Stores that are kept in `tests/data`: one of every format, whole, and one of every kind of damage.
//!
//! A store of the present format and the damaged ones are written anew with
//!
//! ```sh
//! UPDATE_STORES=1 UPDATE_EXPECT=1 cargo test -p minder-tests --test it -- stores::
//! ```
//!
//! which is done once for a format, and again where a new kind of damage is added. What stands there stays otherwise: that
//! an old store opens is shown by an old store alone.

mod damaged;
mod formats;
mod served;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders that a store has though nothing may be in them, which a repository does not keep.
const EMPTY: [&str; 10] = [
    "journal",
    "sessions",
    "trash",
    "operator",
    "spool",
    "quarantine",
    "run",
    "labels",
    "bindings",
    "followers",
];

/// What belongs to a daemon's life and not to the store.
const PASSING: [&str; 3] = ["daemon.lock", "run", "log"];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// True if the kept stores are to be written anew.
fn writes() -> bool {
    std::env::var_os("UPDATE_STORES").is_some()
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(of).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

/// Takes a kept store into use: private, and with its empty folders.
fn take(from: &Path, to: &Path) {
    copy(from, to, 0o600, 0o700);
    for folder in EMPTY {
        std::fs::create_dir_all(to.join(folder)).unwrap();
        permit(&to.join(folder), 0o700);
    }
}

/// Keeps a store: without what belongs to a daemon's life, its journal without the room that was allocated in advance.
fn keep(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    copy(from, to, 0o644, 0o755);
    for name in PASSING {
        let _ = std::fs::remove_dir_all(to.join(name));
        let _ = std::fs::remove_file(to.join(name));
    }
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn copy(from: &Path, to: &Path, file_mode: u32, folder_mode: u32) {
    std::fs::create_dir_all(to).unwrap();
    permit(to, folder_mode);
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        let to = to.join(name);
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            copy(&path, &to, file_mode, folder_mode);
        } else if kind.is_file() {
            let mut bytes = std::fs::read(&path).unwrap();
            if path.extension().is_some_and(|e| e == "wal") {
                bytes.truncate(bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
            }
            std::fs::write(&to, bytes).unwrap();
            permit(&to, file_mode);
        }
    }
}
