//! What a check finds: a line each, with the file it is about and how much it weighs.

use std::io;

use minder_proto::id::SessionId;

/// Most findings about one file; the rest are counted.
const MOST: usize = 20;
/// Longest text of one finding, in bytes.
const LONGEST: usize = 400;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Worth knowing, and no damage.
    Note,
    /// An invariant of the store does not hold.
    Damage,
    /// It could not be looked at.
    Unreadable,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The file or folder, relative to the store.
    pub path: String,
    /// What is wrong with it, or worth knowing.
    pub what: String,
    /// How much it weighs.
    pub weight: Weight,
    /// Sessions whose files it was concluded from, besides the file itself.
    pub also: Vec<SessionId>,
}

/// Why a file cannot be read as what it should be.
#[derive(Debug)]
pub enum Trouble {
    /// Something else has its name.
    Kind(&'static str),
    /// The system refused.
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Collects what is found in one file.
#[derive(Debug)]
pub struct Sheet {
    path: String,
    found: Vec<Finding>,
    more: usize,
}

impl Sheet {
    /// For the file with this path, relative to the store.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), found: Vec::new(), more: 0 }
    }

    /// An invariant does not hold.
    pub fn damage(&mut self, what: impl AsRef<str>) {
        self.put(Weight::Damage, what.as_ref(), &[]);
    }

    /// An invariant does not hold between this file and those of other sessions.
    pub fn damage_with(&mut self, what: impl AsRef<str>, also: &[SessionId]) {
        self.put(Weight::Damage, what.as_ref(), also);
    }

    /// Worth knowing.
    pub fn note(&mut self, what: impl AsRef<str>) {
        self.put(Weight::Note, what.as_ref(), &[]);
    }

    /// Worth knowing, and concluded from the files of other sessions too.
    pub fn note_with(&mut self, what: impl AsRef<str>, also: &[SessionId]) {
        self.put(Weight::Note, what.as_ref(), also);
    }

    /// It could not be read.
    pub fn trouble(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Kind(what) => self.damage(what),
            Trouble::Io(error) => self.put(Weight::Unreadable, &format!("cannot be read: {error}"), &[]),
        }
    }

    fn put(&mut self, weight: Weight, what: &str, also: &[SessionId]) {
        if self.found.len() >= MOST {
            self.more += 1;
            return;
        }
        let what = minder_proto::event::cut(what, LONGEST).to_owned();
        self.found.push(Finding { path: self.path.clone(), what, weight, also: also.to_vec() });
    }

    /// Everything that was found.
    pub fn finish(mut self) -> Vec<Finding> {
        if self.more > 0 {
            let weight = self.found.iter().map(|f| f.weight).max().unwrap_or(Weight::Damage);
            let what = format!("and {} more", self.more);
            self.found.push(Finding { path: self.path, what, weight, also: Vec::new() });
        }
        self.found
    }
}

/// What JSON says of a text that it cannot read, without the number of a line where there is only one.
pub fn unparsable(error: &serde_json::Error, one_line: bool) -> String {
    let text = error.to_string();
    let head = if one_line { text.rsplit_once(" at line ").map(|(head, _)| head) } else { None };
    format!("cannot be read: {}", head.unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_all_wrong_does_not_hide_the_others() {
        let mut sheet = Sheet::new("feed.jsonl");
        (0..1_000).for_each(|n| sheet.damage(format!("line {n}")));
        let found = sheet.finish();
        assert_eq!(found.len(), MOST + 1);
        assert_eq!(found[MOST].what, "and 980 more");
        assert!(found.iter().all(|f| f.path == "feed.jsonl" && f.weight == Weight::Damage));
    }
}
