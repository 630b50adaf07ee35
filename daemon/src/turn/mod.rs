//! Supervised turns: one run of one harness process for one prompt, which always ends, once, with a named outcome. The
//! clocks, the ladder and the kill are the shim's, a small process for each turn, so that the daemon may die meanwhile.
//!
//! `request` is what is asked for; `env` and `place` are what a child gets and where its turn is on disk; `spawn` and
//! `link` start a shim and talk with it; `start` begins a turn, `course` goes with it to its end, `adopt` takes over
//! what an earlier daemon began. `settle` says what became of a run and `hold` until when a success waits for its
//! outcome (both pure). `ask` answers questions about turns, `log` writes their lines, `tell` the session's timeline,
//! `keep` removes what is kept of failed ones. `adapter` is what is known of each harness.
//!
//! Uses: `descriptors`, `folder`, `identity`, `shim`, `store`. Used by: `delivery`, `server`.

pub mod adapter;
mod adopt;
mod ask;
mod course;
pub mod env;
mod hold;
mod keep;
mod link;
mod live;
mod log;
mod place;
mod request;
#[cfg(test)]
pub(crate) mod samples;
mod settle;
mod spawn;
mod start;
mod tell;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use minder_proto::id::TurnId;
use minder_proto::rpc::TurnAnswer;
use minder_proto::stamp::Stamp;
use minder_proto::turn::folder::{Order, Spec};
use minder_proto::turn::names::Trigger;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

pub use ask::Known;
pub use hold::Caller;
pub use live::{Stage, Turn};
pub use request::{Ended, Input, Request};
pub use start::Started;

use crate::descriptors::Limit;
use crate::store::Store;
use log::Log;
use spawn::Shims;

/// Most turns that run at once.
pub const RUNNING_MAX: usize = 64;
/// Turns that are over and whose outcome is remembered.
const REMEMBERED: usize = 1_024;
/// How long the next shim waits for the end of who was answered: longer than that takes, and shorter than it takes to ask
/// for another turn.
const SPARE_PAUSE: Duration = Duration::from_micros(400);
/// How long a shim stands ready without a turn.
const SPARE_IDLE: Duration = Duration::from_secs(60);
/// How long a stop waits for lines that are on their way to the log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The runner. Cloned freely.
#[derive(Clone)]
pub struct Turns(Arc<Runner>);

struct Runner {
    store: Store,
    shims: Shims,
    log: Log,
    /// The limit on open files as the daemon found it: a child gets it back.
    files: u64,
    /// Where the daemon listens, if somebody said so.
    socket: Option<String>,
    /// When this daemon began.
    began: Stamp,
    memory: Mutex<Memory>,
    ended: mpsc::UnboundedSender<Ended>,
    /// Cancelled when the daemon goes.
    stop: CancellationToken,
    /// No turn is started any more, though the daemon is still there.
    closed: AtomicBool,
    /// Rings when a turn runs: the next one finds a shim that stands ready.
    spare: Notify,
    /// Rings when a failed turn's folder is kept.
    kept: Notify,
    /// Rings when a turn is over.
    over: Notify,
}

#[derive(Default)]
struct Memory {
    live: BTreeMap<TurnId, Arc<Turn>>,
    over: BTreeMap<TurnId, Over>,
    /// In the order in which they were over.
    order: VecDeque<TurnId>,
    /// Ids made before this may be of turns that were forgotten.
    forgotten: Option<Stamp>,
    /// Adapters whose policy was said, and warnings that were.
    said: HashSet<String>,
}

/// A turn that is over and whose folder is gone.
#[derive(Clone, Debug)]
struct Over {
    spec: Arc<Spec>,
    answer: TurnAnswer,
}

