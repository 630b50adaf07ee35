//! What the shim shows: the line in `progress` while it runs, `result.json` once it is settled.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use minder_proto::turn::folder::{Found, PROGRESS, PROGRESS_LEN, Progress, RESULT};

/// Under which name a result is written.
const UNFINISHED: &str = "result.json.new";
/// How often a result is tried to be put into its place.
const ATTEMPTS: u32 = 10;

/// The `progress` file.
#[derive(Debug)]
pub struct Shown {
    file: File,
}

impl Shown {
    /// Made anew in the folder that this process is in.
    pub fn create() -> io::Result<Self> {
        Ok(Self { file: private(PROGRESS)? })
    }

    /// Replaces the line by one write of one length.
    pub fn show(&self, progress: &Progress) -> io::Result<()> {
        let mut line = serde_json::to_vec(progress).expect("numbers and words");
        // The longest numbers there are leave room.
        line.resize(PROGRESS_LEN - 1, b' ');
        line.push(b'\n');
        self.file.write_all_at(&line, 0)
    }
}

/// Makes the file that the result is written into, before there is one.
pub fn prepare() -> io::Result<()> {
    private(UNFINISHED).map(drop)
}

/// True if a result is in its place.
pub fn is_there() -> bool {
    std::fs::symlink_metadata(RESULT).is_ok()
}

/// Puts the result into its place in a folder, and tries that again where it does not succeed: without it the turn's
/// outcome is lost, and a disk that was full may not be any more after `pause`. It is not on the disk for sure before
/// [`sync`].
pub fn place(folder: &Path, found: &Found, mut pause: impl FnMut()) -> io::Result<File> {
    let line = serde_json::to_vec(found).expect("plain data");
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match put(folder, &line) {
            Err(_) if left > 0 => pause(),
            done => return done,
        }
    }
}

fn put(folder: &Path, line: &[u8]) -> io::Result<File> {
    let unfinished = folder.join(UNFINISHED);
    let mut file = private(&unfinished)?;
    file.write_all(line)?;
    std::fs::rename(unfinished, folder.join(RESULT))?;
    Ok(file)
}

/// Waits until the disk has the result and its name.
pub fn sync(result: &File) -> io::Result<()> {
    result.sync_all()?;
    File::open(".")?.sync_all()
}

fn private(name: impl AsRef<Path>) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(name)
}

#[cfg(test)]
mod tests {
    use minder_proto::turn::names::Trigger;

    use super::*;

    #[test]
    fn the_longest_progress_fits_its_line() {
        let progress = Progress {
            pid: Some(i32::MIN),
            at_ms: u64::MAX,
            progress_ms: u64::MAX,
            stdout: u64::MAX,
            stderr: u64::MAX,
            tools: u32::MAX,
            start_mono_ms: u64::MAX,
            trigger: Some(Trigger::WallClock),
        };
        assert!(serde_json::to_vec(&progress).unwrap().len() < PROGRESS_LEN);
    }

    #[test]
    fn a_result_that_cannot_be_placed_is_tried_again_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let found = Found::default();
        // Something is in its way, and goes in the second pause.
        let obstacle = folder.path().join(UNFINISHED);
        std::fs::create_dir(&obstacle).unwrap();
        let mut pauses = 0;
        place(folder.path(), &found, || pauses += 1).unwrap_err();
        assert_eq!(pauses, ATTEMPTS - 1);
        let mut pauses = 0;
        let pause = || {
            pauses += 1;
            if pauses == 2 {
                std::fs::remove_dir(&obstacle).unwrap();
            }
        };
        place(folder.path(), &found, pause).unwrap();
        assert_eq!(pauses, 2);
        let read: Found =
            serde_json::from_slice(&std::fs::read(folder.path().join(RESULT)).unwrap()).unwrap();
        assert_eq!(read, found);
    }
}
