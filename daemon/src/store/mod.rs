//! The store: the only code that writes files (but for the daemon's log and socket). One thread owns it; everybody
//! else sends it a mutation or a look and awaits the answer. A mutation is a closure over a [`Txn`], so that the
//! store knows nothing of watches, deliveries or hooks; what belongs to every commit of a kind is a [`Contributor`].
//!
//! Uses: `proto`. Used by: `watch`, `delivery`, `hook`, `server`; `check` reads the journal with it.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use minder_proto::STORE_FORMAT;
use minder_proto::config::{Config, Durability};
use minder_proto::error::{Fault, Kind, exit};
use minder_proto::layout::Home;
use minder_proto::trial;
use tokio::sync::oneshot;

mod again;
mod compact;
mod desk;
mod disk;
mod durable;
mod feed;
pub mod files;
mod hosts;
pub mod journal;
mod kept;
pub(crate) mod kill_point;
pub mod load;
mod mender;
pub mod op;
mod owner;
mod patience;
mod pointers;
pub mod recover;
mod seeded;
mod sizes;
pub mod spool;
mod state;
mod sweep;
mod txn;
mod undo;

pub use compact::Compacted;
pub use disk::DiskError;
pub use hosts::Host;
pub use load::HOOK_KEY;
pub use owner::{Counters, Observer};
pub use patience::Pauses;
pub use state::{Inbox, Session, State};
pub use txn::{Appended, Contributor, Txn};

// What a check of the store's files needs to read its journal as a start would.
pub(crate) use disk::{TEMP_PREFIX, is_odd};
pub(crate) use files::{FILLED, Files, is_list};
pub(crate) use journal::{Recovered, recover};
pub(crate) use mender::Mender;
pub(crate) use op::Op;
#[cfg(test)]
pub(crate) use recover::tests as replay_tests;
pub(crate) use recover::{Replayed, Target, is_beginning, replay};

use desk::Commands;
use owner::{Checkpoint, Command, Owner, Write};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A newer build wrote it.
    #[error("{}: the store says {found:?}, this build reads {STORE_FORMAT:?}: upgrade minderd", path.display())]
    Format {
        /// The `format` file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
}

impl OpenError {
    /// The daemon's exit code for it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Disk(e) if e.error.kind() == std::io::ErrorKind::PermissionDenied => exit::NOT_ALLOWED,
            Self::Disk(_) => exit::IO,
            Self::Format { .. } => exit::VERSION,
        }
    }
}

/// What a start did.
#[derive(Debug)]
pub struct Opened {
    /// Commits replayed from the journal.
    pub replayed: u64,
    /// Commits were missing in the journal: what the files hold may not fit together everywhere.
    pub hole: bool,
    /// What was mended, moved aside or found damaged, a line each.
    pub notes: Vec<String>,
    /// How long it took.
    pub took: std::time::Duration,
}

/// A handle to the store's owner. Cloned freely.
#[derive(Clone)]
pub struct Store {
    commands: Commands,
    counters: Arc<Mutex<Counters>>,
    home: Home,
    config: Arc<Config>,
}

