//! The scripted model: a language-model server on 127.0.0.1 whose answers are written in the prompt.
//!
//! A test starts one with [`Model::start`], points a real harness at [`Model::base_url`], and puts
//! directives (see [`script`]) into the text that the harness sends. Every request is kept, in order, in a log
//! that a test can read or wait on ([`Model::wait_for`]), so a test never has to guess when a text arrived.
//!
//! `script` decides what is said and knows no wire format; each wire format is one file that implements
//! `Wire` (`anthropic`, `responses`); `http` is the little of HTTP/1.1 that harnesses use; `log` is the memory.
//! Threads and blocking sockets, no async runtime.

mod anthropic;
mod http;
mod log;
mod reply;
mod responses;
pub mod script;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use log::{Outcome, Request, Unmet};
pub use script::{Role, Text};

use script::{Conversation, Step};

/// One family of requests on the wire: what it asks, and how an answer is written.
trait Wire: Send + Sync {
    /// What the request is, if this format knows it.
    fn read(&self, path: &str, body: &serde_json::Value) -> Option<Ask>;

    /// Writes the answer to a [`Ask::Generate`]. An error means that the client went away.
    fn answer(&self, say: &reply::Answer, out: &mut http::Responder<'_>) -> io::Result<()>;

    /// The body of an error answer with this HTTP status.
    fn error(&self, status: u16) -> serde_json::Value;

    /// What is said with status 429 where a plan is used up until this second of the epoch: headers and body.
    fn limit(&self, until: u64) -> (Vec<(&'static str, String)>, serde_json::Value);
}

/// A request as a [`Wire`] understood it.
enum Ask {
    /// An answer is wanted from the model.
    Generate { model: String, session: Option<String>, conversation: Conversation, stream: bool },
    /// A fixed answer, which uses up no part of a script.
    Fixed(serde_json::Value),
}

/// A running scripted model. Dropping it closes every connection and ends its threads.
pub struct Model {
    address: SocketAddr,
    shared: Arc<server::Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts a model on a free port of 127.0.0.1.
    pub fn start() -> io::Result<Self> {
        Self::start_on(0)
    }

    /// Starts a model on this port of 127.0.0.1; 0 takes a free one.
    pub fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(server::Shared::new(vec![
            Box::new(anthropic::Messages),
            Box::new(responses::Responses),
        ]));
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || server::accept(&listener, &shared))
        };
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What a harness takes as the base of its API, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.snapshot()
    }

    /// Waits until `found` gives something on the log, at most `limit`. `found` is asked at once and after
    /// every change of the log. The error holds a summary of the log.
    pub fn wait_for<T>(
        &self,
        limit: Duration,
        found: impl FnMut(&[Request]) -> Option<T>,
    ) -> Result<T, Unmet> {
        self.shared.log.wait_for(limit, found)
    }

    /// Waits until a main-loop request carries `needle` in what is new in it (texts since the model's last
    /// answer), and gives that request.
    pub fn wait_for_text(&self, limit: Duration, needle: &str) -> Result<Request, Unmet> {
        self.wait_for(limit, |all| all.iter().find(|r| r.main && r.brought(needle)).cloned())
    }

    /// Lets every `[[gate NAME]]` of this name pass, those that already wait and those to come.
    pub fn open(&self, gate: &str) {
        self.shared.gates.open(gate);
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.close(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the acceptor was already printed by its thread.
            let _ = acceptor.join();
        }
    }
}

/// True if the harness offered tools: titles, summaries and probes come without.
fn is_main(conversation: &Conversation) -> bool {
    !conversation.tools.is_empty()
}

/// What to say to a conversation: the script's next part, or fixed words to a side request.
fn plan(conversation: &Conversation) -> Vec<Step> {
    if is_main(conversation) { script::next(conversation) } else { vec![Step::Say("side".into())] }
}

#[cfg(test)]
mod tests;
