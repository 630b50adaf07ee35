//! The one thread that owns the store. It takes mutations as they come, makes one group of those that wait, flushes
//! the journal once for all of them, applies them to the files, rings the feed, and answers.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use minder_proto::config::Config;
use minder_proto::error::{Fault, Kind};
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::Process;
use minder_proto::stamp::Stamp;
use minder_proto::trial;
use tokio::sync::oneshot;

use super::again;
use super::compact::Compacted;
use super::desk::Commands;
use super::disk::{self, DiskError};
use super::durable::Flush;
use super::feed::Feed;
use super::files::{self, Files};
use super::journal::{Journal, RECORD_MAX};
use super::kill_point::reach;
use super::load::kept;
use super::op::{self, Op};
use super::recover::quarantine;
use super::seeded;
use super::sizes;
use super::state::State;
use super::txn::{Appended, Contributor, Done, Txn, after};
use super::undo::{Undo, roll_back};

/// Most mutations in one group, and most bytes.
const GROUP: usize = 512;
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// How often what could not be applied is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// A mutation that waits for its turn.
pub trait Write: Send {
    /// Runs it. An error refuses it: nothing of it happens.
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Fault>;
    /// Answers its caller.
    fn answer(self: Box<Self>, outcome: Result<(), Fault>);
}

/// What the owner is asked.
pub enum Command {
    /// A mutation.
    Write(Box<dyn Write>),
    /// A mutation that reads files: whatever was accepted before it is applied to them first.
    WriteOnFiles(Box<dyn Write>),
    /// A look at the state, after everything before it is durable.
    Read(Box<dyn FnOnce(&State) + Send>),
    /// The files of a checkpoint are durable, or not.
    Synced {
        /// The last segment that it makes superfluous.
        last: u64,
        /// How it went.
        result: Result<(), DiskError>,
    },
    /// Rewrite every ledger that can be shorter, begin the feed anew, and make the journal empty.
    Compact(oneshot::Sender<Result<Compacted, Fault>>),
    /// Finish: everything is applied, synced, and the journal empty if the disk lets it.
    Stop(Sender<()>),
    /// End as a crash does.
    #[cfg(test)]
    Vanish(Sender<()>),
}

/// Counters that `daemon.status` shows.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Commits since the start.
    pub commits: u64,
    /// Flushes of the journal since the start.
    pub flushes: u64,
    /// Bytes of journal since the last checkpoint.
    pub journal_bytes: u64,
    /// Why nothing new is taken, if so.
    pub read_only: Option<String>,
}

/// Told of every commit after it is durable and applied, before its caller is.
pub trait Observer: Send {
    /// One group: whose records, timelines or ledgers it changed, and the lines it appended.
    fn committed(&self, _parties: &BTreeSet<Party>, _lines: &[Appended]) {}
    /// The process of a session as it is noted from now on: another one, the same one with its end, or none (the
    /// session was closed). Told before the group's lines.
    fn bound(&self, _session: SessionId, _process: Option<&Process>) {}
}

pub(super) struct Owner {
    pub home: Home,
    pub config: Arc<Config>,
    pub state: State,
    pub files: Files,
    pub journal: Journal,
    pub feed: Feed,
    pub contributors: Vec<Box<dyn Contributor>>,
    pub observers: Vec<Box<dyn Observer>>,
    pub counters: Arc<Mutex<Counters>>,
    pub commands: Receiver<Command>,
    /// Commands that were taken and are not served to their end.
    pub taken: usize,
    pub myself: Commands,
    pub unapplied: VecDeque<Op>,
    pub read_only: Option<String>,
    /// Why the first of `unapplied` waits.
    pub waits_for: Option<String>,
    /// When a disk that refuses was tried last without being asked to.
    pub retried: Instant,
    pub checkpoint: Checkpoint,
}

/// A start leaves a segment of the journal behind where it is killed. With more than these the next one begins with a
/// checkpoint.
const MANY_STARTS: usize = 4;

