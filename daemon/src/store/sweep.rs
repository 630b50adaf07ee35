//! What a crash left half written is removed at a start. Such a file was never renamed into place: nothing reads it. On
//! the way a folder that is open to others is closed to them, with what lies in it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use minder_proto::layout::Home;

use super::disk::{self, DiskError, TEMP_PREFIX, at};

/// A follower writes a file under another name and renames it at once: one that is as old as this was given up.
const GIVEN_UP: Duration = Duration::from_secs(60 * 60);

/// Sweeps every folder in which anything is replaced by a rename. `trash`: also the folders of closed sessions, in
/// which only a replay writes.
pub fn sweep(home: &Home, trash: bool, notes: &mut Vec<String>) -> Result<(), DiskError> {
    let nested = [
        Some(home.sessions()),
        Some(home.root().join("bindings")),
        Some(home.hosts()),
        trash.then(|| home.trash()),
    ];
    for folder in nested.into_iter().flatten() {
        folder_of(&folder)?;
        for entry in entries(&folder)? {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folder_of(&entry.path())?;
                narrow(&entry.path(), notes)?;
            }
        }
    }
    let flat: [PathBuf; 6] = [
        home.root().to_owned(),
        home.operator(),
        home.root().join("labels"),
        home.followers(),
        home.spool(),
        home.quarantine(),
    ];
    flat.iter().try_for_each(|folder| folder_of(folder))
}

fn entries(folder: &Path) -> Result<Vec<std::fs::DirEntry>, DiskError> {
    match std::fs::read_dir(folder).and_then(Iterator::collect) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found.map_err(at(folder)),
    }
}

fn folder_of(folder: &Path) -> Result<(), DiskError> {
    for entry in entries(folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name.starts_with(TEMP_PREFIX);
        if ours || name.ends_with(".new") && is_old(&entry) {
            match disk::remove(&entry.path()) {
                Err(e) if disk::is_odd(&e.error) => {} // nothing that a daemon was writing
                other => other?,
            }
        }
    }
    Ok(())
}

/// In a folder that is closed to others nobody reaches a file; in one that was open every file is looked at.
fn narrow(folder: &Path, notes: &mut Vec<String>) -> Result<(), DiskError> {
    if !disk::narrow(folder, 0o700)? {
        return Ok(());
    }
    notes.push(format!("{}: was open to others; narrowed to 0700", folder.display()));
    for entry in entries(folder)? {
        let mode = if entry.file_type().is_ok_and(|t| t.is_dir()) { 0o700 } else { 0o600 };
        disk::narrow(&entry.path(), mode)?;
    }
    Ok(())
}

fn is_old(entry: &std::fs::DirEntry) -> bool {
    let written = entry.metadata().and_then(|m| m.modified());
    written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= GIVEN_UP))
}