impl Turns {
    /// A runner over a store; `files` is the limit on open files that children get, `stop` is cancelled when the daemon
    /// goes. At the other end come out the turns of queues that are settled.
    pub fn new(
        store: Store,
        files: Limit,
        stop: CancellationToken,
    ) -> io::Result<(Self, mpsc::UnboundedReceiver<Ended>)> {
        let logs = store.home().turn_logs().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        place::prepare(store.home()).map_err(io::Error::other)?;
        let (ended, hear) = mpsc::unbounded_channel();
        let runner = Runner {
            shims: Shims::own()?,
            log: Log::at(logs),
            files: files.found(),
            socket: std::env::var("MINDER_SOCKET").ok(),
            began: Stamp::now(),
            memory: Mutex::default(),
            ended,
            stop,
            closed: AtomicBool::new(false),
            spare: Notify::new(),
            kept: Notify::new(),
            over: Notify::new(),
            store,
        };
        Ok((Self(Arc::new(runner)), hear))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The daemon goes, or ends what runs before it does.
    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed) || self.0.stop.is_cancelled()
    }

    /// A connection ended: what was held for it has lost its reply, and what runs for it runs on.
    pub fn connection_ended(&self, connection: u64) {
        // In a stop they end by our doing, and the next daemon waits for their callers.
        if self.0.stop.is_cancelled() {
            return;
        }
        for turn in self.live() {
            turn.move_caller(|caller| hold::after_end(caller, connection));
        }
    }

    fn live(&self) -> Vec<Arc<Turn>> {
        self.memory().live.values().cloned().collect()
    }

    /// Ends every turn that runs, by its ladder, and comes back when none does any more. No new one is started.
    pub async fn end_all(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
        let running: Vec<_> = self.live().into_iter().filter(|turn| turn.stage().runs()).collect();
        // What no shim can end in its own bound is the shim's own fault, and the next daemon's.
        let bound = running.iter().map(|turn| bound_of_ladder(&turn.spec)).max().unwrap_or_default();
        let all = async {
            // A shim that does not answer keeps no other waiting.
            for turn in &running {
                let turn = Arc::clone(turn);
                tokio::spawn(async move { turn.order(Order::End { why: Trigger::Boundary }).await });
            }
            for turn in &running {
                turn.when(|stage| !stage.runs()).await;
            }
        };
        if tokio::time::timeout(bound, all).await.is_err() {
            tracing::warn!("some turns did not end within {bound:?}");
        }
    }

    /// Keeps a shim ready while turns are run, for as long as the daemon lives. Without turns there is none.
    pub async fn run_spares(self) {
        let mut stands = false;
        loop {
            tokio::select! {
                () = self.0.spare.notified() => stands = true,
                () = tokio::time::sleep(SPARE_IDLE), if stands => stands = false,
                () = self.0.stop.cancelled() => stands = false,
            }
            let (this, stop) = (self.clone(), self.is_closed());
            let changed = tokio::task::spawn_blocking(move || {
                if !stands || this.is_closed() {
                    this.0.shims.retire();
                } else {
                    std::thread::sleep(SPARE_PAUSE);
                    if let Err(error) = this.0.shims.prepare(place::spare(this.0.store.home())) {
                        tracing::warn!(%error, "no shim stands ready");
                    }
                }
            });
            if changed.await.is_err() || stop {
                return;
            }
        }
    }

    /// Waits, not for long, until what is over has its line.
    pub async fn close(&self) {
        let this = self.clone();
        let _ = tokio::task::spawn_blocking(move || this.0.shims.retire()).await;
        let all = async {
            loop {
                let over = self.0.over.notified();
                if !self.live().iter().any(|turn| matches!(turn.stage(), Stage::Done(_))) {
                    return;
                }
                over.await;
            }
        };
        let _ = tokio::time::timeout(LAST_LINES, all).await;
    }
}

/// The longest that a turn's ladder takes once it was set off, with some room.
fn bound_of_ladder(spec: &Spec) -> Duration {
    let policy = &spec.policy;
    Duration::from_millis(policy.grace_ms.saturating_add(policy.exit_wait_ms)) + Duration::from_secs(10)
}
