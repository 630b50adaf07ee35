//! Reading one JSON object from a stream that may stay open behind it.

use std::os::fd::AsFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes of one input at most.
pub const MAX: usize = 32 * 1024 * 1024;

/// Finds the end of the object that a text begins with, piece by piece. It looks at brackets and strings only;
/// whether the object is JSON is for its parser to say.
#[derive(Debug, Default)]
struct Scanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

/// What a piece of text was.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The object goes on behind it.
    More,
    /// The object ends before this byte of it.
    End(usize),
    /// It is no object.
    Other,
}

impl Scanner {
    fn step(&mut self, piece: &[u8]) -> Step {
        for (i, byte) in piece.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' => {
                    self.begun = true;
                    self.depth += 1;
                }
                _ if !self.begun && byte.is_ascii_whitespace() => {}
                _ if !self.begun => return Step::Other,
                b'[' => self.depth += 1,
                b'"' => self.in_string = true,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Step::End(i + 1);
                    }
                }
                _ => {}
            }
        }
        Step::More
    }
}

/// The bytes of the first object on `fd`; `None` if there is none until the deadline, the end, or the limit.
pub fn read(fd: impl AsFd, deadline: Instant) -> Option<Vec<u8>> {
    let mut scanner = Scanner::default();
    let mut bytes = vec![0; 16 * 1024];
    let mut filled = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
        }
        match nix::unistd::read(&fd, &mut bytes[filled..]) {
            Ok(0) => return None,
            Ok(n) => {
                let piece = &bytes[filled..filled + n];
                match scanner.step(piece) {
                    Step::End(end) => {
                        bytes.truncate(filled + end);
                        return Some(bytes);
                    }
                    Step::Other => return None,
                    Step::More => filled += n,
                }
            }
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => return None,
        }
        if filled == bytes.len() {
            if filled >= MAX {
                return None;
            }
            bytes.resize(filled * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_object_ends_where_it_ends_however_it_is_cut() {
        let object = br#" {"a":"}\"{","b":[{"c":"\\"}],"d":"\u007d"}"#;
        let text = [object, &b"\n{\"next\":1}"[..]].concat();
        for size in 1..=text.len() {
            let mut scanner = Scanner::default();
            let mut at = 0;
            let end = text.chunks(size).find_map(|piece| match scanner.step(piece) {
                Step::End(end) => Some(at + end),
                step => {
                    assert_eq!(step, Step::More);
                    at += piece.len();
                    None
                }
            });
            assert_eq!(end, Some(object.len()), "pieces of {size}");
        }
        for other in ["[1]", "7", "null", "x", "\"{}\"", "}"] {
            assert_eq!(Scanner::default().step(other.as_bytes()), Step::Other, "{other}");
        }
    }

    #[test]
    fn a_stream_that_stays_open_is_not_waited_for() {
        let soon = || Instant::now() + Duration::from_secs(20);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"{\"a\":1}\n").unwrap();
        assert_eq!(read(&ours, soon()).unwrap(), b"{\"a\":1}");
        // Nothing, until the deadline; half of one, until the end.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(read(&ours, Instant::now() + Duration::from_millis(5)), None);
        theirs.write_all(b"{\"a\":").unwrap();
        drop(theirs);
        assert_eq!(read(&ours, soon()), None);
    }

    #[test]
    fn a_long_input_is_read_whole_and_an_endless_one_is_not() {
        let soon = || Instant::now() + Duration::from_secs(60);
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(300_000));
        let feed = |text: Vec<u8>| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            (ours, std::thread::spawn(move || theirs.write_all(&text).is_ok()))
        };
        let (ours, writer) = feed(long.clone().into_bytes());
        assert_eq!(read(&ours, soon()).unwrap(), long.as_bytes());
        assert!(writer.join().unwrap());
        let (ours, writer) = feed([&b"{\"a\":\""[..], &vec![b'x'; MAX]].concat());
        assert_eq!(read(&ours, soon()), None);
        drop(ours);
        writer.join().unwrap();
    }
}