/// Where the checkpoint stands.
#[derive(Default)]
pub(super) struct Checkpoint {
    /// Files are being made durable elsewhere; these are they.
    running: Option<Vec<std::path::PathBuf>>,
    /// Something was committed since the last one began.
    due: bool,
    /// When the last commit was, or the last attempt failed.
    last_activity: Option<Instant>,
    /// A flush failed: what the files seem to hold may be in memory alone, for good.
    distrusted: bool,
}

impl Checkpoint {
    /// At start: due if something was replayed.
    pub fn due(due: bool) -> Self {
        Self { due, ..Self::default() }
    }
}

struct Accepted {
    job: Box<dyn Write>,
    done: Done,
}

impl Owner {
    /// Runs until it is told to stop.
    pub fn run(mut self) {
        // A daemon that is killed over and over would start ever more slowly: what it replayed is not replayed again.
        if self.journal.segments() > MANY_STARTS {
            self.maybe_checkpoint();
        }
        self.checkpoint.last_activity = Some(Instant::now());
        loop {
            let deadline = self.next_deadline();
            self.myself.desk().lay(&mut self.state, std::mem::take(&mut self.taken));
            let first = match deadline {
                Some(deadline) => {
                    self.commands.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
                None => self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            self.myself.desk().take(&mut self.state);
            self.taken += usize::from(first.is_ok());
            let stop = match first {
                #[cfg(test)]
                Ok(Command::Vanish(done)) => return drop(done),
                Ok(command) => self.serve(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            };
            if self.retried.elapsed() >= RETRY {
                self.retried = Instant::now();
                self.try_disk();
            }
            self.maybe_checkpoint();
            if let Some(done) = stop {
                self.finish();
                let _ = done.send(());
                return;
            }
        }
    }

    /// The next moment at which something is to be done without a command.
    fn next_deadline(&self) -> Option<Instant> {
        let waits = !self.unapplied.is_empty() || self.read_only.is_some();
        let retry = waits.then_some(self.retried + RETRY);
        let idle = self.checkpoint.due && self.checkpoint.running.is_none() && self.unapplied.is_empty();
        let checkpoint = self.checkpoint.last_activity.filter(|_| idle).map(|t| t + sizes::checkpoint_idle());
        [retry, checkpoint].into_iter().flatten().min()
    }

    /// Serves one command and those that wait behind it; gives whom to tell of the end.
    fn serve(&mut self, first: Command) -> Option<Sender<()>> {
        let mut next = Some(first);
        while let Some(command) = next.take() {
            match command {
                Command::Write(job) | Command::WriteOnFiles(job) => next = self.group(job),
                Command::Read(look) => look(&self.state),
                Command::Synced { last, result } => self.checkpoint_synced(last, result),
                Command::Compact(reply) => {
                    let _ = reply.send(self.compact());
                }
                Command::Stop(done) => return Some(done),
                #[cfg(test)]
                Command::Vanish(_) => unreachable!("nobody else uses a store that vanishes"),
            }
        }
        None
    }

    /// Takes a mutation and those that wait behind it as one group. Gives the command that ended the group.
    fn group(&mut self, first: Box<dyn Write>) -> Option<Command> {
        if let Some(why) = self.refuses() {
            first.answer(Err(Fault::new(Kind::ReadOnly, why)));
            return None;
        }
        let now = Stamp::now();
        let mut accepted: Vec<Accepted> = Vec::new();
        let mut idle: Vec<Box<dyn Write>> = Vec::new();
        let mut lost: Vec<SessionId> = Vec::new();
        let mut bytes = 0;
        let mut rest = None;
        let mut next = Some(first);
        while let Some(mut job) = next.take() {
            let mut txn = Txn::new(&mut self.state, &mut self.files, &self.config, now);
            let result = job.run(&mut txn).and_then(|()| {
                contribute(&self.contributors, &mut txn);
                txn.measure()
            });
            match result {
                Err(fault) => {
                    lost.extend(txn.roll_back());
                    job.answer(Err(fault));
                }
                Ok(()) => {
                    let done = txn.finish();
                    lost.extend_from_slice(&done.lost);
                    let size = op::encode(&done.ops).len();
                    if size > RECORD_MAX {
                        roll_back(&mut self.state, done.undo);
                        let fault = Fault::new(Kind::TooLarge, "this change is larger than a commit may be");
                        job.answer(Err(fault));
                    } else if done.ops.is_empty() {
                        idle.push(job);
                    } else {
                        bytes += size;
                        self.files.expect(&done.ops);
                        if trial::fault("ack-before-flush") {
                            job = seeded::answered(job);
                        }
                        accepted.push(Accepted { job, done });
                    }
                }
            }
            if accepted.len() >= GROUP || bytes >= GROUP_BYTES {
                break;
            }
            let command = self.commands.try_recv();
            self.taken += usize::from(command.is_ok());
            match command {
                Ok(Command::Write(job)) => next = Some(job),
                Ok(other) => rest = Some(other),
                Err(_) => {}
            }
        }
        self.files.expect_nothing();
        // They changed nothing on the strength of what the others of their group did.
        let outcome = self.commit(accepted);
        for job in idle {
            job.answer(outcome.clone());
        }
        if !lost.is_empty() {
            self.forget(lost);
        }
        rest
    }

    fn commit(&mut self, mut accepted: Vec<Accepted>) -> Result<(), Fault> {
        if accepted.is_empty() {
            return Ok(());
        }
        let mut group: Vec<Vec<Op>> = accepted.iter_mut().map(|a| std::mem::take(&mut a.done.ops)).collect();
        let second = if trial::fault("fanout-two-commits") {
            let done = accepted.iter().map(|a| &a.done);
            seeded::halves(&mut group, done)
        } else {
            Vec::new()
        };
        if let Err(error) = self.journal.commit(&group) {
            tracing::error!(%error, "a commit failed; nothing new is taken until the disk takes writes again");
            let why = format!("cannot write {error}");
            // Newest first, so that each finds the state that its successor saw.
            let mut undo: Vec<Undo> = Vec::new();
            let mut jobs = Vec::new();
            for a in accepted {
                undo.extend(a.done.undo);
                jobs.push(a.job);
            }
            roll_back(&mut self.state, undo);
            self.read_only = Some(why.clone());
            self.publish(0);
            let fault = Fault::new(Kind::ReadOnly, why);
            for job in jobs {
                job.answer(Err(fault.clone()));
            }
            return Err(fault);
        }
        for op in group.into_iter().flatten() {
            self.apply(op);
        }
        if !second.is_empty() && self.journal.commit(&second).is_ok() {
            second.into_iter().flatten().for_each(|op| self.apply(op));
        }
        let lines: Vec<Appended> =
            accepted.iter_mut().flat_map(|a| std::mem::take(&mut a.done.appended)).collect();
        let rung = lines.iter().filter_map(|l| Some((l.party.session()?, l.event.seq)));
        self.feed.ring(rung);
        self.checkpoint.due = true;
        self.checkpoint.last_activity = Some(Instant::now());
        self.publish(accepted.len() as u64);
        for (session, process) in accepted.iter().flat_map(|a| &a.done.bound) {
            self.observers.iter().for_each(|o| o.bound(*session, process.as_ref()));
        }
        let parties: BTreeSet<Party> = accepted.iter().flat_map(|a| a.done.parties.iter().copied()).collect();
        self.observers.iter().for_each(|o| o.committed(&parties, &lines));
        reach("answer.before");
        for a in accepted {
            a.job.answer(Ok(()));
        }
        Ok(())
    }

    fn apply(&mut self, op: Op) {
        if !self.unapplied.is_empty() {
            self.unapplied.push_back(op);
            return;
        }
        reach("apply.before-op");
        if let Err(error) = self.files.apply(&op) {
            tracing::error!(%error, "what was committed cannot be applied yet; it is tried again each second");
            self.unapplied.push_back(op);
            self.unapplied_for(&error);
            return;
        }
        reach("apply.after-op");
    }

    /// Notes, and shows, why what was committed waits.
    fn unapplied_for(&mut self, error: &DiskError) {
        let why = format!("cannot write {error}; what was accepted before waits for it");
        if self.waits_for.as_ref() != Some(&why) {
            self.waits_for = Some(why);
            self.publish(0);
        }
    }

    /// Tries again what passed the journal and could not be applied. A session whose folder is gone is given up.
    fn retry_unapplied(&mut self) {
        if self.unapplied.is_empty() {
            return;
        }
        while let Some(op) = self.unapplied.front() {
            let gone = op.session().filter(|s| {
                !matches!(op, Op::Replace { .. } | Op::Retire { .. })
                    && matches!(disk::is_there(&self.home.session(*s)), Ok(false))
            });
            let mut lost = None;
            match self.files.redo(op) {
                Ok(None) => {}
                Ok(Some(why)) => {
                    tracing::error!(%why, "a committed change was given up");
                    if let Some(session) = op.session().filter(|_| gone.is_none()) {
                        match quarantine(self.home.root(), session, &why) {
                            Ok(()) => lost = Some(session),
                            Err(error) => return self.unapplied_for(&error),
                        }
                    }
                }
                Err(error) if gone.is_some() && error.error.kind() == io::ErrorKind::NotFound => {
                    tracing::error!(%error, "a committed change was given up");
                }
                Err(error) => return self.unapplied_for(&error),
            }
            self.unapplied.pop_front();
            if let Some(session) = lost {
                // As a start does it: what memory knows of it is more than its files hold.
                self.unapplied.retain(|op| op.session() != Some(session));
            }
            if let Some(session) = gone.or(lost) {
                self.forget(vec![session]);
            }
        }
        tracing::info!("what was committed is applied");
        self.waits_for = None;
        self.publish(0);
        // The feed rang for these lines before they could be read.
        self.feed.ring_all();
    }

    /// Why nothing new is taken right now, if so; tries whether it is over.
    pub(super) fn refuses(&mut self) -> Option<String> {
        self.try_disk();
        self.why_refused()
    }

    fn why_refused(&self) -> Option<String> {
        self.waits_for.clone().or_else(|| self.read_only.clone())
    }

    /// Tries whether a disk that refused takes writes again.
    fn try_disk(&mut self) {
        self.retry_unapplied();
        if self.read_only.is_none() || !self.unapplied.is_empty() {
            return;
        }
        match self.journal.probe() {
            Ok(()) => {
                tracing::info!("the disk takes writes again");
                self.read_only = None;
                // What the attempts left behind takes room.
                self.checkpoint.due = true;
                self.checkpoint.last_activity = Some(Instant::now());
            }
            Err(error) => self.read_only = Some(format!("cannot write {error}")),
        }
        self.publish(0);
    }

    /// Gives up sessions whose folders a foreign hand took away: said once, nothing is created again.
    fn forget(&mut self, sessions: Vec<SessionId>) {
        for id in sessions {
            let Some(session) = self.state.sessions.remove(&id) else { continue };
            tracing::warn!(session = %id, "its folder is gone; the session is given up");
            self.state.labels.retain(|_, s| *s != id);
            let mut files =
                vec![format!("labels/{}", minder_proto::layout::file_name(&session.record.label))];
            for b in &session.record.bindings {
                if self.state.bindings.get(&(b.harness.clone(), b.id.clone())) == Some(&id) {
                    self.state.bindings.remove(&(b.harness.clone(), b.id.clone()));
                    let name = minder_proto::layout::file_name;
                    files.push(format!("bindings/{}/{}", name(&b.harness), name(&b.id)));
                }
            }
            if let Some(process) = &session.record.process {
                let key = (process.pid, process.start);
                if let Some(ids) = self.state.processes.get_mut(&key) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        self.state.processes.remove(&key);
                    }
                }
                self.observers.iter().for_each(|o| o.bound(id, None));
            }
            let line = minder_proto::record::ClosedLine {
                id,
                label: session.record.label.clone(),
                title: session.record.title.clone(),
                state: session.record.state,
                note: Some("its folder is gone".to_owned()),
                by: minder_proto::event::Author::Minder,
                at: Stamp::now(),
                process: None,
            };
            let mut bytes = serde_json::to_vec(&line).expect("a tombstone is plain data");
            bytes.push(b'\n');
            let found = match self.files.look("closed.jsonl") {
                Ok(files::Found::Len(len)) => len,
                _ => 0,
            };
            let (offset, bytes) = after(found, self.state.closed_len, bytes);
            let len = offset + bytes.len() as u64;
            // What a replay would write into its folder, so that none comes back with half of it.
            let own = [minder_proto::timeline::ACTIVE, "session.json", "queue.jsonl", "watchers.json"];
            files.extend(own.map(|name| format!("sessions/{id}/{name}")));
            let mut ops: Vec<Op> = files.into_iter().map(|file| Op::Remove { file }).collect();
            ops.push(Op::Append { file: "closed.jsonl".into(), segment: 0, offset, bytes });
            if self.journal.commit(std::slice::from_ref(&ops)).is_ok() {
                self.state.closed_len = len;
                for op in ops {
                    self.apply(op);
                }
            }
        }
    }

    fn maybe_checkpoint(&mut self) {
        let quiet = self.checkpoint.last_activity.is_none_or(|t| t.elapsed() >= sizes::checkpoint_idle());
        let full = self.journal.bytes() >= sizes::checkpoint();
        if self.checkpoint.running.is_some()
            || !self.checkpoint.due
            || !(quiet || full)
            || !self.unapplied.is_empty()
        {
            return;
        }
        let Some((last, flush)) = self.begin_checkpoint() else { return };
        let myself = self.myself.clone();
        let work = move || {
            let result = flush.run();
            let _ = myself.send(Command::Synced { last, result });
        };
        if std::thread::Builder::new().name("checkpoint".into()).spawn(work).is_err() {
            self.checkpoint_failed();
        }
    }

    /// Rewrites long ledgers, switches the journal, and opens what is to be flushed.
    fn begin_checkpoint(&mut self) -> Option<(u64, Flush)> {
        if let Err(error) = self.rewrite_ledgers(sizes::ledger()) {
            tracing::warn!(%error, "a ledger could not be rewritten");
        }
        if !self.unapplied.is_empty() {
            return None; // the journal keeps it
        }
        let begun = self.write_again().and_then(|()| self.journal.begin_checkpoint()).and_then(|last| {
            let paths = self.checkpoint.running.insert(self.files.take_touched());
            Ok((last, Flush::of(self.home.root(), paths)?))
        });
        match begun {
            Ok(begun) => {
                self.checkpoint.due = false;
                Some(begun)
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint could not begin");
                self.checkpoint_failed();
                None
            }
        }
    }

    fn checkpoint_synced(&mut self, last: u64, result: Result<(), DiskError>) {
        if let Err(error) = result {
            // What the system did not write it may have forgotten: a second flush would find nothing to do.
            self.checkpoint.distrusted = true;
            tracing::warn!(%error, "a checkpoint failed; the journal is kept, and what it holds is written again");
            self.checkpoint_failed();
        } else if let Err(error) = self.journal.end_checkpoint(last) {
            tracing::warn!(%error, "a checkpoint failed; the journal is kept");
            self.checkpoint_failed();
        }
        self.checkpoint.running = None;
        self.publish(0);
    }

    /// Nothing of it counts; it is tried again.
    fn checkpoint_failed(&mut self) {
        self.files.touch_again(self.checkpoint.running.take().unwrap_or_default());
        self.checkpoint.due = true;
        self.checkpoint.last_activity = Some(Instant::now());
    }

    /// After a failed flush: writes again what the journal holds, whatever the files seem to hold.
    fn write_again(&mut self) -> Result<(), DiskError> {
        if self.checkpoint.distrusted {
            again::write(&mut self.files, &self.home.journal())?;
            self.checkpoint.distrusted = false;
        }
        Ok(())
    }

    /// Replaces ledgers and key lists that are longer than this, and longer than what still counts in them; gives how
    /// many, and how many bytes went.
    pub(super) fn rewrite_ledgers(&mut self, over: u64) -> Result<(usize, u64), DiskError> {
        fn lines<T: serde::Serialize>(lines: impl IntoIterator<Item = T>) -> Vec<u8> {
            let mut bytes = Vec::new();
            for line in lines {
                serde_json::to_writer(&mut bytes, &line).expect("a line of a ledger is plain data");
                bytes.push(b'\n');
            }
            bytes
        }
        let mut ops = Vec::new();
        let mut lengths: Vec<(Option<SessionId>, u64)> = Vec::new();
        let mut shorter = 0;
        let inboxes = self.state.sessions.iter().map(|(id, s)| (Some(*id), &s.inbox));
        for (id, inbox) in inboxes.chain([(None, &*self.state.operator)]) {
            if inbox.queue_len <= over {
                continue;
            }
            let bytes = lines(inbox.queue.to_lines());
            let len = bytes.len() as u64;
            if len < inbox.queue_len {
                shorter += inbox.queue_len - len;
                lengths.push((id, len));
                let dir = id.map_or_else(|| "operator".to_owned(), |id| format!("sessions/{id}"));
                ops.push(Op::Replace { file: format!("{dir}/queue.jsonl"), bytes });
            }
        }
        let now = Stamp::now();
        let mut keys_len = None;
        if self.state.keys_len > over {
            self.state.keys.retain(|key, k| k.at >= now.minus(kept(key)));
            let keys = self.state.keys.iter().map(|(key, k)| minder_proto::record::KeyLine {
                key: key.clone(),
                at: k.at,
                sum: k.sum,
                result: k.result.clone(),
            });
            let bytes = lines(keys);
            let len = bytes.len() as u64;
            // One that no commit could hold stays as it is.
            if len < self.state.keys_len && bytes.len() <= RECORD_MAX / 2 {
                shorter += self.state.keys_len - len;
                keys_len = Some(len);
                ops.push(Op::Replace { file: "keys.jsonl".into(), bytes });
            }
        }
        if ops.is_empty() {
            return Ok((0, 0));
        }
        let rewritten = ops.len();
        // As many as one commit can hold; each is whole by itself.
        let mut group: Vec<Op> = Vec::new();
        let mut groups = Vec::new();
        let mut size = 0;
        for op in ops {
            let more = op::encode(std::slice::from_ref(&op)).len();
            if size + more > RECORD_MAX / 2 && !group.is_empty() {
                groups.push(std::mem::take(&mut group));
                size = 0;
            }
            size += more;
            group.push(op);
        }
        groups.push(group);
        self.journal.commit(&groups)?;
        for op in groups.into_iter().flatten() {
            self.apply(op);
        }
        for (id, len) in lengths {
            match id {
                Some(id) => {
                    let session = self.state.sessions.get_mut(&id).expect("listed above");
                    Arc::make_mut(session).inbox.queue_len = len;
                }
                None => Arc::make_mut(&mut self.state.operator).queue_len = len,
            }
        }
        if let Some(len) = keys_len {
            self.state.keys_len = len;
        }
        Ok((rewritten, shorter))
    }

    fn publish(&mut self, commits: u64) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.commits += commits;
        counters.flushes = self.journal.flushes();
        counters.journal_bytes = self.journal.bytes();
        counters.read_only = self.why_refused();
    }

    /// A clean stop: a checkpoint, in line.
    fn finish(&mut self) {
        self.checkpoint_now();
    }

    /// A checkpoint, in line; says if the journal before it is gone.
    pub(super) fn checkpoint_now(&mut self) -> bool {
        self.retry_unapplied();
        if !self.unapplied.is_empty() {
            return false; // the journal keeps it
        }
        if let Some(paths) = self.checkpoint.running.take() {
            self.files.touch_again(paths);
        }
        let Some((last, flush)) = self.begin_checkpoint() else { return false };
        let result = flush.run();
        self.checkpoint_synced(last, result);
        self.checkpoint.running.is_none() && !self.checkpoint.due
    }
}

/// Lets every contributor add to a mutation's commit, for the lines of the mutation itself.
fn contribute(contributors: &[Box<dyn Contributor>], txn: &mut Txn<'_>) {
    for line in txn.appended().to_vec() {
        for contributor in contributors {
            contributor.contribute(txn, &line);
        }
    }
}
