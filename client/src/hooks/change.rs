//! One change to one file of a harness: worked out, shown, and only then made.

use std::path::{Path, PathBuf};

use super::HooksError;
use super::diff;
use super::hindrance;
use super::json_text::{Document, ParseError, parse};
use super::memory::Memory;
use super::ours::{Standing, check_form, compare};
use super::pack::{Body, Pack};
use super::place::{Scope, Surroundings};
use super::plan::{self, Installed};
use super::receipt::{Receipt, Receipts};
use super::replace::{Snapshot, remove_empty};
use super::sandbox::{self, Offer};
use super::script;

/// A file as it was when it was looked at, with what is remembered of it.
#[derive(Debug)]
struct Looked {
    snapshot: Snapshot,
    receipts: Receipts,
    receipt: Option<Receipt>,
    warning: Option<String>,
}

impl Looked {
    fn at(path: &Path, surroundings: &Surroundings, harness: &'static str) -> Result<Self, HooksError> {
        let snapshot = Snapshot::read(path)?;
        let receipts = Receipts::new(&surroundings.minder_home, harness);
        let (receipt, warning) = match receipts.load(&snapshot.file) {
            Ok(receipt) => (receipt, None),
            Err(line) => (None, Some(line)),
        };
        Ok(Self { snapshot, receipts, receipt, warning })
    }

    fn memory(&self) -> Option<&Memory> {
        self.receipt.as_ref().map(|receipt| &receipt.memory)
    }

    fn broken(&self, error: ParseError) -> HooksError {
        let ParseError { line, column, what } = error;
        HooksError::Broken { path: self.snapshot.path.clone(), line, column, what }
    }
}

/// The settings of a harness in which its hooks stand.
#[derive(Debug)]
pub struct Settings {
    pack: &'static Pack,
    looked: Looked,
}

/// Codex's configuration, for what its sandbox lets tools write.
#[derive(Debug)]
pub struct SandboxConfig {
    looked: Looked,
    folder: String,
}

/// What there is to do about a sandbox.
#[derive(Debug)]
pub enum SandboxOffer {
    /// It lets through what tools say.
    Given,
    /// This change would.
    Change(Box<Change>),
    /// A person has to write it.
    ByHand,
}

/// A change that is known in full and not made yet.
#[derive(Debug)]
pub struct Change {
    looked: Looked,
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
    pub fn read(surroundings: &Surroundings, pack: &'static Pack, scope: Scope) -> Result<Self, HooksError> {
        let looked = Looked::at(&pack.file(surroundings, scope), surroundings, pack.name)?;
        Ok(Self { pack, looked })
    }

