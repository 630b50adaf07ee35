//! As much of HTTP/1.1 as harnesses use on loopback: one request at a time on a connection, bodies by length
//! or in chunks, answers by length or as an event stream that ends with the connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The largest body that is read. Harnesses send their whole conversation, with images.
const MAX_BODY: u64 = 64 << 20;
/// The longest header line, and how many there may be.
const MAX_LINE: u64 = 64 << 10;
const MAX_HEADERS: usize = 200;

/// A request as it came.
pub struct Incoming {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub body: Vec<u8>,
}

/// The reading half of a connection.
pub struct Requests {
    reader: BufReader<TcpStream>,
}

impl Requests {
    pub fn new(stream: TcpStream) -> Self {
        Self { reader: BufReader::new(stream) }
    }

    /// The next request; `None` at the end of the connection.
    pub fn next(&mut self, out: &mut TcpStream) -> io::Result<Option<Incoming>> {
        let Some(first) = self.line()? else { return Ok(None) };
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(malformed("a request line"));
        };
        let path = target.split('?').next().unwrap_or(target).to_owned();
        let method = method.to_owned();
        let mut length = 0u64;
        let mut chunked = false;
        let mut headers = 0;
        loop {
            let line = self.line()?.ok_or_else(|| malformed("headers"))?;
            if line.is_empty() {
                break;
            }
            headers += 1;
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                _ if headers > MAX_HEADERS => return Err(malformed("the number of headers")),
                "content-length" => length = value.parse().map_err(|_| malformed("content-length"))?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "content-encoding" => return Err(malformed("a compressed body")),
                "expect" => out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                _ => {}
            }
        }
        let body = if chunked { self.chunks()? } else { self.exactly(length)? };
        Ok(Some(Incoming { method, path, body }))
    }

    /// A line without its end; `None` if the connection ended before its first byte.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        if (&mut self.reader).take(MAX_LINE).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.strip_suffix('\n') {
            Some(full) => Ok(Some(full.trim_end_matches('\r').to_owned())),
            None => Err(malformed("a line")),
        }
    }

    fn exactly(&mut self, length: u64) -> io::Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(malformed("the length of a body"));
        }
        let mut body = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut body)?;
        if body.len() as u64 == length { Ok(body) } else { Err(malformed("the end of a body")) }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?.ok_or_else(|| malformed("a chunk"))?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(digits, 16).map_err(|_| malformed("the size of a chunk"))?;
            if body.len() as u64 + size > MAX_BODY {
                return Err(malformed("the length of a body"));
            }
            body.extend(self.exactly(size)?);
            let end = self.line()?;
            if size == 0 {
                return Ok(body);
            }
            if end.as_deref() != Some("") {
                return Err(malformed("the end of a chunk"));
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {what}"))
}

/// The writing half during one request.
pub struct Responder<'a> {
    stream: &'a mut TcpStream,
    /// The request was a HEAD: no body.
    bare: bool,
    /// The connection cannot be used for another request.
    ended: bool,
}

impl<'a> Responder<'a> {
    pub fn new(stream: &'a mut TcpStream, method: &str) -> Self {
        Self { stream, bare: method == "HEAD", ended: false }
    }

    /// True if another request may follow on the connection.
    pub fn reusable(&self) -> bool {
        !self.ended
    }

    /// A whole answer.
    pub fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.refuse(status, &[], body)
    }

    /// A whole answer with headers of its own.
    pub fn refuse(&mut self, status: u16, headers: &[(&str, String)], body: &Value) -> io::Result<()> {
        let body = if self.bare { String::new() } else { body.to_string() };
        let more =
            headers.iter().flat_map(|(name, value)| [name, ": ", value.as_str(), "\r\n"]).collect::<String>();
        let head = format!(
            "HTTP/1.1 {status} scripted\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + &body).as_bytes())
    }

    /// The head of an event stream.
    pub fn start_events(&mut self) -> io::Result<()> {
        self.ended = true;
        self.stream.write_all(
            b"HTTP/1.1 200 scripted\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
              connection: close\r\n\r\n",
        )
    }

    /// One event of a stream.
    pub fn event(&mut self, name: &str, data: &Value) -> io::Result<()> {
        self.stream.write_all(format!("event: {name}\ndata: {data}\n\n").as_bytes())
    }

    /// Drops the connection, whatever was sent.
    pub fn cut(&mut self) {
        self.ended = true;
        // It may be closed already, which is what is wanted.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What [`Requests`] makes of these bytes.
    fn read(bytes: &[u8]) -> io::Result<Option<Incoming>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        Requests::new(server.try_clone().unwrap()).next(&mut server)
    }

    #[test]
    fn bodies_come_by_length_and_in_chunks() {
        let plain = read(b"POST /a?b=c HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz").unwrap().unwrap();
        assert_eq!(
            (plain.method.as_str(), plain.path.as_str(), &plain.body[..]),
            ("POST", "/a", &b"xyz"[..])
        );
        let chunks =
            read(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
        assert_eq!(chunks.unwrap().unwrap().body, b"abc");
    }

    #[test]
    fn the_end_of_the_connection_is_no_request_and_half_a_request_is_an_error() {
        assert!(read(b"").unwrap().is_none());
        for half in ["GET / HT", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab"] {
            assert!(read(half.as_bytes()).is_err(), "{half:?}");
        }
    }
}
