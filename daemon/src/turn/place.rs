//! The folder of a turn, `turns/run/<turn id>/`: made before its shim is started, read when it is settled or found by a
//! daemon that starts, and removed once its line is written. The shim writes the rest of what is in it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{
    ADOPTED, Found, LOCK, OUTCOME, PROGRESS, PROGRESS_LEN, PROMPT, Progress, RESULT, SPEC, STDERR, STDOUT,
    STDOUT_TAIL, Spec, TAIL_MAX, WRITTEN,
};
use minder_proto::whole;
use nix::libc::O_NOFOLLOW;

use crate::folder::{self, FolderError, Wide};

/// Largest `spec.json` and `result.json`. An argument vector is bounded by the size of a request.
const JSON_MAX: u64 = 16 * 1024 * 1024;
/// As much of a plain reply as is looked at: its beginning says whether there is one.
const REPLY_HEAD: u64 = 64 * 1024;
/// What begins the name of a folder that is being removed.
const GOING: &str = ".going-";
/// What begins the name of a folder that is to become a turn's.
const SPARE: &str = ".spare-";

/// Makes `turns/run`.
pub fn prepare(home: &Home) -> Result<(), FolderError> {
    folder::private(&home.turns(), Wide::Correct)?;
    folder::private(&home.turns().join("run"), Wide::Correct).map(drop)
}

fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        File::options().write(true).create_new(true).mode(0o600).custom_flags(O_NOFOLLOW).open(path)?;
    file.write_all(bytes)
}

/// Makes the folder of a turn with what its shim is to do.
pub fn make(folder: &Path, spec: &Spec, prompt: Option<&[u8]>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    let made = fill(folder, spec, prompt);
    if made.is_err() {
        let _ = std::fs::remove_dir_all(folder);
    }
    made
}

fn fill(folder: &Path, spec: &Spec, prompt: Option<&[u8]>) -> io::Result<()> {
    if let Some(prompt) = prompt {
        create(&folder.join(PROMPT), prompt)?;
    }
    create(&folder.join(SPEC), &written_spec(spec))
}

fn written_spec(spec: &Spec) -> Vec<u8> {
    serde_json::to_vec(spec).expect("a spec is plain data")
}

/// The same, of a folder in which a shim stands ready. It is a turn's from one moment to the next.
#[cfg(target_os = "linux")]
pub fn give(spare: &Path, folder: &Path, spec: &Spec, prompt: Option<&[u8]>) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if let Some(prompt) = prompt {
        create(&spare.join(PROMPT), prompt)?;
    }
    // The shim has made it.
    let mut file = File::options().write(true).custom_flags(O_NOFOLLOW).open(spare.join(SPEC))?;
    file.write_all(&written_spec(spec))?;
    Ok(renameat_with(CWD, spare, CWD, folder, RenameFlags::NOREPLACE)?)
}

