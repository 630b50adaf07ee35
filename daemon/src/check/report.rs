//! What a check says at its end: lines in the order of paths, or one object; and the exit code.

use std::path::PathBuf;

use minder_proto::error::exit;
use minder_proto::text::one_line;
use serde::Serialize;

use super::finding::{Finding, Weight};

/// The outcome of a check.
#[derive(Debug)]
pub struct Report {
    /// The store's folder.
    pub store: PathBuf,
    /// Open sessions.
    pub sessions: usize,
    /// Lines of all timelines.
    pub lines: u64,
    /// What was found, in the order of paths.
    pub findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Shown<'a> {
    store: std::borrow::Cow<'a, str>,
    clean: bool,
    sessions: usize,
    lines: u64,
    damage: Vec<Row<'a>>,
    unreadable: Vec<Row<'a>>,
    notes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    path: &'a str,
    what: &'a str,
}

impl Report {
    /// The exit code: what could not be looked at weighs more than what is damaged; notes weigh nothing.
    pub fn exit(&self) -> u8 {
        match self.findings.iter().map(|f| f.weight).max() {
            None | Some(Weight::Note) => exit::OK,
            Some(Weight::Damage) => exit::DATA,
            Some(Weight::Unreadable) => exit::IO,
        }
    }

    /// What is wrong, without notes: each file with what it is.
    pub fn damage(&self) -> impl Iterator<Item = (&str, &str)> {
        let damage = self.findings.iter().filter(|f| f.weight > Weight::Note);
        damage.map(|f| (f.path.as_str(), f.what.as_str()))
    }

    /// One line for each finding; where nothing is wrong, one that says so.
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            if finding.weight == Weight::Note {
                text.push_str("note: ");
            }
            text.push_str(&format!("{}: {}\n", one_line(&finding.path), one_line(&finding.what)));
        }
        if self.exit() == exit::OK {
            let store = one_line(&self.store.to_string_lossy());
            let plural = |n: u64, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
            let (sessions, lines) = (plural(self.sessions as u64, "session"), plural(self.lines, "line"));
            text.push_str(&format!("{store}: {sessions}, {lines}; nothing is damaged\n"));
        }
        text
    }

    /// One object, with the same in it.
    pub fn to_json(&self) -> String {
        let of = |weight| {
            let rows = self.findings.iter().filter(|f| f.weight == weight);
            rows.map(|f| Row { path: &f.path, what: &f.what }).collect()
        };
        let shown = Shown {
            store: self.store.to_string_lossy(),
            clean: self.exit() == exit::OK,
            sessions: self.sessions,
            lines: self.lines,
            damage: of(Weight::Damage),
            unreadable: of(Weight::Unreadable),
            notes: of(Weight::Note),
        };
        serde_json::to_string(&shown).expect("strings and numbers are always JSON") + "\n"
    }
}
