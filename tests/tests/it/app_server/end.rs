//! A server as Codex's app-server is, as far as minder speaks with it: one conversation, which works, takes texts, and fails at
//! it as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::world::LIMIT;

/// The conversation that it has.
pub const THREAD: &str = "01a22e4e-0000-7fa0-87b2-9f03718a0dde";

/// How the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    Idle,
    /// A turn runs: what joins it stands in the conversation when a test says so.
    Works,
    /// It is not loaded.
    Elsewhere,
}

/// What becomes of the next texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// They are taken, and said to be.
    Well,
    /// They are taken, and the connection ends without an answer.
    Silently,
}

struct State {
    is: Is,
    takes: Takes,
    /// What it says no to.
    refuses: Option<&'static str>,
    /// What it does not answer yet.
    stops_at: Option<&'static str>,
    /// What it has been asked, in order.
    asked: Vec<String>,
    /// What it has been given: the method and the text.
    given: Vec<(String, String)>,
    /// What the conversation has, oldest first.
    items: Vec<Value>,
    /// What joined a turn and does not stand in it yet.
    joined: Vec<Value>,
    /// Items that come after each text.
    more: usize,
    listeners: Vec<UnixStream>,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// The server.
pub struct End {
    socket: PathBuf,
    state: Shared,
}

impl End {
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("end.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let state = State {
            is: Is::Idle,
            takes: Takes::Well,
            refuses: None,
            stops_at: None,
            asked: Vec::new(),
            given: Vec::new(),
            items: Vec::new(),
            joined: Vec::new(),
            more: 0,
            listeners: Vec::new(),
        };
        let state: Shared = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // It ends with the connection.
                std::thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        Self { socket, state }
    }

    pub fn socket(&self) -> &str {
        self.socket.to_str().unwrap()
    }

    /// How it is from now on, which it tells.
    pub fn is(&self, is: Is) {
        let mut state = self.state();
        state.is = is;
        if is == Is::Idle {
            let joined = std::mem::take(&mut state.joined);
            state.items.extend(joined);
        }
        let told = json!({"method": "thread/status/changed", "params": {"threadId": THREAD}}).to_string();
        state.listeners.retain_mut(|listener| say(listener, &told).is_ok());
    }

    pub fn takes(&self, takes: Takes) {
        self.state().takes = takes;
    }

    pub fn refuses(&self, method: Option<&'static str>) {
        self.state().refuses = method;
    }

    /// After each text so many items come.
    pub fn goes_on(&self, more: usize) {
        self.state().more = more;
    }

    /// It does not answer this until the next call.
    pub fn stops_at(&self, method: Option<&'static str>) {
        let mut state = self.state();
        state.stops_at = method;
        state.asked.clear();
        self.state.1.notify_all();
    }

    /// Until it was asked this so often.
    pub fn asked(&self, method: &str, often: usize) {
        let few = |state: &State| state.asked.iter().filter(|m| *m == method).count() < often;
        let waited = self.state.1.wait_timeout_while(self.state(), LIMIT, |state| few(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!few(&state), "{:?}", state.asked);
    }

    /// What it was given by now.
    pub fn given(&self) -> Vec<(String, String)> {
        self.state().given.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(shared: &Shared, stream: UnixStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut stream = stream;
    stream.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    )?;
    loop {
        let request: Value = serde_json::from_slice(&heard(&mut reader)?)?;
        let Some(id) = request.get("id") else { continue };
        let method = request["method"].as_str().unwrap_or_default();
        let mut state = lock(shared);
        state.asked.push(method.to_owned());
        shared.1.notify_all();
        let mut state = shared
            .1
            .wait_while(state, |state| state.stops_at == Some(method))
            .unwrap_or_else(PoisonError::into_inner);
        if state.refuses == Some(method) {
            say(&mut stream, &json!({"id": id, "error": {"code": -1, "message": "not now"}}).to_string())?;
            continue;
        }
        let Some(result) = answer(&mut state, method, &request["params"]) else {
            return stream.shutdown(std::net::Shutdown::Both);
        };
        say(&mut stream, &json!({"id": id, "result": result}).to_string())?;
        if method == "initialize" {
            state.listeners.push(stream.try_clone()?);
        }
    }
}

/// The answer; none where the connection ends instead.
fn answer(state: &mut State, method: &str, params: &Value) -> Option<Value> {
    Some(match method {
        "thread/read" => {
            let status = match state.is {
                Is::Idle => "idle",
                Is::Works => "active",
                Is::Elsewhere => "notLoaded",
            };
            json!({"thread": {"status": {"type": status, "activeFlags": []}}})
        }
        "thread/turns/list" => json!({"data": [{"id": "turn-1", "status": "inProgress"}]}),
        "thread/items/list" => {
            let newest: Vec<Value> = state.items.iter().rev().cloned().collect();
            let from = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let to = newest.len().min(from + usize::try_from(params["limit"].as_u64().unwrap()).unwrap());
            let next = (to < newest.len()).then(|| to.to_string());
            json!({"data": newest[from..to], "nextCursor": next})
        }
        "turn/start" | "turn/steer" => {
            let text = params["input"][0]["text"].as_str().unwrap().to_owned();
            state.given.push((method.to_owned(), text));
            let item = json!({"turnId": "turn-1", "item": {"clientId": params["clientUserMessageId"]}});
            if state.is == Is::Works {
                state.joined.push(item);
            } else {
                state.items.push(item);
            }
            let more = state.more;
            state.items.extend((0..more).map(|n| json!({"turnId": "turn-1", "item": {"id": n}})));
            if state.takes == Takes::Silently {
                return None;
            }
            json!({})
        }
        _ => json!({}),
    })
}

/// One text of a client's: whole, and masked.
fn heard(reader: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 2];
    reader.read_exact(&mut head)?;
    let more = match head[1] & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mut length = [0, 0, 0, 0, 0, 0, 0, head[1] & 0x7f];
    if more > 0 {
        length = [0; 8];
        reader.read_exact(&mut length[8 - more..])?;
    }
    let mut mask = [0; 4];
    reader.read_exact(&mut mask)?;
    let mut text = vec![0; usize::try_from(u64::from_be_bytes(length)).unwrap()];
    reader.read_exact(&mut text)?;
    for (at, byte) in text.iter_mut().enumerate() {
        *byte ^= mask[at % 4];
    }
    Ok(text)
}

fn say(stream: &mut UnixStream, text: &str) -> std::io::Result<()> {
    let mut frame = vec![0x81];
    match u16::try_from(text.len()).unwrap() {
        len @ 0..126 => frame.push(u8::try_from(len).unwrap()),
        len => {
            frame.push(126);
            frame.extend(len.to_be_bytes());
        }
    }
    frame.extend(text.as_bytes());
    stream.write_all(&frame)
}
