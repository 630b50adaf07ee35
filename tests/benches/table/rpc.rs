//! A caller that keeps its connection: what is measured is the daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use minder_proto::rpc::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub struct Rpc(BufReader<UnixStream>);

impl Rpc {
    pub fn connect(socket: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    pub fn call<C>(&mut self, call: &C) -> C::Answer
    where
        C: Call + Serialize,
        C::Answer: DeserializeOwned,
    {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": C::METHOD, "params": call}).to_string();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: minder\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.0.get_mut().write_all((head + &body).as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the daemon hung up");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert!(answer["error"].is_null(), "{}: {}", C::METHOD, answer["error"]);
        serde_json::from_value(answer["result"].clone()).unwrap()
    }
}
