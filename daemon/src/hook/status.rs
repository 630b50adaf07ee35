//! Claude Code's own word on whether it works: `sessions/<pid>.json` in its configuration folder, rewritten in place.
//! An interrupt and a refused dialog fire no hook; there the file turns `idle` and stays so. Followed by inotify, at
//! no cost while nothing changes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use self::system::Events;
use super::turn;
use crate::store::Store;
use minder_proto::error::Fault;
use minder_proto::id::SessionId;
use minder_proto::record::SessionRecord;
use minder_proto::stamp::Stamp;
use minder_proto::whole;
use serde::Deserialize;

/// Between two turns that follow each other the file says `idle` for a moment, and after a Stop hook it says so before
/// the hook's word is in: only what stays counts.
const SETTLE: Duration = Duration::from_secs(1);

/// Most bytes of such a file; a larger one is another program's.
const FILE_MAX: u64 = 1024 * 1024;

/// The file, as far as minder reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusFile {
    status: Option<String>,
    status_updated_at: Option<i64>,
}

impl StatusFile {
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&whole::at_most(path, FILE_MAX).ok()?)
    }

    /// What it says; nothing if it says nothing that is understood.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Follows the status files of the configuration folders it was told of.
pub struct StatusFiles {
    store: Store,
    folders: Mutex<HashSet<PathBuf>>,
    events: OnceLock<Events>,
    settling: Mutex<HashSet<SessionId>>,
}

/// The configuration folder's `sessions/`, from the path of a transcript: `<folder>/projects/<project>/<id>.jsonl`.
fn sessions_of(transcript: &Path) -> Option<PathBuf> {
    let projects = transcript.ancestors().find(|a| a.file_name().is_some_and(|n| n == "projects"))?;
    Some(projects.parent()?.join("sessions"))
}

/// Whether a turn that is thought to run was interrupted, by a status file that has settled.
fn interrupted(record: &SessionRecord, file: &StatusFile) -> bool {
    let Some(turn) = &record.turn else { return false };
    let over = matches!(file.status.as_deref(), Some("idle" | "shell"));
    let newer = file.status_updated_at.is_some_and(|ms| Stamp::from_millis(ms) > turn.since);
    over && newer && !record.compacting
}

impl StatusFiles {
    /// Over a store; nothing is followed yet.
    pub fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            store,
            folders: Mutex::default(),
            events: OnceLock::new(),
            settling: Mutex::default(),
        })
    }

    /// Follows the folder that this transcript belongs to.
    pub fn follow(&self, transcript: &Path) {
        let Some(folder) = sessions_of(transcript) else { return };
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.contains(&folder) || folders.len() >= 256 {
            return;
        }
        let Some(events) = self.events.get() else { return };
        match events.follow(&folder) {
            Ok(()) => {
                folders.insert(folder);
            }
            Err(error) => {
                tracing::debug!(folder = %folder.display(), %error, "status files cannot be followed");
            }
        }
    }

    /// Runs until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let events = match Events::new() {
            Ok(events) => self.events.get_or_init(|| events),
            Err(error) => return tracing::warn!(%error, "interrupts are not seen"),
        };
        // What runs already, from the time before this daemon.
        let known = self.store.read(|state| {
            let bindings = state.records().filter_map(|r| r.live_binding()?.transcript.clone());
            bindings.collect::<HashSet<String>>()
        });
        for transcript in known.await.unwrap_or_default() {
            self.follow(transcript.as_ref());
        }
        self.look_at_all().await;
        loop {
            let names = events.next().await;
            let pids = names.iter().filter_map(|n| n.strip_suffix(".json")?.parse().ok()).collect();
            self.look_at(pids).await;
        }
    }

    async fn look_at_all(self: &Arc<Self>) {
        let pids = self.store.read(|state| {
            let running = state.records().filter(|r| r.turn.is_some());
            running.filter_map(|r| r.process.as_ref()).map(|p| p.pid).collect::<HashSet<i32>>()
        });
        self.look_at(pids.await.unwrap_or_default()).await;
    }

    /// Looks at the sessions whose processes these are, after a pause, where the file says that nothing runs.
    async fn look_at(self: &Arc<Self>, pids: HashSet<i32>) {
        if pids.is_empty() {
            return;
        }
        let running = self.store.read(move |state| {
            let bound = pids.iter().flat_map(|pid| state.by_pid(*pid)).map(|s| &s.record);
            bound.filter(|r| r.turn.is_some()).cloned().collect::<Vec<_>>()
        });
        for record in running.await.unwrap_or_default() {
            let Some(path) = status_file(&record) else { continue };
            let over = StatusFile::read(&path).is_some_and(|f| interrupted(&record, &f));
            let id = record.id;
            if over && self.settling.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
                let this = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(SETTLE).await;
                    this.settling.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                    if let Err(fault) = this.settle(id, path).await {
                        tracing::warn!(session = %id, %fault, "an interrupt could not be written");
                    }
                });
            }
        }
    }

    /// The file still says that nothing runs: the turn was interrupted.
    async fn settle(&self, id: SessionId, path: PathBuf) -> Result<(), Fault> {
        let Some(file) = StatusFile::read(&path) else { return Ok(()) };
        self.store
            .write(move |txn| {
                let Ok(session) = txn.session(id) else { return Ok(()) };
                if !interrupted(&session.record, &file) {
                    return Ok(());
                }
                turn::interrupted(txn, id, None, None, Some("sessions/<pid>.json"))
            })
            .await
    }
}

