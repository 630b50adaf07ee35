//! How a client reaches the server: WebSocket on a Unix socket, a message a frame; or standard input and output, a
//! message a line.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha1::{Digest, Sha1};

/// What a server adds to a key, by RFC 6455.
const KEY: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message that is taken.
const MOST: u64 = 64 * 1024 * 1024;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The way to one client. Messages from it are read where it was accepted.
pub struct Link {
    out: Mutex<Box<dyn Write + Send>>,
    frames: bool,
}

impl Link {
    pub fn stdio() -> Self {
        Self { out: Mutex::new(Box::new(std::io::stdout())), frames: false }
    }

    /// False where the client is gone.
    pub fn send(&self, message: &Value) -> bool {
        let text = message.to_string();
        if self.frames {
            self.frame(TEXT, text.as_bytes())
        } else {
            let mut out = self.out.lock().expect("nobody panics with it");
            out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).is_ok()
        }
    }

    fn frame(&self, kind: u8, body: &[u8]) -> bool {
        let mut frame = vec![0x80 | kind];
        match body.len() {
            len @ 0..=125 => frame.push(u8::try_from(len).expect("so few")),
            len @ 126..=0xffff => {
                frame.push(126);
                frame.extend(u16::try_from(len).expect("so few").to_be_bytes());
            }
            len => {
                frame.push(127);
                frame.extend((len as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(body);
        let mut out = self.out.lock().expect("nobody panics with it");
        out.write_all(&frame).and_then(|()| out.flush()).is_ok()
    }
}

/// Greets a client of the socket.
pub fn accept(stream: &UnixStream) -> Result<(Link, BufReader<UnixStream>)> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut key = None;
    loop {
        let mut line = String::new();
        ensure!(reader.read_line(&mut line)? > 0, "it went away");
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("sec-websocket-key")
        {
            key = Some(value.trim().to_owned());
        }
    }
    let key = key.context("no WebSocket")?;
    let accept = STANDARD.encode(Sha1::digest(format!("{key}{KEY}")));
    let mut out = stream.try_clone()?;
    out.write_all(
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        )
        .as_bytes(),
    )?;
    Ok((Link { out: Mutex::new(Box::new(out)), frames: true }, reader))
}

/// The next message; nothing when the client has ended.
pub fn message(link: &Link, reader: &mut impl Read) -> Result<Option<String>> {
    let mut whole = Vec::new();
    loop {
        let mut head = [0; 2];
        if reader.read_exact(&mut head).is_err() {
            return Ok(None);
        }
        let len = match head[1] & 0x7f {
            126 => {
                let mut len = [0; 2];
                reader.read_exact(&mut len)?;
                u64::from(u16::from_be_bytes(len))
            }
            127 => {
                let mut len = [0; 8];
                reader.read_exact(&mut len)?;
                u64::from_be_bytes(len)
            }
            len => u64::from(len),
        };
        ensure!(len <= MOST, "a frame of {len} bytes");
        let mut mask = [0; 4];
        if head[1] & 0x80 != 0 {
            reader.read_exact(&mut mask)?;
        }
        let mut body = vec![0; usize::try_from(len)?];
        reader.read_exact(&mut body)?;
        body.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        match head[0] & 0x0f {
            CLOSE => {
                link.frame(CLOSE, &body);
                return Ok(None);
            }
            PING => drop(link.frame(PONG, &body)),
            PONG => {}
            0..=2 => {
                whole.append(&mut body);
                if head[0] & 0x80 != 0 {
                    return Ok(Some(String::from_utf8(whole)?));
                }
            }
            other => bail!("a frame of kind {other}"),
        }
    }
}
