//! Who types into which pane: one delivery at a time, whatever the sessions that go by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::server::Pane;

/// A lock for each pane that somebody types into or waits for.
#[derive(Debug, Default)]
pub struct Panes(Mutex<HashMap<Pane, Weak<tokio::sync::Mutex<()>>>>);

impl Panes {
    /// The lock of a pane.
    pub fn of(&self, pane: &Pane) -> Arc<tokio::sync::Mutex<()>> {
        let mut panes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        panes.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = panes.get(pane).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        panes.insert(pane.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_has_one_lock_for_as_long_as_somebody_has_it() {
        let panes = Panes::default();
        let pane = |id: &str| Pane { socket: "/s".into(), id: id.into() };
        let (one, same, other) = (panes.of(&pane("%1")), panes.of(&pane("%1")), panes.of(&pane("%2")));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same, other));
        let _third = panes.of(&pane("%3"));
        assert_eq!(panes.0.lock().unwrap().len(), 1);
    }
}
