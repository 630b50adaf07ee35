//! The loop of a connection: read a request, find its wire format, log it, play the answer.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::http::{Incoming, Requests, Responder};
use super::log::{Log, Outcome, Request};
use super::reply::{Answer, End, Gates, Pauser};
use super::script::{Conversation, Step};
use super::{Ask, Wire, is_main, plan};

/// What all connections of one model share.
pub struct Shared {
    wires: Vec<Box<dyn Wire>>,
    pub log: Log,
    pub gates: Gates,
    closing: AtomicBool,
    /// A second handle of every connection, to close them at the end.
    connections: Mutex<Vec<TcpStream>>,
}

impl Shared {
    pub fn new(wires: Vec<Box<dyn Wire>>) -> Self {
        Self {
            wires,
            log: Log::default(),
            gates: Gates::default(),
            closing: AtomicBool::new(false),
            connections: Mutex::default(),
        }
    }

    /// Makes [`accept`] and every connection end.
    pub fn close(&self, address: SocketAddr) {
        self.closing.store(true, Ordering::SeqCst);
        self.gates.end();
        // `accept` looks at the flag when somebody comes. If nobody can come, it has ended already.
        drop(TcpStream::connect(address));
        for connection in self.connections.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Most are closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// Takes connections until the model closes; each gets a thread.
pub fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        let Ok(handle) = stream.try_clone() else { continue };
        {
            let mut connections = shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
            // Looked at under the lock, so that `close` either sees the handle or is seen here.
            if shared.closing.load(Ordering::SeqCst) {
                break;
            }
            connections.push(handle);
        }
        let shared = Arc::clone(shared);
        threads.push(std::thread::spawn(move || serve(stream, &shared)));
        threads.retain(|thread: &std::thread::JoinHandle<()>| !thread.is_finished());
    }
    for thread in threads {
        // A panic was already printed by its thread.
        let _ = thread.join();
    }
}

/// One connection, to its end. An error is a client that went away or sent no HTTP: nobody is left to tell.
fn serve(mut stream: TcpStream, shared: &Shared) {
    let Ok(reader) = stream.try_clone() else { return };
    let mut requests = Requests::new(reader);
    while let Ok(Some(incoming)) = requests.next(&mut stream) {
        match handle(&incoming, &mut stream, shared) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
    }
    // The handle that is kept for `close` would hold the connection open.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Answers one request; true if the connection can take another.
fn handle(incoming: &Incoming, stream: &mut TcpStream, shared: &Shared) -> io::Result<bool> {
    let body: Value = serde_json::from_slice(&incoming.body).unwrap_or(Value::Null);
    let connection = stream.try_clone()?;
    let pauser = Pauser { connection: &connection, gates: &shared.gates };
    let mut out = Responder::new(stream, &incoming.method);
    let known = shared.wires.iter().find_map(|wire| Some((wire, wire.read(&incoming.path, &body)?)));

    let mut entry = Request {
        at: Instant::now(),
        path: incoming.path.clone(),
        model: String::new(),
        session: None,
        main: false,
        conversation: Conversation::default(),
        answer: Vec::new(),
        outcome: Outcome::Open,
        body,
    };
    let (index, result) = match known {
        Some((wire, Ask::Generate { model, session, conversation, stream })) => {
            let steps = plan(&conversation);
            entry.main = is_main(&conversation);
            entry.model.clone_from(&model);
            entry.session = session;
            entry.conversation = conversation;
            entry.answer.clone_from(&steps);
            let index = shared.log.add(entry);
            let input_tokens = incoming.body.len() / 4;
            (index, play(wire.as_ref(), &steps, &model, stream, input_tokens, &pauser, &mut out))
        }
        Some((_, Ask::Fixed(answer))) => (shared.log.add(entry), out.json(200, &answer)),
        None if incoming.method == "HEAD" => (shared.log.add(entry), out.json(200, &Value::Null)),
        None => {
            let message = format!("the scripted model knows no {}", incoming.path);
            let answer = json!({"type": "error", "error": {"type": "not_found_error", "message": message}});
            (shared.log.add(entry), out.json(404, &answer))
        }
    };
    let reusable = out.reusable();
    shared.log.finish(index, if result.is_ok() { Outcome::Answered } else { Outcome::Dropped });
    result.map(|()| reusable)
}

fn play(
    wire: &dyn Wire,
    steps: &[Step],
    model: &str,
    stream: bool,
    input_tokens: usize,
    pauser: &Pauser<'_>,
    out: &mut Responder<'_>,
) -> io::Result<()> {
    let Some((last, before)) = steps.split_last() else {
        return Err(io::Error::other("an answer has at least one step"));
    };
    let end = match last {
        Step::Hang => return Err(pauser.forever()),
        Step::Error(_) | Step::Limit(_) => {
            for pause in before {
                pauser.play(pause, || Ok(()))?;
            }
            let (status, headers, body) = match last {
                Step::Error(status) => (*status, Vec::new(), wire.error(*status)),
                Step::Limit(seconds) => {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
                    let (headers, body) = wire.limit(now + seconds);
                    (429, headers, body)
                }
                _ => return Err(io::Error::other("only what refuses comes here")),
            };
            return out.refuse(status, &headers, &body);
        }
        Step::Say(text) => End::Say(text),
        Step::Tool { name, input } => End::Tool { name, input },
        Step::Cut | Step::Wait(_) | Step::Drip(_) | Step::Gate(_) => End::Cut,
    };
    let cut = matches!(end, End::Cut);
    wire.answer(&Answer { model, stream, input_tokens, pauses: before, end, pauser }, out)?;
    if cut {
        out.cut();
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    Ok(())
}
