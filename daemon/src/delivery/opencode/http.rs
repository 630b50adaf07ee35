//! HTTP, as much of it as is needed to ask a server on this machine, and to listen to what it tells: one request a connection.

use std::io;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest answer.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// Longest head of an answer, and longest line of what is told.
const LINE_MAX: usize = 4 * 1024 * 1024;
/// Longest head of a piece.
const PIECE_MAX: usize = 1_024;

/// A server.
#[derive(Clone, Debug)]
pub struct Place {
    address: SocketAddr,
    /// The header that names who asks.
    who: String,
}

/// An answer that is still coming.
#[derive(Debug)]
pub struct Coming {
    stream: TcpStream,
    status: u16,
    form: Form,
    /// What was read and not understood yet.
    raw: Vec<u8>,
    /// Its bytes.
    body: Vec<u8>,
}

/// How the end of an answer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// So many bytes are still to come.
    Length(usize),
    /// In pieces, each with its length before it.
    Pieces(Piece),
    /// With the connection.
    Closes,
    /// It is over.
    Over,
}

/// Where in a piece one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// Before its length.
    Head,
    /// So many bytes of it are still to come.
    Within(usize),
    /// Behind its bytes, before the end of the line.
    Behind,
}

impl Place {
    /// A server, and the user and password that it asks for, where it does.
    pub fn new(address: SocketAddr, password: Option<(&str, &str)>) -> Self {
        let who = password.map(|(user, word)| {
            format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(format!("{user}:{word}")))
        });
        Self { address, who: who.unwrap_or_default() }
    }

    /// Asks; gives the status and what was answered.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        let mut coming = self.open(method, path, body).await?;
        while coming.more().await? {
            if coming.body.len() > ANSWER_MAX {
                return Err(broken());
            }
        }
        Ok((coming.status, serde_json::from_slice(&coming.body).unwrap_or_default()))
    }

    /// Asks, and listens from then on.
    pub async fn listen(&self, path: &str) -> io::Result<Coming> {
        let coming = self.open("GET", path, None).await?;
        if coming.status == 200 { Ok(coming) } else { Err(broken()) }
    }

    async fn open(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Coming> {
        let mut stream = TcpStream::connect(self.address).await?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.who,
            body.len(),
        );
        stream.write_all(request.as_bytes()).await?;
        let mut raw = Vec::new();
        loop {
            if let Some(end) = raw.windows(4).position(|four| four == b"\r\n\r\n") {
                let (status, form) = head(&String::from_utf8_lossy(&raw[..end])).ok_or_else(broken)?;
                raw.drain(..end + 4);
                return Ok(Coming { stream, status, form, raw, body: Vec::new() });
            }
            if raw.len() > LINE_MAX || stream.read_buf(&mut raw).await? == 0 {
                return Err(broken());
            }
        }
    }
}

