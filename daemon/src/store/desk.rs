//! Where the owner lays the state down while it has nothing to do: a short look finds it there, without a hop to the
//! owner's thread and back. What lies there is durable, and nothing that was asked for before the look is still to be done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SendError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::owner::Command;
use super::state::State;

/// The desk.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// None while the owner has it.
    state: Mutex<Option<State>>,
    /// Commands that were sent and not served to their end.
    waiting: AtomicUsize,
}

impl Desk {
    /// Looks at the state if it lies here; gives the look back where the owner is to be asked.
    pub fn look<T, F: FnOnce(&State) -> T>(&self, look: F) -> Result<T, F> {
        // What this thread has sent before is counted; what another sends meanwhile is no earlier than this look.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            return Err(look);
        }
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(look),
        };
        match &*state {
            Some(state) => Ok(look(state)),
            None => Err(look),
        }
    }

    /// The owner has served so many commands, and waits.
    pub fn lay(&self, state: &mut State, served: usize) {
        *self.slot() = Some(std::mem::take(state));
        self.waiting.fetch_sub(served, Ordering::SeqCst);
    }

    /// The owner goes on. Waits for who is looking.
    pub fn take(&self, state: &mut State) {
        *state = self.slot().take().expect("the owner laid it here");
    }

    fn slot(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the owner.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    queue: Sender<Command>,
    desk: Arc<Desk>,
}

impl Commands {
    pub fn new(queue: Sender<Command>, desk: Arc<Desk>) -> Self {
        Self { queue, desk }
    }

    /// Gives the owner a command.
    pub fn send(&self, command: Command) -> Result<(), SendError<Command>> {
        self.desk.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.send(command)
    }

    /// Where the state may lie.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(desk: &Desk) -> bool {
        desk.look(|state| state.sessions().count()).is_err()
    }

    #[test]
    fn nobody_looks_past_what_was_asked_for_before() {
        let (queue, served) = std::sync::mpsc::channel();
        let commands = Commands::new(queue, Arc::default());
        let (desk, mut state) = (commands.desk(), State::default());
        assert!(empty(desk), "the owner has it");
        desk.lay(&mut state, 0);
        assert!(!empty(desk));
        commands.send(Command::Read(Box::new(|_| ()))).unwrap();
        assert!(empty(desk), "a command is before it");
        desk.take(&mut state);
        assert!(served.recv().is_ok() && empty(desk));
        desk.lay(&mut state, 1);
        assert!(!empty(desk));
        // Somebody else looks.
        let held = desk.slot();
        assert!(empty(desk));
        drop(held);
        assert!(!empty(desk));
    }
}
