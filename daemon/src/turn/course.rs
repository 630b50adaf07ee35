//! A turn on its way, one task each: its shim is started, its end is heard of, what became of it is named, its outcome is
//! waited for, its line is written, and its folder goes. Whoever waits for the turn waits for its stage, and for none of
//! the rest.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_proto::error::{Fault, Kind};
use minder_proto::event::Body;
use minder_proto::rpc::{Settled, TurnAnswer};
use minder_proto::stamp::Stamp;
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Found, News, Order, Purpose, Spec};
use minder_proto::turn::line::{Line, Verdict};
use tokio::sync::mpsc::Receiver;
use tokio::task::spawn_blocking;

use super::adapter::{self, Adapter, Output, TEXT_MAX};
use super::link::{self, Link};
use super::live::{Sent, Stage, Turn};
use super::request::Ended;
use super::settle::{self, Settlement};
use super::{Over, REMEMBERED, Turns, hold, place, tell};
use crate::shim::machine::{Machine, Rules};
use crate::shim::server::Wanted;
use crate::shim::tree;
use crate::store::kill_point::reach;

/// How long a shim may take to go once it has said that the turn is settled: its files go to the disk meanwhile.
const LEAVE: Duration = Duration::from_secs(10);
/// How much later than its bound a turn may be settled before its shim is taken for one that hangs.
const OVERDUE: Duration = Duration::from_secs(10);
/// How long a turn runs before the shim of the next one is made ready: that would slow down a short one. A shorter one has it
/// made ready when it is settled.
const NEXT_AFTER: Duration = Duration::from_millis(20);
/// How long what is left to be done of a turn waits for those who wait for its answer.
const AFTERWARDS: Duration = Duration::from_millis(2);
/// Rounds of the runtime from the end of a turn until its answer is written.
const ON_ITS_WAY: u32 = 3;
/// How long the kill of what a lost shim left may take.
const SWEEP: Duration = Duration::from_secs(5);
/// Pauses between looks at a shim that holds its lock and does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// A connection to a shim, while there is one.
pub(super) struct Shim {
    link: Option<Link>,
}

impl Shim {
    /// One that an earlier daemon started.
    pub(super) fn unknown() -> Self {
        Self { link: None }
    }

    /// Lets it go, and waits for that. It flushes first what is to be kept.
    async fn gone(self, keep: bool) {
        let Some(mut link) = self.link else { return };
        link.order(Order::Leave { keep }).await;
        if tokio::time::timeout(LEAVE, link.ended()).await.is_err() {
            tracing::warn!("a shim whose turn is settled does not go");
        }
    }
}

/// What was heard of a shim.
enum Heard {
    /// The turn is settled, and this is what the shim found.
    Found(Box<Found>),
    /// Nobody took this order.
    Unsaid(Sent),
    /// Its connection ended, or it says that there is a result to be read.
    Nothing,
}

/// What a look at a folder shows whose shim does not speak.
enum Look {
    Result(Box<Found>),
    Lives(std::os::unix::net::UnixStream),
    Silent,
}