impl Coming {
    /// The next thing that is told. May be given up and called again.
    pub async fn next(&mut self) -> io::Result<Value> {
        loop {
            while let Some(end) = self.body.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.body.drain(..=end).collect();
                if let Some(told) = line.strip_prefix(b"data:")
                    && let Ok(told) = serde_json::from_slice(told)
                {
                    return Ok(told);
                }
            }
            if self.body.len() > LINE_MAX || !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads on; false at its end.
    async fn more(&mut self) -> io::Result<bool> {
        take(&mut self.form, &mut self.raw, &mut self.body)?;
        if self.form == Form::Over {
            return Ok(false);
        }
        // What was read before a wait that was given up stays in `raw`.
        match self.stream.read_buf(&mut self.raw).await? {
            0 if self.form == Form::Closes => Ok(false),
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => take(&mut self.form, &mut self.raw, &mut self.body).map(|()| true),
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("it is no answer of an HTTP server")
}

/// The status, and how the end is told.
fn head(text: &str) -> Option<(u16, Form)> {
    let mut lines = text.split("\r\n");
    let status: u16 = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let mut form = if matches!(status, 204 | 304) { Form::Over } else { Form::Closes };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match (name.to_ascii_lowercase().as_str(), form) {
            (_, Form::Over) => {}
            ("transfer-encoding", _) if value.eq_ignore_ascii_case("chunked") => {
                form = Form::Pieces(Piece::Head);
            }
            ("transfer-encoding", _) => return None,
            ("content-length", Form::Closes) => form = Form::Length(value.parse().ok()?),
            _ => {}
        }
    }
    Some((status, form))
}

/// Takes what is understood off what was read.
fn take(form: &mut Form, raw: &mut Vec<u8>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let (used, next) = match *form {
            Form::Over => (0, Form::Over),
            Form::Closes => (give(raw, raw.len(), body), Form::Closes),
            Form::Length(left) => {
                let used = give(raw, left, body);
                (used, if used == left { Form::Over } else { Form::Length(left - used) })
            }
            Form::Pieces(Piece::Within(left)) => {
                let used = give(raw, left, body);
                let at = if used == left { Piece::Behind } else { Piece::Within(left - used) };
                (used, Form::Pieces(at))
            }
            Form::Pieces(at) => match raw.iter().position(|byte| *byte == b'\n') {
                None if raw.len() > PIECE_MAX => return Err(broken()),
                None => (0, *form),
                Some(end) if at == Piece::Behind => (end + 1, Form::Pieces(Piece::Head)),
                Some(end) => {
                    let line = String::from_utf8_lossy(&raw[..end]);
                    let length = line.split(';').next().unwrap_or_default().trim();
                    match usize::from_str_radix(length, 16).map_err(|_| broken())? {
                        0 => (end + 1, Form::Over),
                        length => (end + 1, Form::Pieces(Piece::Within(length))),
                    }
                }
            },
        };
        let stays = used == 0 && next == *form;
        raw.drain(..used);
        *form = next;
        if stays || *form == Form::Over {
            return Ok(());
        }
    }
}

fn give(raw: &[u8], most: usize, body: &mut Vec<u8>) -> usize {
    let used = raw.len().min(most);
    body.extend_from_slice(&raw[..used]);
    used
}

/// A word as it stands in a path or in a query.
pub fn quoted(word: &str) -> String {
    let mut quoted = String::new();
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            quoted.push(char::from(byte));
        } else {
            quoted.push_str(&format!("%{byte:02X}"));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of an answer that is read in pieces of this size.
    fn read(form: Form, bytes: &[u8], size: usize) -> (Form, String) {
        let (mut form, mut raw, mut body) = (form, Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            raw.extend_from_slice(piece);
            take(&mut form, &mut raw, &mut body).unwrap();
        }
        (form, String::from_utf8(body).unwrap())
    }

    #[test]
    fn an_answer_is_the_same_whatever_the_pieces() {
        let pieces = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
        for size in 1..pieces.len() {
            let whole = (Form::Over, "hello world".to_owned());
            assert_eq!(read(Form::Pieces(Piece::Head), pieces, size), whole, "{size}");
            assert_eq!(read(Form::Length(11), b"hello world and more", size), whole, "{size}");
            let open = (Form::Closes, "hello world".to_owned());
            assert_eq!(read(Form::Closes, b"hello world", size), open, "{size}");
        }
        let (mut form, mut body) = (Form::Pieces(Piece::Head), Vec::new());
        assert!(take(&mut form, &mut b"what?\r\n".to_vec(), &mut body).is_err());
        assert!(take(&mut form, &mut vec![b'0'; 2_000], &mut body).is_err(), "a length without an end");
    }

    #[test]
    fn a_head_says_how_the_end_is_told() {
        let of = |lines: &str| head(lines);
        assert_eq!(of("HTTP/1.1 204 No Content\r\nContent-Length: 0"), Some((204, Form::Over)));
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 7"), Some((200, Form::Length(7))));
        assert_eq!(of("HTTP/1.0 404 Not Found"), Some((404, Form::Closes)));
        let pieces = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked";
        assert_eq!(of(pieces), Some((200, Form::Pieces(Piece::Head))));
        assert_eq!(of("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip"), None);
        assert_eq!(of("SSH-2.0-x"), None);
    }

    #[test]
    fn a_word_in_a_path_is_one_word() {
        assert_eq!(quoted("/a b/ü?x=1&y#%"), "%2Fa%20b%2F%C3%BC%3Fx%3D1%26y%23%25");
        assert_eq!(quoted("ses_0aZ-."), "ses_0aZ-.");
    }
}
