//! A server as OpenCode's is, as far as minder speaks with it: one conversation, which takes prompts, works, asks, and fails at it
//! as a test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// The conversation that it has.
pub const CONVERSATION: &str = "ses_1";

/// What becomes of the next prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// They are kept, and said to be.
    Well,
    /// They are kept, and the connection ends without an answer.
    Silently,
    /// The connection ends and nothing is kept.
    Nothing,
}

#[derive(Debug)]
struct State {
    takes: Takes,
    status: Option<&'static str>,
    asks: bool,
    password: Option<&'static str>,
    /// By id, as they are ordered.
    messages: BTreeMap<String, Value>,
    prompts: Vec<Value>,
    listeners: Vec<TcpStream>,
    over: bool,
}

/// The server.
pub struct End {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl End {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            takes: Takes::Well,
            status: None,
            asks: false,
            password: None,
            messages: BTreeMap::new(),
            prompts: Vec::new(),
            listeners: Vec::new(),
            over: false,
        };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if lock(&shared.0).over {
                    return; // and nobody listens any more
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { port, state }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn takes(&self, takes: Takes) {
        self.state().takes = takes;
    }

    pub fn asks_for_a_password(&self, password: &'static str) {
        self.state().password = Some(password);
    }

    /// A turn runs, or none.
    pub fn works(&self, status: Option<&'static str>) {
        self.state().status = status;
        let kind = json!({"type": status.unwrap_or("idle")});
        self.tell("session.status", &json!({"sessionID": CONVERSATION, "status": kind}));
    }

    /// A question for permission is open, or none.
    pub fn asks(&self, asks: bool) {
        self.state().asks = asks;
        let kind = if asks { "permission.asked" } else { "permission.replied" };
        self.tell(kind, &json!({"sessionID": CONVERSATION}));
    }

    /// What it was given, once there are as many.
    pub fn prompts(&self, many: usize) -> Vec<Value> {
        let state = self.state();
        let few = |state: &mut State| state.prompts.len() < many;
        let waited = self.state.1.wait_timeout_while(state, super::LIMIT, few);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.prompts.len() >= many, "{:?}", state.prompts);
        state.prompts.clone()
    }

    /// It ends, and its port is free.
    pub fn end(&self) {
        self.state().over = true;
        drop(TcpStream::connect(("127.0.0.1", self.port)).unwrap());
        for listener in self.state().listeners.drain(..) {
            let _ = listener.shutdown(std::net::Shutdown::Both);
        }
    }

    fn tell(&self, kind: &str, properties: &Value) {
        tell(&mut self.state(), kind, properties);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state.0)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(state: &mut State, kind: &str, properties: &Value) {
    let line = format!("data: {}\n\n", json!({"type": kind, "properties": properties}));
    let piece = format!("{:x}\r\n{line}\r\n", line.len());
    state.listeners.retain_mut(|listener| listener.write_all(piece.as_bytes()).is_ok());
}

fn serve(shared: &(Mutex<State>, Condvar), stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let mut pairs = lines.iter().filter_map(|line| line.split_once(": "));
        pairs.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let path = path.split('?').next().unwrap();
    let mut state = lock(&shared.0);
    let mut stream = stream;
    // opencode:s3cret
    if state.password.is_some() && header("authorization").as_deref() != state.password {
        return answer(&mut stream, 401, &Value::Null);
    }
    let of_it = path.strip_prefix("/session/ses_1");
    match (path, of_it) {
        ("/event", _) => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            state.listeners.push(stream);
        }
        ("/permission", _) if state.asks => {
            answer(&mut stream, 200, &json!([{"id": "per_1", "sessionID": CONVERSATION}]));
        }
        ("/permission" | "/question", _) => answer(&mut stream, 200, &json!([])),
        ("/session/status", _) => {
            let status = state.status.map(|kind| json!({"type": kind}));
            answer(&mut stream, 200, &status.map_or(json!({}), |status| json!({CONVERSATION: status})));
        }
        (_, Some("")) => {
            let model = json!({"id": "m", "providerID": "p", "variant": "default"});
            let about = json!({"id": CONVERSATION, "directory": "/a b", "agent": "plan", "model": model});
            answer(&mut stream, 200, &about);
        }
        (_, Some("/message")) => {
            answer(&mut stream, 200, &state.messages.values().cloned().collect::<Value>());
        }
        (_, Some("/prompt_async")) => {
            state.prompts.push(body.clone());
            shared.1.notify_all();
            if state.takes == Takes::Nothing {
                return;
            }
            let id = body["messageID"].as_str().unwrap().to_owned();
            let info = json!({"id": id, "role": "user", "sessionID": CONVERSATION});
            state.messages.insert(id, json!({"info": info, "parts": body["parts"]}));
            if state.takes == Takes::Well {
                answer(&mut stream, 204, &Value::Null);
            }
            tell(&mut state, "message.updated", &json!({"info": info}));
        }
        (_, Some(message)) => match state.messages.get(message.trim_start_matches("/message/")) {
            Some(message) => answer(&mut stream, 200, message),
            None => answer(&mut stream, 404, &json!({"name": "NotFoundError"})),
        },
        _ => answer(&mut stream, 404, &json!({"name": "NotFoundError"})),
    }
}

fn answer(stream: &mut TcpStream, status: u16, body: &Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    // Who asked may be gone.
    let _ = write!(stream, "HTTP/1.1 {status} So\r\nContent-Length: {length}\r\n\r\n{body}");
}
