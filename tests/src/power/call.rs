//! Calls over the daemon's socket, each with a number that no other call of a run has: so the answer to it is found
//! in a record of what the daemon wrote.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use minder_proto::rpc::Call;
use serde_json::{Value, json};

/// How long an answer may take before the daemon counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A connection that is kept.
pub struct Caller {
    stream: UnixStream,
}

/// How a call ended.
pub enum Reply<T> {
    /// It was done.
    Done(T),
    /// It was refused: the code of the error, and what was said.
    Refused(i64, String),
    /// The daemon went away: whether it was done is not known.
    Lost,
}

impl Caller {
    /// Connects to the daemon whose socket the store in `home` names.
    pub fn to(home: &Path) -> io::Result<Self> {
        let socket = std::fs::read_link(home.join("run/socket"))?;
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream })
    }

    /// Makes a call; gives its number too.
    pub fn call<C: Call>(&mut self, call: &C) -> (u64, Reply<C::Answer>) {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let request = json!({"jsonrpc": "2.0", "id": number, "method": C::METHOD, "params": call});
        let answer = match self.exchange(request.to_string().as_bytes()) {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                panic!("{} was not answered in {PATIENCE:?}", C::METHOD)
            }
            Err(_) => return (number, Reply::Lost),
        };
        let mut answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        if let Some(error) = answer.get("error") {
            let text = error["message"].as_str().unwrap_or_default().to_owned();
            return (number, Reply::Refused(error["code"].as_i64().unwrap_or_default(), text));
        }
        let result = serde_json::from_value(answer["result"].take());
        (number, Reply::Done(result.expect("an answer is what its method says")))
    }

    fn exchange(&mut self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut request = format!(
            "POST / HTTP/1.1\r\nhost: minder\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request)?;
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|l| l.strip_prefix("content-length:"));
                let length: usize = length.and_then(|l| l.trim().parse().ok()).expect("it says its length");
                while bytes.len() < end + 4 + length {
                    self.read(&mut bytes)?;
                }
                return Ok(bytes.split_off(end + 4));
            }
            self.read(&mut bytes)?;
        }
    }

    fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut some = [0; 16 << 10];
        match self.stream.read(&mut some)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                bytes.extend_from_slice(&some[..n]);
                Ok(())
            }
        }
    }
}
