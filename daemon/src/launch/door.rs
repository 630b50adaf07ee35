//! The daemon's end: a socket for one start. The process in the window connects, the kernel says which process that is, it
//! is told what to become, and by the end of the connection it has become that, or says why not.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use minder_proto::layout::Home;
use minder_proto::record::Process;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

use crate::identity::{Ancestry, process_of};

/// How the names of these sockets begin.
pub const NAME: &str = "start-";
/// How long a process may take to read what it is to become, and to become it.
const BECOMES: Duration = Duration::from_secs(20);
/// Longest word of one that could not.
const WORD_MAX: u64 = 4_096;

/// What the process in the window becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub dir: String,
    /// The environment; what names the terminal it has of its own.
    pub env: BTreeMap<String, String>,
}

/// A socket that one process is waited for at.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// In the store's folder for what runs.
    pub fn open(home: &Home) -> io::Result<Self> {
        let path = home.run().join(format!("{NAME}{}", &Uuid::new_v4().simple().to_string()[..12]));
        let listener = within(&path, |short| UnixListener::bind(short))?;
        Ok(Self { listener, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for a process of this user that is the one of a window, or one that it has started. Whoever else comes is told nothing.
    pub async fn knock(&self, window: i32) -> io::Result<(Process, UnixStream)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let cred = stream.peer_cred()?;
            if cred.uid() != nix::unistd::geteuid().as_raw() {
                continue;
            }
            let Some(process) = cred.pid().and_then(process_of) else { continue };
            let is_of_it = Ancestry::of(Some(process.pid)).iter().any(|above| above.process.pid == window);
            if process.pid == window || is_of_it {
                return Ok((process, stream));
            }
            tracing::warn!(
                pid = process.pid,
                window,
                "a process that is not of its window asked what to become"
            );
        }
    }
}

/// Takes away what a daemon that was killed has left: nobody waits at these any more.
pub fn sweep(home: &Home) {
    let left = std::fs::read_dir(home.run()).into_iter().flatten().flatten();
    for door in left.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME))) {
        let _ = std::fs::remove_file(door.path());
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Tells a process what to become. At the end of the connection it has become that; the error is why it could not.
pub async fn tell(mut stream: UnixStream, order: &Order) -> Result<(), String> {
    let mut line = serde_json::to_vec(order).expect("an order is plain data");
    line.push(b'\n');
    let talk = async {
        stream.write_all(&line).await?;
        let mut word = String::new();
        (&mut stream).take(WORD_MAX).read_to_string(&mut word).await?;
        Ok::<_, io::Error>(word)
    };
    match tokio::time::timeout(BECOMES, talk).await {
        Ok(Ok(word)) if word.is_empty() => Ok(()),
        Ok(Ok(word)) => Err(word.trim_end().to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the process in its window does not answer".to_owned()),
    }
}

/// Does something with a socket's path. Those of sockets have a limit, those of folders have none.
#[cfg(target_os = "linux")]
pub fn within<T>(path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return act(path) };
    let open = std::fs::File::open(folder)?;
    act(&Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())).join(name))
}

/// Does something with a socket's path.
#[cfg(not(target_os = "linux"))]
pub fn within<T>(path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    act(path)
}
