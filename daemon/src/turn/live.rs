//! One turn in memory, from the moment it is asked for until its line is written, or longer where it failed and its folder
//! is kept. Its stage goes one way only: who sees it settled sees the same as everybody else.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use minder_proto::error::Fault;
use minder_proto::rpc::{Settled, TurnAnswer};
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Order, Spec};
use tokio::sync::{mpsc, oneshot, watch};

use super::hold::Caller;

/// Most orders that wait for a shim: a cancel, the one that makes it a kill, and some that say the same.
const ORDERS_MAX: usize = 8;

/// How far a turn is.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Its shim is being started.
    Starting,
    /// Its shim is there; with the pid of its process once that runs.
    Running(Option<i32>),
    /// It succeeded, and waits for its outcome since then.
    Held(Arc<Settled>, Instant),
    /// It has its outcome.
    Done(Arc<Settled>),
    /// No shim could be started and nothing is left of it.
    Refused(Fault),
}

impl Stage {
    /// How it ended, once it did.
    pub fn settled(&self) -> Option<&Arc<Settled>> {
        match self {
            Self::Held(settled, _) | Self::Done(settled) => Some(settled),
            Self::Starting | Self::Running(_) | Self::Refused(_) => None,
        }
    }

    /// True until it is settled.
    pub fn runs(&self) -> bool {
        matches!(self, Self::Starting | Self::Running(_))
    }
}

/// An order on its way; answered once the shim has it.
#[derive(Debug)]
pub struct Sent {
    pub order: Order,
    pub taken: oneshot::Sender<()>,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    /// What was asked.
    pub spec: Spec,
    /// Its folder.
    pub folder: PathBuf,
    /// Restarts of the daemon that it has lived through.
    pub adopted: u32,
    stage: watch::Sender<Stage>,
    noted: watch::Sender<bool>,
    lined: watch::Sender<bool>,
    caller: Mutex<Caller>,
    orders: mpsc::Sender<Sent>,
}

impl Turn {
    /// One that is about to start, or was found running; with the end at which orders come out.
    pub fn new(
        spec: Spec,
        folder: PathBuf,
        adopted: u32,
        caller: Caller,
        stage: Stage,
    ) -> (Arc<Self>, mpsc::Receiver<Sent>) {
        let (orders, taken) = mpsc::channel(ORDERS_MAX);
        let (stage, _) = watch::channel(stage);
        let turn = Self {
            spec,
            folder,
            adopted,
            stage,
            noted: watch::channel(false).0,
            lined: watch::channel(false).0,
            caller: Mutex::new(caller),
            orders,
        };
        (Arc::new(turn), taken)
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    /// A view of its stages.
    pub fn watch(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Comes back with the first stage of which this is true.
    pub async fn when(&self, enough: impl Fn(&Stage) -> bool) -> Stage {
        let mut stages = self.stage.subscribe();
        match stages.wait_for(|stage| enough(stage)).await {
            Ok(stage) => stage.clone(),
            // Its sender is this very turn.
            Err(_) => self.stage(),
        }
    }

    /// Whoever started it has taken note of how it ended. Only the turns of a queue are waited for.
    pub fn acknowledge(&self) {
        self.noted.send_replace(true);
    }

    /// Comes back once that is so.
    pub async fn acknowledged(&self) {
        // Its sender is this very turn.
        let _ = self.noted.subscribe().wait_for(|noted| *noted).await;
    }

    /// Its line is written, or cannot be.
    pub fn line_is_done(&self) {
        self.lined.send_replace(true);
    }

    /// Comes back once that is so.
    pub async fn line_done(&self) {
        // Its sender is this very turn.
        let _ = self.lined.subscribe().wait_for(|lined| *lined).await;
    }

    /// Goes on to a later stage.
    pub fn set(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// The root's pid, while it runs and once it is known.
    pub fn pid(&self) -> Option<i32> {
        match *self.stage.borrow() {
            Stage::Running(pid) => pid,
            _ => None,
        }
    }

    /// Names the outcome of a turn that is held. The first word counts; gives whether this one did.
    pub fn conclude(&self, outcome: Outcome) -> bool {
        self.stage.send_if_modified(|stage| {
            let Stage::Held(settled, _) = stage else { return false };
            let settled = Settled { outcome: Some(outcome), ..Settled::clone(settled) };
            *stage = Stage::Done(Arc::new(settled));
            true
        })
    }

    /// Where its caller is.
    pub fn caller(&self) -> Caller {
        *self.lock_caller()
    }

    /// Says where its caller is now, from where it was.
    pub fn move_caller(&self, to: impl FnOnce(Caller) -> Caller) {
        let mut caller = self.lock_caller();
        let moved = to(*caller);
        if moved != *caller {
            *caller = moved;
            drop(caller);
            // Who waits for the end of a hold looks again.
            self.stage.send_modify(|_| {});
        }
    }

    fn lock_caller(&self) -> MutexGuard<'_, Caller> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells its shim something, and comes back once the shim will hear it whatever becomes of this daemon, or has nothing
    /// to hear any more. A shim that has this many orders before it has that one too.
    pub async fn order(&self, order: Order) {
        let (taken, wait) = oneshot::channel();
        if self.orders.try_send(Sent { order, taken }).is_ok() {
            // An error says that the turn is over.
            let _ = wait.await;
        }
    }

    /// As a caller is told of it.
    pub fn answer(&self) -> TurnAnswer {
        let spec = &self.spec;
        TurnAnswer {
            turn: spec.turn,
            seat: spec.seat.clone(),
            adapter: spec.adapter.clone(),
            session: spec.session,
            asked: spec.asked,
            policy: spec.policy,
            settled: self.stage().settled().map(|settled| Settled::clone(settled)),
        }
    }
}
