//! The real store with all that acts on it, driven as the server drives it: mutations as closures over a transaction,
//! the mailbox through delivery.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use minder_daemon::delivery::mailbox::bury;
use minder_daemon::delivery::{Changes, Delivery, Watching};
use minder_daemon::session::{self, Born, Declaration, Lookup};
use minder_daemon::store::{Observer, Settled, Store, Txn};
use minder_daemon::watch::{self, FanOut};
use minder_proto::config::{Config, Durability};
use minder_proto::error::{Fault, Kind};
use minder_proto::event::{self, Receipt};
use minder_proto::id::{self, MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::{Channel, Process};
use tempfile::TempDir;

use super::moves::{Act, DIR, QUEUE_MAX};
use super::reference::{Last, Named, Outcome, Party};
use super::tree::{self, Tree};
use crate::raw::DEADLINE;

/// A store, and which of its names are which of the reference's.
pub struct Rig {
    dir: TempDir,
    runtime: tokio::runtime::Runtime,
    store: Store,
    delivery: Arc<Delivery>,
    pub ids: Vec<SessionId>,
    /// The id of each message, by its recipient and its line, as found in the timelines.
    pub messages: RefCell<BTreeMap<(Party, u64), MessageId>>,
    /// What is durable whatever happens: the files as of the last checkpoint.
    durable: Tree,
}

impl Rig {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let dir = folder();
        let (store, delivery) = open(&runtime, dir.path());
        let durable = tree::read(dir.path());
        let messages = RefCell::default();
        Self { dir, runtime, store, delivery, ids: Vec::new(), messages, durable }
    }

    pub fn home(&self) -> Home {
        Home::at(self.dir.path())
    }

    /// Asks the store.
    pub fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&minder_daemon::store::State) -> T + Send + 'static,
    ) -> T {
        self.runtime.block_on(self.store.read(look)).unwrap()
    }

    /// A party as the store names it.
    pub fn party(&self, party: Party) -> id::Party {
        name(&self.ids, party)
    }

    /// Does what the reference did, and compares what came of it.
    pub fn follow(&mut self, last: &Last) {
        match last {
            Last::Nothing => {}
            Last::Group(acts) => self.group(acts),
            Last::Take { party, connection, key, given } => {
                let key = key.map(str::to_owned);
                let taken = self.delivery.take(self.party(*party), *connection, key);
                let taken = self.runtime.block_on(taken).map_err(|fault| fault.kind);
                let found = taken.map(|t| (t.message.map(|m| m.seq), t.more));
                assert_eq!(found, *given, "what the mailbox gives");
            }
            Last::Ack { party, message, outcome } => {
                let id = self.messages.borrow()[&(*party, *message)];
                let receipt = self.runtime.block_on(self.delivery.ack(Lookup { to: self.party(*party), id }));
                let found = match receipt {
                    Ok(receipt) => {
                        // One that was settled before stays what it was.
                        assert!(receipt.is_settled(), "{receipt}");
                        Outcome::Done
                    }
                    Err(fault) => Outcome::Fault(fault.kind),
                };
                assert_eq!(found, *outcome);
            }
            Last::Hangup(connection) => self.runtime.block_on(self.delivery.connection_ended(*connection)),
            Last::Restart => {
                self.store.stop();
                self.durable = tree::read(self.dir.path());
                (self.store, self.delivery) = open(&self.runtime, self.dir.path());
            }
            Last::Crash => {
                let files = tree::read(self.dir.path());
                self.go_on_with(&files);
            }
            Last::PowerCut(seed) => {
                let files = tree::cut(&self.durable, &tree::read(self.dir.path()), *seed);
                self.go_on_with(&files);
            }
        }
    }

    /// The daemon is gone, and the next one finds these files.
    fn go_on_with(&mut self, files: &Tree) {
        let dir = folder();
        tree::write(dir.path(), files);
        self.store.stop();
        (self.store, self.delivery) = open(&self.runtime, dir.path());
        self.dir = dir;
        let files = tree::read(self.dir.path());
        if files.keys().filter(|name| name.starts_with("journal/")).count() == 1 {
            self.durable = files;
        }
    }

    /// Gives the store all of them while it is busy, so that it takes them as one group.
    fn group(&mut self, acts: &[(Named, Outcome)]) {
        let (release, busy) = channel::<()>();
        let store = self.store.clone();
        let mut look = pin!(store.read(move |_| busy.recv().is_ok()));
        begin(look.as_mut());
        let ids = self.ids.clone();
        let calls: Vec<_> = acts
            .iter()
            .map(|(act, _)| {
                let (act, ids, store) = (act.clone(), ids.clone(), store.clone());
                let mut call = Box::pin(async move {
                    if act.reads_files() {
                        store.write_on_files(move |txn, files| perform(txn, Some(files), &ids, &act)).await
                    } else {
                        store.write(move |txn| perform(txn, None, &ids, &act)).await
                    }
                });
                begin(call.as_mut());
                call
            })
            .collect();
        drop(release);
        self.runtime.block_on(look).unwrap();
        for ((act, expected), call) in acts.iter().zip(calls) {
            let found = match self.runtime.block_on(call) {
                Ok(Answer::Created(id)) => {
                    self.ids.push(id);
                    Outcome::Created
                }
                Ok(Answer::Other(outcome)) => outcome,
                Err(fault) => Outcome::Fault(fault.kind),
            };
            assert_eq!(found, *expected, "what comes of {act:?}");
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.store.stop();
    }
}