/// Without a rename that replaces nothing a turn could get the folder of another.
#[cfg(not(target_os = "linux"))]
pub fn give(_: &Path, _: &Path, _: &Spec, _: Option<&[u8]>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A folder for a shim that stands ready.
pub fn spare(home: &Home) -> PathBuf {
    home.turns().join("run").join(format!("{SPARE}{}", TurnId::now()))
}

/// Removes the folders in which shims of an earlier daemon stood ready.
pub fn clear_spares(home: &Home) -> io::Result<()> {
    for entry in std::fs::read_dir(home.turns().join("run"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(SPARE) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// What the shim was told; an error of kind `NotFound` where the folder was not finished, and no shim was started in it.
pub fn spec(folder: &Path) -> io::Result<Spec> {
    json(&folder.join(SPEC))
}

/// What the shim found, where it has said so.
pub fn result(folder: &Path) -> io::Result<Option<Found>> {
    match json(&folder.join(RESULT)) {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Puts a result there for a shim that left none.
pub fn lay_down(folder: &Path, found: &Found) -> io::Result<()> {
    create(&folder.join(RESULT), &serde_json::to_vec(found).expect("a result is plain data"))
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = whole::at_most(path, JSON_MAX)?;
    // What ends too early is `UnexpectedEof`, what is damaged otherwise `InvalidData`.
    serde_json::from_slice(&bytes).map_err(io::Error::from)
}

/// How far a turn is, where its shim has said so.
pub fn progress(folder: &Path) -> Option<Progress> {
    let mut line = [0; PROGRESS_LEN];
    let read = whole::open(folder.join(PROGRESS)).ok()?.read(&mut line).ok()?;
    serde_json::from_slice(line[..read].trim_ascii_end()).ok()
}

/// What a run wrote, as far as it was kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// The beginning of standard output.
    pub head: Vec<u8>,
    /// Its end, where it was longer.
    pub tail: Vec<u8>,
    /// The end of standard error.
    pub stderr: Vec<u8>,
}

/// Reads what a run wrote. Of a plain reply, which may be of any size, the two ends are enough.
pub fn output(folder: &Path, found: &Found, plain_reply: bool) -> Kept {
    let mut kept = Kept::default();
    if found.stdout_bytes > 0 {
        let most = if plain_reply { REPLY_HEAD } else { u64::MAX };
        kept.head = beginning(&folder.join(STDOUT), most).unwrap_or_default();
        kept.tail = end(&folder.join(STDOUT_TAIL)).unwrap_or_default();
        if kept.tail.is_empty() && (kept.head.len() as u64) < found.stdout_bytes {
            kept.tail = end(&folder.join(STDOUT)).unwrap_or_default();
        }
    }
    if found.stderr_bytes > 0 {
        kept.stderr = end(&folder.join(STDERR)).unwrap_or_default();
    }
    kept
}

/// The first bytes of a reply that goes into an answer.
pub fn reply(folder: &Path, most: u64) -> Vec<u8> {
    beginning(&folder.join(STDOUT), most).unwrap_or_default()
}

fn beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    whole::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = whole::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_MAX as u64)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_MAX as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lock of a turn whose shim is gone, held: a shim that comes late finds it taken. None while a shim has it.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    let mut open = File::options();
    let open = open.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = open.custom_flags(O_NOFOLLOW).open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Notes one more daemon that adopts the turn, and gives how many did.
pub fn adopt(folder: &Path) -> io::Result<u32> {
    let mut open = File::options();
    let open = open.append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW);
    let mut file = open.open(folder.join(ADOPTED))?;
    file.write_all(b"+")?;
    Ok(u32::try_from(file.metadata()?.len()).unwrap_or(u32::MAX))
}

/// Notes the outcome of a turn whose line is not written yet.
pub fn note_outcome(folder: &Path, outcome: Outcome) -> io::Result<()> {
    create(&folder.join(OUTCOME), outcome.as_str().as_bytes())
}

/// The outcome that was noted so.
pub fn outcome(folder: &Path) -> Option<Outcome> {
    let word = whole::at_most(&folder.join(OUTCOME), 64).ok()?;
    std::str::from_utf8(&word).ok()?.parse().ok()
}

/// Notes that the turn's line is written and that nothing waits for the turn any more.
pub fn mark_written(folder: &Path) -> io::Result<()> {
    File::options().append(true).create(true).mode(0o600).open(folder.join(WRITTEN)).map(drop)
}

/// When that was, if it was.
pub fn written(folder: &Path) -> Option<std::time::SystemTime> {
    folder.join(WRITTEN).symlink_metadata().and_then(|m| m.modified()).ok()
}

/// Removes the folder of a turn: at once under its name, so that no half of it is ever taken for a turn.
pub fn remove(folder: &Path) -> io::Result<()> {
    let Some(name) = folder.file_name() else { return Ok(()) };
    let going = folder.with_file_name(format!("{GOING}{}", name.to_string_lossy()));
    std::fs::rename(folder, &going)?;
    std::fs::remove_dir_all(&going)
}

/// The folders of turns; what was being removed when a daemon ended is removed.
pub fn list(home: &Home) -> io::Result<Vec<(TurnId, PathBuf)>> {
    let mut turns = Vec::new();
    for entry in std::fs::read_dir(home.turns().join("run"))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(GOING) {
            let _ = std::fs::remove_dir_all(entry.path());
        } else if let Ok(id) = name.parse::<TurnId>()
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            turns.push((id, entry.path()));
        }
    }
    turns.sort_unstable();
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_seen_and_a_free_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path()).unwrap().expect("nobody has it");
        assert!(lock(dir.path()).unwrap().is_none());
        drop(held);
        assert!(lock(dir.path()).unwrap().is_some());
    }

    #[test]
    fn adoptions_are_counted_across_daemons() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!([1, 2, 3], [(); 3].map(|()| adopt(dir.path()).unwrap()));
    }

    #[test]
    fn a_folder_goes_whole_and_what_was_going_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        prepare(&home).unwrap();
        let (kept, gone) = (TurnId::now(), TurnId::now());
        for id in [kept, gone] {
            std::fs::create_dir(home.turn(id)).unwrap();
            std::fs::write(home.turn(id).join(SPEC), "{}").unwrap();
        }
        let half = home.turns().join("run").join(format!("{GOING}{}", TurnId::now()));
        std::fs::create_dir(&half).unwrap();
        remove(&home.turn(gone)).unwrap();
        let ids: Vec<TurnId> = list(&home).unwrap().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [kept]);
        assert!(!half.exists());
    }

    #[test]
    fn of_a_long_plain_reply_the_two_ends_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(200_000) + "END";
        std::fs::write(dir.path().join(STDOUT), &long).unwrap();
        let found = Found { stdout_bytes: long.len() as u64, ..Found::default() };
        let kept = output(dir.path(), &found, true);
        assert_eq!(kept.head.len() as u64, REPLY_HEAD);
        assert!(kept.tail.ends_with(b"END"));
        assert!(output(dir.path(), &found, false).tail.is_empty());
    }
}
