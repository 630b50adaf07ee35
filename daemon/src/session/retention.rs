//! What is kept for a time and no longer: folders in the trash, and old history of sessions that nobody waits for.
//! Everything goes by commits. What is too old is looked for in the files, off the owner's thread, and judged again on the
//! state at commit.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use minder_proto::error::Fault;
use minder_proto::event::{Body, Line};
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::queue::Queue;
use minder_proto::record::{ClosedLine, Cursors};
use minder_proto::stamp::Stamp;
use minder_proto::state::State as Declared;
use minder_proto::timeline;

use crate::store::{Session, State, Store};

/// What one look took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Folders that left the trash.
    pub trashed: usize,
    /// Sealed segments that were dropped.
    pub segments: usize,
}

const DAY: Duration = Duration::from_secs(86_400);

/// Takes away what is too old at this time.
pub async fn tidy(store: &Store, now: Stamp) -> Result<Tidied, Fault> {
    let trashed = empty_trash(store, now).await?;
    let segments = drop_history(store, now).await?;
    Ok(Tidied { trashed, segments })
}

async fn off<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(look).await.expect("looking at files does not panic, and is not called off")
}

async fn empty_trash(store: &Store, now: Stamp) -> Result<usize, Fault> {
    let keep = DAY * store.config().store.trash_days;
    let home = store.home().clone();
    let over = off(move || trashed_before(&home, now, keep)).await;
    for id in &over {
        let id = *id;
        store.write(move |txn| txn.erase(id)).await?;
    }
    Ok(over.len())
}

/// The sessions in the trash that were closed so long ago.
fn trashed_before(home: &Home, now: Stamp, keep: Duration) -> Vec<SessionId> {
    let Ok(entries) = std::fs::read_dir(home.trash()) else { return Vec::new() };
    let mut there: Vec<SessionId> =
        entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    if there.is_empty() {
        return there;
    }
    let bytes = std::fs::read(home.closed()).unwrap_or_default();
    let lines = bytes.split(|b| *b == b'\n');
    let closed: HashMap<SessionId, Stamp> =
        lines.filter_map(|l| serde_json::from_slice::<ClosedLine>(l).ok()).map(|l| (l.id, l.at)).collect();
    there.sort_unstable();
    // Of one that nobody knows when it was closed, its last line says it.
    let closed_at = |id: &SessionId| {
        closed.get(id).copied().or_else(|| Some(timeline::last(&home.trashed(*id), 1).ok()?.last()?.at))
    };
    there.retain(|id| closed_at(id).is_some_and(|at| at.age(now) >= keep));
    there
}

/// True for a session that neither waits nor runs.
fn rests(session: &Session) -> bool {
    let r = &session.record;
    matches!(r.state, Declared::Idle | Declared::Parked)
        && r.turn.is_none()
        && r.process.as_ref().is_none_or(|p| p.ended.is_some())
        && session.inbox.queue.is_empty()
}

/// True if a notice about it waits for somebody, whose text is read when it is handed over.
fn is_told_of(state: &State, id: SessionId) -> bool {
    let queues = state.sessions().map(|s| &s.inbox.queue);
    let queues = queues.chain(state.inbox(Party::Operator).map(|i| &i.queue));
    queues.flat_map(Queue::iter).any(|e| e.brief.as_ref().is_some_and(|b| b.about == Some(id)))
}

/// Old segments of one session, oldest first, and where its history begins without them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Old {
    id: SessionId,
    firsts: Vec<u64>,
    begins: u64,
}