impl Turns {
    /// Starts the shim of a turn and goes with it.
    pub(super) async fn begin(
        self,
        turn: Arc<Turn>,
        orders: Receiver<Sent>,
        prompt: Option<Vec<u8>>,
        environment: Vec<(String, String)>,
    ) {
        let (this, of) = (self.clone(), Arc::clone(&turn));
        let made = spawn_blocking(move || {
            reach("turn.before-folder");
            let (folder, spec, prompt) = (&of.folder, &of.spec, prompt.as_deref());
            let boxed = Box::new(spec.clone());
            let wanted = Wanted::Turn { folder: folder.clone(), environment, spec: Some(boxed) };
            // What is wrong with one that stands ready is wrong with it alone, or is said by the long way.
            let spare = this.0.shims.take().and_then(|spare| {
                // It reads what it is to do while its folder becomes the turn's.
                let given =
                    spare.tell(&wanted).and_then(|()| place::give(&spare.folder, folder, spec, prompt));
                if given.is_err() {
                    spare.retire();
                    return None;
                }
                Some(spare)
            });
            if spare.is_none() {
                place::make(folder, spec, prompt)?;
            }
            reach("turn.made");
            let begun = spare.and_then(|spare| spare.begin().ok());
            let spawned = begun.map_or_else(|| this.0.shims.spawn(&wanted), Ok);
            reach("turn.spawned");
            Ok::<_, io::Error>(spawned.map_err(|error| unspawned(&of, &error)))
        });
        let refused = match made.await {
            Ok(Ok(Ok(stream))) => match Link::over(stream) {
                Ok(link) => {
                    turn.set(Stage::Running(None));
                    let shim = Shim { link: Some(link) };
                    return self.follow(turn, orders, shim).await;
                }
                Err(error) => Fault::new(Kind::Internal, error.to_string()),
            },
            Ok(Ok(Err(Some(found)))) => return self.settle(turn, found, Shim::unknown()).await,
            // It was started after all.
            Ok(Ok(Err(None))) => {
                turn.set(Stage::Running(None));
                return self.follow(turn, orders, Shim::unknown()).await;
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                Fault::new(Kind::Gone, format!("turn {} is over", turn.spec.turn.short()))
            }
            Ok(Err(error)) => Fault::new(Kind::ReadOnly, format!("{}: {error}", turn.folder.display())),
            Err(_) => Fault::new(Kind::Internal, "a fault in minder: a turn was not started"),
        };
        self.memory().live.remove(&turn.spec.turn);
        turn.set(Stage::Refused(refused));
    }

    /// Goes with a turn whose shim was started to its end.
    pub(super) async fn follow(self, turn: Arc<Turn>, mut orders: Receiver<Sent>, mut shim: Shim) {
        let found = self.hear(&turn, &mut orders, &mut shim).await;
        // Whoever gives an order now hears that there is nobody to take it.
        drop(orders);
        self.settle(turn, found, shim).await;
    }

