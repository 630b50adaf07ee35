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

/// How long a folder or a file is waited for: its disk may not answer, and its path is the harness's word.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a line names what it stands on.
const PROOF: &str = "sessions/<pid>.json";

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
    async fn read(path: &Path) -> Option<Self> {
        let path = path.to_owned();
        Self::parse(&on_disk(move || whole::at_most(&path, FILE_MAX)).await?.ok()?)
    }

    /// What it says; nothing if it says nothing that is understood.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// What a disk answers, if it does.
async fn on_disk<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(ask)).await.ok()?.ok()
}

/// Follows the status files of the configuration folders it was told of.
pub struct StatusFiles {
    store: Store,
    folders: Mutex<HashSet<PathBuf>>,
    events: OnceLock<Arc<Events>>,
    settling: Mutex<HashSet<SessionId>>,
}

/// The configuration folder's `sessions/`, from the path of a transcript: `<folder>/projects/<project>/<id>.jsonl`.
fn sessions_of(transcript: &Path) -> Option<PathBuf> {
    let projects = transcript.ancestors().find(|a| a.file_name().is_some_and(|n| n == "projects"))?;
    Some(projects.parent()?.join("sessions"))
}

/// What a status file says that no hook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The turn was interrupted.
    Interrupted,
    /// The compaction was, where no turn ran.
    NotCompacting,
    /// The dialog was answered, with something else than what was asked for.
    Answered,
}

/// The news in a status file that has settled.
fn news(record: &SessionRecord, file: &StatusFile) -> Option<News> {
    let at = Stamp::from_millis(file.status_updated_at?);
    let turn = record.turn.as_ref();
    match file.status.as_deref()? {
        "idle" | "shell" => {
            // The end of the compaction itself is told by a hook, before or soon after the file says so.
            let began = turn.map(|t| t.since).max(record.compacting_since.filter(|_| record.compacting));
            let newer = began.is_some_and(|began| at > began);
            match turn {
                Some(_) => newer.then_some(News::Interrupted),
                None => (newer && record.compacting).then_some(News::NotCompacting),
            }
        }
        "busy" => (at > turn.filter(|t| t.dialog.is_some())?.dialog_since?).then_some(News::Answered),
        _ => None,
    }
}

/// True where a status file may bring news.
fn is_followed(record: &SessionRecord) -> bool {
    record.turn.is_some() || record.compacting
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

    /// Follows the folder that this transcript belongs to. What its files say already is looked at.
    pub async fn follow(self: &Arc<Self>, transcript: &Path) {
        if self.began_to_follow(transcript).await {
            self.look_at_all().await;
        }
    }

    async fn began_to_follow(&self, transcript: &Path) -> bool {
        let Some(folder) = sessions_of(transcript) else { return false };
        let Some(events) = self.events.get().cloned() else { return false };
        {
            let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            if folders.len() >= 256 || !folders.insert(folder.clone()) {
                return false;
            }
        }
        let there = folder.clone();
        match on_disk(move || events.follow(&there)).await {
            Some(Ok(())) => return true,
            Some(Err(error)) => {
                tracing::debug!(folder = %folder.display(), %error, "status files cannot be followed");
                self.folders.lock().unwrap_or_else(PoisonError::into_inner).remove(&folder);
            }
            None => tracing::warn!(folder = %folder.display(), "status files: the disk does not answer"),
        }
        false
    }

    /// Runs until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let events = match Events::new() {
            Ok(events) => Arc::clone(self.events.get_or_init(|| Arc::new(events))),
            Err(error) => return tracing::warn!(%error, "interrupts are not seen"),
        };
        loop {
            // What runs already: from the time before this daemon, or from before something was missed.
            self.follow_known().await;
            self.look_at_all().await;
            loop {
                let changes = events.next().await;
                if changes.missed {
                    break;
                }
                let pids =
                    changes.names.iter().filter_map(|n| n.strip_suffix(".json")?.parse().ok()).collect();
                self.look_at(pids).await;
            }
            // A folder that was removed is followed again once there is one.
            self.folders.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    async fn follow_known(&self) {
        let known = self.store.read(|state| {
            let bindings = state.records().filter_map(|r| r.live_binding()?.transcript.clone());
            bindings.collect::<HashSet<String>>()
        });
        for transcript in known.await.unwrap_or_default() {
            self.began_to_follow(transcript.as_ref()).await;
        }
    }

    async fn look_at_all(self: &Arc<Self>) {
        let pids = self.store.read(|state| {
            let running = state.records().filter(|r| is_followed(r));
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
            bound.filter(|r| is_followed(r)).cloned().collect::<Vec<_>>()
        });
        for record in running.await.unwrap_or_default() {
            let Some(path) = status_file(&record) else { continue };
            let says = StatusFile::read(&path).await.is_some_and(|f| news(&record, &f).is_some());
            let id = record.id;
            if says && self.settling.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
                let this = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(SETTLE).await;
                    this.settling.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                    if let Err(fault) = this.settle(id, path).await {
                        tracing::warn!(session = %id, %fault, "what a status file says could not be written");
                    }
                });
            }
        }
    }

    /// The file still says it.
    async fn settle(&self, id: SessionId, path: PathBuf) -> Result<(), Fault> {
        let Some(file) = StatusFile::read(&path).await else { return Ok(()) };
        self.store
            .write(move |txn| {
                let Ok(session) = txn.session(id) else { return Ok(()) };
                match news(&session.record, &file) {
                    Some(News::Interrupted) => turn::interrupted(txn, id, None, None, Some(PROOF)),
                    Some(News::NotCompacting) => txn.edit(id, |r| r.compacting = false),
                    Some(News::Answered) => turn::answered(txn, id, None, Some(PROOF)),
                    None => Ok(()),
                }
            })
            .await
    }
}

