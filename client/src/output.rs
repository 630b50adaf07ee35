//! Standard output as a stream that is written whole: in large pieces, also where the other end is slow or
//! set to not block, and with an end that says whether somebody still reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes that are collected before they are written.
const PIECE: usize = 64 * 1024;

/// A buffered writer of one file descriptor.
#[derive(Debug)]
pub struct Output<F> {
    fd: F,
    held: Vec<u8>,
}

impl<F: AsFd> Output<F> {
    /// A stream to `fd`; nothing is written yet.
    pub fn new(fd: F) -> Self {
        Self { fd, held: Vec::new() }
    }

    /// Where it is written to.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes `bytes`, and writes when enough has come together.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Writes what is held.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut rest = self.held.as_slice();
        let result = loop {
            if rest.is_empty() {
                break Ok(());
            }
            match nix::unistd::write(&self.fd, rest) {
                Ok(n) => rest = &rest[n..],
                Err(Errno::EINTR) => {}
                // A stream that was set to not block by whoever shares it: wait until it takes more.
                Err(Errno::EAGAIN) => {
                    let mut watched = [PollFd::new(self.fd.as_fd(), PollFlags::POLLOUT)];
                    match poll(&mut watched, PollTimeout::NONE) {
                        Ok(_) | Err(Errno::EINTR) => {}
                        Err(errno) => break Err(errno.into()),
                    }
                }
                Err(errno) => break Err(errno.into()),
            }
        };
        self.held.clear();
        result
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn everything_arrives_through_a_stream_that_does_not_block() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            let mut output = Output::new(ours);
            copy.chunks(1_000).for_each(|chunk| output.push(chunk).unwrap());
            output.flush().unwrap();
        });
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).unwrap();
        writer.join().unwrap();
        assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_and_no_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut output = Output::new(ours);
        output.push(b"x").unwrap();
        assert_eq!(output.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        output.flush().unwrap();
    }
}