impl Store {
    /// Opens the store: replays the journal, loads the records, and starts the owner's thread. The caller holds
    /// the store's lock.
    pub fn open(
        home: &Home,
        config: Arc<Config>,
        contributors: Vec<Box<dyn Contributor>>,
        observers: Vec<Box<dyn Observer>>,
    ) -> Result<(Self, Opened), OpenError> {
        let begun = Instant::now();
        let mut notes = Vec::new();
        let flush = config.store.durability == Durability::Flush;
        prepare(home, flush, &mut notes)?;
        let (mut files, found, replayed) = bring_up(home, flush, &mut notes)?;
        sweep::sweep(home, replayed.commits > 0, &mut notes)?;
        let state = load::load(home, &mut notes)?;
        let mut feed = feed::Feed::open(&home.feed())?;
        if !trial::fault("feed-silent-at-start") {
            feed.ring(replayed.lines.iter().copied());
            feed.ring_all();
        }
        feed.drop_aside()?;
        let mut journal = journal::Journal::open(&home.journal(), &found, flush)?;
        kill_point::reach("recover.opened");
        let mut unapplied = std::collections::VecDeque::new();
        let pointers = pointers::mend(home, &state)?;
        // A disk that takes nothing now does not keep the daemon from serving what is there.
        if !pointers.is_empty() && journal.commit(std::slice::from_ref(&pointers)).is_ok() {
            for op in pointers {
                let what = if matches!(op, Op::Remove { .. }) { "removed" } else { "written anew" };
                notes.push(format!("{}: did not fit the records; {what}", op.path()));
                if files.apply(&op).is_err() {
                    unapplied.push_back(op);
                }
            }
        }
        let (queue, receiver) = channel();
        let commands = Commands::new(queue, Arc::default());
        let counters =
            Arc::new(Mutex::new(Counters { journal_bytes: journal.bytes(), ..Counters::default() }));
        let owner = Owner {
            home: home.clone(),
            config: Arc::clone(&config),
            state,
            files,
            journal,
            feed,
            contributors,
            observers,
            counters: Arc::clone(&counters),
            commands: receiver,
            taken: 0,
            myself: commands.clone(),
            unapplied,
            read_only: None,
            waits_for: None,
            retried: begun,
            checkpoint: Checkpoint::due(replayed.commits > 0),
        };
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                // A fault in a mutation leaves a state that nobody can vouch for; the journal has what was told.
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| owner.run())).is_err() {
                    tracing::error!(
                        "the store's owner failed; the daemon ends, and the next start replays the journal"
                    );
                    std::process::exit(i32::from(exit::SOFTWARE));
                }
            })
            .map_err(disk::at(home.root()))?;
        let store = Self { commands, counters, home: home.clone(), config };
        let hole = found.hole().is_some();
        Ok((store, Opened { replayed: replayed.commits, hole, notes, took: begun.elapsed() }))
    }

    /// Runs a mutation in the owner's thread. The answer comes when it is durable; an error means that nothing of
    /// it happened. It is finished even if the caller goes away.
    pub async fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let job = Job { run: Some(run), value: None, reply };
        self.commands.send(Command::Write(Box::new(job))).map_err(|_| down())?;
        answer.await.map_err(|_| down())?
    }

    /// The same for a mutation that reads the store's files: every commit before it stands in them. It begins a group of
    /// its own for that, where [`Store::write`] joins the one under way.
    pub async fn write_on_files<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>, Settled<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let home = self.home.clone();
        let run = move |txn: &mut Txn<'_>| run(txn, Settled(&home));
        let job = Job { run: Some(run), value: None, reply };
        self.commands.send(Command::WriteOnFiles(Box::new(job))).map_err(|_| down())?;
        answer.await.map_err(|_| down())?
    }

    /// Looks at the state in the owner's thread, after everything that was accepted before.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let look = move |state: &State| {
            let _ = reply.send(look(state));
        };
        self.commands.send(Command::Read(Box::new(look))).map_err(|_| down())?;
        answer.await.map_err(|_| down())
    }

    /// The same for a short look, which is done here and now where the owner has nothing to do.
    pub async fn glance<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        match self.commands.desk().look(look) {
            Ok(found) => Ok(found),
            Err(look) => self.read(look).await,
        }
    }

    /// Makes the store as small as it can be without anything that counts.
    pub async fn compact(&self) -> Result<Compacted, Fault> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Compact(reply)).map_err(|_| down())?;
        answer.await.map_err(|_| down())?
    }

    /// Makes everything durable in the files and ends the owner's thread. Later calls are refused.
    pub fn stop(&self) {
        let (done, wait) = channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    /// Ends the owner's thread as a crash would: nothing more is written.
    #[cfg(test)]
    pub(crate) fn vanish(&self) {
        let (done, wait) = channel();
        if self.commands.send(Command::Vanish(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    /// What `daemon.status` shows.
    pub fn counters(&self) -> Counters {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the store is.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The store's files as a mutation may read them: everything that was committed before it stands in them. Only
/// [`Store::write_on_files`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a>(&'a Home);

impl<'a> Settled<'a> {
    /// Where they are.
    pub fn home(self) -> &'a Home {
        self.0
    }
}

fn down() -> Fault {
    Fault::new(Kind::Unavailable, "the daemon is going down")
}

struct Job<F, T> {
    run: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, Fault>>,
}

impl<F, T> Write for Job<F, T>
where
    F: FnOnce(&mut Txn<'_>) -> Result<T, Fault> + Send,
    T: Send,
{
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Fault> {
        let run = self.run.take().expect("a mutation runs once");
        self.value = Some(run(txn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), Fault>) {
        let Self { value, reply, .. } = *self;
        let result = outcome.map(|()| value.expect("a mutation that was accepted has run"));
        let _ = reply.send(result); // the caller may be gone; the mutation stands
    }
}

/// Replays the journal over the files; one with a hole is set aside after that.
fn bring_up(
    home: &Home,
    flush: bool,
    notes: &mut Vec<String>,
) -> Result<(Files, Recovered, Replayed), OpenError> {
    set_odd_aside(home, notes)?;
    let found = recover(&home.journal())?;
    if flush {
        journal::settle(&home.journal(), &found)?;
    }
    notes.extend(found.damage.iter().map(ToString::to_string));
    let mut files = Files::new(home.root());
    files.trust_nothing(true);
    let replayed = replay(&mut files, &found.commits, found.hole())?;
    notes.extend(replayed.notes.iter().cloned());
    notes.extend(
        replayed
            .cut
            .iter()
            .map(|file| format!("{file}: bytes past its last commit were cut, and kept in quarantine/")),
    );
    for (session, why) in &replayed.quarantined {
        notes.push(format!("sessions/{session}: moved to quarantine/: {why}"));
    }
    let unfit = "what was committed to it beside a hole in the journal does not fit; left as it is";
    notes.extend(replayed.unfit.iter().map(|file| format!("{file}: {unfit}")));
    if found.hole().is_some() {
        let why: Vec<String> = found.damage.iter().map(ToString::to_string).collect();
        recover::set_journal_aside(&mut files, &home.journal(), &why.join("\n"))?;
        notes.push("journal: what can be read of it was applied; moved to quarantine/".to_owned());
    }
    files.trust_nothing(false);
    Ok((files, found, replayed))
}

/// Moves aside what has the name of a file that the whole store needs, and is none.
fn set_odd_aside(home: &Home, notes: &mut Vec<String>) -> Result<(), OpenError> {
    let files =
        ["keys.jsonl", "closed.jsonl", "feed.jsonl", "operator/queue.jsonl", "operator/timeline.jsonl"];
    for file in files {
        let path = home.root().join(file);
        match minder_proto::whole::is_regular(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                disk::make_dir(&home.quarantine())?;
                recover::quarantine_file(home.root(), &path, &file.replace('/', "."), &e.to_string())?;
                notes.push(format!("{}: {e}; moved to quarantine/", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The folders that a store has from its first start on.
pub(crate) const FOLDERS: [&str; 10] = [
    "journal",
    "sessions",
    "trash",
    "operator",
    "spool",
    "quarantine",
    "run",
    "labels",
    "bindings",
    "followers",
];

/// Makes the folders, checks the format, narrows what is wider than it should be.
fn prepare(home: &Home, flush: bool, notes: &mut Vec<String>) -> Result<(), OpenError> {
    let folders: Vec<PathBuf> =
        std::iter::once(home.root().to_owned()).chain(FOLDERS.map(|name| home.root().join(name))).collect();
    let format = home.format();
    match std::fs::read_to_string(&format) {
        Ok(text) if text.trim_end() == STORE_FORMAT => {}
        Ok(text) => {
            return Err(OpenError::Format {
                path: format,
                found: text.trim_end().chars().take(60).collect(),
            });
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            disk::make_dir(home.root())?;
            disk::replace_synced(&format, format!("{STORE_FORMAT}\n").as_bytes())?;
        }
        Err(e) => return Err(disk::at(&format)(e).into()),
    }
    for folder in &folders {
        disk::make_dir(folder)?;
        if disk::narrow(folder, 0o700)? {
            notes.push(format!("{}: was open to others; narrowed to 0700", folder.display()));
        }
    }
    for file in [home.feed(), home.closed(), home.keys(), home.lock(), home.format()] {
        if file.exists() && disk::narrow(&file, 0o600)? {
            notes.push(format!("{}: was open to others; narrowed to 0600", file.display()));
        }
    }
    if flush {
        // At each start, since the one that made them may have been killed before this.
        disk::sync_up(home.root())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
