//! Waiting for what other programs write: woken by inotify, never by a clock.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use serde_json::Value;

/// A wait for a file that reached its limit.
#[derive(Debug)]
pub struct Unmet {
    path: PathBuf,
    limit: Duration,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, limit) = (self.path.display(), self.limit);
        match std::fs::read(&self.path) {
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                let tail: String =
                    text.chars().rev().take(4000).collect::<Vec<_>>().into_iter().rev().collect();
                write!(f, "{path} did not show what the test waits for within {limit:?}; it ends in:\n{tail}")
            }
            Err(error) if self.path.is_dir() => {
                let names = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
                let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
                write!(f, "{path} did not show it within {limit:?} ({error}); it holds {names:?}")
            }
            Err(error) => write!(f, "{path} did not show it within {limit:?}: {error}"),
        }
    }
}

impl std::error::Error for Unmet {}

/// Waits until `found` gives something, at most `limit`. It is asked at once and whenever the file or folder
/// at `path`, or what lies directly in the folder, changes. Nothing of the path needs to exist yet.
pub fn wait_for<T>(path: &Path, limit: Duration, mut found: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + limit;
    let notify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    loop {
        // First the watch, then the look: what comes between them wakes the wait. Each time anew, since a
        // folder on the way may have come to be. A watch that is there already is only confirmed.
        watch(&notify, path)?;
        if let Some(result) = found() {
            return Ok(result);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Unmet { path: path.into(), limit }.into());
        }
        let mut watched = [PollFd::new(&notify, PollFlags::IN)];
        match poll(&mut watched, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&notify, &mut buffer);
        while events.next().is_ok() {}
    }
}

/// Watches the path itself and the nearest folder above it that exists.
fn watch(notify: &impl std::os::fd::AsFd, path: &Path) -> io::Result<()> {
    use inotify::WatchFlags as On;
    let changes = On::CREATE | On::MODIFY | On::MOVED_TO | On::MOVED_FROM | On::DELETE | On::CLOSE_WRITE;
    let mut seen = false;
    for (depth, place) in path.ancestors().enumerate() {
        if depth > 0 && seen {
            break;
        }
        match inotify::add_watch(notify, place, changes) {
            Ok(_) => seen = depth > 0,
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Waits for the text of one file.
pub fn wait_for_text<T>(
    path: &Path,
    limit: Duration,
    mut found: impl FnMut(&str) -> Option<T>,
) -> anyhow::Result<T> {
    wait_for(path, limit, || found(&std::fs::read_to_string(path).ok()?))
}

/// The complete lines of a file of JSON lines; empty if there is no file.
///
/// # Panics
/// On a complete line that is no JSON, with the line.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in line: {line}"));
    complete.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

/// Waits for the complete lines of a file of JSON lines.
pub fn wait_for_lines<T>(
    path: &Path,
    limit: Duration,
    mut found: impl FnMut(&[Value]) -> Option<T>,
) -> anyhow::Result<T> {
    wait_for(path, limit, || found(&json_lines(path)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_file_is_seen_that_comes_later_in_a_folder_that_comes_later() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/log.jsonl");
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                let mut file = std::fs::File::create(&path).unwrap();
                for n in 0..3 {
                    writeln!(file, "{{\"n\":{n}}}").unwrap();
                }
                write!(file, "{{\"half").unwrap();
            }
        });
        let n = wait_for_lines(&path, LIMIT, |lines| (lines.len() == 3).then(|| lines[2]["n"].clone()));
        assert_eq!(n.unwrap(), 2);
        writer.join().unwrap();
    }

    #[test]
    fn a_replaced_file_and_a_removed_one_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        std::fs::write(&path, "old").unwrap();
        let (looked, look) = std::sync::mpsc::channel();
        let changer = std::thread::spawn({
            let path = path.clone();
            move || {
                look.recv().unwrap();
                std::fs::write(path.with_extension("new"), "new").unwrap();
                std::fs::rename(path.with_extension("new"), &path).unwrap();
                look.recv().unwrap();
                std::fs::remove_file(&path).unwrap();
            }
        });
        let mut told = false;
        let mut once = || {
            if !std::mem::replace(&mut told, true) {
                looked.send(()).unwrap();
            }
        };
        wait_for_text(&path, LIMIT, |text| {
            once();
            (text == "new").then_some(())
        })
        .unwrap();
        let mut told = false;
        wait_for(&path, LIMIT, || {
            if !std::mem::replace(&mut told, true) {
                looked.send(()).unwrap();
            }
            (!path.exists()).then_some(())
        })
        .unwrap();
        changer.join().unwrap();
    }

    #[test]
    fn an_unmet_wait_shows_the_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        std::fs::write(&path, "what is there").unwrap();
        let error = wait_for(&path, Duration::from_millis(20), || None::<()>).unwrap_err().to_string();
        assert!(error.contains("what is there"), "{error}");
    }
}
