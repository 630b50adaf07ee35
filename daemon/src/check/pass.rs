//! One look at the whole store, with its journal as it was read just before.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use minder_proto::id::SessionId;
use minder_proto::record::{Cursors, SessionRecord};

use super::finding::{Finding, Sheet, Trouble};
use super::overlay::Overlay;
use super::recipient::{self, Looked, whole};
use super::{closed, cursors, feed, format, host, keys, pointers, record, spool, tree};
use crate::store::{DiskError, Recovered, replay};

/// What one look found.
#[derive(Debug, Default)]
pub struct Pass {
    /// Everything, in no order.
    pub findings: Vec<Finding>,
    /// Open sessions.
    pub sessions: usize,
    /// Lines of all timelines.
    pub lines: u64,
}

/// Folders of recipients that need no second look.
#[derive(Debug, Default)]
pub struct Kept(HashMap<String, Looked>);

impl Kept {
    /// The next pass looks at these again.
    pub fn forget(&mut self, doubtful: impl Fn(&str) -> bool) {
        self.0.retain(|dir, _| !doubtful(dir));
    }
}

struct Look<'a> {
    store: &'a Overlay,
    kept: &'a mut Kept,
    pass: Pass,
}

/// Looks at everything.
pub fn pass(root: &Path, journal: &Recovered, kept: &mut Kept) -> Result<Pass, DiskError> {
    let mut store = Overlay::new(root);
    let replayed = replay(&mut store, &journal.commits, journal.hole())?;
    let mut look = Look { store: &store, kept, pass: Pass::default() };
    look.pass.findings.extend(tree::walk(root));
    for damage in &journal.damage {
        let path = damage.file.strip_prefix(root).unwrap_or(&damage.file).to_string_lossy();
        look.sheet(&path, |sheet| sheet.damage(&damage.what));
    }
    // What a replay says begins with the file.
    let short =
        replayed.quarantined.iter().map(|(_, why)| (why, "; a start moves the session to quarantine/"));
    for (line, then) in short.chain(replayed.notes.iter().map(|line| (line, ""))) {
        let (path, what) = line.split_once(": ").unwrap_or((line, "damaged"));
        look.sheet(path, |sheet| sheet.damage(format!("{what}{then}")));
    }
    for file in &replayed.unfit {
        look.sheet(file, |sheet| {
            sheet.damage("what was committed to it beside a hole in the journal does not fit");
        });
    }
    for file in &replayed.cut {
        look.sheet(file, |sheet| sheet.note("bytes past its last commit; a start cuts them"));
    }
    let format = store.read("format");
    look.sheet("format", |sheet| match format {
        // A newer one never comes here.
        Ok(bytes) => drop(format::read(bytes.as_deref(), sheet)),
        Err(trouble) => sheet.trouble(&trouble),
    });
    look.all();
    Ok(look.pass)
}