/// What changed in the folders that are followed.
#[derive(Debug, Default)]
struct Changes {
    /// The names of files.
    names: Vec<String>,
    /// A folder is not followed any more, or there was more than could be told.
    missed: bool,
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

    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::io::Errno;

    use super::Changes;
    use crate::readable::Readable;

    /// Changes of files in folders.
    pub struct Events(Readable);

    impl Events {
        pub fn new() -> io::Result<Self> {
            Ok(Self(Readable::new(init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)?))
        }

        pub fn follow(&self, folder: &Path) -> io::Result<()> {
            let change = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
            let what = change | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
            add_watch(self.0.get(), folder, what)?;
            Ok(())
        }

        /// What changed, once something has.
        pub async fn next(&self) -> Changes {
            self.0
                .until(|inotify| {
                    let mut buffer = [MaybeUninit::uninit(); 4096];
                    let mut events = Reader::new(inotify, &mut buffer);
                    let mut changes = Changes::default();
                    loop {
                        match events.next() {
                            Ok(event) => {
                                let gone = ReadFlags::IGNORED | ReadFlags::MOVE_SELF;
                                let lost = gone | ReadFlags::QUEUE_OVERFLOW;
                                changes.missed |= event.events().intersects(lost);
                                changes.names.extend(
                                    event.file_name().and_then(|n| n.to_str().ok()).map(str::to_owned),
                                );
                            }
                            Err(Errno::INTR) => {}
                            Err(_) => {
                                let any = changes.missed || !changes.names.is_empty();
                                return any.then_some(changes);
                            }
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

    use super::Changes;

    pub struct Events(Infallible);

    impl Events {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn follow(&self, _folder: &Path) -> io::Result<()> {
            match self.0 {}
        }

        pub async fn next(&self) -> Changes {
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
    fn only_what_is_newer_is_news() {
        let mut record: SessionRecord = serde_json::from_value(serde_json::json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
            "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": "working",
            "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 2,
            "turn": {"since": "2026-11-30T12:00:00Z", "by": "operator"},
        }))
        .unwrap();
        let since = record.turn.as_ref().unwrap().since.as_millis();
        let file = |status: &str, at| StatusFile { status: Some(status.into()), status_updated_at: Some(at) };
        let says =
            |record: &SessionRecord, status: &str, after: i64| news(record, &file(status, since + after));
        assert_eq!(says(&record, "idle", 5), Some(News::Interrupted));
        assert_eq!(says(&record, "shell", 5), Some(News::Interrupted));
        assert_eq!(says(&record, "idle", -5), None, "from before the turn");
        assert_eq!(says(&record, "busy", 5), None);
        assert_eq!(says(&record, "waiting", 5), None);
        assert_eq!(news(&record, &StatusFile::default()), None, "unknown is no answer");
        // A dialog.
        let turn = record.turn.as_mut().unwrap();
        turn.dialog = Some("Edit".into());
        assert_eq!(says(&record, "busy", 9), None, "an older build's: nobody knows since when");
        record.turn.as_mut().unwrap().dialog_since = Some(Stamp::from_millis(since + 10));
        let dialog =
            [("busy", 9), ("waiting", 11), ("busy", 12)].map(|(status, at)| says(&record, status, at));
        assert_eq!(dialog, [None, None, Some(News::Answered)]);
        // A compaction, in a turn and without one.
        record.compacting = true;
        record.compacting_since = Some(Stamp::from_millis(since + 20));
        assert_eq!([15, 25].map(|at| says(&record, "idle", at)), [None, Some(News::Interrupted)]);
        record.turn = None;
        assert_eq!([15, 25].map(|at| says(&record, "idle", at)), [None, Some(News::NotCompacting)]);
        assert_eq!(says(&record, "busy", 25), None);
        record.compacting = false;
        assert_eq!(says(&record, "idle", 25), None, "said by its Stop hook already");
    }
}
