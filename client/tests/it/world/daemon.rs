//! A daemon by script: it listens, notes every call with the number of its connection, and answers with what the
//! test says, or with silence.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use minder_proto::error::{Fault, FaultData};
use serde_json::{Value, json};

use super::LIMIT;

/// What the daemon does with a call.
pub enum Reply {
    /// Answers.
    With(Value),
    /// Refuses.
    Fault(Fault),
    /// Closes the connection without an answer, as one that is killed does.
    Die,
    /// Keeps the connection and says nothing.
    Silence,
}

/// One call as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Which connection, from 1.
    pub connection: usize,
    pub method: String,
    pub params: Value,
}

/// A scripted daemon; it stops listening when it is dropped.
pub struct Daemon {
    path: PathBuf,
    over: Arc<AtomicBool>,
    calls: Mutex<Receiver<Asked>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

type Script = dyn Fn(&str, &Value) -> Reply + Send + Sync;

impl Daemon {
    pub fn listen(path: &Path, answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (sender, calls) = channel();
        let stopped = Arc::clone(&over);
        let script: Arc<Script> = Arc::new(answer);
        let thread = std::thread::spawn(move || {
            for (i, stream) in listener.incoming().enumerate() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (script, sender) = (Arc::clone(&script), sender.clone());
                std::thread::spawn(move || serve(i + 1, stream.unwrap(), &*script, &sender));
            }
        });
        Self { path: path.to_owned(), over, calls: Mutex::new(calls), thread: Some(thread) }
    }

    /// The next call, waited for.
    pub fn next(&self) -> Asked {
        self.calls.lock().unwrap().recv_timeout(LIMIT).expect("a call in time")
    }

    /// Every call that came and was not looked at.
    pub fn calls(&self) -> Vec<Asked> {
        self.calls.lock().unwrap().try_iter().collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees that it is over.
        let woken = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            thread.join().unwrap();
        }
    }
}

fn serve(connection: usize, stream: UnixStream, script: &Script, calls: &Sender<Asked>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read(&mut reader) {
        let method = request["method"].as_str().unwrap().to_owned();
        let params = request["params"].clone();
        let _ = calls.send(Asked { connection, method: method.clone(), params: params.clone() });
        let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
        match script(&method, &params) {
            Reply::With(result) => answer["result"] = result,
            Reply::Fault(fault) => {
                let data = FaultData::from(&fault);
                answer["error"] = json!({"code": fault.kind.code(), "message": fault.message, "data": data});
            }
            Reply::Die => return,
            Reply::Silence => continue,
        }
        let body = answer.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<UnixStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}
