//! `fake server`: an app-server that several clients share and that has several conversations, in Codex's form: JSON
//! messages without `jsonrpc`, in WebSocket's frames or as lines. It starts turns, steers and interrupts them, or fails at that
//! as its script says. What it is asked and what comes of it stands in the record of [`run`](super::run).

mod requests;
mod step;
mod threads;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::run::gates::Gates;
use super::run::record::Record;
use step::{Answers, Steers, Turns};
use threads::Thread;
use wire::Link;

pub use step::{Step, parse};

/// One server, whether it listens yet or not.
pub struct Server {
    record: Record,
    state: Mutex<State>,
}

struct State {
    threads: BTreeMap<String, Thread>,
    /// The first conversation there was.
    first: Option<String>,
    links: Vec<Arc<Link>>,
    socket: Option<PathBuf>,
    turns: Turns,
    steers: Steers,
    answers: HashMap<String, Answers>,
    leak: bool,
    numbers: u64,
}

impl Server {
    pub fn new(record: &Record) -> Arc<Self> {
        let state = State {
            threads: BTreeMap::new(),
            first: None,
            links: Vec::new(),
            socket: None,
            turns: Turns::Lasts(Some(Duration::ZERO), "done".to_owned()),
            steers: Steers::Taken,
            answers: HashMap::new(),
            leak: false,
            numbers: 0,
        };
        Arc::new(Self { record: record.clone(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Does one step.
    pub fn perform(self: &Arc<Self>, step: &Step) -> Result<()> {
        match step {
            Step::Serve(Some(path)) => self.listen(path.clone())?,
            Step::Serve(None) => {
                let server = Arc::clone(self);
                std::thread::spawn(move || server.serve_stdio());
            }
            Step::Unlink => {
                let socket = self.state().socket.take();
                std::fs::remove_file(socket.context("it listens on no socket")?)?;
            }
            Step::Thread { id, folder } => drop(self.add_thread(id, folder.clone(), None)),
            Step::Fork { from, to } => self.fork(from, to)?,
            Step::Turn(turns) => self.state().turns = turns.clone(),
            Step::Steers(steers) => self.state().steers = *steers,
            Step::Answers { method, how } => drop(self.state().answers.insert(method.clone(), *how)),
            Step::Leak(on) => self.state().leak = *on,
            Step::Tool { thread, command } => self.tool(thread, command)?,
            Step::Approval { thread, waits } => self.approval(thread, *waits)?,
            Step::Answer { thread, text } => self.end_turn(thread, "completed", Some(text))?,
        }
        Ok(())
    }

    fn listen(self: &Arc<Self>, path: PathBuf) -> Result<()> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let listener = UnixListener::bind(&path)?;
        self.record.note("serves", json!({ "socket": path }));
        self.state().socket = Some(path);
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        Ok(())
    }

    fn serve(self: &Arc<Self>, stream: &UnixStream) {
        let (link, mut reader) = match wire::accept(stream) {
            Ok(accepted) => accepted,
            Err(error) => {
                return self.record.note("refused-client", json!({ "error": format!("{error:#}") }));
            }
        };
        let link = self.connected(link);
        loop {
            match wire::message(&link, &mut reader) {
                Ok(Some(text)) => self.hear(&link, &text),
                Ok(None) => break,
                Err(error) => {
                    self.record.note("refused-client", json!({ "error": format!("{error:#}") }));
                    break;
                }
            }
        }
        self.gone(&link);
    }

    fn serve_stdio(self: &Arc<Self>) {
        let link = self.connected(Link::stdio());
        for line in BufReader::new(std::io::stdin()).lines().map_while(Result::ok) {
            self.hear(&link, &line);
        }
        self.gone(&link);
    }

    fn connected(&self, link: Link) -> Arc<Link> {
        let link = Arc::new(link);
        self.state().links.push(Arc::clone(&link));
        self.record.note("client", json!({ "clients": self.state().links.len() }));
        link
    }

    fn gone(&self, link: &Arc<Link>) {
        let mut state = self.state();
        state.links.retain(|other| !Arc::ptr_eq(other, link));
        self.record.note("client-gone", json!({ "clients": state.links.len() }));
    }

    /// A message of a client: a request, a notification, or an answer to what it was asked.
    fn hear(self: &Arc<Self>, link: &Arc<Link>, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let Some(method) = message["method"].as_str() else {
            return self.record.note("answer", json!({ "message": message }));
        };
        self.record.note("request", json!({ "method": method, "params": message["params"] }));
        let Some(id) = message.get("id").cloned() else { return };
        let how = self.state().answers.get(method).copied().unwrap_or(Answers::AtOnce);
        if how == Answers::Never {
            return self.record.note("unanswered", json!({ "method": method }));
        }
        let (answer, then) = match self.request(method, &message["params"]) {
            Ok((result, then)) => (json!({ "id": id, "result": result }), then),
            Err(message) => {
                (json!({ "id": id, "error": { "code": -32600, "message": message } }), Vec::new())
            }
        };
        match how {
            Answers::After(time) => {
                // What comes of it does not wait for its answer.
                self.do_after(then);
                let link = Arc::clone(link);
                std::thread::spawn(move || {
                    Gates::default().pass(time);
                    link.send(&answer);
                });
            }
            _ => {
                link.send(&answer);
                self.do_after(then);
            }
        }
    }

    /// Tells every client.
    fn tell(&self, method: &str, params: &Value) {
        let links = self.state().links.clone();
        for link in links {
            link.send(&json!({ "method": method, "params": params }));
        }
    }
}
