//! Which sessions a follower follows: those its selectors name, those a broad one sweeps in, and those that come to
//! match while it runs.

use std::collections::{HashMap, HashSet};

use minder_proto::caller::read_id;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::record::SessionRecord;
use minder_proto::selector::{Selector, SelectorError};
use minder_proto::snapshot::{self, ReadError};

use super::card;
use super::start::Arrival;
use crate::fault::CommandError;

/// One session to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The session.
    pub id: SessionId,
    /// True if a selector names it.
    pub named: bool,
    /// How it came to be followed.
    pub arrival: Arrival,
}

/// The selection of one follower.
#[derive(Debug)]
pub struct Roster {
    home: Home,
    me: Option<SessionId>,
    named: Vec<(String, Selector)>,
    broad: Vec<Selector>,
    all: bool,
    joined: HashSet<SessionId>,
    /// Sessions that were looked at and do not match, with the line after which they would be read if they did.
    others: HashMap<SessionId, u64>,
}

impl Roster {
    /// The selection that these words make; every session but the caller without words.
    pub fn new(home: &Home, me: Option<SessionId>, words: &[String]) -> Result<Self, CommandError> {
        let mut roster = Self {
            home: home.clone(),
            me,
            named: Vec::new(),
            broad: Vec::new(),
            all: words.is_empty(),
            joined: HashSet::new(),
            others: HashMap::new(),
        };
        for word in words.iter().flat_map(|w| w.split(',')) {
            let selector = Selector::parse(word)?;
            if word == "@all" {
                roster.all = true;
            } else if selector.is_broad() {
                roster.broad.push(selector);
            } else {
                roster.named.push((word.to_owned(), selector));
            }
        }
        Ok(roster)
    }

    /// True if sessions may join while it is followed.
    pub fn is_broad(&self) -> bool {
        self.all || !self.broad.is_empty()
    }

    /// The sessions to follow from the start, each once. `read_before` are those that the caller has positions in:
    /// of these also what was closed meanwhile.
    pub fn first(&mut self, read_before: &[SessionId]) -> Result<Vec<Joined>, CommandError> {
        let mut found = Vec::new();
        let mut fleet = None;
        for (word, selector) in std::mem::take(&mut self.named) {
            let id = self.name(&word, &selector, &mut fleet)?;
            if Some(id) == self.me {
                return Err(CommandError::refused("a session cannot follow itself"));
            }
            if self.joined.insert(id) {
                found.push(Joined { id, named: true, arrival: Arrival::Named });
            }
        }
        if self.all {
            for id in snapshot::ids(&self.home).map_err(|e| unreadable(&self.home, &e))? {
                self.sweep(id, &mut found);
            }
        } else if !self.broad.is_empty() {
            for record in &load(&self.home, &mut fleet)?.records {
                if self.matches(record)? {
                    self.sweep(record.id, &mut found);
                } else {
                    self.others.insert(record.id, record.last_seq);
                }
            }
        }
        if self.is_broad() {
            for id in read_before {
                if !self.joined.contains(id) && !self.others.contains_key(id) && self.matched(*id) {
                    self.sweep(*id, &mut found);
                }
            }
        }
        Ok(found)
    }

    /// Sessions that match by now and did not before.
    pub fn again(&mut self) -> Vec<Joined> {
        if !self.is_broad() {
            return Vec::new();
        }
        let ids = snapshot::ids(&self.home).unwrap_or_default();
        ids.into_iter().filter_map(|id| self.consider(id)).collect()
    }

    /// A session that the feed named: whether it is to be followed from now on.
    pub fn consider(&mut self, id: SessionId) -> Option<Joined> {
        if !self.is_broad() || Some(id) == self.me || self.joined.contains(&id) {
            return None;
        }
        let arrival = match self.others.get(&id) {
            Some(seq) => Arrival::Entered(*seq),
            None => Arrival::Appeared,
        };
        if !self.matched(id) {
            // One that appeared while this follow runs is new to it whenever it comes to match.
            self.others.entry(id).or_insert(0);
            return None;
        }
        self.others.remove(&id);
        self.joined.insert(id);
        Some(Joined { id, named: false, arrival })
    }

    fn sweep(&mut self, id: SessionId, found: &mut Vec<Joined>) {
        if Some(id) != self.me && self.joined.insert(id) {
            found.push(Joined { id, named: false, arrival: Arrival::Swept });
        }
    }

    /// True if the session, open or closed, matches a broad part.
    fn matched(&self, id: SessionId) -> bool {
        let Some(dir) = snapshot::timeline_dir(&self.home, id) else { return false };
        if self.all {
            return true;
        }
        let bytes = minder_proto::whole::read(&dir.join("session.json")).unwrap_or_default();
        let record = serde_json::from_slice::<SessionRecord>(&bytes);
        record.is_ok_and(|r| self.matches(&r).unwrap_or(false))
    }

    fn matches(&self, record: &SessionRecord) -> Result<bool, CommandError> {
        for selector in &self.broad {
            let found = selector.resolve(std::iter::once(record), self.me)?;
            if !found.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The one session that a word names, open or closed.
    fn name(
        &self,
        word: &str,
        selector: &Selector,
        fleet: &mut Option<Fleet>,
    ) -> Result<SessionId, CommandError> {
        let home = &self.home;
        let me = || self.me.ok_or_else(|| CommandError::from(SelectorError::NoCaller(word.to_owned())));
        match word {
            "." => return me(),
            "@parent" => {
                let parent = card::open(home, me()?).and_then(|c| c.parent);
                return parent.ok_or_else(|| CommandError::not_found("this session has no parent"));
            }
            _ => {}
        }
        // Most words are a label or an id: one small file instead of every record.
        let quick = word.parse().ok().or_else(|| read_id(&home.label(word)));
        if let Some(id) = quick {
            match snapshot::record(home, id) {
                Ok(record) if record.label == word || record.id.to_string() == word.to_ascii_lowercase() => {
                    return Ok(id);
                }
                Ok(_) | Err(ReadError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let fleet = load(home, fleet)?;
        match selector.resolve_one(fleet.records.iter(), self.me) {
            Ok(id) => Ok(id),
            Err(SelectorError::NotFound(_)) => {
                if let Some(closed) = snapshot::tombstones_named(home, word).into_iter().next() {
                    return Ok(closed.id);
                }
                match word.parse() {
                    Ok(id) if snapshot::timeline_dir(home, id).is_some() => Ok(id),
                    _ => Err(CommandError::not_found(format!("no session {word:?}")).hint("minder ls")),
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Every record, read once and only if it must be.
#[derive(Debug)]
struct Fleet {
    records: Vec<SessionRecord>,
}

fn load<'a>(home: &Home, fleet: &'a mut Option<Fleet>) -> Result<&'a Fleet, CommandError> {
    if fleet.is_none() {
        let (records, _) = snapshot::records(home).map_err(|e| unreadable(home, &e))?;
        *fleet = Some(Fleet { records });
    }
    Ok(fleet.as_ref().expect("it was read right above"))
}

fn unreadable(home: &Home, error: &std::io::Error) -> CommandError {
    CommandError::io(home.sessions().display(), error)
}
