//! Codex's app-server, and a terminal's part in front of it: it holds a conversation, starts turns, and answers dialogs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::Codex;
use crate::files;
use crate::isolate::Isolated;

/// A server that runs.
pub struct AppServer {
    child: Child,
    socket: PathBuf,
}

impl AppServer {
    /// Starts one. Its socket is not where Codex has it by itself.
    pub fn start(isolated: &Isolated, codex: &Codex, limit: Duration) -> Result<Self> {
        let socket = isolated.root().join("codex.sock");
        let place = format!("unix://{}", socket.display());
        Self::listening(isolated, codex, socket, &place, limit)
    }

    fn listening(
        isolated: &Isolated,
        codex: &Codex,
        socket: PathBuf,
        place: &str,
        limit: Duration,
    ) -> Result<Self> {
        let mut command = isolated.command(codex.program()?);
        command.envs(codex.environment()).args(["app-server", "--listen", place]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self { child: command.spawn().context("codex app-server")?, socket };
        let found = || UnixStream::connect(&server.socket).ok().map(drop);
        let folder = server.socket.parent().context("it is in a folder")?;
        files::wait_for(folder, limit, found)?;
        Ok(server)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for AppServer {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its socket is a link to one outside of all homes, which it leaves there with a lock beside it.
        if let Ok(own) = std::fs::read_link(&self.socket) {
            let _ = std::fs::remove_file(&own);
            let _ = std::fs::remove_file(own.with_extension("lock"));
        }
    }
}

/// A connection, as a terminal has it.
pub struct Terminal {
    stream: BufReader<UnixStream>,
    last: u64,
    /// What was said while something else was waited for.
    said: Vec<Value>,
    limit: Duration,
}

impl Terminal {
    pub fn connect(socket: &Path, limit: Duration) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(limit))?;
        let mut terminal = Self { stream: BufReader::new(stream), last: 0, said: Vec::new(), limit };
        let upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
        terminal.stream.get_mut().write_all(upgrade.as_bytes())?;
        let mut line = String::new();
        terminal.stream.read_line(&mut line)?;
        ensure!(line.contains(" 101 "), "no upgrade: {line}");
        while !line.trim_end().is_empty() {
            line.clear();
            terminal.stream.read_line(&mut line)?;
        }
        terminal.ask("initialize", &json!({"clientInfo": {"name": "t", "title": "t", "version": "1"}}))?;
        terminal.send(&json!({"method": "initialized", "params": {}}))?;
        Ok(terminal)
    }

    /// A new conversation; gives its id.
    pub fn thread(&mut self, folder: &Path, more: &Value) -> Result<String> {
        let mut params = json!({"cwd": folder});
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        let made = self.ask("thread/start", &params)?;
        made["thread"]["id"].as_str().map(str::to_owned).context("a thread without an id")
    }

    /// Starts a turn, as who types.
    pub fn prompt(&mut self, thread: &str, text: &str) -> Result<()> {
        let input = json!([{"type": "text", "text": text}]);
        self.ask("turn/start", &json!({"threadId": thread, "input": input})).map(drop)
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        let answer = self.wait(|said| said["id"] == id && said.get("method").is_none())?;
        match answer.get("error") {
            Some(error) => bail!("{method}: {error}"),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Waits for something of this name; what was said before counts, once.
    pub fn hear(&mut self, method: &str) -> Result<Value> {
        self.wait(|said| said["method"] == method)
    }

    /// Answers a request of the server's.
    pub fn answer(&mut self, request: &Value, result: &Value) -> Result<()> {
        self.send(&json!({"id": request["id"], "result": result}))
    }

    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(at) = self.said.iter().position(&wanted) {
            return Ok(self.said.remove(at));
        }
        let deadline = Instant::now() + self.limit;
        while Instant::now() < deadline {
            let said = self.next()?;
            if wanted(&said) {
                return Ok(said);
            }
            self.said.push(said);
        }
        bail!("not said within {:?}", self.limit)
    }

    fn send(&mut self, value: &Value) -> Result<()> {
        let text = value.to_string().into_bytes();
        let mut frame = vec![0x81];
        match u16::try_from(text.len())? {
            len @ 0..126 => frame.push(0x80 | u8::try_from(len)?),
            len => {
                frame.push(0xfe);
                frame.extend(len.to_be_bytes());
            }
        }
        // A mask of zeros leaves the bytes as they are.
        frame.extend([0; 4]);
        frame.extend(text);
        Ok(self.stream.get_mut().write_all(&frame)?)
    }

    fn next(&mut self) -> Result<Value> {
        let mut text = Vec::new();
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head)?;
            let mut length = u64::from(head[1]);
            let more = match head[1] {
                126 => 2,
                127 => 8,
                _ => 0,
            };
            if more > 0 {
                let mut bytes = [0; 8];
                self.stream.read_exact(&mut bytes[8 - more..])?;
                length = u64::from_be_bytes(bytes);
            }
            let mut payload = vec![0; usize::try_from(length)?];
            self.stream.read_exact(&mut payload)?;
            if head[0] & 0x0f <= 1 {
                text.extend(payload);
                if head[0] & 0x80 != 0 {
                    return Ok(serde_json::from_slice(&text)?);
                }
            }
        }
    }
}
