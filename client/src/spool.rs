//! Requests that nobody could be given: each is left as one file in the store's `spool/`, which the daemon takes
//! in order when it starts. What was said is on disk before the caller is told so.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use minder_proto::STORE_FORMAT;
use minder_proto::error::exit;
use minder_proto::layout::Home;
use minder_proto::rpc::Spooled;
use minder_proto::stamp::Stamp;
use serde::Serialize;
use uuid::Uuid;

use crate::cli::Outcome;
use crate::context::Context;
use crate::fault::CommandError;
use crate::link::Absent;

/// Leaves a call of a command, and tells the caller so, and why. A start that was refused ends the command with the
/// daemon's own code: the next call would be refused as well. Its `key` is the file's name, where it has that form;
/// another key stands beside it in the call.
pub fn leave(context: &Context, method: &str, call: &impl Serialize, absent: Absent) -> Outcome {
    let params = serde_json::to_value(call)
        .map_err(|e| CommandError::software(format!("a request cannot be written: {e}")))?;
    let key = params.get("key").and_then(|k| k.as_str()).and_then(|k| k.parse::<Uuid>().ok());
    let name = key.filter(|k| k.get_version_num() == 7).unwrap_or_else(Uuid::now_v7);
    let home = context.home()?;
    let spooled = Spooled { method: method.to_owned(), params, at: Stamp::now() };
    // The store may be out of reach too, as in a sandbox: then nothing is recorded, and the first reason stands.
    match put(home, name, &spooled) {
        Ok(()) => {}
        Err(SpoolError::Io(error)) => {
            let what = format!("{}; and it cannot be left in {}", absent.error, home.spool().display());
            return Err(CommandError { message: CommandError::io(what, &error).message, ..absent.error });
        }
        Err(error) => return Err(error.into()),
    }
    let told = match absent.reason {
        Some(reason) => format!("recorded; no daemon is running: {reason}"),
        None => "recorded; no daemon is running".to_owned(),
    };
    if absent.error.exit != exit::UNAVAILABLE {
        return Err(CommandError { message: told, ..absent.error });
    }
    context.printer.tell(told);
    Ok(exit::OK)
}

/// Why a request was not left.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The store has another format: what this build writes there, nobody reads as it was meant.
    #[error("nothing was recorded: the store {} says {found:?}, this build writes {STORE_FORMAT:?}: upgrade minder", store.display())]
    Format {
        /// The store.
        store: PathBuf,
        /// What its `format` says.
        found: String,
    },
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<SpoolError> for CommandError {
    fn from(error: SpoolError) -> Self {
        match error {
            SpoolError::Format { .. } => Self::new("version", exit::VERSION, error.to_string()),
            SpoolError::Io(error) => Self::io("the spool", &error),
        }
    }
}

/// A store without a `format` is one that no daemon has opened yet.
fn check_format(home: &Home) -> Result<(), SpoolError> {
    match std::fs::read_to_string(home.format()) {
        Ok(text) if text.trim_end() != STORE_FORMAT => {
            let found = text.trim_end().chars().take(60).collect();
            Err(SpoolError::Format { store: home.root().to_owned(), found })
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes `spool/<name>.json`: whole or not at all, and on disk when this returns.
pub fn put(home: &Home, name: Uuid, spooled: &Spooled) -> Result<(), SpoolError> {
    check_format(home)?;
    let folder = home.spool();
    if !folder.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        sync(home.root())?;
        sync(home.root().parent().unwrap_or(Path::new("/")))?;
    }
    // A name that no reader takes for a request, in the same folder, so that the rename is one step.
    let temporary = folder.join(format!(".{name}.new"));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = serde_json::to_vec(spooled)
        .map_err(io::Error::from)
        .and_then(|bytes| file.write_all(&bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, folder.join(format!("{name}.json"))));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written?;
    Ok(sync(&folder)?)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_request_is_one_private_file_with_its_key_as_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("store"));
        let name = Uuid::now_v7();
        let spooled = Spooled {
            method: "session.state".into(),
            params: serde_json::json!({"key": name.to_string()}),
            at: Stamp::now(),
        };
        put(&home, name, &spooled).unwrap();
        let entries: Vec<_> = std::fs::read_dir(home.spool()).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(entries, [home.spool().join(format!("{name}.json"))]);
        let mode = |p: &Path| p.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&entries[0]), mode(&home.spool()), mode(home.root())), (0o600, 0o700, 0o700));
        let read: Spooled = serde_json::from_slice(&std::fs::read(&entries[0]).unwrap()).unwrap();
        assert_eq!(read, spooled);
        // The same request again is the same file.
        put(&home, name, &spooled).unwrap();
        assert_eq!(std::fs::read_dir(home.spool()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        std::fs::write(home.spool(), "a file stands in its place").unwrap();
        let spooled = Spooled { method: "m".into(), params: serde_json::Value::Null, at: Stamp::now() };
        assert!(put(&home, Uuid::now_v7(), &spooled).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        // A file that ends in the middle of a word, or that names another format.
        std::fs::remove_file(home.spool()).unwrap();
        for other in ["minder-store 99\n", "minder-st", ""] {
            std::fs::write(home.format(), other).unwrap();
            let error = put(&home, Uuid::now_v7(), &spooled);
            assert!(matches!(error, Err(SpoolError::Format { .. })), "{other:?}: {error:?}");
            assert!(!home.spool().exists());
        }
    }
}
