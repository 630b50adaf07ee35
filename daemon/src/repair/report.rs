//! What a repair says at its end: a line for each thing that it did, and what a check still finds after it.

use std::path::PathBuf;

use minder_proto::error::exit;
use minder_proto::text::one_line;
use serde::Serialize;

use crate::check;

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Done {
    /// The file or folder, relative to the store.
    pub path: String,
    /// What was done to it.
    pub what: String,
}

/// The outcome of a repair.
#[derive(Debug)]
pub struct Report {
    /// The store's folder.
    pub store: PathBuf,
    /// Everything that was done, in the order of paths.
    pub done: Vec<Done>,
    /// What a check says afterwards.
    pub after: check::Report,
}

impl Report {
    /// The exit code: that of the check afterwards.
    pub fn exit(&self) -> u8 {
        self.after.exit()
    }

    /// One line for each thing that was done, then what is still wrong, or that nothing is.
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for done in &self.done {
            text.push_str(&format!("{}: {}\n", one_line(&done.path), one_line(&done.what)));
        }
        let store = one_line(&self.store.to_string_lossy());
        if self.exit() == exit::OK {
            let did = if self.done.is_empty() { "nothing to repair" } else { "nothing is damaged any more" };
            text.push_str(&format!("{store}: {did}\n"));
        } else {
            let left = self.after.damage();
            text.push_str(&format!("{store}: still damaged:\n"));
            for (path, what) in left {
                text.push_str(&format!("{}: {}\n", one_line(path), one_line(what)));
            }
        }
        text
    }

    /// One object, with the same in it.
    pub fn to_json(&self) -> String {
        let left: Vec<_> = self
            .after
            .damage()
            .map(|(path, what)| Done { path: path.to_owned(), what: what.to_owned() })
            .collect();
        let shown = serde_json::json!({
            "store": self.store.to_string_lossy(),
            "clean": self.exit() == exit::OK,
            "done": self.done,
            "left": left,
        });
        shown.to_string() + "\n"
    }
}
