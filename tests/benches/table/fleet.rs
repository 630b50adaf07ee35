//! A store with many sessions, and the daemon that serves it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use minder_proto::caller::Caller;
use minder_proto::rpc::{Create, Declare, Status, StatusAnswer, WatchAdd};
use minder_proto::state::State;
use minder_tests::isolate::Isolated;

use crate::measure;
use crate::rpc::Rpc;

/// Connections that fill the store.
const FILLERS: usize = 32;

pub struct Fleet {
    pub isolated: Arc<Isolated>,
}

impl Fleet {
    /// `sessions` sessions, `s0`, `s1`, …
    pub fn new(sessions: usize) -> Self {
        let fleet = Self { isolated: Isolated::new().unwrap() };
        fleet.start();
        fleet.each(sessions, |rpc, n| {
            rpc.call(&Create {
                label: Some(format!("s{n}")),
                dir: Some("/".to_owned()),
                ..Create::default()
            });
        });
        fleet
    }

    /// Starts the daemon and waits for its first answer.
    pub fn start(&self) {
        measure::run(&mut self.minder(&["daemon", "start"]), &[0]);
    }

    pub fn minder(&self, args: &[&str]) -> Command {
        let mut command = self.isolated.minder().unwrap();
        command.args(args).env("USER", "bench");
        command
    }

    pub fn socket(&self) -> PathBuf {
        std::fs::read_link(self.isolated.minder_home().join("run/socket")).unwrap()
    }

    pub fn rpc(&self) -> Rpc {
        Rpc::connect(&self.socket())
    }

    pub fn status(&self) -> StatusAnswer {
        self.rpc().call(&Status::default())
    }

    /// Does something for every number below `count`, over several connections.
    pub fn each(&self, count: usize, work: impl Fn(&mut Rpc, usize) + Sync) {
        std::thread::scope(|scope| {
            for first in 0..FILLERS {
                let work = &work;
                scope.spawn(move || {
                    let mut rpc = self.rpc();
                    for n in (first..count).step_by(FILLERS) {
                        work(&mut rpc, n);
                    }
                });
            }
        });
    }

    /// Session `watcher` watches what the selector says.
    pub fn watch(rpc: &mut Rpc, watcher: usize, sessions: &str) {
        let states = serde_json::from_value(serde_json::json!("all")).ok();
        rpc.call(&WatchAdd { caller: Some(caller(watcher)), sessions: sessions.to_owned(), states });
    }
}

/// As session `n`.
pub fn caller(n: usize) -> Caller {
    Caller { acting_as: Some(format!("s{n}")), ..Caller::default() }
}

/// A declaration of session `n`; an even and an odd round say different things, so that each is a move.
pub fn move_of(n: usize, round: usize) -> Declare {
    let state = if round.is_multiple_of(2) { State::Working } else { State::Review };
    Declare {
        caller: Some(caller(n)),
        session: None,
        state,
        note: Some(format!("round {round}")),
        only_if: None,
        key: None,
    }
}
