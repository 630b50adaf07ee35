//! The folder of one recipient is mended: a session's, open or in the trash, or the person's.

use std::collections::BTreeSet;

use minder_proto::event::{Body, Event};
use minder_proto::id::SessionId;
use minder_proto::record::{SessionRecord, Watcher};
use minder_proto::timeline::{ACTIVE, sealed_first, sealed_name};

use super::timeline::{Known, Mended, Placed, Segment};
use super::work::Work;
use super::{RepairError, ledger, lists, record, timeline};
use crate::check::inside::{Finding, Overlay, Weight, look};
use crate::store::Op;

/// Mends a folder if anything is wrong in it.
pub fn mend(work: &mut Work, dir: &str, session: Option<SessionId>) -> Result<(), RepairError> {
    let looked = look(&Overlay::new(work.root()), dir, session);
    let in_trash = dir.starts_with("trash/");
    let damaged = looked.findings.iter().any(|f| f.weight > Weight::Note);
    let misplaced = session.is_some() && looked.end.closed != in_trash;
    if !damaged && !misplaced {
        return Ok(());
    }
    let folder = Folder { dir, session, in_trash };
    folder.set_aside_what_is_no_file(work, &looked.findings)?;
    folder.mend(work, &looked.findings)
}

struct Folder<'a> {
    dir: &'a str,
    session: Option<SessionId>,
    in_trash: bool,
}

impl Folder<'_> {
    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// What cannot be opened as a file is no use to anybody where it is.
    fn set_aside_what_is_no_file(&self, work: &mut Work, found: &[Finding]) -> Result<(), RepairError> {
        let files: BTreeSet<&str> =
            found.iter().map(|f| f.path.as_str()).filter(|p| *p != self.dir).collect();
        for file in files {
            if work.read(file).is_err() {
                work.set_aside(file, "it cannot be read as a file")?;
            }
        }
        Ok(())
    }

    fn segments(&self, work: &Work) -> Result<Vec<Segment>, RepairError> {
        let mut names: Vec<String> = work.names(self.dir)?;
        names.retain(|n| n == ACTIVE || sealed_first(n).is_some());
        // The active one is last: a letter comes after every digit.
        names.sort();
        let mut segments = Vec::new();
        for name in names {
            if let Ok(Some(bytes)) = work.read(&self.file(&name)) {
                segments.push((name, bytes));
            }
        }
        Ok(segments)
    }

    fn record(&self, work: &Work) -> Option<SessionRecord> {
        let bytes = work.read(&self.file("session.json")).ok().flatten()?;
        let record: SessionRecord = serde_json::from_slice(&bytes).ok()?;
        (Some(record.id) == self.session).then_some(record)
    }

    fn mend(&self, work: &mut Work, found: &[Finding]) -> Result<(), RepairError> {
        let segments = self.segments(work)?;
        let old = self.record(work);
        let known = Known {
            of_session: self.session.is_some(),
            in_trash: self.in_trash,
            last_seq: old.as_ref().map_or(0, |r| r.last_seq),
        };
        let mut mended = timeline::mend(&segments, ACTIVE, known, work.now);
        let nothing = old.is_none() && !mended.events.iter().any(|p| !is_note(&p.event));
        if let Some(id) = self.session.filter(|_| nothing) {
            let why = "neither its record nor a line of its timeline can be read";
            return if self.in_trash {
                work.set_aside(self.dir, why)
            } else {
                work.set_session_aside(id, why)
            };
        }
        let ledger_file = self.file("queue.jsonl");
        let ledger_bytes = work.read(&ledger_file).ok().flatten();
        let same = is_same(&segments, &mended.segments);
        let ledger_wrong = found.iter().any(|f| f.path == ledger_file && f.weight > Weight::Note);
        let mut ops = Vec::new();
        if ledger_wrong || !same {
            let ledger =
                ledger::mend(&mended.events, ledger_bytes.as_deref().unwrap_or_default(), mended.closed);
            append(work, &mut mended, &ledger.receipts);
            if ledger_bytes.as_deref().unwrap_or_default() != ledger.bytes {
                let mut what = vec!["written anew from the timeline and what could be read of it".to_owned()];
                what.extend(ledger.done);
                work.rewrite(&mut ops, &ledger_file, ledger.bytes, &what.join("; "))?;
            }
        }
        self.write_timeline(work, &mut ops, &segments, &mended)?;
        if let Some(id) = self.session {
            self.write_record(work, &mut ops, id, old, &mended)?;
            self.write_watchers(work, &mut ops, id, found)?;
        }
        self.write_cursors(work, &mut ops, found)?;
        if let Some(id) = self.session.filter(|_| mended.closed && !self.in_trash) {
            ops.push(Op::Retire { session: id });
            work.done(self.dir, "closed, and now in the trash");
        }
        work.commit(ops)
    }

    fn write_timeline(
        &self,
        work: &mut Work,
        ops: &mut Vec<Op>,
        old: &[Segment],
        mended: &Mended,
    ) -> Result<(), RepairError> {
        let mut what = mended.done.join("; ");
        for (name, bytes) in &mended.segments {
            let before = old.iter().find(|(n, _)| n == name);
            if before.is_some_and(|(_, b)| b == bytes) {
                continue;
            }
            let told = if what.is_empty() { "written anew".to_owned() } else { std::mem::take(&mut what) };
            work.rewrite(ops, &self.file(name), bytes.clone(), &told)?;
        }
        for (name, _) in old.iter().filter(|(n, _)| !mended.segments.iter().any(|(m, _)| m == n)) {
            work.remove(ops, &self.file(name), "its lines are where their numbers belong")?;
        }
        Ok(())
    }

    fn write_record(
        &self,
        work: &mut Work,
        ops: &mut Vec<Op>,
        id: SessionId,
        old: Option<SessionRecord>,
        mended: &Mended,
    ) -> Result<(), RepairError> {
        let file = self.file("session.json");
        let (record, what) = match old {
            Some(mut record) => {
                let changed = record::patch(&mut record, mended);
                if changed.is_empty() {
                    return Ok(());
                }
                // Behind the last line that was written with it a record is as a rule, and no damage.
                if changed == ["last_seq"] && record.last_seq == mended.last && is_behind(work, &file, mended)
                {
                    return Ok(());
                }
                (record, format!("{} as the timeline says", changed.join(", ")))
            }
            None => {
                let label = work.label_of(id);
                let record = record::rebuild(id, mended, label, work.now);
                (record, "made anew from the timeline; its folder and program are not known".to_owned())
            }
        };
        let mut bytes = serde_json::to_vec_pretty(&record).expect("a record is plain data");
        bytes.push(b'\n');
        work.rewrite(ops, &file, bytes, &what)
    }

    fn write_watchers(
        &self,
        work: &mut Work,
        ops: &mut Vec<Op>,
        id: SessionId,
        found: &[Finding],
    ) -> Result<(), RepairError> {
        let file = self.file("watchers.json");
        if !found.iter().any(|f| f.path == file && f.weight > Weight::Note) {
            return Ok(());
        }
        let bytes = work.read(&file).ok().flatten().unwrap_or_default();
        let parent = self.record(work).and_then(|r| r.parent).filter(|p| work.is_open(*p));
        let watchers: Vec<Watcher> = lists::watchers(&bytes, id, parent, work.now);
        if watchers.is_empty() {
            return work.remove(ops, &file, "nobody watches it now");
        }
        let mut bytes = serde_json::to_vec_pretty(&watchers).expect("watchers are plain data");
        bytes.push(b'\n');
        work.rewrite(ops, &file, bytes, "written anew from what can be read of it, or the record")
    }

    fn write_cursors(
        &self,
        work: &mut Work,
        ops: &mut Vec<Op>,
        found: &[Finding],
    ) -> Result<(), RepairError> {
        let file = self.file("cursors.json");
        if found.iter().any(|f| f.path == file && f.weight > Weight::Note) {
            let bytes = lists::lost_cursors(work.now);
            work.rewrite(ops, &file, bytes, "its positions are lost; the next wait says so")?;
        }
        Ok(())
    }
}