impl Look<'_> {
    fn sheet(&mut self, path: &str, write: impl FnOnce(&mut Sheet)) {
        let mut sheet = Sheet::new(path);
        write(&mut sheet);
        self.pass.findings.extend(sheet.finish());
    }

    fn whole<T>(&mut self, path: &str, read: impl FnOnce(&[u8], &mut Sheet) -> T) -> Option<T> {
        whole(self.store, path, &mut self.pass.findings, |bytes, sheet| Some(read(bytes, sheet)))
    }

    fn names(&mut self, dir: &str) -> BTreeMap<String, bool> {
        self.store.names(dir).unwrap_or_else(|trouble| {
            self.sheet(dir, |sheet| sheet.trouble(&trouble));
            BTreeMap::new()
        })
    }

    fn ids(&mut self, dir: &str) -> Vec<SessionId> {
        self.names(dir)
            .into_iter()
            .filter_map(|(name, folder)| name.parse().ok().filter(|_| folder))
            .collect()
    }

    fn all(&mut self) {
        let (open, trashed) = (self.ids("sessions"), self.ids("trash"));
        self.pass.sessions = open.len();
        self.recipient("operator", None);
        let mut records: BTreeMap<SessionId, Option<SessionRecord>> = BTreeMap::new();
        for id in &open {
            let dir = format!("sessions/{id}");
            self.recipient(&dir, Some(*id));
            if self.kept.0[&dir].end.closed {
                self.sheet(&dir, |sheet| sheet.damage("its timeline is closed, and it is not in the trash"));
            }
            // What is wrong with it was found before.
            let bytes = self.store.read(&format!("{dir}/session.json")).ok().flatten();
            records.insert(*id, bytes.and_then(|b| record::read(&b, *id, &mut Sheet::new(""))));
        }
        // A session that a start would set aside is not gone, and nothing is known of it.
        records.extend(self.store.aside().iter().map(|id| (*id, None)));
        let is_open = |id| records.contains_key(&id);
        let closed = self.whole("closed.jsonl", |bytes, sheet| closed::read(bytes, is_open, sheet));
        let closed = closed.unwrap_or_default();
        for id in &trashed {
            let dir = format!("trash/{id}");
            self.recipient(&dir, Some(*id));
            let ended = self.kept.0[&dir].end.closed;
            self.sheet(&dir, |sheet| {
                closed::trashed(*id, &closed, is_open(*id), sheet);
                if !ended {
                    sheet.damage("its timeline does not end with `closed`");
                }
            });
        }
        self.relations(&open, &records);
        self.pointers(&records);
        self.whole("keys.jsonl", keys::read);
        self.hosts();
        self.requests();
        self.aside();
        for file in ["feed.jsonl.1", "feed.jsonl"] {
            let read = self.store.open(file).and_then(|opened| match opened {
                Some(reader) => feed::read(file, reader).map_err(Trouble::Io),
                None => Ok(Vec::new()),
            });
            match read {
                Ok(found) => self.pass.findings.extend(found),
                Err(trouble) => self.sheet(file, |sheet| sheet.trouble(&trouble)),
            }
        }
    }

    fn recipient(&mut self, dir: &str, session: Option<SessionId>) {
        let store = self.store;
        let looked =
            self.kept.0.entry(dir.to_owned()).or_insert_with(|| recipient::look(store, dir, session));
        self.pass.findings.extend_from_slice(&looked.findings);
        self.pass.lines += looked.end.lines;
    }

    /// What one session's files say of other sessions: worth a note.
    fn relations(&mut self, open: &[SessionId], records: &BTreeMap<SessionId, Option<SessionRecord>>) {
        for id in open {
            let dir = format!("sessions/{id}");
            let gone = self.kept.0[&dir].watchers.iter().filter(|w| !records.contains_key(w));
            let gone: Vec<SessionId> = gone.copied().collect();
            self.sheet(&format!("{dir}/watchers.json"), |sheet| {
                for watcher in gone {
                    sheet.note_with(
                        format!("the watcher {watcher} is not open; the next notice drops it"),
                        &[watcher],
                    );
                }
            });
            let file = format!("{dir}/cursors.json");
            if let Some(cursors) = self.kept.0[&dir].cursors.clone() {
                let last = self.kept.0[&dir].end.last;
                self.sheet(&file, |sheet| {
                    if cursors.told > last {
                        sheet.note(format!("told is {}, where seq {last} is the last", cursors.told));
                    }
                });
                self.cursors(&file, &cursors);
            }
        }
        for name in self.names("followers").into_keys().filter(|n| n.strip_suffix(".json").is_some()) {
            let file = format!("followers/{name}");
            if let Some(cursors) = self.whole(&file, cursors::read).flatten() {
                self.cursors(&file, &cursors);
            }
        }
    }

    fn cursors(&mut self, file: &str, cursors: &Cursors) {
        let mut sheet = Sheet::new(file);
        for (target, cursor) in &cursors.follows {
            let dirs = [format!("sessions/{target}"), format!("trash/{target}")];
            let Some(looked) = dirs.iter().find_map(|dir| self.kept.0.get(dir)) else { continue };
            if let Some(what) = cursors::beyond(cursor.seq, cursor.segment, cursor.offset, &looked.end) {
                sheet.note_with(format!("it has read session {target} up to {what}"), &[*target]);
            }
        }
        self.pass.findings.extend(sheet.finish());
    }

    fn pointers(&mut self, records: &BTreeMap<SessionId, Option<SessionRecord>>) {
        let records = records.iter().map(|(id, record)| (*id, record.as_ref())).collect();
        let mut labels = BTreeMap::new();
        self.contents("labels", &mut labels);
        self.pass.findings.extend(pointers::compare(pointers::LABELS, &labels, &records));
        let mut bindings = BTreeMap::new();
        for (harness, folder) in self.names("bindings") {
            if folder {
                self.contents(&format!("bindings/{harness}"), &mut bindings);
            }
        }
        self.pass.findings.extend(pointers::compare(pointers::BINDINGS, &bindings, &records));
    }

    fn contents(&mut self, dir: &str, into: &mut BTreeMap<String, Vec<u8>>) {
        for (name, _) in self.names(dir).into_iter().filter(|(n, folder)| !folder && !n.starts_with('.')) {
            let path = format!("{dir}/{name}");
            let bytes = self.whole(&path, |bytes, _| bytes.to_vec());
            into.extend(bytes.map(|bytes| (path, bytes)));
        }
    }

    fn hosts(&mut self) {
        for id in self.ids("hosts") {
            let dir = format!("hosts/{id}");
            for name in host::FILES {
                self.whole(&format!("{dir}/{name}"), |bytes, sheet| host::read(name, bytes, sheet));
            }
            let of = |name: &str| self.store.read(&format!("{dir}/{name}")).ok().flatten();
            if let (Some(record), Some(queue)) = (of("host.json"), of("queue.json")) {
                self.sheet(&format!("{dir}/host.json"), |sheet| host::numbers(&record, &queue, sheet));
            }
        }
    }

    fn requests(&mut self) {
        for name in self.names("spool").into_keys().filter(|n| spool::is_request(n)) {
            self.whole(&format!("spool/{name}"), spool::read);
        }
    }

    /// What was set aside already.
    fn aside(&mut self) {
        let names = self.names("quarantine");
        for name in names.keys().filter(|n| n.strip_suffix(".why").is_none() && !n.starts_with('.')) {
            let why = self.store.read(&format!("quarantine/{name}.why")).ok().flatten();
            let why = why.map(|b| String::from_utf8_lossy(&b).trim_end().to_owned());
            let why = why.as_deref().unwrap_or("nothing says why");
            self.sheet(&format!("quarantine/{name}"), |sheet| sheet.note(format!("set aside: {why}")));
        }
    }
}
