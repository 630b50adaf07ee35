//! One change to one settings file: worked out, shown, and only then made.

use std::path::Path;

use super::HooksError;
use super::claude;
use super::diff;
use super::json_text::{ParseError, parse};
use super::memory::Memory;
use super::ours::{Standing, check_form, compare};
use super::place::{Scope, Surroundings};
use super::plan;
use super::receipt::{Receipt, Receipts};
use super::replace::{Snapshot, remove_empty};

/// A settings file of Claude Code, as it was when it was looked at.
#[derive(Debug)]
pub struct Settings {
    snapshot: Snapshot,
    receipts: Receipts,
    receipt: Option<Receipt>,
    /// A line about a receipt that could not be read.
    pub warning: Option<String>,
}

/// A change that is known in full and not made yet.
#[derive(Debug)]
pub struct Change {
    settings: Settings,
    after: Option<String>,
    keeps: Keeps,
}

#[derive(Debug)]
enum Keeps {
    Receipt(Option<Memory>),
    Nothing,
}

impl Settings {
    /// Reads the settings of a scope.
    pub fn read(surroundings: &Surroundings, scope: Scope) -> Result<Self, HooksError> {
        let snapshot = Snapshot::read(&surroundings.claude_settings(scope))?;
        let receipts = Receipts::new(&surroundings.minder_home, claude::HARNESS);
        let (receipt, warning) = match receipts.load(&snapshot.file) {
            Ok(receipt) => (receipt, None),
            Err(line) => (None, Some(line)),
        };
        Ok(Self { snapshot, receipts, receipt, warning })
    }

    /// The file, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.snapshot.path
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.snapshot.text.is_some()
    }

    /// How they stand to the pack for a program.
    pub fn standing(&self, program: &str) -> Result<Standing, HooksError> {
        let pack = claude::pack(program);
        let text = self.snapshot.text.as_deref().unwrap_or_default();
        let document = parse(text).map_err(|error| self.broken(error))?;
        check_form(text, &document, &pack).map_err(|error| self.broken(error))?;
        Ok(compare(&document, &pack))
    }

    /// The change that puts the hooks in; nothing if they are there as they should be.
    pub fn install(self, program: &str) -> Result<Option<Change>, HooksError> {
        let memory = self.receipt.as_ref().map(|receipt| &receipt.memory);
        let installed = plan::install(self.snapshot.text.as_deref(), &claude::pack(program), memory)
            .map_err(|error| self.broken(error))?;
        Ok(installed.map(|installed| Change {
            settings: self,
            after: Some(installed.text),
            keeps: Keeps::Receipt(installed.memory),
        }))
    }

    /// The change that takes them out; nothing if none is there.
    pub fn uninstall(self) -> Result<Option<Change>, HooksError> {
        let Some(text) = &self.snapshot.text else { return Ok(None) };
        let memory = self.receipt.as_ref().map(|receipt| &receipt.memory);
        let left = plan::uninstall(text, memory).map_err(|error| self.broken(error))?;
        Ok(left.map(|after| Change { settings: self, after, keeps: Keeps::Nothing }))
    }

    fn broken(&self, error: ParseError) -> HooksError {
        let ParseError { line, column, what } = error;
        HooksError::Broken { path: self.snapshot.path.clone(), line, column, what }
    }
}

impl Change {
    /// The file that would be changed.
    pub fn path(&self) -> &Path {
        &self.settings.snapshot.path
    }

    /// What would be changed, as a unified diff.
    pub fn diff(&self) -> String {
        diff::unified(self.path(), self.settings.snapshot.text.as_deref(), self.after.as_deref())
    }

    /// Makes the change.
    pub fn make(self) -> Result<(), HooksError> {
        let Self { settings: Settings { snapshot, receipts, receipt, .. }, after, keeps } = self;
        let mut folders = receipt.map(|receipt| receipt.made_folders).unwrap_or_default();
        match keeps {
            Keeps::Receipt(memory) => {
                folders.extend(snapshot.missing_folders());
                // The receipt first: one without its hooks is harmless, hooks without theirs leave a trace.
                receipts.keep(&snapshot.file, memory, folders)?;
                snapshot.write(after.as_deref().unwrap_or_default())
            }
            Keeps::Nothing => {
                match &after {
                    Some(text) => snapshot.write(text)?,
                    None => snapshot.remove()?,
                }
                if after.is_none() {
                    remove_empty(&folders);
                }
                receipts.drop(&snapshot.file)
            }
        }
    }
}