fn is_note(event: &Event) -> bool {
    matches!(event.body, Body::Note { .. })
}

fn is_same(old: &[Segment], new: &[Segment]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a == b)
}

fn is_behind(work: &Work, file: &str, mended: &Mended) -> bool {
    let bytes = work.read(file).ok().flatten().unwrap_or_default();
    serde_json::from_slice::<SessionRecord>(&bytes).is_ok_and(|r| r.last_seq < mended.last)
}

/// Adds lines to the end of a timeline.
fn append(work: &Work, mended: &mut Mended, bodies: &[Body]) {
    for body in bodies {
        mended.last += 1;
        let event = Event { seq: mended.last, at: work.now, body: body.clone() };
        if mended.segments.last().is_none_or(|(name, _)| name != ACTIVE) {
            mended.segments.push((ACTIVE.to_owned(), Vec::new()));
        }
        let (_, bytes) = mended.segments.last_mut().expect("pushed above");
        let first = mended.events.last().map_or(event.seq, |p| p.segment);
        let segment = if bytes.is_empty() { event.seq } else { first };
        mended.events.push(Placed { event: event.clone(), segment, offset: bytes.len() as u64 });
        serde_json::to_writer(&mut *bytes, &event).expect("an event is plain data");
        bytes.push(b'\n');
    }
    debug_assert!(mended.segments.iter().all(|(name, _)| name == ACTIVE || *name >= sealed_name(0)));
}
