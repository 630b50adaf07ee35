//! Compares a store's files with what its callers know. What was answered is there, once and in order; what was
//! refused is not; what nobody answered is there once or not at all; the notices of a line are there with it; and
//! nothing is there that nobody asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use minder_proto::event::{Body, Event, NoticeKind};
use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::queue::Queue;
use minder_proto::record::ClosedLine;
use minder_proto::{snapshot, timeline};

use super::history::{Deed, End, History};

/// A session as its files show it.
struct Found {
    id: SessionId,
    open: bool,
    events: Vec<Event>,
    queue: Queue,
}

impl Found {
    fn notes(&self) -> impl Iterator<Item = (u64, &str)> {
        self.events.iter().filter_map(|e| match &e.body {
            Body::State(line) => Some((e.seq, line.note.as_deref()?)),
            _ => None,
        })
    }

    fn letters(&self) -> impl Iterator<Item = (MessageId, &str)> {
        self.events.iter().filter_map(|e| match &e.body {
            Body::Message(m) if m.about.is_none() => Some((m.id, m.body.split_inclusive(';').next()?)),
            _ => None,
        })
    }

    /// The lines of another session that it was told of.
    fn told_of(&self, other: SessionId) -> Vec<u64> {
        let about = self.events.iter().filter_map(|e| match &e.body {
            Body::Message(m) => m.about.as_ref(),
            _ => None,
        });
        about.filter(|a| a.notice == NoticeKind::State && a.session == other).map(|a| a.seq).collect()
    }
}

/// What is wrong with the store in `home`, a line each.
pub fn compare(home: &Path, history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let home = Home::at(home);
    let found = match read(&home, &mut wrong) {
        Ok(found) => found,
        Err(error) => return vec![format!("{}: {error}", home.root().display())],
    };
    let closed = closed(&home, &mut wrong);
    let mut acked = BTreeSet::new();
    let mut maybe_acked = BTreeSet::new();
    let mut watched: Vec<(&str, &str)> = Vec::new();
    let mut asked_for: BTreeSet<&str> = BTreeSet::new();
    for entry in history.entries() {
        match &entry.deed {
            Deed::Ack { id, .. } if entry.end == End::Told => {
                acked.insert(*id);
            }
            Deed::Ack { id, .. } if entry.end == End::Unknown => {
                maybe_acked.insert(*id);
            }
            Deed::Watch { watcher, target } if entry.end == End::Told => watched.push((watcher, target)),
            Deed::Declare { note, .. } => {
                asked_for.insert(note);
            }
            Deed::Send { mark, .. } => {
                asked_for.insert(mark);
            }
            _ => {}
        }
    }
    let closing: BTreeSet<&str> = history
        .entries()
        .filter_map(|e| match &e.deed {
            Deed::Close { label } => Some(label.as_str()),
            _ => None,
        })
        .collect();
    for entries in &history.callers {
        let mut last: BTreeMap<(&str, bool), usize> = BTreeMap::new();
        for entry in entries {
            let here = |label: &str| found.get(label);
            let (what, positions, order): (String, Vec<usize>, Option<(&str, bool)>) = match &entry.deed {
                Deed::Create { label, id } => {
                    let there = here(label).filter(|f| id.is_none_or(|id| id == f.id));
                    (format!("session {label}"), there.map(|_| 0).into_iter().collect(), None)
                }
                Deed::Watch { watcher, target } => {
                    let ids = here(watcher).zip(here(target)).map(|(w, t)| (w.id, t.id));
                    let watchers = ids.map(|(w, t)| (w, snapshot::watchers(&home, t).unwrap_or_default()));
                    let n = watchers.map_or(0, |(w, all)| all.iter().filter(|x| x.watcher == w).count());
                    (format!("{watcher} watches {target}"), vec![0; n], None)
                }
                Deed::Declare { label, note } => {
                    let mine = here(label).into_iter().flat_map(|f| f.notes().enumerate());
                    let at = mine.filter(|(_, (_, n))| n == note).map(|(i, _)| i).collect();
                    (format!("{label} declared {}", brief(note)), at, Some((label, true)))
                }
                Deed::Send { from, to, mark, id } => {
                    let theirs: Vec<_> = here(to).into_iter().flat_map(Found::letters).collect();
                    let at: Vec<usize> = (0..theirs.len()).filter(|i| theirs[*i].1 == mark).collect();
                    if let (Some(id), [at]) = (id, at.as_slice())
                        && entry.end == End::Told
                    {
                        let there = &theirs[*at];
                        if there.0 != *id {
                            wrong.push(format!("{mark} has id {}, its sender was told {id}", there.0));
                        }
                        let waits = here(to).is_some_and(|f| f.queue.get(*id).is_some());
                        let alive = here(to).is_some_and(|f| f.open) && !closing.contains(to.as_str());
                        if acked.contains(id) && waits {
                            wrong.push(format!("{mark} was acknowledged and still waits for {to}"));
                        }
                        if alive && !waits && !acked.contains(id) && !maybe_acked.contains(id) {
                            wrong.push(format!("{mark} was accepted and does not wait for {to}"));
                        }
                    }
                    (format!("{from} sent {mark} to {to}"), at, Some((to, false)))
                }
                Deed::Ack { .. } => continue, // judged with the message
                Deed::Close { label } => {
                    let there = here(label);
                    let in_trash = there.is_some_and(|f| {
                        !f.open && matches!(f.events.last().map(|e| &e.body), Some(Body::Closed { .. }))
                    });
                    let stones = there.map_or(0, |f| closed.iter().filter(|id| **id == f.id).count());
                    if in_trash != (stones == 1) {
                        wrong.push(format!("{label}: in the trash: {in_trash}, in closed.jsonl: {stones}"));
                    }
                    (format!("{label} was closed"), vec![0; stones], None)
                }
            };
            let n = positions.len();
            match entry.end {
                End::Told if n != 1 => wrong.push(format!("{what}: answered, and there {n} times")),
                End::Refused if n != 0 => wrong.push(format!("{what}: refused, and there")),
                End::Unknown if n > 1 => wrong.push(format!("{what}: there {n} times")),
                _ => {}
            }
            if let (Some(key), Some(at)) = (order, positions.first()) {
                if last.get(&key).is_some_and(|before| before > at) {
                    wrong.push(format!("{what}: before what the same caller said earlier"));
                }
                last.insert(key, *at);
            }
        }
    }
    for found in found.values() {
        let said = found.notes().map(|(_, n)| n).chain(found.letters().map(|(_, mark)| mark));
        wrong.extend(said.filter(|t| !asked_for.contains(t)).map(|t| format!("nobody said {}", brief(t))));
    }
    for (watcher, target) in watched {
        let (Some(w), Some(t)) = (found.get(watcher), found.get(target)) else { continue };
        let lines: Vec<u64> = t.notes().map(|(seq, _)| seq).collect();
        let told = w.told_of(t.id);
        if lines != told {
            wrong.push(format!("{target} declared at {lines:?}, {watcher} was told of {told:?}"));
        }
    }
    wrong
}

