//! The shim's process. It is this very program, also where its file was replaced or deleted since the daemon started, and
//! it is started without anything between fork and exec, so that a large daemon is not copied for it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How shims are started.
#[derive(Debug)]
pub struct Shims {
    program: PathBuf,
}

impl Shims {
    /// By this process's own program.
    pub fn own() -> io::Result<Self> {
        // What this names is what runs, whatever has its name by now.
        let program = Path::new("/proc/self/exe");
        if program.exists() {
            return Ok(Self { program: program.to_owned() });
        }
        Ok(Self { program: std::env::current_exe()? })
    }

    /// Starts one in the folder of a turn, with exactly this environment, which it gives on. Gives the process and our end
    /// of its connection.
    pub fn spawn(&self, folder: &Path, environment: &[(String, String)]) -> io::Result<(Child, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(&self.program)
            .arg0("minderd")
            .arg("shim")
            // It goes there itself: where a program is linked statically, to say so here would cost a fork.
            .arg(folder)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok((child, ours))
    }
}
