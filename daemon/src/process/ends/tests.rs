//! The task against real processes and a real store.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use minder_proto::config::{Config, Durability};
use minder_proto::event::{Body, Event};
use minder_proto::layout::Home;
use minder_proto::record::{Channel, ClosedLine, RunningTurn, SessionRecord, TurnOrigin};
use minder_proto::stamp::Stamp;
use minder_proto::timeline;
use tokio::runtime::Runtime;

use super::*;
use crate::session::{Born, create};

const DEADLINE: Duration = Duration::from_secs(60);

struct Rig {
    dir: tempfile::TempDir,
    runtime: Runtime,
    store: Store,
    waiting: Option<Waiting>,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (store, ends) = open(&dir);
        let waiting = Some(runtime.block_on(ends.start(store.clone())).unwrap());
        Self { dir, runtime, store, waiting }
    }

    /// As a restart of the daemon: what was started by the last one is gone.
    fn restart(&mut self) {
        self.down();
        self.up();
    }

    fn down(&mut self) {
        self.waiting = None;
        self.store.stop();
    }

    fn up(&mut self) {
        let (store, ends) = open(&self.dir);
        self.store = store;
        self.waiting = Some(self.runtime.block_on(ends.start(self.store.clone())).unwrap());
    }

    /// A session that stands in a state and is bound to a process.
    fn session(&self, state: State, by: Author, process: &Process) -> SessionId {
        let born = Born {
            label: None,
            title: None,
            harness: Some("claude".into()),
            conversation: None,
            dir: "/x".into(),
            parent: None,
            primary: false,
            channel: Channel::Hook,
            process: Some(process.clone()),
            adopted: true,
            said: None,
            launch: None,
        };
        self.write(move |txn| {
            let id = create(txn, born.clone())?;
            declare(txn, id, Declaration::new(state, Some("a note".into()), by))?;
            txn.edit(id, |record| {
                record.compacting = true;
                record.turn = Some(RunningTurn {
                    dialog_input: None,
                    dialog_since: None,
                    prompt_id: None,
                    since: Stamp::from_millis(0),
                    by: TurnOrigin::Operator,
                    cause: None,
                    declared: false,
                    dialog: None,
                    messages: Vec::new(),
                    notice_about: None,
                    hops: 0,
                });
            })?;
            Ok(id)
        })
    }

    fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> T {
        self.runtime.block_on(self.store.write(run)).unwrap()
    }

    fn record(&self, id: SessionId) -> SessionRecord {
        self.runtime.block_on(self.store.read(move |s| s.session(id).unwrap().record.clone())).unwrap()
    }

    fn lines(&self, id: SessionId) -> Vec<Event> {
        timeline::last(&Home::at(self.dir.path()).session(id), 100).unwrap()
    }

    /// Lets the task run until this holds of it.
    fn until(&mut self, holds: impl Fn(&Waiting) -> bool) {
        let mut waiting = self.waiting.take().unwrap();
        let run = async {
            while !holds(&waiting) {
                assert!(waiting.step().await, "the store has ended");
            }
        };
        self.runtime
            .block_on(async { tokio::time::timeout(DEADLINE, run).await })
            .expect("it happens in time");
        self.waiting = Some(waiting);
    }

    /// Lets the task run until it waits for this many processes and has said all it has to say.
    fn settle(&mut self, processes: usize) {
        self.until(|w| w.told.is_empty() && w.watches.len() == processes && w.sayings.is_empty());
    }
}

fn open(dir: &tempfile::TempDir) -> (Store, Ends) {
    let (bindings, ends) = Ends::new();
    let mut config = Config::default();
    config.store.durability = Durability::None;
    let home = Home::at(dir.path());
    let (store, _) = Store::open(&home, Arc::new(config), Vec::new(), vec![Box::new(bindings)]).unwrap();
    (store, ends)
}

/// A process that lives until it is ended.
struct Lives(Child);

impl Lives {
    fn new() -> (Self, Process) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = crate::identity::process_of(i32::try_from(child.id()).unwrap()).unwrap();
        (Self(child), process)
    }

    fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn last_state(lines: &[Event]) -> &minder_proto::event::Transition {
    lines.iter().rev().find_map(|l| if let Body::State(t) = &l.body { Some(t) } else { None }).unwrap()
}

#[test]
fn f9_the_end_of_a_process_is_said_only_where_it_cut_work_short() {
    let mut rig = Rig::new();
    let (child, process) = Lives::new();
    // One process with several conversations: each is judged for itself.
    let working = rig.session(State::Working, Author::Agent, &process);
    let dialog = rig.session(State::Asking, Author::Hook, &process);
    let asks = rig.session(State::Asking, Author::Agent, &process);
    let review = rig.session(State::Review, Author::Agent, &process);
    rig.settle(1);
    let before: Vec<usize> = [asks, review].map(|id| rig.lines(id).len()).into();
    child.end();
    rig.settle(0);
    for id in [working, dialog] {
        let record = rig.record(id);
        let lines = rig.lines(id);
        let line = last_state(&lines);
        assert_eq!((record.state, record.state_by), (State::Error, Author::Minder));
        assert_eq!(line.note, Some(format!("claude (pid {}) is gone", process.pid)));
        assert_eq!((line.to, line.by, line.proof.as_deref()), (State::Error, Author::Minder, Some("pidfd")));
        assert_eq!(record.state_seq, lines.last().unwrap().seq);
    }
    let after: Vec<usize> = [asks, review].map(|id| rig.lines(id).len()).into();
    assert_eq!(before, after, "what the session declared stands");
    for id in [working, dialog, asks, review] {
        let record = rig.record(id);
        let noted = record.process.unwrap();
        assert!(noted.is(&process) && noted.ended.is_some());
        assert!(record.turn.is_none() && !record.compacting);
    }
}

