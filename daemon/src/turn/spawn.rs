//! Where shims come from: a server that is started with the first turn, and whose copies they are. It is this very program,
//! also where its file was replaced or deleted since the daemon started, and it is started without anything between fork
//! and exec, so that a large daemon is not copied for it.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::shim::server::{self, Wanted};

/// How long a server may take for one shim.
const PATIENCE: Duration = Duration::from_secs(10);

/// How shims are started.
#[derive(Debug)]
pub struct Shims {
    program: PathBuf,
    server: Mutex<Option<Server>>,
}

#[derive(Debug)]
struct Server {
    process: Child,
    socket: UnixStream,
}

impl Shims {
    /// By this process's own program.
    pub fn own() -> io::Result<Self> {
        // What this names is what runs, whatever has its name by now.
        let own = Path::new("/proc/self/exe");
        let program = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, server: Mutex::default() })
    }

    /// Starts one in the folder of a turn, with exactly this environment, which it gives on. Gives our end of its
    /// connection. After an error a shim may have been started all the same.
    pub fn spawn(&self, folder: &Path, environment: Vec<(String, String)>) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.ask(&OwnedFd::from(theirs))?;
        ours.set_write_timeout(Some(PATIENCE))?;
        server::tell(&ours, &Wanted { folder: folder.to_owned(), environment })?;
        ours.set_write_timeout(None)?;
        Ok(ours)
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
