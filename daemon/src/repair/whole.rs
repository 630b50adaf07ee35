//! Everything of a store, in an order in which what is built on other files comes after them.

use std::collections::{BTreeMap, BTreeSet};

use minder_proto::id::SessionId;
use minder_proto::record::SessionRecord;

use super::work::Work;
use super::{RepairError, lists, recipient};
use crate::check::inside::{
    BINDINGS, Finding, HOST_FILES, LABELS, Overlay, Weight, compare, cursors, feed, host, is_request,
    request, walk, wrong_lines,
};
use crate::store::Op;

/// Mends everything.
pub fn mend(work: &mut Work) -> Result<(), RepairError> {
    permissions(work)?;
    strays(work)?;
    recipient::mend(work, "operator", None)?;
    for id in work.ids("sessions")? {
        recipient::mend(work, &format!("sessions/{id}"), Some(id))?;
    }
    for id in work.ids("trash")? {
        let dir = format!("trash/{id}");
        if work.is_open(id) {
            work.set_aside(&dir, "the session is open, too")?;
        } else {
            recipient::mend(work, &dir, Some(id))?;
        }
    }
    let mut records = records(work)?;
    unique(work, &mut records)?;
    pointers(work, &records)?;
    closed(work)?;
    keys(work)?;
    hosts(work)?;
    followers(work)?;
    spool(work)?;
    bell(work)
}

fn permissions(work: &mut Work) -> Result<(), RepairError> {
    // Until nothing is found: what lies in a folder that was closed shows only then.
    loop {
        let found = walk(work.root());
        let wrong: BTreeSet<String> = found
            .into_iter()
            .filter(|f| f.what.starts_with("open to others") || f.what.starts_with("closed to its owner"))
            .map(|f| f.path)
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        for path in wrong {
            work.permit(&path)?;
        }
    }
}

/// What has the name of a session's folder, and is none.
fn strays(work: &mut Work) -> Result<(), RepairError> {
    for dir in ["sessions", "trash"] {
        for name in work.names(dir)?.into_iter().filter(|n| n.parse::<SessionId>().is_ok()) {
            let file = format!("{dir}/{name}");
            if work.root().join(&file).symlink_metadata().is_ok_and(|m| !m.is_dir() && !m.is_symlink()) {
                work.set_aside(&file, "not a folder")?;
            }
        }
    }
    Ok(())
}

type Records = BTreeMap<SessionId, SessionRecord>;

fn record(work: &Work, dir: &str, id: SessionId) -> Option<SessionRecord> {
    let bytes = work.read(&format!("{dir}/{id}/session.json")).ok().flatten()?;
    serde_json::from_slice::<SessionRecord>(&bytes).ok().filter(|r| r.id == id)
}

fn records(work: &Work) -> Result<Records, RepairError> {
    let ids = work.ids("sessions")?;
    Ok(ids.into_iter().filter_map(|id| Some((id, record(work, "sessions", id)?))).collect())
}

/// A label and a conversation are one session's: the oldest keeps the label, the newest the conversation.
fn unique(work: &mut Work, records: &mut Records) -> Result<(), RepairError> {
    let mut order: Vec<SessionId> = records.keys().copied().collect();
    order.sort_by_key(|id| (records[id].created, *id));
    let mut labels: BTreeSet<String> = BTreeSet::new();
    let mut changed: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
    for id in &order {
        let record = records.get_mut(id).expect("listed above");
        let wanted = record.label.clone();
        let mut n = 1;
        while !labels.insert(record.label.clone()) {
            n += 1;
            record.label = format!("{}-{n}", minder_proto::event::cut(&wanted, 56));
        }
        if record.label != wanted {
            changed
                .entry(*id)
                .or_default()
                .push(format!("label {} and not {wanted}, which another has", record.label));
        }
    }
    let mut taken: BTreeSet<(String, String)> = BTreeSet::new();
    for id in order.iter().rev() {
        let record = records.get_mut(id).expect("listed above");
        let now = work.now;
        for binding in record.bindings.iter_mut().rev().filter(|b| b.until.is_none()) {
            if !taken.insert((binding.harness.clone(), binding.id.clone())) {
                binding.until = Some(now);
                let what = format!("conversation {} ended: another session has it", binding.id);
                changed.entry(*id).or_default().push(what);
            }
        }
    }
    let mut ops = Vec::new();
    for (id, what) in changed {
        let mut bytes = serde_json::to_vec_pretty(&records[&id]).expect("a record is plain data");
        bytes.push(b'\n');
        work.rewrite(&mut ops, &format!("sessions/{id}/session.json"), bytes, &what.join("; "))?;
    }
    work.commit(ops)
}

fn pointers(work: &mut Work, records: &Records) -> Result<(), RepairError> {
    let open: BTreeMap<SessionId, Option<&SessionRecord>> =
        records.iter().map(|(id, r)| (*id, Some(r))).collect();
    let mut ops = Vec::new();
    let harnesses: Vec<String> =
        work.names("bindings")?.into_iter().map(|n| format!("bindings/{n}")).collect();
    for (kind, dirs) in [(LABELS, vec!["labels".to_owned()]), (BINDINGS, harnesses)] {
        let mut files = BTreeMap::new();
        for dir in &dirs {
            if !work.root().join(dir).is_dir() {
                continue;
            }
            for name in work.names(dir)?.iter().filter(|n| !n.starts_with('.')) {
                let path = format!("{dir}/{name}");
                match work.read(&path) {
                    Ok(bytes) => drop(files.insert(path, bytes.unwrap_or_default())),
                    Err(_) => work.set_aside(&path, "it cannot be read as a file")?,
                }
            }
        }
        let mut wanted: BTreeMap<String, SessionId> = BTreeMap::new();
        for (id, record) in records {
            wanted.extend((kind.of)(record).into_iter().map(|(path, _)| (path, *id)));
        }
        let wrong: BTreeSet<String> = damage(compare(kind, &files, &open)).collect();
        for path in wrong {
            match wanted.get(&path) {
                Some(id) => {
                    work.done(&path, "written as the record says");
                    ops.push(Op::Replace { file: path, bytes: format!("{id}\n").into_bytes() });
                }
                None => {
                    work.done(&path, "removed: no record calls for it");
                    ops.push(Op::Remove { file: path });
                }
            }
        }
    }
    work.commit(ops)
}