#[test]
fn j7_what_ended_while_no_daemon_ran_is_said_once_and_nothing_else() {
    let mut rig = Rig::new();
    let (child, process) = Lives::new();
    let (lives, alive) = Lives::new();
    let another_boot = Process { boot: "another".into(), ..alive.clone() };
    let reused = Process { start: alive.start - 1, ..alive.clone() };
    let ended = rig.session(State::Working, Author::Hook, &process);
    let stands = rig.session(State::Done, Author::Agent, &process);
    let goes_on = rig.session(State::Working, Author::Hook, &alive);
    rig.settle(2);
    rig.down();
    child.end();
    rig.up();
    // Before its first call is taken, what is to be said is said.
    assert_eq!(last_state(&rig.lines(ended)).proof.as_deref(), Some(AT_START));
    assert_eq!(rig.record(ended).state, State::Error);
    let noted = |id| rig.record(id).process.unwrap().ended.is_some();
    assert_eq!([ended, stands, goes_on].map(noted), [true, true, false]);
    rig.settle(1);

    let rebooted = rig.session(State::Working, Author::Hook, &another_boot);
    let recycled = rig.session(State::Working, Author::Hook, &reused);
    rig.settle(1);
    assert_eq!([rebooted, recycled].map(|id| rig.record(id).state), [State::Error; 2]);

    let all = [ended, stands, goes_on, rebooted, recycled];
    let before = all.map(|id| rig.lines(id));
    for _ in 0..2 {
        rig.restart();
        rig.settle(1);
        assert_eq!(all.map(|id| rig.lines(id)), before);
    }
    drop(lives);
}

#[test]
fn a_session_that_goes_on_in_another_process_is_not_told_of_the_old_one() {
    let mut rig = Rig::new();
    let ((old, before), (new, now)) = (Lives::new(), Lives::new());
    let id = rig.session(State::Working, Author::Hook, &before);
    rig.settle(1);
    let next = now.clone();
    rig.write(move |txn| txn.edit(id, |record| record.process = Some(next)));
    rig.until(|w| w.bound.get(&id).is_some_and(|p| p.is(&now)));
    assert_eq!(rig.waiting.as_ref().unwrap().watches.len(), 1, "nobody waits for the old one");
    old.end();
    // An end that is told late changes nothing.
    let late = before.clone();
    rig.write(move |txn| end(txn, id, &late, BY_PIDFD));
    assert_eq!((rig.record(id).state, rig.record(id).process.unwrap().ended), (State::Working, None));
    new.end();
    rig.settle(0);
    assert_eq!(rig.record(id).state, State::Error);
    // It is resumed once more, in the same state of things: the new process is waited for.
    let (third, process) = Lives::new();
    rig.write(move |txn| {
        declare(txn, id, Declaration::new(State::Working, None, Author::Hook))?;
        txn.edit(id, |record| record.process = Some(process))
    });
    rig.settle(1);
    third.end();
    rig.settle(0);
    assert_eq!(rig.record(id).state, State::Error);
}

#[test]
fn a_closed_session_leaves_no_handle_behind() {
    let mut rig = Rig::new();
    let (_child, process) = Lives::new();
    let [first, second] = [(); 2].map(|()| rig.session(State::Working, Author::Hook, &process));
    rig.settle(1);
    let close = |rig: &Rig, id: SessionId| {
        let label = rig.record(id).label;
        let line = ClosedLine {
            id,
            title: label.clone(),
            label,
            state: State::Working,
            note: None,
            by: Author::Operator,
            at: Stamp::now(),
            process: None,
        };
        rig.write(move |txn| txn.close(line));
    };
    close(&rig, first);
    rig.until(|w| !w.bound.contains_key(&first));
    assert_eq!(rig.waiting.as_ref().unwrap().watches.len(), 1, "it is another session's too");
    close(&rig, second);
    rig.settle(0);
    assert!(rig.waiting.as_ref().unwrap().bound.is_empty());
}

thread_local! {
    static BLIND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn look_or_not(process: &Process) -> Look {
    if BLIND.get() { Look::Unknown("no descriptors are left".into()) } else { look(process) }
}

#[test]
fn a_process_of_which_nothing_is_known_has_not_ended() {
    let mut rig = Rig::new();
    rig.waiting.as_mut().unwrap().look = look_or_not;
    let ((unseen, process), (seen, other)) = (Lives::new(), Lives::new());
    let watched = rig.session(State::Idle, Author::Hook, &other);
    rig.settle(1);
    BLIND.set(true);
    let id = rig.session(State::Working, Author::Hook, &process);
    let closed = rig.session(State::Working, Author::Hook, &Process { pid: i32::MAX, ..process.clone() });
    rig.settle(1);
    assert_eq!(rig.waiting.as_ref().unwrap().blind.len(), 2);
    unseen.end();
    rig.write(move |txn| txn.edit(closed, |record| record.process = None));
    rig.until(|w| w.blind.len() == 1);
    assert_eq!((rig.record(id).state, rig.record(id).process.unwrap().ended), (State::Working, None));
    // One that ends makes room: what could not be seen is looked at again.
    BLIND.set(false);
    seen.end();
    rig.settle(0);
    assert_eq!((rig.record(id).state, rig.record(watched).state), (State::Error, State::Idle));
    assert!(rig.waiting.as_ref().unwrap().blind.is_empty());
}