fn brief(text: &str) -> &str {
    text.split(';').next().unwrap_or_default()
}

/// Every session by the label of its birth, open ones and those in the trash.
fn read(home: &Home, wrong: &mut Vec<String>) -> std::io::Result<BTreeMap<String, Found>> {
    let mut all = BTreeMap::new();
    for (folder, open) in [(home.sessions(), true), (home.trash(), false)] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let dir: PathBuf = entry?.path();
            let Some(id) = dir.file_name().and_then(|n| n.to_str()?.parse::<SessionId>().ok()) else {
                wrong.push(format!("{}: no session's folder", dir.display()));
                continue;
            };
            let events = match timeline::last(&dir, usize::MAX) {
                Ok(events) => events,
                Err(error) => {
                    wrong.push(format!("{}: {error}", dir.display()));
                    continue;
                }
            };
            if !events.iter().map(|e| e.seq).eq(1..=events.len() as u64) {
                let seqs: Vec<u64> = events.iter().map(|e| e.seq).collect();
                wrong.push(format!("{}: not every line once and in order: {seqs:?}", dir.display()));
            }
            for event in &events {
                if let Body::Note { what, text } = &event.body {
                    wrong.push(format!("{}: line {} is a note: {what}: {text}", dir.display(), event.seq));
                }
            }
            let Some(Body::Created { label, .. }) = events.first().map(|e| &e.body) else {
                wrong.push(format!("{}: its first line is not its arrival", dir.display()));
                continue;
            };
            let queue = snapshot::queue(&dir)?;
            let found = Found { id, open, events: events.clone(), queue };
            if all.insert(label.clone(), found).is_some() {
                wrong.push(format!("two sessions were born as {label}"));
            }
        }
    }
    // What a loss left behind the last operation on a file was told to nobody; a start cuts it off and keeps it there.
    let aside = std::fs::read_dir(home.quarantine()).into_iter().flatten().flatten();
    let names = aside.map(|e| e.path()).filter(|path| {
        let name = path.to_string_lossy();
        !name.strip_suffix(".why").unwrap_or(&name).contains(".cut")
    });
    wrong.extend(names.map(|path| format!("{}: set aside", path.display())));
    Ok(all)
}

fn closed(home: &Home, wrong: &mut Vec<String>) -> Vec<SessionId> {
    let text = std::fs::read_to_string(home.closed()).unwrap_or_default();
    let mut ids = Vec::new();
    for line in text.lines() {
        match serde_json::from_str::<ClosedLine>(line) {
            Ok(line) => ids.push(line.id),
            Err(error) => wrong.push(format!("closed.jsonl: {error}")),
        }
    }
    ids
}
