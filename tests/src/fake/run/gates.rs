//! What steps of one `fake` wait for: a word that somebody says, or nothing but time.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct Gates {
    open: Mutex<BTreeSet<String>>,
    opened: Condvar,
}

impl Gates {
    pub fn open(&self, word: &str) {
        self.open.lock().expect("nobody panics with it").insert(word.to_owned());
        self.opened.notify_all();
    }

    /// Until the word was said.
    pub fn wait(&self, word: &str) {
        let open = self.open.lock().expect("nobody panics with it");
        drop(self.opened.wait_while(open, |open| !open.contains(word)));
    }

    /// So long, whatever is said.
    pub fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut open = self.open.lock().expect("nobody panics with it");
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            open = self.opened.wait_timeout(open, left).expect("nobody panics with it").0;
        }
    }
}
