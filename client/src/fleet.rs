//! All open sessions as the files show them, and how one is picked out of them by its selector.

use std::collections::HashMap;
use std::path::Path;

use minder_proto::caller::read_id;
use minder_proto::error::exit;
use minder_proto::id::{MIN_PARTIAL, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::SessionRecord;
use minder_proto::selector::{Selector, SelectorError};
use minder_proto::snapshot::{self, ReadError};
use minder_proto::stamp::{Stamp, short_age};
use minder_proto::text::{first_line, named, one_line};

use crate::fault::CommandError;

/// Every open session that can be read, and those that cannot.
#[derive(Debug, Default)]
pub struct Fleet {
    /// In the order of creation.
    pub records: Vec<SessionRecord>,
    /// Why others cannot be shown.
    pub unreadable: Vec<ReadError>,
    /// Where each stands in `records`.
    places: HashMap<SessionId, usize>,
}

impl Fleet {
    /// Reads every record of the store.
    pub fn read(home: &Home) -> Result<Self, CommandError> {
        let (records, unreadable) =
            snapshot::records(home).map_err(|e| CommandError::io(home.sessions().display(), &e))?;
        Ok(Self::of(records, unreadable))
    }

    /// These sessions, where nobody asks for others: who shows one session need not read ten thousand.
    pub fn only(records: Vec<SessionRecord>) -> Self {
        Self::of(records, Vec::new())
    }

    fn of(records: Vec<SessionRecord>, unreadable: Vec<ReadError>) -> Self {
        let places = records.iter().enumerate().map(|(place, record)| (record.id, place)).collect();
        Self { records, unreadable, places }
    }

    /// The sessions that the words on the command line name; all of them without words.
    pub fn select(
        &self,
        home: &Home,
        words: &[String],
        caller: Option<SessionId>,
    ) -> Result<Vec<&SessionRecord>, CommandError> {
        let Some(selector) = Selector::parse_all(words)? else {
            return Ok(self.records.iter().collect());
        };
        let found = selector.resolve(self.records.iter(), caller).map_err(|e| self.explain(home, e))?;
        Ok(found.iter().filter_map(|m| self.get(m.id)).collect())
    }

    /// The one session that a word names.
    pub fn one(
        &self,
        home: &Home,
        word: &str,
        caller: Option<SessionId>,
    ) -> Result<&SessionRecord, CommandError> {
        let id = Selector::parse(word)?
            .resolve_one(self.records.iter(), caller)
            .map_err(|e| self.explain(home, e))?;
        Ok(self.get(id).expect("a selector finds only what it was given"))
    }

    /// The record of a session.
    pub fn get(&self, id: SessionId) -> Option<&SessionRecord> {
        self.places.get(&id).map(|place| &self.records[*place])
    }

    /// A session as lines for people name it: its title, its label where that differs, its short id.
    pub fn named(&self, home: &Home, id: SessionId) -> String {
        let title = |record: &SessionRecord| named(&record.title, &record.label, Some(&id.short()));
        match self.get(id).map(title).or_else(|| snapshot::record(home, id).ok().map(|r| title(&r))) {
            Some(named) => named,
            None => match snapshot::tombstone(home, id) {
                Some(line) => named(&line.title, &line.label, Some(&format!("{}, closed", id.short()))),
                None => format!("{} (gone)", id.short()),
            },
        }
    }

    /// Somebody in the fewest words: a label, `you` for the person, `minder`.
    pub fn label(&self, home: &Home, party: Party) -> String {
        match party {
            Party::Operator => "operator".to_owned(),
            Party::Minder => "minder".to_owned(),
            Party::Session(id) => match self
                .get(id)
                .map(|r| r.label.clone())
                .or_else(|| snapshot::record(home, id).ok().map(|r| r.label))
            {
                Some(label) => label,
                None => snapshot::tombstone(home, id).map_or_else(|| id.short(), |line| line.label),
            },
        }
    }

    /// A selector's failure with what is known beside: that a session of this name is closed, or unreadable.
    fn explain(&self, home: &Home, error: SelectorError) -> CommandError {
        let SelectorError::NotFound(name) = &error else { return error.into() };
        if let Some(bad) = self.unreadable_named(home, name) {
            return bad;
        }
        let Some(closed) = snapshot::tombstones_named(home, name).into_iter().next() else {
            return CommandError::from(error).hint("minder ls");
        };
        let age = short_age(closed.at.age(Stamp::now()));
        let mut message = format!("{name:?} was closed {age} ago, {}", closed.state);
        if let Some(note) = &closed.note {
            message.push_str(": ");
            message.push_str(&one_line(first_line(note)));
        }
        CommandError { session: Some(closed.id), ..CommandError::new("gone", exit::GONE, message) }
    }

    /// The failure of the one unreadable session that `name` means by its label or id, if it means one.
    fn unreadable_named(&self, home: &Home, name: &str) -> Option<CommandError> {
        let by_label = read_id(&home.label(name));
        let bad = self.unreadable.iter().find(|error| {
            let (ReadError::Corrupt { path, .. } | ReadError::Io { path, .. }) = error else { return false };
            let Some(id) = path.parent().and_then(Path::file_name).and_then(|n| n.to_str()) else {
                return false;
            };
            by_label.is_some_and(|l| l.to_string() == id)
                || (name.len() >= MIN_PARTIAL && id.starts_with(&name.to_ascii_lowercase()))
        })?;
        Some(CommandError::data(bad.to_string()).hint("minder store check"))
    }
}

/// The record of the session that a word names outright, by its label or its whole id: one small file instead of
/// every record. Nothing where anything else has to be looked at.
pub fn outright(home: &Home, word: &str) -> Option<SessionRecord> {
    let id = word.parse().ok().or_else(|| read_id(&home.label(word)))?;
    let record = snapshot::record(home, id).ok()?;
    (record.label == word || record.id.to_string() == word.to_ascii_lowercase()).then_some(record)
}