    /// Listens to a shim until it has said what it found, or is gone.
    async fn hear(&self, turn: &Arc<Turn>, orders: &mut Receiver<Sent>, shim: &mut Shim) -> Found {
        let mut unsaid = None;
        let mut pause = FIRST_PAUSE;
        let overdue = tokio::time::Instant::now() + overdue(&turn.spec);
        let is_late = || tokio::time::Instant::now() >= overdue;
        loop {
            if let Some(link) = &mut shim.link {
                let mut found = None;
                unsaid = match unsaid.take() {
                    Some(sent) => say(link, sent).await,
                    None => None,
                };
                if unsaid.is_none() {
                    tokio::select! {
                        heard = self.listen(turn, orders, link) => match heard {
                            Heard::Found(result) => found = Some(result),
                            Heard::Unsaid(left) => unsaid = Some(left),
                            Heard::Nothing => {}
                        },
                        () = tokio::time::sleep_until(overdue), if !is_late() => {}
                    }
                }
                if let Some(found) = found {
                    return *found;
                }
            }
            let (folder, spec, late) = (turn.folder.clone(), turn.spec.clone(), is_late());
            let looked = spawn_blocking(move || match look(&folder, &spec) {
                Look::Lives(_) | Look::Silent if late && link::put_down(&folder) => {
                    tracing::warn!(turn = %spec.turn, "a shim that settled nothing in its time is ended");
                    Look::Silent
                }
                look => look,
            });
            match looked.await {
                Ok(Look::Result(found)) => return *found,
                Ok(Look::Lives(stream)) => {
                    shim.link = Link::over(stream).ok();
                    continue;
                }
                Ok(Look::Silent) | Err(_) => shim.link = None,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Names what became of a run, waits for its outcome, and sees it to its end.
    async fn settle(self, turn: Arc<Turn>, found: Found, shim: Shim) {
        let found = Arc::new(found);
        let (settlement, silent) = settlement_of(&turn, &found).await;
        reach("turn.settled");
        let mut told = settlement.told(&turn.spec, &found, &turn.folder);
        let named = match settlement.failure {
            Some(_) => Some(Outcome::Failed),
            None => (silent && turn.spec.empty_is_silent).then_some(Outcome::Silent),
        };
        told.outcome = named;
        let told = Arc::new(told);
        turn.set(match named {
            Some(_) => Stage::Done(told),
            None => Stage::Held(told, Instant::now()),
        });
        // Who waits for the answer has it before that.
        self.0.spare.notify_one();
        self.tell_queue(&turn, &settlement);
        let outcome = if let Some(named) = named {
            named
        } else {
            // Somebody was told that it counts.
            let folder = turn.folder.clone();
            if turn.adopted > 0
                && let Ok(Some(named)) = spawn_blocking(move || place::outcome(&folder)).await
            {
                turn.acknowledge();
                turn.conclude(named);
            }
            self.outcome(&turn).await
        };
        self.finish_up(turn, &found, settlement, outcome, shim).await;
    }

    /// Tells the queue of a session that its turn is settled.
    pub(super) fn tell_queue(&self, turn: &Turn, settlement: &Settlement) {
        let Purpose::Queue { messages } = &turn.spec.purpose else { return };
        let Some(settled) = turn.stage().settled().cloned() else { return };
        let judged = &settlement.judged;
        let (silent, limit, login, in_use) = (judged.silent, judged.limit, judged.login, judged.in_use);
        let (taken, repeated) = (judged.taken.clone(), judged.repeated);
        let (session, messages) = (turn.spec.session, messages.clone());
        let ended = Ended {
            turn: turn.spec.turn,
            session,
            messages,
            settled,
            silent,
            limit,
            login,
            in_use,
            taken,
            repeated,
        };
        // Without somebody who delivers there are no such turns.
        let _ = self.0.ended.send(ended);
    }

    /// Waits for the outcome of a turn that is held: somebody names it, or the time for that is over.
    async fn outcome(&self, turn: &Turn) -> Outcome {
        let timeout = self.0.store.config().turn.finish_timeout.0;
        let mut stages = turn.watch();
        loop {
            let since = match &*stages.borrow_and_update() {
                Stage::Held(_, since) => *since,
                stage => return stage.settled().and_then(|s| s.outcome).unwrap_or(Outcome::Unknown),
            };
            let until = hold::until(&turn.spec.purpose, turn.caller(), since, timeout);
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Also where its caller went or came.
                _ = stages.changed() => {}
                // The daemon that comes after this one waits anew.
                () = over, if !self.0.stop.is_cancelled() => drop(turn.conclude(Outcome::ReplyLost)),
            }
        }
    }

    /// Writes what is left of a turn that is over, and removes the rest.
    async fn finish_up(
        self,
        turn: Arc<Turn>,
        found: &Found,
        settlement: Settlement,
        outcome: Outcome,
        shim: Shim,
    ) {
        let spec = &turn.spec;
        let (failure, class, usage) = (settlement.failure, settlement.class, settlement.judged.usage);
        let verdict = Verdict { outcome, failure, class, usage };
        let line = Line::of(spec, found, &verdict, turn.adopted, Stamp::now());
        // Who waits for the answer of a turn that went well waits for nothing else: it is on its way first.
        if outcome != Outcome::Failed {
            for _ in 0..ON_ITS_WAY {
                tokio::task::yield_now().await;
            }
        }
        // Neither waits for the other.
        let written = async {
            self.0.log.write(line).await;
            turn.line_is_done();
            reach("turn.line-written");
        };
        tokio::join!(written, self.tell_session(&turn, outcome, &settlement, found));
        reach("turn.told");
        // The result of a queue's turn is read until the queue has it.
        let queue = matches!(turn.spec.purpose, Purpose::Queue { .. });
        // Who waits for the answer is not to wait for the shim's end too.
        tokio::time::sleep(AFTERWARDS).await;
        shim.gone(queue || self.keeps(outcome)).await;
        self.forget(turn, outcome).await;
    }

    /// The line in the session's timeline.
    pub(super) async fn tell_session(
        &self,
        turn: &Turn,
        outcome: Outcome,
        settlement: &Settlement,
        found: &Found,
    ) {
        let Some(session) = turn.spec.session else { return };
        let failure = settlement.failure;
        let line = Body::Turn { id: turn.spec.turn, outcome, failure, duration_ms: found.duration_ms };
        tell::tell(&self.0.store, session, line).await;
    }

    /// True where the folder of a turn is kept for a while.
    fn keeps(&self, outcome: Outcome) -> bool {
        outcome == Outcome::Failed && !self.0.store.config().turn.keep_failed.0.is_zero()
    }

    /// Passes orders on until the shim has said that the turn is settled, or its connection ended.
    async fn listen(&self, turn: &Turn, orders: &mut Receiver<Sent>, link: &mut Link) -> Heard {
        let next = tokio::time::sleep(NEXT_AFTER);
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next, if !next.is_elapsed() => self.0.spare.notify_one(),
                news = link.news() => match news {
                    Some(News::Spawned { pid }) => turn.set(Stage::Running(Some(pid))),
                    Some(News::Settled { found: Some(found) }) => return Heard::Found(found),
                    Some(News::Settled { found: None }) | None => return Heard::Nothing,
                },
                Some(sent) = orders.recv() => if let Some(unsaid) = say(link, sent).await {
                    return Heard::Unsaid(unsaid);
                },
            }
        }
    }

