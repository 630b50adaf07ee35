//! Sessions whose process the daemon starts: a harness in a terminal, in a window of the user's own tmux server. The session
//! is registered before anything runs; its process is known before its program is; what becomes of it until it is up is said
//! as a state.
//!
//! `programs` is how each harness is called, `window` is the tmux server, `door` and `start` are the two ends by which the
//! process in the window is told what to become, `course` is one start from its window to the sign that it is up, and
//! `again` decides what a further process of a session goes on with.
//!
//! Uses: `exit`, `store`, `session`, `identity`, `process`, `delivery`. Used by: `server`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use minder_proto::error::{Fault, Kind};
use minder_proto::id::SessionId;
use minder_proto::record::Process;
use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::delivery::Delivery;
use crate::process::{ended, signal};
use crate::session;
use crate::store::Store;

mod again;
mod course;
mod door;
pub mod programs;
mod start;
mod window;

pub use again::{Goes, goes_on_with};
pub use start::main;

/// How long a process may take to end when it is asked to.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Starts processes.
#[derive(Clone)]
pub struct Launcher(Arc<Shared>);

struct Shared {
    store: Store,
    delivery: Arc<Delivery>,
    /// This very program, as somebody else can start it.
    program: PathBuf,
}

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The session, which is registered.
    pub session: SessionId,
    /// Its label: the window's name.
    pub label: String,
    /// The tmux server's socket.
    pub socket: String,
    /// A pane of the session that gets the window.
    pub beside: Option<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its working directory.
    pub dir: String,
    /// What it is given of its caller's environment.
    pub env: BTreeMap<String, String>,
    /// Its hooks tell of its start, where they are installed.
    pub says_so: bool,
    /// It is a harness, which is there to stay, not a program that may be done.
    pub harness: bool,
}

impl Launcher {
    /// Over a store.
    pub fn new(store: Store, delivery: Arc<Delivery>) -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        // A program that was replaced while it runs is shown so; another one has its place by now.
        let name = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
        Ok(Self(Arc::new(Shared { store, delivery, program: name.unwrap_or(program) })))
    }

    /// Starts it. Gives why it could not be started, as soon as that is known; what becomes of a process that runs is said
    /// as a state.
    pub async fn begin(&self, start: Start) -> Option<String> {
        let (tell, told) = oneshot::channel();
        // It goes its way whatever becomes of the caller.
        tokio::spawn(course::run(Arc::clone(&self.0), start, tell));
        told.await.unwrap_or_else(|_| Some("the daemon is going down".to_owned()))
    }

    /// Waits until it is known whether what another call began could be started. Gives why it could not.
    pub async fn begun(&self, session: SessionId) -> Option<String> {
        let bell = self.0.delivery.changes_of(session);
        let look = move |state: &crate::store::State| state.session(session).map(|s| s.record.clone());
        let wait = async {
            loop {
                match self.0.store.read(look).await {
                    Ok(Some(record)) if record.launch.as_ref().is_some_and(course::is_on_its_way) => {
                        bell.notified().await;
                    }
                    found => break found.ok().flatten(),
                }
            }
        };
        let record = tokio::time::timeout(course::LONGEST, wait).await.ok().flatten()?;
        course::failure_of(&record)
    }

    /// Ends a process that was started for a session which is closed: asked first, then for certain.
    pub fn end(&self, process: Process) {
        tokio::spawn(async move {
            signal(&process, Signal::TERM);
            if tokio::time::timeout(GRACE, ended(&process)).await.is_err() {
                signal(&process, Signal::KILL);
            }
        });
    }

    /// What an earlier daemon began to start: what runs is waited for, what does not will not.
    pub async fn take_up(&self) {
        door::sweep(self.0.store.home());
        let pending = |state: &crate::store::State| {
            let begun = state.records().filter(|r| r.launch.as_ref().is_some_and(|l| l.pending));
            begun.map(|r| r.id).collect::<Vec<_>>()
        };
        for session in self.0.store.read(pending).await.unwrap_or_default() {
            tokio::spawn(course::take_up(Arc::clone(&self.0), session));
        }
    }
}

impl Shared {
    /// Says that a session is not up, and why. One that is gone needs no word.
    async fn not_up(&self, session: SessionId, why: String) {
        let written = self.store.write_patiently(move |txn| session::not_up(txn, session, &why)).await;
        if let Err(fault) = written
            && !matches!(fault.kind, Kind::Gone | Kind::NotFound | Kind::Unavailable)
        {
            tracing::warn!(%session, %fault, "that a session is not up could not be said");
        }
    }

    /// Says that what was started has done its work.
    async fn done(&self, session: SessionId, note: String) {
        if let Err(fault) = self.store.write_patiently(move |txn| session::is_done(txn, session, &note)).await
        {
            tracing::debug!(%session, %fault, "that it is done is not written");
        }
    }

    async fn is_pending(&self, session: SessionId) -> Result<bool, Fault> {
        let look = move |state: &crate::store::State| {
            state.session(session)?.record.launch.as_ref().map(|launch| launch.pending)
        };
        Ok(self.store.read(look).await?.unwrap_or(false))
    }
}
