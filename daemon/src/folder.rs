//! Private folders: created 0700 whatever the umask is, never through a link, never somebody else's.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_DIRECTORY, O_NOFOLLOW};

/// What to do about a folder of ours that others may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// It is minder's own: make it 0700, and say so in the log.
    Correct,
    /// Its place was given by the user: leave it, but refuse it where others may write.
    Tolerate,
}

/// Why a folder is not fit to hold what is private.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something else than a folder, or a symbolic link, has its name.
    #[error("{} is a link or no folder: refused", .0.display())]
    NotAFolder(PathBuf),
    /// It belongs to somebody else.
    #[error("{} belongs to uid {uid}, not to uid {own}: refused", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// This process's user.
        own: u32,
    },
    /// Others may write in it.
    #[error("{} may be written by others ({mode:04o}): refused (chmod 700 {})", path.display(), path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It cannot be made or opened.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FolderError {
    /// Whether this is about permission (exit 77) rather than about input and output (74).
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}

/// Makes `path` (its parents too) 0700 where it is missing, checks whose it is, and opens it. The open folder can be
/// locked, and is the one that was checked even if the name is given to another.
pub fn private(path: &Path, wide: Wide) -> Result<File, FolderError> {
    let failed = |source| FolderError::Io { path: path.to_owned(), source };
    create(path).map_err(failed)?;
    let mut open = File::options();
    open.read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW);
    let folder = open.open(path).map_err(|e| match e.raw_os_error() {
        Some(nix::libc::ELOOP | nix::libc::ENOTDIR) => FolderError::NotAFolder(path.to_owned()),
        _ => failed(e),
    })?;
    let found = folder.metadata().map_err(failed)?;
    let own = nix::unistd::geteuid().as_raw();
    if found.uid() != own {
        return Err(FolderError::Foreign { path: path.to_owned(), uid: found.uid(), own });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        match wide {
            Wide::Correct => {
                folder.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
                tracing::warn!("{} was open to others ({mode:04o}); now 0700", path.display());
            }
            Wide::Tolerate if mode & 0o022 != 0 => {
                return Err(FolderError::Open { path: path.to_owned(), mode });
            }
            Wide::Tolerate => {}
        }
    }
    Ok(folder)
}

fn create(path: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        // A dangling link, or a file: said by the open that follows.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn made_private_and_corrected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        private(&path, Wide::Correct).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));

        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        private(&path, Wide::Tolerate).unwrap();
        assert_eq!(mode(&path), 0o755);
        private(&path, Wide::Correct).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_link_a_file_or_a_shared_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        for name in ["link", "dangling", "file"] {
            let error = private(&at(name), Wide::Correct).unwrap_err();
            assert!(matches!(error, FolderError::NotAFolder(_)), "{name}: {error}");
            assert!(error.is_refusal());
        }
        std::fs::set_permissions(at("real"), Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(private(&at("real"), Wide::Tolerate), Err(FolderError::Open { .. })));
    }
}
