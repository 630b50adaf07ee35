//! The turn log, never in the way: lines go into a queue with a bound, and one thread of its own, which is started with the
//! first of them, writes them. Whatever becomes of a write, a turn neither fails nor waits for it; what cannot be written
//! is said once, by the error's code alone.
//!
//! `file` are the files themselves.

mod file;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use minder_proto::id::TurnId;
use minder_proto::turn::Outcome;
use minder_proto::turn::line::Line;
use nix::errno::Errno;
use tokio::sync::oneshot;

use file::Files;

/// Most lines that wait to be written.
const QUEUE_MAX: usize = 1_024;

/// The log.
#[derive(Debug)]
pub struct Log {
    files: Arc<Files>,
    queue: Mutex<Option<SyncSender<Job>>>,
    warned: Arc<AtomicBool>,
}

struct Job {
    line: Box<Line>,
    done: oneshot::Sender<bool>,
}

impl Log {
    /// The log in this folder, which is made with the first line.
    pub fn at(folder: PathBuf) -> Self {
        Self { files: Arc::new(Files::at(folder)), queue: Mutex::default(), warned: Arc::default() }
    }

    /// Gives a line to the writer. Comes back with whether it was written; whoever does not care need not wait.
    pub fn write(&self, line: Line) -> impl Future<Output = bool> + use<> {
        let (done, written) = oneshot::channel();
        let job = Job { line: Box::new(line), done };
        let given = self.writer().and_then(|queue| queue.try_send(job).map_err(|_| Errno::ENOBUFS.into()));
        if let Err(error) = given {
            warn(&self.warned, &error);
        }
        async move { written.await.unwrap_or(false) }
    }

    fn writer(&self) -> io::Result<SyncSender<Job>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = &*queue {
            return Ok(queue.clone());
        }
        let (give, take) = sync_channel(QUEUE_MAX);
        let (files, warned) = (Arc::clone(&self.files), Arc::clone(&self.warned));
        std::thread::Builder::new()
            .name("turn-log".into())
            .spawn(move || write_all(&take, &files, &warned))?;
        *queue = Some(give.clone());
        Ok(give)
    }

    /// The turns whose lines stand in the two newest files of a seat, with their outcomes. Reads them.
    pub fn written(&self, seat: &str) -> HashMap<TurnId, Outcome> {
        self.files.turns(seat)
    }
}

fn write_all(jobs: &Receiver<Job>, files: &Files, warned: &AtomicBool) {
    while let Ok(job) = jobs.recv() {
        let written = files.append(&job.line);
        if let Err(error) = &written {
            warn(warned, error);
        }
        let _ = job.done.send(written.is_ok());
    }
}

fn warn(warned: &AtomicBool, error: &io::Error) {
    if !warned.swap(true, Ordering::Relaxed) {
        let code = error.raw_os_error().map_or_else(|| error.kind().to_string(), code);
        tracing::warn!("the turn log cannot be written ({code}); turns go on without their lines");
    }
}

fn code(number: i32) -> String {
    format!("{:?}", Errno::from_raw(number))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use minder_proto::turn::line::{KEEP, ROTATE_AT};

    use super::super::samples;
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn fifty_at_once_with_a_rotation_in_the_middle_are_fifty_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("turns");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let line = samples::line("api");
        let size = serde_json::to_vec(&line).unwrap().len() as u64 + 1;
        // Room for 20 more, and more open than it may be.
        let active = folder.join("api.jsonl");
        let before = usize::try_from(ROTATE_AT - size * 20).unwrap();
        std::fs::write(&active, "\n".repeat(before)).unwrap();
        std::fs::set_permissions(&active, std::fs::Permissions::from_mode(0o644)).unwrap();
        let log = Log::at(folder.clone());
        let lines: Vec<Line> = (0..50).map(|_| Line { turn: TurnId::now(), ..line.clone() }).collect();
        let written: Vec<_> = lines.iter().map(|l| log.write(l.clone())).collect();
        runtime().block_on(async {
            for done in written {
                assert!(done.await);
            }
        });
        let old = folder.join("api.jsonl.1");
        let text = std::fs::read_to_string(&old).unwrap() + &std::fs::read_to_string(&active).unwrap();
        let found: Vec<TurnId> = text
            .lines()
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_str::<Line>(l).unwrap().turn)
            .collect();
        assert_eq!(found, lines.iter().map(|l| l.turn).collect::<Vec<_>>());
        assert_eq!([mode(&folder), mode(&active), mode(&old)], [0o700, 0o600, 0o600]);
        assert!(std::fs::metadata(&old).unwrap().len() <= ROTATE_AT);
        assert_eq!(log.written("api").len(), 50);
    }

    #[test]
    fn no_more_than_the_kept_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::at(dir.path().to_owned());
        let full = usize::try_from(ROTATE_AT).unwrap();
        for n in 0..KEEP + 3 {
            std::fs::write(dir.path().join("api.jsonl"), format!("{n}\n") + &"\n".repeat(full)).unwrap();
            assert!(runtime().block_on(log.write(samples::line("api"))));
        }
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 1 + KEEP as usize, "{names:?}");
        let newest = std::fs::read_to_string(dir.path().join("api.jsonl.1")).unwrap();
        assert!(newest.starts_with(&(KEEP + 2).to_string()));
    }

    #[test]
    fn what_cannot_be_written_is_no_error_and_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        // A pipe that nobody reads: a plain open for writing would wait for ever.
        nix::unistd::mkfifo(&dir.path().join("api.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        for folder in [dir.path().to_owned(), "/proc/self/turns".into(), file] {
            let log = Log::at(folder.clone());
            assert!(!runtime().block_on(log.write(samples::line("api"))), "{}", folder.display());
            assert!(log.warned.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn a_writer_that_hangs_holds_nobody() {
        let log = Log::at("/nowhere".into());
        let (give, take) = sync_channel(2);
        *log.queue.lock().unwrap() = Some(give);
        let waiting = [log.write(samples::line("a")), log.write(samples::line("a"))];
        // The queue is full: this one is known not to be written, at once.
        assert!(!runtime().block_on(log.write(samples::line("a"))));
        drop(take);
        for line in waiting {
            assert!(!runtime().block_on(line));
        }
    }

    #[test]
    fn a_line_that_was_cut_off_swallows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let active = dir.path().join("api.jsonl");
        std::fs::write(&active, "{\"v\":2,\"tu").unwrap();
        let log = Log::at(dir.path().to_owned());
        let line = samples::line("api");
        assert!(runtime().block_on(log.write(line.clone())));
        let text = std::fs::read_to_string(&active).unwrap();
        assert_eq!(serde_json::from_str::<Line>(text.lines().nth(1).unwrap()).unwrap(), line);
    }
}
