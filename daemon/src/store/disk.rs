//! Small file operations with the store's modes: files 0600, folders 0700, replaced by rename.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{ELOOP, ENXIO, O_NOFOLLOW, O_NONBLOCK};

use super::kill_point::reach;

/// Begins the name of a file that is being written and will be renamed.
pub const TEMP_PREFIX: &str = ".tmp-";

/// A failed operation with the path it was for.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct DiskError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    #[source]
    pub error: io::Error,
}

/// Puts the path into an error.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> DiskError + '_ {
    move |error| DiskError { path: path.to_owned(), error }
}

/// Makes a folder and its parents, 0700.
pub fn make_dir(path: &Path) -> Result<(), DiskError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Neither a link is followed nor somebody at the other end of a pipe waited for.
const PLAIN: i32 = O_NOFOLLOW | O_NONBLOCK;

/// Opens a regular file for appending at known offsets, creating it 0600.
pub fn open_rw(path: &Path) -> io::Result<File> {
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(PLAIN);
    let file = open.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no regular file, where a file should be")
}

/// Whether an error says that something else has the name of a file or of its folder. That is no fault of the disk, and
/// does not pass.
pub fn is_odd(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidData, IsADirectory, NotADirectory, NotSeekable};
    matches!(error.kind(), AlreadyExists | InvalidData | IsADirectory | NotADirectory | NotSeekable)
        || matches!(error.raw_os_error(), Some(ELOOP | ENXIO))
}

/// Writes a whole file beside its place and renames it there. Nothing is synced: the journal has it.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(path, bytes, false)
}

fn replace_with(path: &Path, bytes: &[u8], sync: bool) -> Result<(), DiskError> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    let temp = path.with_file_name(format!("{TEMP_PREFIX}{name}"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(PLAIN)
        .open(&temp)
        .map_err(at(&temp))?;
    let written = file.write_all(bytes).and_then(|()| if sync { file.sync_all() } else { Ok(()) });
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temp);
        return Err(DiskError { path: path.to_owned(), error });
    }
    reach("replace.written");
    std::fs::rename(&temp, path).map_err(at(path))
}

/// Writes a whole file whose bytes are on the disk before its name is: for what no journal has.
pub fn replace_synced(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_with(path, bytes, true)
}

/// Makes durable that a folder is there: what was created in it, and the folders that lead to it.
pub fn sync_up(path: &Path) -> Result<(), DiskError> {
    sync_dir(path)?;
    for folder in path.ancestors().skip(1).filter(|f| !f.as_os_str().is_empty()) {
        match sync_dir(folder) {
            Err(e) if is_foreign(&e.error) => break, // it was there before, and so were those above it
            other => other?,
        }
    }
    Ok(())
}

/// Whether a folder that cannot be synced is none that this process could have made.
fn is_foreign(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// Removes a file; one that is not there is removed already.
pub fn remove(path: &Path) -> Result<(), DiskError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(path)(e)),
        _ => Ok(()),
    }
}

/// Removes a folder with all that is in it; one that is not there is removed already.
pub fn remove_tree(path: &Path) -> Result<(), DiskError> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(path)(e)),
        _ => Ok(()),
    }
}

/// Whether anything is there. That it cannot be looked at is an error and no "no".
pub fn is_there(path: &Path) -> Result<bool, DiskError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(at(path)(e)),
    }
}

/// Makes what was created or renamed in a folder durable.
pub fn sync_dir(path: &Path) -> Result<(), DiskError> {
    File::open(path).and_then(|d| d.sync_all()).map_err(at(path))
}

/// Narrows a path's permissions to `mode` where they are wider; says if they were.
pub fn narrow(path: &Path, mode: u32) -> Result<bool, DiskError> {
    let meta = std::fs::symlink_metadata(path).map_err(at(path))?;
    if meta.file_type().is_symlink() || meta.permissions().mode() & 0o777 & !mode == 0 {
        return Ok(false);
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(at(path))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_private_and_what_is_wider_is_narrowed() {
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join("a/b");
        make_dir(&sub).unwrap();
        let file = sub.join("f");
        replace(&file, b"1").unwrap();
        replace(&file, b"2").unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&sub), mode(&file)), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&sub).unwrap().count(), 1, "no temporary file stays");
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(narrow(&file, 0o600).unwrap());
        assert!(!narrow(&file, 0o600).unwrap());
        assert_eq!(mode(&file), 0o600);
    }
}
