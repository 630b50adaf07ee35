//! What a checkpoint makes durable before the journal may forget it: the files and folders that were changed since the
//! last one.
//!
//! They are opened when the checkpoint begins. While it flushes them elsewhere, commits go on, and a timeline may be
//! sealed or a session's folder retired: the name then leads to another file, or to none, and what was written to the
//! old one would be flushed by nobody.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use minder_proto::trial;

use super::disk::{DiskError, at};

/// More than this are not flushed one by one, where the whole file system can be.
const FEW: usize = 128;

/// Files and folders changed since the last checkpoint began.
#[derive(Debug, Default)]
pub struct Touched(HashSet<PathBuf>);

impl Touched {
    /// A file was written to, made, or given its name: it and its folder.
    pub fn file(&mut self, path: &Path) {
        self.0.insert(path.to_owned());
        self.parent(path);
    }

    /// Something came into the folder of this path, or left it.
    pub fn parent(&mut self, path: &Path) {
        self.0.extend(path.parent().map(Path::to_owned));
    }

    /// A folder has another place now: what was written in it lies there.
    pub fn moved(&mut self, from: &Path, to: &Path) {
        let inside: Vec<PathBuf> = self.0.extract_if(|p| p.starts_with(from)).collect();
        self.0.extend(inside.iter().filter_map(|p| p.strip_prefix(from).ok()).map(|rest| to.join(rest)));
        self.parent(from);
        self.parent(to);
    }

    /// Puts back what a failed checkpoint did not make durable.
    pub fn again(&mut self, paths: Vec<PathBuf>) {
        self.0.extend(paths);
    }

    /// All of it; nothing is touched from now on.
    pub fn take(&mut self) -> Vec<PathBuf> {
        self.0.drain().collect()
    }
}

/// Files and folders to be made durable, open.
pub struct Flush {
    files: Vec<(PathBuf, File)>,
    /// The folder of the store, if its whole file system is flushed instead.
    whole: Option<(PathBuf, File)>,
}

impl Flush {
    /// Opens what is to be flushed.
    pub fn of(root: &Path, paths: &[PathBuf]) -> Result<Self, DiskError> {
        let mut flush = Self { files: Vec::new(), whole: None };
        if cfg!(target_os = "linux") && paths.len() > FEW {
            flush.whole = Some((root.to_owned(), File::open(root).map_err(at(root))?));
            return Ok(flush);
        }
        for path in paths {
            if flush.files.len() >= FEW {
                // More than may be open at once. None of them can be moved meanwhile: this is the owner's thread.
                flush.run()?;
                flush.files.clear();
            }
            match File::open(path) {
                Ok(file) => flush.files.push((path.clone(), file)),
                // Replaced, sealed or removed before: its folder is in the list too.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(at(path)(e)),
            }
        }
        Ok(flush)
    }

    /// Makes it durable.
    pub fn run(&self) -> Result<(), DiskError> {
        if trial::fault("checkpoint-without-sync") {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        if let Some((root, folder)) = &self.whole {
            rustix::fs::syncfs(folder).map_err(|e| at(root)(e.into()))?;
        }
        for (path, file) in &self.files {
            file.sync_all().map_err(at(path))?;
        }
        Ok(())
    }
}

/// Makes durable whatever stands in the files, whoever wrote it and when; where the system cannot, what is in `paths`.
pub fn everything(root: &Path, paths: &[PathBuf]) -> Result<(), DiskError> {
    #[cfg(target_os = "linux")]
    {
        let _ = paths;
        let folder = File::open(root).map_err(at(root))?;
        rustix::fs::syncfs(&folder).map_err(|e| at(root)(e.into()))
    }
    #[cfg(not(target_os = "linux"))]
    Flush::of(root, paths)?.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_folder_that_moved_lies_there() {
        let mut touched = Touched::default();
        touched.file(Path::new("/s/sessions/a/timeline.jsonl"));
        touched.file(Path::new("/s/sessions/b/timeline.jsonl"));
        touched.moved(Path::new("/s/sessions/a"), Path::new("/s/trash/a"));
        let mut all = touched.take();
        all.sort();
        let expected = [
            "/s/sessions",
            "/s/sessions/b",
            "/s/sessions/b/timeline.jsonl",
            "/s/trash",
            "/s/trash/a",
            "/s/trash/a/timeline.jsonl",
        ];
        assert_eq!(all, expected.map(PathBuf::from));
        assert!(touched.take().is_empty());
    }

    #[test]
    fn a_file_that_is_renamed_meanwhile_is_flushed_all_the_same() {
        use std::os::unix::fs::MetadataExt;

        let dir = tempfile::tempdir().unwrap();
        let (active, sealed) = (dir.path().join("timeline.jsonl"), dir.path().join("sealed"));
        std::fs::write(&active, "1").unwrap();
        let written = active.metadata().unwrap().ino();
        let flush = Flush::of(dir.path(), &[active.clone(), dir.path().join("gone")]).unwrap();
        std::fs::rename(&active, &sealed).unwrap();
        std::fs::write(&active, "2").unwrap();
        let open: Vec<u64> = flush.files.iter().map(|(_, f)| f.metadata().unwrap().ino()).collect();
        assert_eq!(open, [written]);
        flush.run().unwrap();
    }
}
