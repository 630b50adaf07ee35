//! The connection to one shim: lines of JSON, orders out and news in. The shim does not depend on it: whatever happens to
//! it, the turn goes on, and what the shim found stands in its folder.

use std::io;
use std::os::unix::net::UnixStream as Blocking;
use std::path::Path;

use minder_proto::turn::folder::{News, Order, SOCKET};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Longest line.
const LINE_MAX: usize = 64 * 1024;

/// A connection.
#[derive(Debug)]
pub struct Link {
    stream: BufReader<UnixStream>,
    /// What was read of a line that is not whole yet.
    partial: Vec<u8>,
}

impl Link {
    /// Over a connected socket. To be made within a runtime.
    pub fn over(stream: Blocking) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: BufReader::new(UnixStream::from_std(stream)?), partial: Vec::new() })
    }

    /// The next news; none at the end of the connection. May be given up and called again.
    pub async fn news(&mut self) -> Option<News> {
        loop {
            // What was read before a wait that was given up stays in `partial`.
            let read = self.stream.read_until(b'\n', &mut self.partial).await;
            if !matches!(read, Ok(n) if n > 0) || self.partial.len() > LINE_MAX {
                return None;
            }
            if self.partial.last() != Some(&b'\n') {
                continue;
            }
            let line = std::mem::take(&mut self.partial);
            // A kind of news that only another build knows is none for this one.
            if let Ok(news) = serde_json::from_slice(&line) {
                return Some(news);
            }
        }
    }

    /// Says something to the shim; false where nobody listens any more.
    pub async fn order(&mut self, order: Order) -> bool {
        let mut line = serde_json::to_vec(&order).expect("an order is plain data");
        line.push(b'\n');
        self.stream.write_all(&line).await.is_ok()
    }

    /// Waits for the other end to go.
    pub async fn ended(&mut self) {
        while self.news().await.is_some() {}
    }
}

/// Connects to the shim that listens in the folder. Paths of sockets have a limit, those of folders have none.
#[cfg(target_os = "linux")]
pub fn connect(folder: &Path) -> io::Result<Blocking> {
    use std::os::fd::AsRawFd;
    let open = std::fs::File::open(folder)?;
    Blocking::connect(format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd()))
}

/// Connects to the shim that listens in the folder.
#[cfg(not(target_os = "linux"))]
pub fn connect(folder: &Path) -> io::Result<Blocking> {
    Blocking::connect(folder.join(SOCKET))
}

/// Ends the shim that listens in the folder, whatever state it is in. False where none does, or the system does not tell
/// which process it is.
#[cfg(target_os = "linux")]
pub fn put_down(folder: &Path) -> bool {
    use nix::sys::signal::{Signal, kill};
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    let listens = connect(folder).ok().and_then(|stream| getsockopt(&stream, PeerCredentials).ok());
    // What is of another process namespace has no number here.
    let pid = listens.map(|who| nix::unistd::Pid::from_raw(who.pid())).filter(|pid| pid.as_raw() > 0);
    pid.is_some_and(|pid| kill(pid, Signal::SIGKILL).is_ok())
}

/// Ends the shim that listens in the folder.
#[cfg(not(target_os = "linux"))]
pub fn put_down(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    #[test]
    fn news_come_whole_whatever_the_pieces_and_strange_ones_are_passed_over() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = Blocking::pair().unwrap();
            let mut link = Link::over(ours).unwrap();
            theirs.write_all(b"{\"is\":\"dreaming\"}\nnot json\n{\"is\":\"spaw").unwrap();
            let early = tokio::time::timeout(Duration::from_millis(1), link.news()).await;
            assert!(early.is_err(), "half a line is none");
            theirs.write_all(b"ned\",\"pid\":7}\n{\"is\":\"settled\"}\n").unwrap();
            assert_eq!(link.news().await, Some(News::Spawned { pid: 7 }));
            assert_eq!(link.news().await, Some(News::Settled { found: None }));
            drop(theirs);
            assert_eq!(link.news().await, None);
            assert!(!link.order(Order::End { why: minder_proto::turn::names::Trigger::Cancel }).await);
        });
    }
}