async fn drop_history(store: &Store, now: Stamp) -> Result<usize, Fault> {
    let days = store.config().store.keep_days;
    let resting: Vec<SessionId> =
        store.read(|state| state.sessions().filter(|s| rests(s)).map(|s| s.record.id).collect()).await?;
    let home = store.home().clone();
    let old = off(move || old_segments(&home, &resting, now, DAY * days)).await;
    let mut dropped = 0;
    for old in old {
        dropped += store
            .write(move |txn| {
                let free = |s: &Session| rests(s) && !is_told_of(txn.state(), old.id);
                if !txn.state().session(old.id).is_some_and(free) {
                    return Ok(0);
                }
                let text = format!(
                    "history begins with line {}; what was before is older than {days} days",
                    old.begins
                );
                txn.append(Party::Session(old.id), Body::Note { what: "gap".to_owned(), text })?;
                txn.drop_segments(old.id, &old.firsts)?;
                Ok(old.firsts.len())
            })
            .await?;
    }
    Ok(dropped)
}

fn old_segments(home: &Home, sessions: &[SessionId], now: Stamp, keep: Duration) -> Vec<Old> {
    let mut followed = None;
    let mut found = Vec::new();
    for id in sessions {
        let dir = home.session(*id);
        let Ok(sealed) = timeline::sealed(&dir) else { continue };
        let mut old = Old { id: *id, firsts: Vec::new(), begins: 0 };
        for (i, (first, path)) in sealed.iter().enumerate() {
            if !is_old(path, now, keep) {
                break;
            }
            let next = sealed.get(i + 1).map(|(next, _)| *next).or_else(|| first_of_active(&dir));
            let Some(next) = next else { break };
            let least = match followed.get_or_insert_with(|| followers(home)) {
                Ok(followed) => followed.get(id).copied(),
                // Somebody may follow it, and nobody can say how far they are.
                Err(_) => break,
            };
            // Whoever follows it and has not read this far yet finds it.
            if least.is_some_and(|seq| seq + 1 < next) {
                break;
            }
            old.firsts.push(*first);
            old.begins = next;
        }
        if !old.firsts.is_empty() {
            found.push(old);
        }
    }
    found
}

fn first_of_active(dir: &Path) -> Option<u64> {
    use std::io::BufRead;
    let file = std::fs::File::open(dir.join(timeline::ACTIVE)).ok()?;
    let mut lines = std::io::BufReader::new(file).split(b'\n');
    lines.find_map(|line| Line::parse(&line.ok()?).seq())
}

/// Whether the last line of a sealed segment is so old. Its time of change is looked at first, which costs less.
fn is_old(path: &Path, now: Stamp, keep: Duration) -> bool {
    let changed = path.metadata().and_then(|m| m.modified()).ok();
    let changed = changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let changed = changed.and_then(|d| i64::try_from(d.as_millis()).ok()).map(Stamp::from_millis);
    if changed.is_none_or(|at| at.age(now) < keep) {
        return false;
    }
    let bytes = std::fs::read(path).unwrap_or_default();
    let last = bytes.rsplit(|b| *b == b'\n').find_map(|line| match Line::parse(line) {
        Line::Event(event) => Some(event.at),
        _ => None,
    });
    last.is_some_and(|at| at.age(now) >= keep)
}

/// How far each session was read by whoever has read least of it. A file of positions that cannot be read is no sign that
/// nobody follows.
fn followers(home: &Home) -> std::io::Result<BTreeMap<SessionId, u64>> {
    let mut files = Vec::new();
    for entry in entries(&home.sessions())? {
        files.push(entry?.path().join("cursors.json"));
    }
    for entry in entries(&home.followers())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            files.push(path);
        }
    }
    let mut least: BTreeMap<SessionId, u64> = BTreeMap::new();
    for file in files {
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(unknown(&file, error)),
        };
        let cursors = serde_json::from_slice::<Cursors>(&bytes).map_err(|e| unknown(&file, e.into()))?;
        for (id, cursor) in cursors.follows {
            let seq = least.entry(id).or_insert(cursor.seq);
            *seq = (*seq).min(cursor.seq);
        }
    }
    Ok(least)
}

fn unknown(file: &Path, error: std::io::Error) -> std::io::Error {
    tracing::warn!(file = %file.display(), %error, "who follows cannot be read: no old history is dropped");
    error
}

/// The entries of a folder; none where it is not there.
fn entries(dir: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<std::fs::DirEntry>>> {
    match std::fs::read_dir(dir) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