fn damage(found: Vec<Finding>) -> impl Iterator<Item = String> {
    found.into_iter().filter(|f| f.weight > Weight::Note).map(|f| f.path)
}

/// Reads a file of the store, or moves what cannot be read as one to the quarantine.
fn read(work: &mut Work, file: &str) -> Result<Vec<u8>, RepairError> {
    match work.read(file) {
        Ok(bytes) => Ok(bytes.unwrap_or_default()),
        Err(_) => work.set_aside(file, "it cannot be read as a file").map(|()| Vec::new()),
    }
}

fn closed(work: &mut Work) -> Result<(), RepairError> {
    let bytes = read(work, "closed.jsonl")?;
    let open: BTreeSet<SessionId> = work.ids("sessions")?.into_iter().collect();
    let trashed: Vec<_> = work.ids("trash")?.into_iter().map(|id| (id, record(work, "trash", id))).collect();
    let mended = lists::closed(&bytes, &open, &trashed, work.now);
    rewrite_list(work, "closed.jsonl", &bytes, mended)
}

fn keys(work: &mut Work) -> Result<(), RepairError> {
    let bytes = read(work, "keys.jsonl")?;
    let mended = lists::keys(&bytes);
    rewrite_list(work, "keys.jsonl", &bytes, mended)
}

/// What a host keeps and cannot be read is set aside; the host goes on without it, as a start does. Numbers that were given are
/// not given again.
fn hosts(work: &mut Work) -> Result<(), RepairError> {
    for id in work.ids("hosts")? {
        for name in HOST_FILES {
            let file = format!("hosts/{id}/{name}");
            let Ok(Some(bytes)) = work.read(&file) else { continue };
            if name == "log.jsonl" {
                let mended = lists::of_host(&bytes);
                rewrite_list(work, &file, &bytes, mended)?;
            } else if wrong_lines(&bytes, |bytes, sheet| host(name, bytes, sheet)) {
                work.set_aside(&file, "it cannot be read")?;
            }
        }
        let file = format!("hosts/{id}/host.json");
        let read = |name: &str| work.read(&format!("hosts/{id}/{name}")).ok().flatten();
        let (Some(record), Some(queue)) = (read("host.json"), read("queue.json")) else { continue };
        if let Some(mended) = lists::numbers(&record, &queue) {
            let mut ops = Vec::new();
            work.rewrite(&mut ops, &file, mended, "its next row is behind those that are given")?;
            work.commit(ops)?;
        }
    }
    Ok(())
}

fn rewrite_list(work: &mut Work, file: &str, old: &[u8], new: Vec<u8>) -> Result<(), RepairError> {
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (before, after) = (lines(old), lines(&new));
    let whole = old.last().is_none_or(|b| *b == b'\n');
    if before == after && whole {
        return Ok(());
    }
    let gone = before.iter().filter(|l| !after.contains(l)).count();
    let added = after.iter().filter(|l| !before.contains(l)).count();
    let plural = |n: usize| format!("{n} line{}", if n == 1 { "" } else { "s" });
    let what = format!("written anew: {} left out, {added} added", plural(gone));
    let mut ops = Vec::new();
    work.rewrite(&mut ops, file, new, &what)?;
    work.commit(ops)
}

fn followers(work: &mut Work) -> Result<(), RepairError> {
    for name in work.names("followers")?.into_iter().filter(|n| n.strip_suffix(".json").is_some()) {
        let file = format!("followers/{name}");
        let bytes = read(work, &file)?;
        if !bytes.is_empty() && wrong_lines(&bytes, |bytes, sheet| drop(cursors(bytes, sheet))) {
            let mut ops = Vec::new();
            let lost = lists::lost_cursors(work.now);
            work.rewrite(&mut ops, &file, lost, "its positions are lost; the next wait says so")?;
            work.commit(ops)?;
        }
    }
    Ok(())
}

fn spool(work: &mut Work) -> Result<(), RepairError> {
    for name in work.names("spool")?.into_iter().filter(|n| is_request(n)) {
        let file = format!("spool/{name}");
        let unfit = match work.read(&file) {
            Ok(bytes) => wrong_lines(&bytes.unwrap_or_default(), request),
            Err(_) => true,
        };
        if unfit {
            work.set_aside(&file, "not a request that can be read")?;
        }
    }
    Ok(())
}

/// The feed is no record of anything: where it is damaged everybody looks at everything once.
fn bell(work: &mut Work) -> Result<(), RepairError> {
    for file in ["feed.jsonl.1", "feed.jsonl"] {
        let wrong = match Overlay::new(work.root()).open(file) {
            Ok(None) => false,
            Ok(Some(reader)) => feed(file, reader).map_or(true, |found| damage(found).next().is_some()),
            Err(_) => true,
        };
        if wrong {
            work.set_aside(file, "damaged; every follower looks at everything once")?;
        }
    }
    Ok(())
}