fn status_file(record: &SessionRecord) -> Option<PathBuf> {
    let transcript = record.live_binding()?.transcript.as_ref()?;
    let pid = record.process.as_ref()?.pid;
    Some(sessions_of(Path::new(transcript))?.join(format!("{pid}.json")))
}

/// Linux: inotify.
#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::mem::MaybeUninit;
    use std::path::Path;

    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;

    use crate::readable::Readable;

    /// Changes of files in folders.
    pub struct Events(Readable);

    impl Events {
        pub fn new() -> io::Result<Self> {
            Ok(Self(Readable::new(init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?))
        }

        pub fn follow(&self, folder: &Path) -> io::Result<()> {
            let what =
                WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            add_watch(self.0.get(), folder, what)?;
            Ok(())
        }

        /// The names of files that changed, once some have.
        pub async fn next(&self) -> Vec<String> {
            self.0
                .until(|inotify| {
                    let mut buffer = [MaybeUninit::uninit(); 4096];
                    let mut events = Reader::new(inotify, &mut buffer);
                    let mut names = Vec::new();
                    loop {
                        match events.next() {
                            Ok(event) => {
                                names.extend(
                                    event.file_name().and_then(|n| n.to_str().ok()).map(str::to_owned),
                                );
                            }
                            Err(Errno::INTR) => {}
                            Err(_) => return (!names.is_empty()).then_some(names),
                        }
                    }
                })
                .await
        }
    }
}

/// Elsewhere the system's own way is not used yet.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    pub struct Events(Infallible);

    impl Events {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn follow(&self, _folder: &Path) -> io::Result<()> {
            match self.0 {}
        }

        pub async fn next(&self) -> Vec<String> {
            match self.0 {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_beside_the_projects() {
        let found = sessions_of(Path::new("/h/.claude/projects/-h-proj/abc.jsonl"));
        assert_eq!(found.unwrap(), Path::new("/h/.claude/sessions"));
        assert_eq!(sessions_of(Path::new("/h/elsewhere/abc.jsonl")), None);
    }

    #[test]
    fn only_a_newer_idle_ends_a_turn() {
        let mut record: SessionRecord = serde_json::from_value(serde_json::json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
            "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": "working",
            "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 2,
            "turn": {"since": "2026-11-30T12:00:00Z", "by": "operator"},
        }))
        .unwrap();
        let since = record.turn.as_ref().unwrap().since.as_millis();
        let file = |status: &str, at| StatusFile { status: Some(status.into()), status_updated_at: Some(at) };
        assert!(interrupted(&record, &file("idle", since + 5)));
        assert!(interrupted(&record, &file("shell", since + 5)));
        assert!(!interrupted(&record, &file("idle", since - 5)), "from before the turn");
        assert!(!interrupted(&record, &file("busy", since + 5)));
        assert!(!interrupted(&record, &file("waiting", since + 5)));
        assert!(!interrupted(&record, &StatusFile::default()), "unknown is no answer");
        record.turn = None;
        assert!(!interrupted(&record, &file("idle", since + 5)), "said by its Stop hook already");
    }
}
