//! Receipts: what is remembered of an installation that its file does not tell by itself, one small file per
//! settings file in `hooks/` of the store. Most installations need none.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::HooksError;
use super::memory::{Memory, fnv1a};
use super::replace::write_private;

const VERSION: u32 = 1;

/// One receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    version: u32,
    /// The settings file, for people; what finds the receipt is its name.
    file: String,
    /// Folders that were made for it, the outermost first.
    pub made_folders: Vec<PathBuf>,
    /// What its text does not tell.
    pub memory: Memory,
}

/// The receipts of one harness.
#[derive(Debug, Clone)]
pub struct Receipts {
    folder: PathBuf,
    harness: &'static str,
}

impl Receipts {
    /// In this store.
    pub fn new(minder_home: &Path, harness: &'static str) -> Self {
        Self { folder: minder_home.join("hooks"), harness }
    }

    /// Where the receipt for a settings file is, if it has one.
    pub fn path(&self, file: &Path) -> PathBuf {
        let hash = fnv1a(real_path(file).as_os_str().as_bytes());
        self.folder.join(format!("{}-{hash:016x}.json", self.harness))
    }

    /// The receipt for a settings file. One that cannot be read is an `Err` with a line that says so: the
    /// caller goes on without it.
    pub fn load(&self, file: &Path) -> Result<Option<Receipt>, String> {
        let path = self.path(file);
        let said = |what: String| format!("{}: {what}; going on without it", path.display());
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(said(error.kind().to_string())),
        };
        match serde_json::from_slice::<Receipt>(&bytes) {
            Ok(receipt) if receipt.version == VERSION => Ok(Some(receipt)),
            Ok(receipt) => Err(said(format!("is of version {}", receipt.version))),
            Err(error) => Err(said(format!("is no receipt ({error})"))),
        }
    }

    /// Keeps what has to be remembered for a settings file; drops an older receipt where that is nothing.
    pub fn keep(
        &self,
        file: &Path,
        memory: Option<Memory>,
        made_folders: Vec<PathBuf>,
    ) -> Result<(), HooksError> {
        if memory.is_none() && made_folders.is_empty() {
            return self.drop(file);
        }
        let path = self.path(file);
        let receipt = Receipt {
            version: VERSION,
            file: file.display().to_string(),
            made_folders,
            memory: memory.unwrap_or_default(),
        };
        let bytes =
            serde_json::to_vec(&receipt).map_err(|error| HooksError::io(&path, io::Error::other(error)))?;
        write_private(&path, &bytes).map_err(|error| HooksError::io(&path, error))
    }

    /// Removes the receipt of a settings file, and the folder with the last one.
    pub fn drop(&self, file: &Path) -> Result<(), HooksError> {
        let path = self.path(file);
        match std::fs::remove_file(&path) {
            Ok(()) => {
                // Fails where there are others, and may.
                let _ = std::fs::remove_dir(&self.folder);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(HooksError::io(&path, error)),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The same for every way that leads to a file, also before its folder is there.
fn real_path(file: &Path) -> PathBuf {
    for above in file.ancestors().skip(1) {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), file.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    file.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_found_by_every_way_to_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let receipts = Receipts::new(&root.join("store"), "claude");
        fs_err::create_dir(root.join("a")).unwrap();
        fs_err::os::unix::fs::symlink(root.join("a"), root.join("b")).unwrap();
        let before = receipts.path(&root.join("a/new/settings.json"));
        fs_err::create_dir(root.join("a/new")).unwrap();
        assert_eq!(receipts.path(&root.join("b/new/settings.json")), before);
        assert_ne!(receipts.path(&root.join("a/settings.json")), before);
        assert!(before.file_name().unwrap().to_str().unwrap().starts_with("claude-"));
    }

    #[test]
    fn it_is_kept_read_and_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = Receipts::new(folder.path(), "claude");
        let file = Path::new("/x/settings.json");
        assert_eq!(receipts.load(file), Ok(None));
        let memory = Memory::of_new_file("text");
        receipts.keep(file, Some(memory.clone()), vec!["/x".into()]).unwrap();
        let receipt = receipts.load(file).unwrap().unwrap();
        assert_eq!((receipt.memory, receipt.made_folders), (memory, vec![PathBuf::from("/x")]));
        receipts.keep(file, None, Vec::new()).unwrap();
        assert_eq!(receipts.load(file), Ok(None));
        assert!(!folder.path().join("hooks").exists());
        receipts.drop(file).unwrap();
    }

    #[test]
    fn a_receipt_that_cannot_be_read_is_said_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let receipts = Receipts::new(folder.path(), "claude");
        let file = Path::new("/x/settings.json");
        fs_err::create_dir(folder.path().join("hooks")).unwrap();
        let memory = r#"{"made_file":true,"empties":[],"exact":null}"#;
        for bad in [
            "{".to_owned(),
            format!(r#"{{"version":2,"file":"","made_folders":[],"memory":{memory}}}"#),
            format!(r#"{{"version":1,"file":"","made_folders":[],"memory":{memory},"more":1}}"#),
        ] {
            fs_err::write(receipts.path(file), bad).unwrap();
            assert!(receipts.load(file).unwrap_err().ends_with("going on without it"));
        }
    }
}
