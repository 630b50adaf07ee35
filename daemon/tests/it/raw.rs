//! A caller that speaks HTTP by hand, and badly where a test wants it to.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

/// Longer than anything here takes, shorter than a person's patience.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A connection.
pub struct Raw {
    pub stream: UnixStream,
    read: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl Raw {
    pub fn connect(path: &Path) -> Self {
        Self::on(UnixStream::connect(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    pub fn on(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a whole request with this body.
    pub fn post(&mut self, body: &str) {
        self.send(request(body, ""));
    }

    pub fn call(&mut self, body: &str) -> Answer {
        self.post(body);
        self.answer().expect("the connection was closed")
    }

    /// The next answer; `None` where the connection ends instead.
    pub fn answer(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more() {
                assert!(self.read.is_empty(), "half an answer: {:?}", String::from_utf8_lossy(&self.read));
                return None;
            }
        };
        let head = String::from_utf8(self.read[..end].to_vec()).unwrap();
        let length =
            head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let whole = end + length.unwrap_or(0);
        while self.read.len() < whole {
            assert!(self.more(), "an answer was cut off");
        }
        let body = String::from_utf8(self.read[end..whole].to_vec()).unwrap();
        self.read.drain(..whole);
        Some(Answer { status: head[9..12].parse().unwrap(), head, body })
    }

    /// Waits for the end of the connection; whatever still comes is dropped.
    pub fn ended(mut self) {
        while self.more() {}
    }

    /// Waits until the peer has closed the connection, and reads nothing.
    pub fn hung_up(&self) {
        let timeout = PollTimeout::try_from(DEADLINE).unwrap();
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        assert_eq!(poll(&mut fds, timeout), Ok(1), "it is open still");
    }

    fn more(&mut self) -> bool {
        let mut some = vec![0; 64 << 10];
        match self.stream.read(&mut some) {
            Ok(n) => {
                self.read.extend_from_slice(&some[..n]);
                n > 0
            }
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(e) => panic!("{e}"),
        }
    }
}

/// A request as bytes.
pub fn request(body: &str, headers: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: minder\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A call without parameters.
pub fn call(id: u64, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

/// Writes as much as the peer takes; says how much that was.
pub fn flood(stream: &mut UnixStream, total: usize) -> io::Result<usize> {
    let block = vec![b'x'; 64 << 10];
    let mut sent = 0;
    while sent < total {
        match stream.write(&block) {
            Ok(n) => sent += n,
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(sent);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(sent)
}

impl Raw {
    /// Connects again and again until nobody listens; the last connection that was had, if any.
    pub fn connect_until_gone(path: &Path) -> Option<Self> {
        let begun = std::time::Instant::now();
        let mut last = None;
        while let Ok(stream) = UnixStream::connect(path) {
            last = Some(Self::on(stream));
            assert!(begun.elapsed() < DEADLINE, "it listens still");
        }
        last
    }
}
