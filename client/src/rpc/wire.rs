//! HTTP/1.1 on one connection: as much of it as two programs of one project need.
//!
//! Each request is written with one call, and its connection is kept. The writing side is never closed early, since a
//! server takes that for the caller going away. Where a connection ends, what matters is whether the daemon had read
//! the request: the kernel says so (`ECONNRESET` where bytes were left unread), and only then is it sent again.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use minder_proto::PROTOCOL;
use minder_proto::rpc::{HEADER_PROTOCOL, HEADER_STORE};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{MsgFlags, recv, send};

/// Bytes of one answer at most.
const ANSWER_MAX: usize = 16 << 20;
/// Bytes of an answer's head at most.
const HEAD_MAX: usize = 16 << 10;

/// A point in time, or never.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    granted: Option<Duration>,
    until: Option<Instant>,
}

/// The deadline has passed.
#[derive(Debug)]
pub struct Passed;

impl Deadline {
    /// From now.
    pub fn within(granted: Option<Duration>) -> Self {
        Self { granted, until: granted.and_then(|d| Instant::now().checked_add(d)) }
    }

    /// What is left of it; `None` is any time.
    pub fn left(self) -> Result<Option<Duration>, Passed> {
        let Some(until) = self.until else { return Ok(None) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Passed) } else { Ok(Some(left)) }
    }

    /// What was granted at the beginning.
    pub fn granted(self) -> Option<Duration> {
        self.granted
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum WireError {
    /// The connection was closed before the daemon had read the request: it may be sent again.
    Unread,
    /// The connection was closed after that.
    Lost,
    /// No answer in time.
    Late(Option<Duration>),
    /// Not HTTP as we speak it.
    Broken(String),
    /// The system said no.
    Io(io::Error),
}

/// The lines of a request's head that say who calls.
#[derive(Clone, Debug)]
pub struct Head(String);

impl Head {
    /// The protocol of this build, and the store that is meant.
    pub fn of(store: &Path) -> Self {
        let mut encoded = String::new();
        for &byte in store.as_os_str().as_bytes() {
            match byte {
                b'!'..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
                _ => encoded.push_str(&format!("%{byte:02X}")),
            }
        }
        Self(format!("{HEADER_PROTOCOL}: {PROTOCOL}\r\n{HEADER_STORE}: {encoded}\r\n"))
    }

    /// Nothing, which is not checked.
    pub fn bare() -> Self {
        Self(String::new())
    }
}

/// A connection.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
    head: Head,
    used: bool,
}

impl Wire {
    /// On a stream that is connected.
    pub fn new(stream: UnixStream, head: Head) -> Self {
        Self { stream, head, used: false }
    }

    /// Whether the daemon has closed a connection that was kept from an earlier call.
    pub fn was_closed(&mut self) -> bool {
        let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        // Anything but "nothing there yet" is the end of it; nobody speaks without being asked.
        self.used && recv(self.stream.as_raw_fd(), &mut [0; 1], peek) != Err(Errno::EAGAIN)
    }

