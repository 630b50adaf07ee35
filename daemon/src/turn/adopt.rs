//! What an earlier daemon began: each folder of a turn is taken over. A turn whose line stands in the log is only cleared
//! away; one that runs is gone with from here on, and one that ended meanwhile is settled now. No turn is waited for.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_proto::id::TurnId;
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Found, Purpose, RESULT, Spec};

use super::course::{Shim, judge};
use super::hold::{Caller, REATTACH};
use super::live::{Stage, Turn};
use super::settle::Settlement;
use super::{Turns, place, settle};

/// How long a start waits for the outcomes of turns that ended without a daemon: files are read for them.
const NAMED: Duration = Duration::from_secs(2);

/// What was found of one turn.
struct Left {
    spec: Spec,
    folder: PathBuf,
    adopted: u32,
    /// What became of it, where its line is in the log.
    written: Option<Written>,
}

/// What became of a turn whose line is in the log.
struct Written {
    outcome: Outcome,
    found: Found,
    settlement: Settlement,
}

impl Turns {
    /// Takes over what is there. To be called before the first call is answered.
    pub async fn adopt(&self) {
        let this = self.clone();
        let left = match tokio::task::spawn_blocking(move || this.found()).await {
            Ok(Ok(left)) => left,
            Ok(Err(error)) => {
                return tracing::warn!(%error, "turns of an earlier daemon cannot be looked for");
            }
            Err(_) => return,
        };
        let mut over = Vec::new();
        for Left { spec, folder, adopted, written } in left {
            // Whoever waited may come back, but not before this daemon can be reached.
            let caller = match spec.purpose {
                Purpose::Connection => Caller::Expected(Instant::now() + REATTACH),
                Purpose::Caller | Purpose::Held | Purpose::Queue { .. } => Caller::Elsewhere,
            };
            let id = spec.turn;
            let stage = match &written {
                Some(Written { outcome, found, settlement }) => {
                    let mut told = settlement.told(&spec, found, &folder);
                    told.outcome = Some(*outcome);
                    Stage::Done(Arc::new(told))
                }
                None => Stage::Running(None),
            };
            let (turn, orders) = Turn::new(spec, folder, adopted, caller, stage);
            self.memory().live.insert(id, Arc::clone(&turn));
            match written {
                Some(written) => drop(tokio::spawn(self.clone().clear_away(turn, written))),
                None => {
                    tracing::info!(turn = %id, adopted, "a turn of an earlier daemon is taken over");
                    if turn.folder.join(RESULT).exists() {
                        over.push(Arc::clone(&turn));
                    }
                    tokio::spawn(self.clone().follow(turn, orders, Shim::unknown()));
                }
            }
        }
        // Whoever asks first is not told that what ended meanwhile still runs. None of them waits for anybody.
        let named = async {
            for turn in over {
                turn.when(|stage| !stage.runs()).await;
            }
        };
        if tokio::time::timeout(NAMED, named).await.is_err() {
            tracing::warn!("not all turns that ended without a daemon have their outcome yet");
        }
    }

    /// Every folder that is not kept for a failed turn. One that was not finished is removed: no shim was started in it.
    fn found(&self) -> io::Result<Vec<Left>> {
        place::clear_spares(self.0.store.home())?;
        let mut logs: HashMap<String, HashMap<TurnId, Outcome>> = HashMap::new();
        let mut left = Vec::new();
        for (id, folder) in place::list(self.0.store.home())? {
            if place::written(&folder).is_some() {
                continue;
            }
            let spec = match place::spec(&folder) {
                Ok(spec) if spec.turn == id => spec,
                // The spec is whole before a shim is started.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                    tracing::warn!("{}: removed: no shim was started in it", folder.display());
                    if let Err(error) = place::remove(&folder) {
                        tracing::warn!("{}: {error}", folder.display());
                    }
                    continue;
                }
                // A build that knows more of it, or a moment without descriptors: a shim may mind it.
                unfit => {
                    let why =
                        unfit.err().map_or_else(|| "it is another turn's".to_owned(), |e| e.to_string());
                    tracing::warn!("{}: left alone: {why}", folder.display());
                    continue;
                }
            };
            let adopted = place::adopt(&folder).unwrap_or(1);
            let log = logs.entry(spec.seat.clone()).or_insert_with(|| self.0.log.written(&spec.seat));
            let written = log.get(&id).map(|outcome| {
                let found = place::result(&folder).ok().flatten().unwrap_or_else(|| settle::lost(&spec));
                let settlement = judge(&spec, &found, &folder);
                Written { outcome: *outcome, found, settlement }
            });
            left.push(Left { spec, folder, adopted, written });
        }
        Ok(left)
    }

    /// What an earlier daemon had written the line of, and did not come to the rest.
    async fn clear_away(self, turn: Arc<Turn>, written: Written) {
        let Written { outcome, found, settlement } = written;
        turn.line_is_done();
        if outcome == Outcome::Failed {
            // Whose queue it was may not have taken note of it.
            self.tell_queue(&turn, &settlement);
        } else {
            // Whoever named its outcome knows it.
            turn.acknowledge();
        }
        self.tell_session(&turn, outcome, &settlement, &found).await;
        self.forget(turn, outcome).await;
    }
}
