//! Where shims come from: a server that is started with the first turn, and whose copies they are. It is this very program,
//! also where its file was replaced or deleted since the daemon started, and it is started without anything between fork
//! and exec, so that a large daemon is not copied for it.
//!
//! One shim stands ready while turns are run: it has all that it needs but the turn itself, in a folder that becomes the
//! turn's by its new name.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::shim::server::{self, GO, READY, Wanted};

/// How long a server may take for one shim.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one that stood ready may take to go.
const LEAVE: Duration = Duration::from_secs(1);

/// How shims are started.
#[derive(Debug)]
pub struct Shims {
    program: PathBuf,
    server: Mutex<Option<Server>>,
    spare: Mutex<Option<Spare>>,
}

#[derive(Debug)]
struct Server {
    process: Child,
    socket: UnixStream,
}

/// A shim that stands ready.
#[derive(Debug)]
pub struct Spare {
    /// Its folder, which is to become that of a turn.
    pub folder: PathBuf,
    link: UnixStream,
}

impl Shims {
    /// By this process's own program.
    pub fn own() -> io::Result<Self> {
        // What this names is what runs, whatever has its name by now.
        let own = Path::new("/proc/self/exe");
        let program = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, server: Mutex::default(), spare: Mutex::default() })
    }

    /// Starts one in the folder of a turn, with an environment that it gives on exactly so. Gives our end of its connection.
    /// After an error a shim may have been started all the same.
    pub fn spawn(&self, wanted: &Wanted) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.ask(&OwnedFd::from(theirs))?;
        ours.set_write_timeout(Some(PATIENCE))?;
        server::tell(&ours, wanted)?;
        ours.set_write_timeout(None)?;
        Ok(ours)
    }

    /// Has one stand ready in a folder of this name, where none does.
    pub fn prepare(&self, folder: PathBuf) -> io::Result<()> {
        let mut spare = self.spare();
        if spare.is_none() {
            let link = self.spawn(&Wanted::Spare { folder: folder.clone() })?;
            *spare = Some(Spare { folder, link });
        }
        Ok(())
    }

    /// The one that stands ready, if it does by now.
    pub fn take(&self) -> Option<Spare> {
        let mut spare = self.spare();
        let mut found = spare.take()?;
        let mut byte = [0];
        match found.link.set_nonblocking(true).and_then(|()| found.link.read(&mut byte)) {
            Ok(1) if byte == [READY] => found.link.set_nonblocking(false).ok().map(|()| found),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                *spare = Some(found);
                None
            }
            // It is gone.
            _ => None,
        }
    }

    /// Sends the one that stands ready home, and waits until it and its folder are gone.
    pub fn retire(&self) {
        if let Some(spare) = self.spare().take() {
            spare.retire();
        }
    }

    fn spare(&self) -> MutexGuard<'_, Option<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, link: &OwnedFd) -> io::Result<()> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = server.as_mut() {
            match server::ask(&mut running.socket, link) {
                // Somebody has ended it, or it hangs.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => drop(server.take()),
                answer => return answer,
            }
        }
        server::ask(&mut server.insert(Server::start(&self.program)?).socket, link)
    }
}

impl Spare {
    /// Tells it what its turn is to be.
    pub fn tell(&self, wanted: &Wanted) -> io::Result<()> {
        self.link.set_write_timeout(Some(PATIENCE))?;
        server::tell(&self.link, wanted)
    }

    /// Has it begin: its folder has become the turn's.
    pub fn begin(mut self) -> io::Result<UnixStream> {
        self.link.write_all(&[GO])?;
        self.link.set_write_timeout(None)?;
        Ok(self.link)
    }

    /// Sends it home. What it leaves, if it does not go, the next start removes.
    pub fn retire(mut self) {
        let ended = self.link.set_nonblocking(false).and_then(|()| self.link.shutdown(Shutdown::Write));
        if ended.and_then(|()| self.link.set_read_timeout(Some(LEAVE))).is_ok() {
            let _ = io::copy(&mut self.link, &mut io::sink());
        }
    }
}

impl Server {
    fn start(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        ours.set_write_timeout(Some(PATIENCE))?;
        let process = Command::new(program)
            .arg0("minderd")
            .args(["shim", "--serve"])
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, socket: ours })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