    /// Its line is written: the folder of a failed turn is kept, any other goes.
    pub(super) async fn forget(&self, turn: Arc<Turn>, outcome: Outcome) {
        if matches!(turn.spec.purpose, Purpose::Queue { .. }) {
            turn.acknowledged().await;
        }
        let folder = turn.folder.clone();
        let kept = self.keeps(outcome);
        let done =
            spawn_blocking(move || if kept { place::mark_written(&folder) } else { place::remove(&folder) });
        match done.await {
            Ok(Err(e)) if e.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("{}: {e}", turn.folder.display());
            }
            _ => {}
        }
        reach("turn.cleared");
        {
            let mut memory = self.memory();
            memory.live.remove(&turn.spec.turn);
            if !kept {
                remember(&mut memory, &turn);
            }
        }
        if kept {
            self.0.kept.notify_one();
        }
        self.0.over.notify_waiters();
    }
}

/// Notes what became of a turn whose folder is gone, without its text.
fn remember(memory: &mut super::Memory, turn: &Turn) {
    let answer = turn.answer();
    let settled = answer.settled.map(|settled| Settled { text: None, stdout: None, stderr: None, ..settled });
    let answer = TurnAnswer { settled, ..answer };
    let id = turn.spec.turn;
    memory.over.insert(id, Over { spec: Arc::new(remembered(&turn.spec)), answer });
    memory.order.push_back(id);
    if memory.order.len() > REMEMBERED
        && let Some(oldest) = memory.order.pop_front()
    {
        memory.over.remove(&oldest);
        memory.forgotten = memory.forgotten.max(oldest.made());
    }
}

/// What is still asked of a turn that is over: whose it was. Neither its prompt nor its command is kept in memory.
fn remembered(spec: &Spec) -> Spec {
    Spec { argv: Vec::new(), heal: None, rules: None, ..spec.clone() }
}

/// After how long somebody else settles a turn. A shim settles it by its bound, also one that an earlier daemon started.
fn overdue(spec: &Spec) -> Duration {
    Duration::from_millis(Machine::new(Rules::of(spec, true)).settles_by()) + OVERDUE
}

/// Passes one order on; gives it back where nobody took it.
async fn say(link: &mut Link, sent: Sent) -> Option<Sent> {
    if !link.order(sent.order).await {
        return Some(sent);
    }
    // Who waits for that may be gone.
    let _ = sent.taken.send(());
    None
}

/// What is to be said of a turn whose shim was not heard to start; nothing where one has the turn. One that comes late
/// finds this result, and goes.
fn unspawned(turn: &Turn, error: &io::Error) -> Option<Found> {
    match place::lock(&turn.folder) {
        Ok(None) => None,
        lock => {
            let found = settle::unspawned(&turn.spec, error);
            if let Err(error) = lock.and_then(|_held| place::lay_down(&turn.folder, &found)) {
                tracing::warn!(turn = %turn.spec.turn, %error, "that a turn was not started was not written");
            }
            Some(found)
        }
    }
}

