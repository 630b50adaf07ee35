//! Reads a settings file and replaces it whole or not at all.
//!
//! Settings are often a link into somebody's collection of dot files: the link stays, what it leads to is
//! replaced. Mode, owner and group are kept. A reader sees the old bytes or the new ones, also across a power
//! cut. Between our reading and our writing the harness itself may write: then nothing is written.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::NamedTempFile;

use super::HooksError;

/// No settings file is larger.
const SIZE_LIMIT: u64 = 8 * 1024 * 1024;

/// As many links as the kernel follows.
const LINK_LIMIT: usize = 40;

/// A file at the moment it was read.
#[derive(Debug)]
pub struct Snapshot {
    /// The path that was asked for.
    pub path: PathBuf,
    /// The file itself, behind every link.
    pub file: PathBuf,
    /// Its text; nothing where there is no file.
    pub text: Option<String>,
    metadata: Option<Metadata>,
}

impl Snapshot {
    /// Reads a file that may not be there.
    pub fn read(path: &Path) -> Result<Self, HooksError> {
        let file = follow(path)?;
        let refuse = |what: &str| HooksError::NoSettings { path: path.to_owned(), what: what.to_owned() };
        // Looked at before it is opened: opening a pipe would wait for its writer.
        let metadata = match fs::metadata(&file) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), file, text: None, metadata: None });
            }
            Err(error) => return Err(HooksError::io(path, plain(&error))),
        };
        if !metadata.is_file() {
            return Err(refuse("is no regular file"));
        }
        if metadata.len() > SIZE_LIMIT {
            return Err(refuse("is larger than 8 MiB"));
        }
        let bytes = fs::read(&file).map_err(|error| HooksError::io(path, plain(&error)))?;
        let text = String::from_utf8(bytes).map_err(|_| refuse("is not UTF-8"))?;
        Ok(Self { path: path.to_owned(), file, text: Some(text), metadata: Some(metadata) })
    }

    /// The folders above the file that are not there, the outermost first.
    pub fn missing_folders(&self) -> Vec<PathBuf> {
        let above = self.file.ancestors().skip(1);
        let mut missing: Vec<_> = above.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        missing.reverse();
        missing
    }

    /// Puts this text in the file's place.
    pub fn write(&self, text: &str) -> Result<(), HooksError> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        match self.write_in(folder, text) {
            Ok(true) => Ok(()),
            Ok(false) => Err(HooksError::Changed { path: self.path.clone() }),
            Err(error) => Err(HooksError::io(&self.path, error)),
        }
    }

    /// False where the file is not any more what was read.
    fn write_in(&self, folder: &Path, text: &str) -> io::Result<bool> {
        fs::create_dir_all(folder).map_err(|error| plain(&error))?;
        let permissions = Permissions::from_mode(if self.metadata.is_some() { 0o600 } else { 0o666 });
        let mut new =
            tempfile::Builder::new().prefix(".settings.").permissions(permissions).tempfile_in(folder)?;
        new.write_all(text.as_bytes())?;
        if let Some(old) = &self.metadata {
            let now = new.as_file().metadata()?;
            if (now.uid(), now.gid()) != (old.uid(), old.gid()) {
                fchown(new.as_file(), Some(old.uid()), Some(old.gid()))?;
            }
            new.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        }
        new.as_file().sync_all()?;
        if self.is_stale()? || !self.put_in_place(new)? {
            return Ok(false);
        }
        File::open(folder)?.sync_all()?;
        Ok(true)
    }

    /// False where a file appeared that was not there.
    fn put_in_place(&self, new: NamedTempFile) -> io::Result<bool> {
        let put = match self.text {
            Some(_) => new.persist(&self.file),
            None => new.persist_noclobber(&self.file),
        };
        match put {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), HooksError> {
        let failed = |error: io::Error| HooksError::io(&self.path, plain(&error));
        if self.is_stale().map_err(failed)? {
            return Err(HooksError::Changed { path: self.path.clone() });
        }
        fs::remove_file(&self.file).map_err(failed)?;
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Whether the file is another one than was read.
    fn is_stale(&self) -> io::Result<bool> {
        match fs::read(&self.file) {
            Ok(bytes) => Ok(self.text.as_ref().is_none_or(|text| text.as_bytes() != bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self.text.is_some()),
            Err(error) => Err(error),
        }
    }
}

/// The file behind every link, also where there is none yet.
fn follow(path: &Path) -> Result<PathBuf, HooksError> {
    let mut file = path.to_owned();
    for _ in 0..LINK_LIMIT {
        match std::fs::read_link(&file) {
            Ok(target) => file = file.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(file),
        }
    }
    Err(HooksError::NoSettings {
        path: path.to_owned(),
        what: "is a link that leads nowhere but to links".to_owned(),
    })
}

/// Removes folders that we made, the outermost first in the list, as far as nobody else put something in.
pub fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Writes a file of our own: 0600, in folders 0700, replaced whole.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// The system's word for it, without the path that our own errors name already.
fn plain(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn mode_and_link_are_kept_and_nothing_is_left_behind() {
        let (_keep, root) = folder();
        fs::create_dir(root.join("dots")).unwrap();
        let file = root.join("dots/claude.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("dots/claude.json", root.join("one")).unwrap();
        symlink(root.join("one"), root.join("settings.json")).unwrap();

        let snapshot = Snapshot::read(&root.join("settings.json")).unwrap();
        assert_eq!((snapshot.text.as_deref(), &snapshot.file), (Some("old"), &file));
        snapshot.write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(root.join("settings.json")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(root.join("dots")).unwrap().count(), 1);
    }

    #[test]
    fn owner_and_group_are_kept() {
        if !nix::unistd::geteuid().is_root() {
            return; // Only root may give a file away; the continuous run is root's.
        }
        let (_keep, root) = folder();
        let path = root.join("settings.json");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
        Snapshot::read(&path).unwrap().write("new").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    }

    #[test]
    fn a_link_into_the_void_makes_its_target() {
        let (_keep, root) = folder();
        symlink("later/settings.json", root.join("settings.json")).unwrap();
        let snapshot = Snapshot::read(&root.join("settings.json")).unwrap();
        assert_eq!(snapshot.text, None);
        assert_eq!(snapshot.missing_folders(), [root.join("later")]);
        snapshot.write("new").unwrap();
        assert_eq!(fs::read_to_string(root.join("later/settings.json")).unwrap(), "new");
        Snapshot::read(&root.join("settings.json")).unwrap().remove().unwrap();
        assert!(!root.join("later/settings.json").exists());
        assert!(fs::symlink_metadata(root.join("settings.json")).unwrap().is_symlink());
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_not_overwritten() {
        let (_keep, root) = folder();
        let path = root.join("settings.json");
        let nothing = Snapshot::read(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(nothing.write("ours").unwrap_err().exit_code(), 75);
        let theirs = Snapshot::read(&path).unwrap();
        fs::write(&path, "theirs, too").unwrap();
        assert_eq!(theirs.write("ours").unwrap_err().exit_code(), 75);
        assert_eq!(theirs.remove().unwrap_err().exit_code(), 75);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs, too");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_settings_is_refused() {
        let (_keep, root) = folder();
        let refused = |name: &str| Snapshot::read(&root.join(name)).expect_err("is refused").exit_code();
        fs::create_dir(root.join("folder")).unwrap();
        nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(root.join("latin"), [b'"', 0xe4, b'"']).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        File::create(root.join("huge")).unwrap().set_len(SIZE_LIMIT + 1).unwrap();
        for name in ["folder", "pipe", "latin", "loop", "huge"] {
            assert_eq!(refused(name), 65, "{name}");
        }
        fs::write(root.join("plain"), "x").unwrap();
        assert_eq!(refused("plain/settings.json"), 74);
    }

    #[test]
    fn our_own_files_are_private() {
        let (_keep, root) = folder();
        let path = root.join("a/b/c.json");
        write_private(&path, b"1").unwrap();
        write_private(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(root.join("a")).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(root.join("a/b")).unwrap().mode() & 0o777, 0o700);
    }
}
