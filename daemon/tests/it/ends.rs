//! The ends of processes that sessions are bound to, as a running daemon notices them.

use std::process::{Child, Command, Stdio};

use minder_proto::event::Author;
use minder_proto::state::State;
use nix::sys::signal::Signal;

use crate::stored::{self, Wanted};
use crate::surroundings::Surroundings;

/// A process that runs until it is ended.
struct Runs(Child);

impl Runs {
    fn new() -> Self {
        Self(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn j7_f9_the_end_of_a_process_is_said_at_once_or_at_the_next_start_and_once() {
    let around = Surroundings::new();
    let home = around.home();
    let (mut gone, mut first, mut second) = (Runs::new(), Runs::new(), Runs::new());
    let bound = |label, runs: &Runs, state, by| Wanted {
        label,
        conversation: None,
        process: Some(stored::process(runs.0.id())),
        state,
        by,
    };
    let ids = stored::put(
        &home,
        &[
            bound("gone", &gone, State::Working, Author::Hook),
            bound("declared", &gone, State::Review, Author::Agent),
            bound("first", &first, State::Working, Author::Agent),
            bound("dialog", &second, State::Asking, Author::Hook),
        ],
    );
    let [was_gone, declared, working, dialog] = ids[..] else { panic!("four were put") };
    gone.end();

    let mut daemon = around.started();
    let line = stored::last_state(&home, was_gone);
    assert_eq!((line.to, line.by), (State::Error, Author::Minder), "said before anybody is answered");
    assert!(line.note.unwrap().starts_with("claude (pid "));
    assert!(stored::record(&home, declared).process.unwrap().ended.is_some());
    assert_eq!(stored::last_state(&home, declared).to, State::Review);

    first.end();
    stored::until(&home, || stored::last_state(&home, working).to == State::Error);
    assert_eq!(stored::last_state(&home, dialog).to, State::Asking);

    // Killed, and the other process ends while nobody looks.
    daemon.signal(Signal::SIGKILL);
    daemon.exit();
    second.end();
    let said: Vec<_> = [was_gone, declared, working].map(|id| stored::lines(&home, id)).into();
    for _ in 0..2 {
        let mut daemon = around.started();
        assert_eq!(stored::last_state(&home, dialog).to, State::Error);
        assert_eq!(stored::lines(&home, dialog).len(), 3, "created, asking, error");
        let now: Vec<_> = [was_gone, declared, working].map(|id| stored::lines(&home, id)).into();
        assert_eq!(now, said, "nothing else was added");
        daemon.signal(Signal::SIGTERM);
        daemon.exit();
    }
}
