//! The store in the hands of a repair: the journal is replayed as a start does it, then files are set aside, and changed
//! by commits. Its user holds the store's lock. A repair that is cut off anywhere is a repair that may be begun again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use minder_proto::STORE_FORMAT;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;

use super::disk::{self, DiskError, at};
use super::durable;
use super::feed::Feed;
use super::files::Files;
use super::journal::{Journal, RECORD_MAX};
use super::kill_point::reach;
use super::op::{self, Op};
use super::recover::{quarantine, quarantine_file, unmark};
use super::{FOLDERS, OpenError, bring_up, kept, prepare, sweep};

/// A store under repair.
pub struct Mender {
    home: Home,
    files: Files,
    journal: Journal,
    /// What the replay did, a line each.
    pub notes: Vec<String>,
}

impl Mender {
    /// Makes the folders, replays the journal and sweeps, as a start does.
    pub fn open(home: &Home) -> Result<Self, OpenError> {
        let mut notes = Vec::new();
        for name in FOLDERS {
            // What stands where a folder should be would keep the store from being opened at all.
            let path = home.root().join(name);
            if path.symlink_metadata().is_ok_and(|m| !m.is_dir()) && !path.is_dir() {
                quarantine_file(home.root(), &path, name, "not a folder")?;
                notes.push(format!("{}: not a folder; moved to quarantine/", path.display()));
            }
        }
        let text = std::fs::read(home.format()).unwrap_or_default();
        if text.trim_ascii_end() != STORE_FORMAT.as_bytes() {
            if home.format().symlink_metadata().is_ok() {
                quarantine_file(home.root(), &home.format(), "format", "not the name of a format")?;
            }
            disk::replace(&home.format(), format!("{STORE_FORMAT}\n").as_bytes())?;
            notes.push(format!("{}: written anew", home.format().display()));
        }
        prepare(home, true, &mut notes)?;
        let (files, found, _) = bring_up(home, true, &mut notes)?;
        sweep::sweep(home, true, &mut notes)?;
        let journal = Journal::open(&home.journal(), &found, true)?;
        Ok(Self { home: home.clone(), files, journal, notes })
    }

    /// Commits changes and applies them; together, where one commit can hold them.
    pub fn commit(&mut self, ops: Vec<Op>) -> Result<(), DiskError> {
        let mut groups: Vec<Vec<Op>> = vec![Vec::new()];
        let mut size = 0;
        for op in ops {
            let more = op::encode(std::slice::from_ref(&op)).len();
            if size + more > RECORD_MAX / 2 && size > 0 {
                groups.push(Vec::new());
                size = 0;
            }
            size += more;
            groups.last_mut().expect("there is one").push(op);
        }
        for group in groups.into_iter().filter(|g| !g.is_empty()) {
            self.journal.commit(std::slice::from_ref(&group))?;
            reach("repair.committed");
            group.iter().try_for_each(|op| self.files.apply(op))?;
        }
        Ok(())
    }

    /// Keeps a copy of a file in the quarantine, with the reason beside it, before it is written anew.
    pub fn keep(&mut self, file: &str, why: &str) -> Result<(), DiskError> {
        let from = self.home.root().join(file);
        let bytes = std::fs::read(&from).map_err(at(&from))?;
        kept::copy(self.home.root(), &flat(file), &bytes, why)?;
        reach("repair.kept");
        Ok(())
    }

    /// Moves a file, or whatever has its name, to the quarantine, with the reason beside it.
    pub fn set_aside(&mut self, file: &str, why: &str) -> Result<(), DiskError> {
        let root = self.home.root().to_owned();
        quarantine_file(&root, &root.join(file), &flat(file), why)?;
        reach("repair.aside");
        Ok(())
    }

    /// Moves the folder of a session to the quarantine.
    pub fn set_session_aside(&mut self, session: SessionId, why: &str) -> Result<(), DiskError> {
        quarantine(self.home.root(), session, why)?;
        reach("repair.aside");
        Ok(())
    }

    /// Gives a file or folder the permissions that it should have.
    pub fn permit(&mut self, file: &str) -> Result<(), DiskError> {
        let path = if file == "." { self.home.root().to_owned() } else { self.home.root().join(file) };
        let meta = path.symlink_metadata().map_err(at(&path))?;
        let mode = if meta.is_dir() { 0o700 } else { 0o600 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(at(&path))
    }

    /// Asks every follower to look at everything once.
    pub fn ring(&mut self) -> Result<(), DiskError> {
        Feed::open(&self.home.feed())?.ring_all();
        Ok(())
    }

    /// Makes everything durable and empties the journal.
    pub fn finish(mut self) -> Result<(), DiskError> {
        let last = self.journal.begin_checkpoint()?;
        durable::everything(self.home.root(), &self.files.take_touched())?;
        self.journal.end_checkpoint(last)?;
        unmark(self.home.root())
    }
}

/// The name in the quarantine of a file of the store: `sessions/<id>/session.json` is `<id>.session.json`.
pub(super) fn flat(file: &str) -> String {
    let path = Path::new(file.strip_prefix("sessions/").unwrap_or(file));
    let parts: PathBuf = path.components().collect();
    parts.to_string_lossy().replace('/', ".")
}
