//! What the model was asked, in order, and waiting on it.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::script::{Conversation, Role, Step, Text};

/// How a request ended, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is not complete yet.
    Open,
    Answered,
    /// The client closed the connection first (an interrupt, an end of the harness), or the script cut it.
    Dropped,
}

/// One request to the model.
#[derive(Debug, Clone)]
pub struct Request {
    /// When it was read.
    pub at: Instant,
    pub path: String,
    /// Empty where the request names none.
    pub model: String,
    /// The harness's id of its conversation, where it sends one: tells apart what shares a model.
    pub session: Option<String>,
    /// True for a request of the harness's main loop (it offers tools); false for titles, probes and the like.
    pub main: bool,
    pub conversation: Conversation,
    /// What the script made of it.
    pub answer: Vec<Step>,
    pub outcome: Outcome,
    /// The request as it came. Null if it was no JSON.
    pub body: Value,
}

impl Request {
    /// The texts that are new in this request.
    pub fn news(&self) -> &[Text] {
        self.conversation.news()
    }

    /// True if a text that is new in this request, of any role but the model's own, holds `needle`.
    pub fn brought(&self, needle: &str) -> bool {
        self.news().iter().any(|t| t.text.contains(needle))
    }

    /// How often `needle` stands in the whole conversation, the model's own words left out.
    pub fn count(&self, needle: &str) -> usize {
        let heard = self.conversation.texts.iter().filter(|t| t.role != Role::Assistant);
        heard.map(|t| t.text.matches(needle).count()).sum()
    }
}

/// A wait that reached its limit.
#[derive(Debug)]
pub struct Unmet {
    limit: Duration,
    requests: Vec<Request>,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model was not asked what the test waits for within {:?}; it was asked:", self.limit)?;
        for (n, request) in self.requests.iter().enumerate() {
            let kind = if request.main { "main" } else { "side" };
            write!(f, "\n  {n} {} {kind} {:?}", request.path, request.outcome)?;
            for text in request.news() {
                let head: String = text.text.chars().take(200).collect();
                write!(f, "\n      {:?}: {head:?}", text.role)?;
            }
            write!(f, "\n      -> {:?}", request.answer)?;
        }
        Ok(())
    }
}

impl std::error::Error for Unmet {}

/// The log. Entries are only added and only their outcome changes, so an index stays good.
#[derive(Default)]
pub(super) struct Log {
    requests: Mutex<Vec<Request>>,
    changed: Condvar,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        // Nothing is left half done under this lock, so a panic elsewhere does not spoil it.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snapshot(&self) -> Vec<Request> {
        self.lock().clone()
    }

    pub fn add(&self, request: Request) -> usize {
        let mut requests = self.lock();
        requests.push(request);
        self.changed.notify_all();
        requests.len() - 1
    }

    pub fn finish(&self, index: usize, outcome: Outcome) {
        self.lock()[index].outcome = outcome;
        self.changed.notify_all();
    }

    pub fn wait_for<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&[Request]) -> Option<T>,
    ) -> Result<T, Unmet> {
        let deadline = Instant::now() + limit;
        let mut requests = self.lock();
        loop {
            if let Some(result) = found(&requests) {
                return Ok(result);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Unmet { limit, requests: requests.clone() });
            }
            let woken = self.changed.wait_timeout(requests, left);
            requests = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
