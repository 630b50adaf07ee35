//! Every bound of the server, with its name and its default in one place.

use std::time::Duration;

/// What the server grants its callers.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections accepted at once; more wait in the kernel's queue.
    pub sockets: usize,
    /// Requests of one connection in flight at once; more are answered `busy`.
    pub in_flight: usize,
    /// Calls in one batch.
    pub batch: u32,
    /// Bytes of one request.
    pub request: u32,
    /// Bytes of one answer.
    pub answer: u32,
    /// How long a caller may take for a request's head; also how long an idle connection is kept.
    pub head: Duration,
    /// How long a caller may take for a request's body.
    pub body: Duration,
    /// How long a caller may take no byte of an answer.
    pub stall: Duration,
    /// How long calls may still run once the daemon stops.
    pub grace: Duration,
    /// How long to wait before accepting again when descriptors have run out.
    pub exhausted: Duration,
    /// How often the socket's age is refreshed, against cleaners of temporary folders.
    pub refresh: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sockets: 512,
            in_flight: 64,
            batch: 64,
            request: 4 << 20,
            answer: 16 << 20,
            head: Duration::from_secs(30),
            body: Duration::from_secs(10),
            stall: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            exhausted: Duration::from_millis(200),
            refresh: Duration::from_secs(60 * 60),
        }
    }
}
