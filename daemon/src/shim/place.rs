//! What a shim has whatever its turn is: the lock of its folder, its signals, the socket on which it listens, the files that
//! it writes. All of it can be made before there is a turn.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use minder_proto::turn::folder::{LOCK, SPEC, Spec};
use nix::sys::stat::{Mode, umask};

use super::links::Links;
use super::report::{self, Shown};
use super::signals::Signals;
use super::spool::Spool;
use super::tree;

/// A shim's place in its folder, which its process works in.
#[derive(Debug)]
pub struct Place {
    pub signals: Signals,
    /// What the root orphans becomes a child of this process.
    pub subreaper: bool,
    pub links: Links,
    pub spool: Spool,
    pub shown: Shown,
    pub lock: File,
}

impl Place {
    /// Takes the folder; none where the turn is settled. The spec tells what for.
    pub fn take(folder: Option<&Path>) -> io::Result<Option<(Spec, Self)>> {
        let lock = enter(folder)?;
        // Somebody who looked before this shim held the lock has settled the turn.
        if report::is_there() {
            return Ok(None);
        }
        Ok(Some((Self::spec()?, Self::open(lock)?)))
    }

    /// What is to be done in the folder that this process is in.
    pub fn spec() -> io::Result<Spec> {
        Ok(serde_json::from_slice(&std::fs::read(SPEC)?)?)
    }

    fn open(lock: File) -> io::Result<Self> {
        Ok(Self {
            signals: Signals::take()?,
            subreaper: tree::subreaper(),
            links: Links::open()?,
            spool: Spool::create()?,
            shown: Shown::create()?,
            lock,
        })
    }
}

/// Makes a folder that is no turn's yet, and takes it.
pub fn make(folder: &Path) -> io::Result<Place> {
    DirBuilder::new().mode(0o700).create(folder)?;
    let place = Place::open(enter(Some(folder))?)?;
    // What is to be done, and what came of it, has only to be written into them.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(SPEC)?;
    report::prepare()?;
    Ok(place)
}

/// Goes into the folder and gives its lock, held.
fn enter(folder: Option<&Path>) -> io::Result<File> {
    if let Some(folder) = folder {
        std::env::set_current_dir(folder)?;
    }
    // It may be the leader of a group already, and then stays in its session: a daemon starts it as neither.
    let _ = nix::unistd::setsid();
    umask(Mode::from_bits_truncate(0o077));
    let lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(LOCK)?;
    // Somebody who only looks holds it for a moment.
    lock.lock()?;
    Ok(lock)
}