/// What there is of a turn whose shim does not speak. One that is gone without a result is lost; its tree is killed.
fn look(folder: &Path, spec: &Spec) -> Look {
    // A result that is damaged is none; one that could not be read for a moment is looked for again.
    let finished = || match place::result(folder) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            tracing::warn!(turn = %spec.turn, %error, "what its shim found cannot be read yet");
            Err(())
        }
        Err(error) => {
            tracing::warn!(turn = %spec.turn, %error, "what its shim found is damaged");
            Ok(None)
        }
        Ok(found) => Ok(found),
    };
    match finished() {
        Ok(Some(found)) => return Look::Result(Box::new(found)),
        Ok(None) => {}
        Err(()) => return Look::Silent,
    }
    // Nothing of an earlier boot lives.
    if crate::identity::boot_id().is_some_and(|boot| boot != spec.boot) {
        return Look::Result(Box::new(settle::lost(spec)));
    }
    match place::lock(folder) {
        Ok(Some(_held)) => {
            // It may have finished between the two looks.
            let Ok(found) = finished() else { return Look::Silent };
            let found = found.unwrap_or_else(|| {
                let swept = tree::kill_marked(&spec.turn, SWEEP);
                let found = Found {
                    killed: swept.killed > 0,
                    killed_processes: swept.killed,
                    left_behind: swept.killed,
                    survivors: swept.survivors,
                    ..settle::lost(spec)
                };
                // A shim that comes late to its lock finds this and goes; so does a daemon that comes after this one.
                if let Err(error) = place::lay_down(folder, &found) {
                    tracing::warn!(turn = %spec.turn, %error, "that a turn is lost was not written");
                }
                found
            });
            Look::Result(Box::new(found))
        }
        Ok(None) => link::connect(folder).map_or(Look::Silent, Look::Lives),
        Err(error) => {
            tracing::warn!(turn = %spec.turn, %error, "the lock of a turn cannot be tried");
            Look::Silent
        }
    }
}

/// What became of a run, from its files, and whether it was a plain program that ended well and said nothing: then there is
/// nothing to read.
async fn settlement_of(turn: &Arc<Turn>, found: &Arc<Found>) -> (Settlement, bool) {
    let plain = adapter::by_name(&turn.spec.adapter).is_some_and(Adapter::stdout_is_reply);
    let wrote_nothing = found.stdout_bytes == 0 && found.stderr_bytes == 0;
    if plain && wrote_nothing && found.exit_code == Some(0) && found.trigger.is_none() {
        let settlement = judge(&turn.spec, found, &turn.folder);
        let silent = settlement.failure.is_none();
        return (settlement, silent);
    }
    let (of, found) = (Arc::clone(turn), Arc::clone(found));
    let judged = spawn_blocking(move || judge(&of.spec, &found, &of.folder)).await;
    let nothing = || settle::settle(&Found::default(), adapter::Judged::default());
    (judged.unwrap_or_else(|_| nothing()), false)
}

/// The same, at once.
pub(super) fn judge(spec: &Spec, found: &Found, folder: &Path) -> Settlement {
    let Some(adapter) = adapter::by_name(&spec.adapter) else {
        return settle::settle(found, adapter::Judged::default());
    };
    let plain = adapter.stdout_is_reply();
    let kept = place::output(folder, found, plain);
    let output = Output { head: &kept.head, tail: &kept.tail, stderr: &kept.stderr };
    let now = jiff::ZonedDateTime::now();
    let mut judged = adapter::judge(adapter, spec, found, &output, &now);
    // The daemon itself delivers it, and its file is gone by then.
    if plain && spec.purpose == Purpose::Caller {
        let reply = if found.stdout_bytes > 0 { place::reply(folder, TEXT_MAX as u64) } else { Vec::new() };
        judged.text = Some(String::from_utf8_lossy(&reply).into_owned());
    }
    let mut settlement = settle::settle(found, judged);
    // A run that lost its directory has lost what it works on.
    if settlement.failure.is_some() && found.pid.is_some() && !Path::new(&spec.dir).is_dir() {
        let before = settlement.judged.why.map_or_else(String::new, |why| format!("{why}; "));
        settlement.judged.why = Some(format!("{before}its directory is gone: {}", spec.dir));
    }
    settlement
}