/// A folder for a store, in memory where there is such a place: what is asked of it is no disk's business.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let made = made.unwrap();
    tree::narrow(made.path());
    made
}

fn open(runtime: &tokio::runtime::Runtime, place: &Path) -> (Store, Arc<Delivery>) {
    let mut config = Config::default();
    config.store.durability = Durability::None;
    config.queue.max_messages = QUEUE_MAX;
    let changes = Arc::new(Changes::default());
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(Watching(Arc::clone(&changes)))];
    let segments = || std::fs::read_dir(Home::at(place).journal()).map_or(0, Iterator::count);
    let before = segments();
    let (store, opened) =
        Store::open(&Home::at(place), Arc::new(config), vec![Box::new(FanOut)], observers).unwrap();
    let wrong = |note: &&String| !note.contains("bytes past its last commit were cut");
    assert_eq!(opened.notes.iter().filter(wrong).collect::<Vec<_>>(), Vec::<&String>::new());
    if opened.replayed > 0 && before >= 4 {
        // After so many crashes a start begins a checkpoint beside all else. Here it is over first, so that it is known what a
        // loss of power leaves.
        let deadline = Instant::now() + DEADLINE;
        while segments() > 1 {
            assert!(Instant::now() < deadline, "what was replayed is never checkpointed");
            std::thread::yield_now();
        }
    }
    let delivery = Delivery::new(store.clone(), changes);
    runtime.block_on(delivery.start());
    (store, delivery)
}

