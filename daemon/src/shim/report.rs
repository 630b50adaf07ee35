//! What the shim shows: the line in `progress` while it runs, `result.json` once it is settled.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use minder_proto::turn::folder::{Found, PROGRESS, PROGRESS_LEN, Progress, RESULT};

/// Under which name a result is written.
const UNFINISHED: &str = "result.json.new";

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

/// True if a result is in its place.
pub fn is_there() -> bool {
    std::fs::symlink_metadata(RESULT).is_ok()
}

/// Puts the result into its place. It is not on the disk for sure before [`sync`].
pub fn place(found: &Found) -> io::Result<File> {
    let mut file = private(UNFINISHED)?;
    file.write_all(&serde_json::to_vec(found).expect("plain data"))?;
    std::fs::rename(UNFINISHED, RESULT)?;
    Ok(file)
}

/// Waits until the disk has the result and its name.
pub fn sync(result: &File) -> io::Result<()> {
    result.sync_all()?;
    File::open(".")?.sync_all()
}

fn private(name: &str) -> io::Result<File> {
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
}