    /// Sends a request, reads its answer, and says whether the connection may be used again. In between `waiting` is
    /// called with what becomes readable when the answer comes.
    pub fn exchange(
        &mut self,
        body: &[u8],
        deadline: Deadline,
        waiting: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<(Vec<u8>, bool), WireError> {
        self.used = true;
        let mut request = format!(
            "POST / HTTP/1.1\r\nhost: minder\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n",
            self.head.0,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        // A request that is refused by its head alone is answered before it is written to its end.
        let cut_short = match self.write(&request, deadline) {
            Ok(()) => false,
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => true,
            Err(e) => return Err(failure(e, deadline)),
        };
        waiting(self.stream.as_fd());
        match self.answer(deadline) {
            Err(WireError::Lost) if cut_short => Err(WireError::Unread),
            Ok((answer, again)) => Ok((answer, again && !cut_short)),
            failed => failed,
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(deadline.left().map_err(|Passed| io::ErrorKind::TimedOut)?)?;
            match self.send(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Without the signal that a closed connection gives by default: a command that dies of a closed pipe on its
    /// standard output, as it should, must not die of this.
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        let flags = MsgFlags::MSG_NOSIGNAL;
        #[cfg(not(target_os = "linux"))]
        let flags = MsgFlags::empty();
        Ok(send(self.stream.as_raw_fd(), bytes, flags)?)
    }

    fn answer(&mut self, deadline: Deadline) -> Result<(Vec<u8>, bool), WireError> {
        let mut bytes = Vec::with_capacity(4 << 10);
        let (head, length) = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break (AnswerHead::read(&bytes[..end])?, end + 4);
            }
            if bytes.len() > HEAD_MAX {
                return Err(WireError::Broken("the head of the answer has no end".to_owned()));
            }
            self.read(&mut bytes, deadline)?;
        };
        let whole = length.checked_add(head.length).filter(|_| head.length <= ANSWER_MAX);
        let whole = whole.ok_or_else(|| {
            WireError::Broken(format!("an answer of {} bytes is over the limit of {ANSWER_MAX}", head.length))
        })?;
        // It grows with what comes: a length is only what somebody says.
        while bytes.len() < whole {
            self.read(&mut bytes, deadline)?;
        }
        let again = head.again && bytes.len() == whole;
        bytes.truncate(whole);
        bytes.drain(..length);
        // Errors of a request as a whole have a status of their own and an answer all the same.
        if head.status == 200 || bytes.first() == Some(&b'{') {
            return Ok((bytes, again));
        }
        Err(WireError::Broken(format!("the daemon answered with HTTP status {}", head.status)))
    }

    /// Reads some more. The end of the stream is an error, by which it is known whether the request was read.
    fn read(&mut self, bytes: &mut Vec<u8>, deadline: Deadline) -> Result<(), WireError> {
        let mut some = [0; 16 << 10];
        loop {
            let left = deadline.left().map_err(|Passed| WireError::Late(deadline.granted()))?;
            self.stream.set_read_timeout(left).map_err(WireError::Io)?;
            match self.stream.read(&mut some) {
                Ok(0) if bytes.is_empty() && self.was_left_unread(deadline) => return Err(WireError::Unread),
                Ok(0) => return Err(WireError::Lost),
                Ok(n) => {
                    bytes.extend_from_slice(&some[..n]);
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => {
                    let unread = bytes.is_empty() && cfg!(target_os = "linux");
                    return Err(if unread { WireError::Unread } else { WireError::Lost });
                }
                Err(e) => return Err(failure(e, deadline)),
            }
        }
    }

    /// After the daemon has shut down its side: waits until it has closed it, and asks the kernel whether anything of
    /// the request was still to be read then.
    fn was_left_unread(&self, deadline: Deadline) -> bool {
        if !cfg!(target_os = "linux") {
            return false;
        }
        let brief = Duration::from_secs(1);
        let left = deadline.left().ok().flatten().map_or(brief, |left| left.min(brief));
        let closed = &mut [PollFd::new(self.stream.as_fd(), PollFlags::empty())];
        let closed = poll(closed, u16::try_from(left.as_millis()).unwrap_or(u16::MAX)) == Ok(1);
        let reset = |e: io::Error| e.kind() == io::ErrorKind::ConnectionReset;
        closed && self.stream.take_error().ok().flatten().is_some_and(reset)
    }
}

fn failure(error: io::Error, deadline: Deadline) -> WireError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => WireError::Late(deadline.granted()),
        _ => WireError::Io(error),
    }
}

/// What the head of an answer says.
struct AnswerHead {
    status: u16,
    length: usize,
    again: bool,
}

impl AnswerHead {
    fn read(head: &[u8]) -> Result<Self, WireError> {
        let broken = |what: &str| WireError::Broken(format!("the answer is not HTTP as expected: {what}"));
        let text = std::str::from_utf8(head).map_err(|_| broken("its head is no text"))?;
        let mut lines = text.split("\r\n");
        let first =
            lines.next().and_then(|l| l.strip_prefix("HTTP/1.1 ")).ok_or_else(|| broken("no HTTP/1.1"))?;
        let status = first.get(..3).and_then(|s| s.parse().ok()).ok_or_else(|| broken("no status"))?;
        let (mut length, mut again) = (None, true);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| broken("a line without a colon"))?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().ok();
            } else if name.eq_ignore_ascii_case("connection") {
                again = !value.eq_ignore_ascii_case("close");
            }
        }
        Ok(Self { status, length: length.ok_or_else(|| broken("no length"))?, again })
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}