/// Sends what a call has to send.
fn begin<F: Future>(call: Pin<&mut F>) {
    assert!(matches!(call.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
}

enum Answer {
    Created(SessionId),
    Other(Outcome),
}

fn name(ids: &[SessionId], party: Party) -> id::Party {
    party.map_or(id::Party::Operator, |session| id::Party::Session(ids[session]))
}

fn perform(
    txn: &mut Txn<'_>,
    files: Option<Settled<'_>>,
    ids: &[SessionId],
    act: &Named,
) -> Result<Answer, Fault> {
    let id = |session: &usize| ids[*session];
    let some = |party: &Option<usize>| party.map(|session| ids[session]);
    let outcome = match act {
        Act::Create { label, title, parent } => {
            let born = Born {
                label: label.map(str::to_owned),
                title: title.map(str::to_owned),
                harness: None,
                conversation: None,
                dir: DIR.to_owned(),
                parent: some(parent),
                primary: false,
                channel: Channel::Mailbox,
                process: None,
                adopted: false,
                said: None,
                launch: None,
            };
            return session::create(txn, born).map(Answer::Created);
        }
        Act::Declare { session, to, note, by, turn_end } => {
            let note = note.map(str::to_owned);
            let declaration = Declaration { turn_end: *turn_end, ..Declaration::new(*to, note, *by) };
            Outcome::Declared(session::declare(txn, id(session), declaration)?)
        }
        Act::Set { session, label, title, parent, conversation } => {
            let changes = session::Changes {
                label: label.map(str::to_owned),
                title: title.map(str::to_owned),
                parent: some(parent),
                channel: None,
                env: Default::default(),
                conversation: conversation.map(|c| ("claude".to_owned(), c.to_owned())),
            };
            Outcome::Set(session::set(txn, id(session), changes)?.len())
        }
        Act::Process { session, pid } => {
            txn.edit(id(session), |record| record.process = pid.map(process))?;
            Outcome::Done
        }
        Act::Watch { watcher, targets, states } => {
            let targets: Vec<SessionId> = targets.iter().map(id).collect();
            let rows = watch::add(txn, id(watcher), &targets, *states)?;
            Outcome::Watched(rows.iter().map(|row| row.already).collect())
        }
        Act::Cancel { watcher, targets } => {
            let targets: Vec<SessionId> = targets.iter().map(id).collect();
            let rows = watch::cancel(txn, id(watcher), &targets)?;
            Outcome::Cancelled(rows.iter().map(|row| (row.was, row.notices)).collect())
        }
        Act::Send { from, to, body, class, key } => {
            let message = event::Message {
                id: MessageId::now(),
                from: name(ids, *from),
                about: None,
                body: (*body).to_owned(),
                class: *class,
                key: None,
                reply_to: None,
                thread: None,
                cause: None,
                hops: 0,
                expires: None,
            };
            let (_, seq) = txn.post(name(ids, *to), message)?;
            if let Some(key) = key {
                txn.remember(key_name(*key), 7, seq.into());
            }
            Outcome::Sent(seq)
        }
        Act::Hold { party, message } => {
            let party = name(ids, *party);
            let entry = txn.inbox(party)?.queue.iter().find(|e| Some(e.seq) == *message).cloned();
            if let Some(entry) = entry.filter(|e| e.receipt != Receipt::Handed) {
                let reason = Some("busy".to_owned());
                txn.receipt(party, entry.id, Receipt::Held, reason, entry.attempt, Some("hook"))?;
            }
            Outcome::Done
        }
        Act::Bury { party, message } => {
            let party = name(ids, *party);
            let entry = txn.inbox(party)?.queue.iter().find(|e| Some(e.seq) == *message).cloned();
            if let Some(entry) = entry {
                bury(txn, files.expect("it reads files"), party, &[entry], "expired", "its time was over")?;
            }
            Outcome::Done
        }
        Act::Close { session, note, by, recall } => {
            let note = note.map(str::to_owned);
            let closed =
                session::close(txn, files.expect("it reads files"), id(session), note, *by, *recall)?;
            Outcome::Closed { dead: closed.dead, recalled: closed.recalled }
        }
        Act::Refused(act) => {
            perform(txn, files, ids, act)?;
            return Err(Fault::new(Kind::Refused, "on second thoughts"));
        }
    };
    Ok(Answer::Other(outcome))
}

/// A process that a session is bound to.
pub fn process(pid: i32) -> Process {
    Process { pid, start: 7, boot: "boot".to_owned(), tty: None, ended: None }
}

/// An idempotency key as the store knows it.
pub fn key_name(key: u8) -> String {
    format!("operator/send/{key}")
}
