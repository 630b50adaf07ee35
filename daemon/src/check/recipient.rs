//! The folder of one recipient: a session's, open or in the trash, or the person's. Its files are read one after the
//! other and compared with each other; what takes other folders to judge is handed on.

use std::collections::HashMap;

use minder_proto::id::{MessageId, SessionId};
use minder_proto::record::Cursors;
use minder_proto::timeline::{ACTIVE, sealed_first};

use super::cursors;
use super::finding::{Finding, Sheet, Trouble};
use super::ledger::Ledger;
use super::overlay::Overlay;
use super::timeline::{self, End, Judge};
use super::{record, watchers};

/// What was read of one recipient.
#[derive(Debug, Default)]
pub struct Looked {
    /// What is wrong in its folder alone.
    pub findings: Vec<Finding>,
    /// Who watches it.
    pub watchers: Vec<SessionId>,
    /// How far it has read others.
    pub cursors: Option<Cursors>,
    /// What its timeline came to.
    pub end: End,
}

/// Looks at the folder of a session, or at that of the person.
pub fn look(store: &Overlay, dir: &str, session: Option<SessionId>) -> Looked {
    let mut looked = Looked::default();
    let file = |name: &str| format!("{dir}/{name}");
    let mut ledger = whole(store, &file("queue.jsonl"), &mut looked.findings, |bytes, sheet| {
        Some(Ledger::read(bytes, sheet))
    })
    .unwrap_or_default();
    looked.end = history(store, dir, session.is_some(), &mut ledger, &mut looked.findings);
    if let Some(id) = session {
        let path = file("session.json");
        let end = &looked.end;
        let mut there = false;
        whole(store, &path, &mut looked.findings, |bytes, sheet| {
            there = true;
            let record = record::read(bytes, id, sheet)?;
            record::agree(&record, end, sheet);
            Some(())
        });
        if !there && !looked.findings.iter().any(|f| f.path == path) {
            absent(path, &mut looked.findings);
        }
        looked.watchers = whole(store, &file("watchers.json"), &mut looked.findings, |bytes, sheet| {
            Some(watchers::read(bytes, id, sheet))
        })
        .unwrap_or_default();
    }
    looked.cursors = whole(store, &file("cursors.json"), &mut looked.findings, cursors::read);
    looked
}

/// Reads a whole file, if it is there.
pub fn whole<T>(
    store: &Overlay,
    path: &str,
    found: &mut Vec<Finding>,
    read: impl FnOnce(&[u8], &mut Sheet) -> Option<T>,
) -> Option<T> {
    let mut sheet = Sheet::new(path);
    let result = match store.read(path) {
        Ok(bytes) => bytes.and_then(|bytes| read(&bytes, &mut sheet)),
        Err(trouble) => {
            sheet.trouble(&trouble);
            None
        }
    };
    found.extend(sheet.finish());
    result
}

fn absent(path: String, found: &mut Vec<Finding>) {
    let mut sheet = Sheet::new(path);
    sheet.damage("not there");
    found.extend(sheet.finish());
}

fn history(
    store: &Overlay,
    dir: &str,
    of_session: bool,
    ledger: &mut Ledger,
    found: &mut Vec<Finding>,
) -> End {
    let mut segments: Vec<(Option<u64>, String)> = Vec::new();
    match store.names(dir) {
        Ok(names) => {
            let sealed = names.keys().filter_map(|n| Some((Some(sealed_first(n)?), format!("{dir}/{n}"))));
            segments.extend(sealed);
            segments.extend(names.contains_key(ACTIVE).then(|| (None, format!("{dir}/{ACTIVE}"))));
        }
        Err(trouble) => {
            let mut sheet = Sheet::new(dir);
            sheet.trouble(&trouble);
            found.extend(sheet.finish());
            return End::default();
        }
    }
    if segments.is_empty() && of_session {
        absent(format!("{dir}/{ACTIVE}"), found);
        return End::default();
    }
    let mut judge = Judge::new(&format!("{dir}/queue.jsonl"), ledger, of_session);
    for (named, path) in &segments {
        let read = store.open(path).and_then(|file| match file {
            Some(file) => judge.segment(path, *named, file).map_err(Trouble::Io),
            None => Ok(()), // closed or sealed meanwhile
        });
        if let Err(trouble) = read {
            let mut sheet = Sheet::new(path.as_str());
            sheet.trouble(&trouble);
            found.extend(sheet.finish());
        }
    }
    let (judged, end) = judge.finish();
    found.extend(judged);
    if !end.suspects.is_empty() {
        found.extend(repeated(store, dir, &segments, &end.suspects));
    }
    end
}

/// Reads a timeline for a second time, for messages that may stand in it more than once.
fn repeated(
    store: &Overlay,
    dir: &str,
    segments: &[(Option<u64>, String)],
    suspects: &[MessageId],
) -> Vec<Finding> {
    let mut counts: HashMap<MessageId, Vec<u64>> = suspects.iter().map(|id| (*id, Vec::new())).collect();
    for (_, path) in segments {
        // What cannot be read was said before.
        if let Ok(Some(file)) = store.open(path) {
            let _ = timeline::count(file, &mut counts);
        }
    }
    let mut more: Vec<_> = counts.into_iter().filter(|(_, lines)| lines.len() > 1).collect();
    more.sort_unstable();
    let mut sheet = Sheet::new(format!("{dir}/{ACTIVE}"));
    for (id, lines) in more {
        let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
        sheet.damage(format!("message {id} stands there more than once: seq {}", lines.join(", ")));
    }
    sheet.finish()
}