    /// The file, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.looked.snapshot.path
    }

    /// Whether there is a file.
    pub fn exists(&self) -> bool {
        self.looked.snapshot.text.is_some()
    }

    /// A line about a receipt that could not be read.
    pub fn warning(&self) -> Option<&str> {
        self.looked.warning.as_deref()
    }

    /// How they stand to the pack for a program.
    pub fn standing(&self, program: &str) -> Result<Standing, HooksError> {
        if let Some(wanted) = script::text(self.pack, program) {
            return Ok(script::compare(self.pack, self.script()?, &wanted));
        }
        let groups = self.pack.groups(program);
        let (text, document) = self.parsed()?;
        check_form(text, &document, &groups).map_err(|error| self.looked.broken(error))?;
        let hindrances = hindrance::in_text(&document, self.pack);
        Ok(Standing { hindrances, ..compare(&document, &groups) })
    }

    /// Events whose hooks the harness runs only after its user reviewed them, and has never shown.
    pub fn unreviewed(&self, surroundings: &Surroundings) -> Result<Vec<String>, HooksError> {
        let Some(config) = self.pack.reader.reviews.map(|file| config_file(self.pack, surroundings, file))
        else {
            return Ok(Vec::new());
        };
        let config = Snapshot::read(&config)?.text.unwrap_or_default();
        let (_, document) = self.parsed()?;
        Ok(hindrance::unreviewed(&document, self.path(), &config))
    }

    /// The configuration beside these settings, where it has the older `notify`.
    pub fn notifies(&self, surroundings: &Surroundings) -> Result<Option<PathBuf>, HooksError> {
        let Some(name) = self.pack.reader.reviews else { return Ok(None) };
        let config = Snapshot::read(&config_file(self.pack, surroundings, name))?;
        let has = config.text.is_some_and(|text| hindrance::notifies(&text));
        Ok(has.then_some(config.path))
    }

    /// The change that puts the hooks in; nothing if they are there as they should be.
    pub fn install(self, program: &str) -> Result<Option<Change>, HooksError> {
        if let Some(wanted) = script::text(self.pack, program) {
            let is_there = self.script()? == Some(&wanted);
            let keeps = Keeps::Receipt(None);
            return Ok((!is_there).then_some(Change { looked: self.looked, after: Some(wanted), keeps }));
        }
        let text = self.looked.snapshot.text.as_deref();
        let groups = self.pack.groups(program);
        let installed = match self.pack.beginning().filter(|_| text.is_none()) {
            // Made as a whole: what is taken back is the whole of it.
            Some(beginning) => plan::install(Some(beginning), &groups, None).map(|installed| {
                installed.map(|new| Installed { memory: Some(Memory::of_new_file(&new.text)), ..new })
            }),
            None => plan::install(text, &groups, self.looked.memory()),
        };
        let installed = installed.map_err(|error| self.looked.broken(error))?;
        Ok(installed.map(|installed| Change {
            looked: self.looked,
            after: Some(installed.text),
            keeps: Keeps::Receipt(installed.memory),
        }))
    }

    /// The change that takes them out; nothing if none is there.
    pub fn uninstall(self) -> Result<Option<Change>, HooksError> {
        let Some(text) = &self.looked.snapshot.text else { return Ok(None) };
        if matches!(self.pack.body, Body::Script(..)) {
            let ours = script::is_ours(text);
            return Ok(ours.then_some(Change { looked: self.looked, after: None, keeps: Keeps::Nothing }));
        }
        let left = plan::uninstall(text, self.looked.memory()).map_err(|error| self.looked.broken(error))?;
        Ok(left.map(|after| Change { looked: self.looked, after, keeps: Keeps::Nothing }))
    }

    /// The file of minder's own that is there; somebody else's of that name is an error.
    fn script(&self) -> Result<Option<&str>, HooksError> {
        match self.looked.snapshot.text.as_deref() {
            Some(text) if !script::is_ours(text) => {
                let what = "is somebody else's".to_owned();
                Err(HooksError::NoSettings { path: self.path().to_owned(), what })
            }
            text => Ok(text),
        }
    }

    fn parsed(&self) -> Result<(&str, Document), HooksError> {
        let text = self.looked.snapshot.text.as_deref().unwrap_or_default();
        Ok((text, parse(text).map_err(|error| self.looked.broken(error))?))
    }
}

/// A file of configuration beside the settings of a person.
fn config_file(pack: &Pack, surroundings: &Surroundings, name: &str) -> PathBuf {
    pack.file(surroundings, Scope::User).with_file_name(name)
}

impl SandboxConfig {
    /// Reads it; nothing for a harness without a sandbox that is known.
    pub fn read(surroundings: &Surroundings, pack: &'static Pack) -> Result<Option<Self>, HooksError> {
        let Some(name) = pack.sandbox else { return Ok(None) };
        let looked = Looked::at(&config_file(pack, surroundings, name), surroundings, pack.name)?;
        let spool = surroundings.minder_home.join("spool");
        let folder = spool.to_str().map(str::to_owned);
        Ok(folder.map(|folder| Self { looked, folder }))
    }

    /// The file, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.looked.snapshot.path
    }

    /// The lines that let tools speak, for a person who writes them.
    pub fn lines(&self) -> String {
        sandbox::lines(&self.folder)
    }

    /// What there is to do so that tools can speak.
    pub fn offer(self) -> SandboxOffer {
        match sandbox::offer(self.looked.snapshot.text.as_deref(), &self.folder) {
            Offer::Given => SandboxOffer::Given,
            Offer::ByHand => SandboxOffer::ByHand,
            Offer::Change { text, memory } => {
                let keeps = Keeps::Receipt(Some(memory));
                let change = Change { looked: self.looked, after: Some(text), keeps };
                SandboxOffer::Change(Box::new(change))
            }
        }
    }

    /// The change that takes it back; nothing where it is not minder's.
    pub fn take_back(self) -> Option<Change> {
        let text = self.looked.snapshot.text.as_deref()?;
        let after = sandbox::take_back(text, self.looked.memory(), &self.folder)?;
        Some(Change { looked: self.looked, after, keeps: Keeps::Nothing })
    }
}

impl Change {
    /// The file that would be changed.
    pub fn path(&self) -> &Path {
        &self.looked.snapshot.path
    }

    /// What would be changed, as a unified diff.
    pub fn diff(&self) -> String {
        diff::unified(self.path(), self.looked.snapshot.text.as_deref(), self.after.as_deref())
    }

    /// Makes the change.
    pub fn make(self) -> Result<(), HooksError> {
        let Self { looked: Looked { snapshot, receipts, receipt, .. }, after, keeps } = self;
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
