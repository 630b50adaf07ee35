//! A WebSocket over a Unix socket, as much of it as a client of texts needs.

use std::io;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use uuid::Uuid;

/// Longest message that is read.
const MESSAGE_MAX: usize = 32 * 1024 * 1024;
/// Longest answer to the upgrade.
const HEAD_MAX: u64 = 16 * 1024;

const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A connection.
#[derive(Debug)]
pub struct Socket {
    stream: BufReader<UnixStream>,
    /// What was read of a frame that is not whole yet.
    frame: Vec<u8>,
    /// The frames of a message that is not whole yet.
    message: Vec<u8>,
}

impl Socket {
    /// Connects.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let mut stream = BufReader::new(UnixStream::connect(path).await?);
        // Any sixteen bytes: the answer to them tells a server that speaks this from one that repeats what it hears.
        let upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: bWluZGVyIGFza3MgaXQhIQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
        stream.write_all(upgrade.as_bytes()).await?;
        let mut head = (&mut stream).take(HEAD_MAX);
        let mut first = String::new();
        head.read_line(&mut first).await?;
        if !first.contains(" 101 ") {
            return Err(io::Error::other("it is no WebSocket"));
        }
        loop {
            let mut line = String::new();
            match head.read_line(&mut line).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        Ok(Self { stream, frame: Vec::new(), message: Vec::new() })
    }

    /// Sends a text.
    pub async fn send(&mut self, text: &str) -> io::Result<()> {
        let frame = frame(TEXT, text.as_bytes());
        self.stream.write_all(&frame).await
    }

    /// The next text; none at the end of the connection. May be given up and called again.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            let Some((last, kind, payload)) = take(&mut self.frame)? else {
                // What was read before a wait that was given up stays in `frame`.
                if self.stream.read_buf(&mut self.frame).await? == 0 {
                    return Ok(None);
                }
                continue;
            };
            match kind {
                CLOSE => return Ok(None),
                PING => self.stream.write_all(&frame(PONG, &payload)).await?,
                TEXT | CONTINUED => {
                    self.message.extend(payload);
                    if self.message.len() > MESSAGE_MAX {
                        return Err(too_long());
                    }
                    if last {
                        let text = String::from_utf8(std::mem::take(&mut self.message));
                        return text.map(Some).map_err(io::Error::other);
                    }
                }
                _ => {}
            }
        }
    }
}

fn too_long() -> io::Error {
    io::Error::other("a message that is too long")
}

/// One whole frame, masked as a client's are.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | kind];
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | u8::try_from(len).expect("it is below 126")),
        len @ 126..65_536 => {
            frame.push(0xfe);
            frame.extend(u16::try_from(len).expect("it is below 65,536").to_be_bytes());
        }
        len => {
            frame.push(0xff);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    let mask: [u8; 4] = Uuid::new_v4().as_bytes()[..4].try_into().expect("four of sixteen bytes");
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Takes a whole frame off what was read: whether it is a message's last, its kind, its bytes.
fn take(read: &mut Vec<u8>) -> io::Result<Option<(bool, u8, Vec<u8>)>> {
    let [first, second, rest @ ..] = read.as_slice() else { return Ok(None) };
    let (more, masked) = match second & 0x7f {
        126 => (2, second & 0x80 != 0),
        127 => (8, second & 0x80 != 0),
        _ => (0, second & 0x80 != 0),
    };
    if rest.len() < more {
        return Ok(None);
    }
    let length = match more {
        0 => usize::from(second & 0x7f),
        _ => rest[..more]
            .iter()
            .fold(0_usize, |length, byte| length.saturating_mul(256).saturating_add(usize::from(*byte))),
    };
    if masked || length > MESSAGE_MAX {
        return Err(too_long());
    }
    let (last, kind, begin) = (first & 0x80 != 0, first & 0x0f, 2 + more);
    if read.len() < begin + length {
        return Ok(None);
    }
    let payload = read[begin..begin + length].to_vec();
    read.drain(..begin + length);
    Ok(Some((last, kind, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's frame.
    fn served(last: bool, kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut made = frame(kind, payload);
        let head = made.len() - payload.len() - 4;
        made.truncate(head);
        made[0] = if last { 0x80 | kind } else { kind };
        made[1] &= 0x7f;
        made.extend(payload);
        made
    }

    #[test]
    fn frames_of_every_length_are_taken_whole_whatever_the_pieces() {
        for length in [0, 1, 125, 126, 65_535, 65_536, 70_000] {
            let payload = vec![b'x'; length];
            let bytes = [served(true, TEXT, &payload), served(true, PING, b"p")].concat();
            let mut read = Vec::new();
            let mut found = Vec::new();
            for piece in bytes.chunks(7_001) {
                read.extend(piece);
                while let Some(frame) = take(&mut read).unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, [(true, TEXT, payload), (true, PING, b"p".to_vec())], "{length}");
            assert!(read.is_empty());
        }
        let mut endless = vec![0x81, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(take(&mut endless).is_err());
    }

    #[test]
    fn what_is_sent_is_masked_and_can_be_read() {
        let text = "a".repeat(300);
        let made = frame(TEXT, text.as_bytes());
        assert_eq!((made[0], made[1]), (0x81, 0xfe));
        let mask: [u8; 4] = made[4..8].try_into().unwrap();
        let read: Vec<u8> = made[8..].iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m).collect();
        assert_eq!(read, text.as_bytes());
        assert!(take(&mut frame(TEXT, b"x")).is_err(), "a server masks nothing");
    }
}
