//! Questions about turns, and the words that end one: by id or its end, of what runs, what is held, what is over and
//! remembered, and what is kept of failed ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_proto::error::{Fault, Kind};
use minder_proto::id::{MIN_PARTIAL, SessionId, TurnId};
use minder_proto::rpc::{TurnAnswer, TurnDone, TurnRow};
use minder_proto::stamp::Stamp;
use minder_proto::turn::Outcome;
use minder_proto::turn::folder::{Order, Progress, Purpose, Spec};
use minder_proto::turn::names::{Trigger, is_silent};
use nix::time::{ClockId, clock_gettime};

use super::course::judge;
use super::hold::{self, Caller};
use super::live::{Stage, Turn};
use super::{Turns, place, settle};

/// How long an outcome waits for its line before it is noted elsewhere.
const LINE_WAIT: Duration = Duration::from_millis(250);
/// How long a shim may take to hear an order.
const HEARD: Duration = Duration::from_secs(5);

/// A turn that was asked for.
#[derive(Clone, Debug)]
pub enum Known {
    /// It runs, or waits for its outcome or for its line.
    Live(Arc<Turn>),
    /// It is over, and this is what is known of it.
    Over {
        /// What was asked.
        spec: Arc<Spec>,
        /// How it ended.
        answer: Box<TurnAnswer>,
    },
}

impl Known {
    /// What was asked.
    pub fn spec(&self) -> &Spec {
        match self {
            Self::Live(turn) => &turn.spec,
            Self::Over { spec, .. } => spec,
        }
    }
}

impl Turns {
    /// The turn whose id is this or ends so.
    pub async fn find(&self, end: &str) -> Result<Known, Fault> {
        if end.len() < MIN_PARTIAL {
            let why = format!("a turn is named by {MIN_PARTIAL} or more characters of the end of its id");
            return Err(Fault::new(Kind::InvalidParams, why));
        }
        // A whole id of what is in memory needs no look at the disk.
        if let Ok(id) = end.parse::<TurnId>() {
            let memory = self.memory();
            if let Some(turn) = memory.live.get(&id) {
                return Ok(Known::Live(Arc::clone(turn)));
            }
            if let Some(over) = memory.over.get(&id) {
                let (spec, answer) = (Arc::clone(&over.spec), Box::new(over.answer.clone()));
                return Ok(Known::Over { spec, answer });
            }
        }
        let this = self.clone();
        let folders = tokio::task::spawn_blocking(move || place::list(this.0.store.home()));
        let folders = folders.await.ok().and_then(Result::ok).unwrap_or_default();
        // Looked at after the folders: what has left both by now is over.
        let mut found: Vec<(TurnId, Option<Known>, Option<PathBuf>)> = Vec::new();
        {
            let memory = self.memory();
            for (id, turn) in memory.live.iter().filter(|(id, _)| id.ends_with(end)) {
                found.push((*id, Some(Known::Live(Arc::clone(turn))), None));
            }
            for (id, over) in memory.over.iter().filter(|(id, _)| id.ends_with(end)) {
                let (spec, answer) = (Arc::clone(&over.spec), Box::new(over.answer.clone()));
                found.push((*id, Some(Known::Over { spec, answer }), None));
            }
        }
        for (id, folder) in folders.into_iter().filter(|(id, _)| id.ends_with(end)) {
            if !found.iter().any(|(known, ..)| *known == id) {
                found.push((id, None, Some(folder)));
            }
        }
        match found.as_mut_slice() {
            [] => Err(Fault::new(Kind::NotFound, format!("no turn {end}")).hint("minder turn ls")),
            [(_, known, folder)] => match (known.take(), folder.take()) {
                (Some(known), _) => Ok(known),
                (None, Some(folder)) => kept(folder).await,
                (None, None) => unreachable!("it was found in one of both"),
            },
            several => {
                let ids: Vec<String> = several.iter().map(|(id, ..)| id.to_string()).collect();
                Err(Fault::new(Kind::Ambiguous, format!("{end} may be {}", ids.join(" or "))))
            }
        }
    }

    /// The turns of queues of which their sessions have not taken note yet, each with its session.
    pub fn of_queues(&self) -> Vec<(TurnId, Option<SessionId>)> {
        let live = self.live().into_iter();
        let queues = live.filter(|turn| matches!(turn.spec.purpose, Purpose::Queue { .. }));
        queues.map(|turn| (turn.spec.turn, turn.spec.session)).collect()
    }

    /// Every turn that runs or is held, oldest first.
    pub async fn list(&self) -> Vec<TurnRow> {
        let turns: Vec<_> = self
            .live()
            .into_iter()
            .filter(|t| !matches!(t.stage(), Stage::Done(_) | Stage::Refused(_)))
            .collect();
        let timeout = self.0.store.config().turn.finish_timeout.0;
        let rows = move || turns.iter().map(|turn| row(turn, timeout)).collect();
        tokio::task::spawn_blocking(rows).await.unwrap_or_default()
    }

    /// Ends a turn by its ladder; said again in its grace, at once. Once this is answered, it is on its way, whatever
    /// becomes of this daemon.
    pub async fn cancel(&self, known: &Known, why: Trigger) -> Result<TurnDone, Fault> {
        Ok(match known {
            Known::Live(turn) => {
                let runs = turn.stage().runs();
                let told = turn.order(Order::End { why });
                if runs && tokio::time::timeout(HEARD, told).await.is_err() {
                    let why = format!("the shim of turn {} does not answer", turn.spec.turn.short());
                    return Err(Fault::new(Kind::Unavailable, why));
                }
                let outcome = turn.stage().settled().and_then(|settled| settled.outcome);
                TurnDone { turn: turn.spec.turn, outcome, counted: runs }
            }
            Known::Over { answer, .. } => over(answer),
        })
    }

    /// Names the outcome of a turn that is held. The first word counts. The turn of a queue is its delivery's to finish.
    pub async fn finish(&self, known: &Known, outcome: Outcome) -> Result<TurnDone, Fault> {
        let turn = match known {
            Known::Live(turn) => turn,
            Known::Over { answer, .. } => return Ok(over(answer)),
        };
        let counted = turn.conclude(outcome);
        let stage = turn.stage();
        if stage.runs() {
            let why = format!("turn {} runs yet", turn.spec.turn.short());
            return Err(Fault::new(Kind::InvalidState, why));
        }
        turn.acknowledge();
        if counted {
            stays(turn, outcome).await?;
        }
        let outcome = stage.settled().and_then(|settled| settled.outcome);
        Ok(TurnDone { turn: turn.spec.turn, outcome, counted })
    }

    /// The answer for a caller that waits for it on this connection, once the turn is settled. Where the daemon itself
    /// names the outcome, this is where it does.
    pub async fn answer(&self, turn: &Arc<Turn>) -> Result<TurnAnswer, Fault> {
        let stage = turn.when(|stage| !stage.runs()).await;
        if let Stage::Refused(fault) = stage {
            return Err(fault);
        }
        if let (Purpose::Caller, Stage::Held(settled, _)) = (&turn.spec.purpose, &stage) {
            let silent = settled.text.as_deref().is_none_or(|text| is_silent(text.as_bytes()));
            let outcome = if silent { Outcome::Silent } else { Outcome::Delivered };
            if turn.conclude(outcome) {
                stays(turn, outcome).await?;
            }
        } else if let Stage::Done(settled) = stage
            && settled.outcome == Some(Outcome::Failed)
        {
            // Who is told of a failure and looks into the log finds it there, unless the log is slow.
            let _ = tokio::time::timeout(LINE_WAIT, turn.line_done()).await;
        }
        Ok(turn.answer())
    }

    /// The answer for one who only wants to know that the process runs.
    pub async fn begun(&self, turn: &Arc<Turn>) -> Result<TurnAnswer, Fault> {
        let stage = turn.when(|stage| !matches!(stage, Stage::Starting | Stage::Running(None))).await;
        if let Stage::Refused(fault) = stage {
            return Err(fault);
        }
        Ok(turn.answer())
    }

    /// Whoever asks is where the answer of the turn goes from now on.
    pub fn attach(&self, turn: &Turn, connection: u64) {
        if matches!(turn.spec.purpose, Purpose::Caller | Purpose::Connection) {
            turn.move_caller(|_| Caller::On(connection));
        }
    }
}

/// What somebody is told of an outcome is true for the next daemon too: its line is written, or, where the log is slow, the
/// turn's folder says it.
async fn stays(turn: &Arc<Turn>, outcome: Outcome) -> Result<(), Fault> {
    if tokio::time::timeout(LINE_WAIT, turn.line_done()).await.is_ok() {
        return Ok(());
    }
    let folder = turn.folder.clone();
    let noted = tokio::task::spawn_blocking(move || place::note_outcome(&folder, outcome)).await;
    match noted {
        // Its line was written after all, and the folder is gone.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(Err(error)) => Err(Fault::new(Kind::ReadOnly, format!("{}: {error}", turn.folder.display()))),
        _ => Ok(()),
    }
}

fn over(answer: &TurnAnswer) -> TurnDone {
    let outcome = answer.settled.as_ref().and_then(|settled| settled.outcome);
    TurnDone { turn: answer.turn, outcome, counted: false }
}

/// What the folder of a failed turn says.
async fn kept(folder: PathBuf) -> Result<Known, Fault> {
    let read = move || {
        let spec = place::spec(&folder)?;
        let found = place::result(&folder)?.unwrap_or_else(|| settle::lost(&spec));
        let settlement = judge(&spec, &found, &folder);
        let mut told = settlement.told(&spec, &found, &folder);
        told.outcome = settlement.failure.map(|_| Outcome::Failed);
        let answer = TurnAnswer {
            turn: spec.turn,
            seat: spec.seat.clone(),
            adapter: spec.adapter.clone(),
            session: spec.session,
            asked: spec.asked,
            policy: spec.policy,
            settled: Some(told),
        };
        Ok::<_, std::io::Error>(Known::Over { spec: Arc::new(spec), answer: Box::new(answer) })
    };
    let read = tokio::task::spawn_blocking(read).await;
    match read {
        Ok(Ok(known)) => Ok(known),
        Ok(Err(error)) => Err(Fault::new(
            Kind::Gone,
            format!("the turn is over, and what is left of it cannot be read: {error}"),
        )),
        Err(_) => Err(Fault::new(Kind::Internal, "a fault in minder: a turn could not be looked at")),
    }
}

/// Milliseconds of the clock that stands still in suspend.
fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn row(turn: &Turn, finish_timeout: Duration) -> TurnRow {
    let spec = &turn.spec;
    let stage = turn.stage();
    let progress = place::progress(&turn.folder);
    let asked = spec.asked.age(Stamp::now());
    let age_ms = match &progress {
        Some(p) => monotonic_ms().saturating_sub(p.start_mono_ms),
        None => u64::try_from(asked.as_millis()).unwrap_or(u64::MAX),
    };
    let progress = progress.unwrap_or_default();
    let silence_ms = age_ms.saturating_sub(progress.progress_ms);
    let (window, left_ms) = if let Stage::Held(_, since) = stage {
        let until = hold::until(&spec.purpose, turn.caller(), since, finish_timeout);
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        ("finish", left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
    } else {
        nearest(spec, &progress, age_ms, silence_ms)
    };
    TurnRow {
        turn: spec.turn,
        seat: spec.seat.clone(),
        adapter: spec.adapter.clone(),
        session: spec.session,
        asked: spec.asked,
        pid: turn.pid().or(progress.pid),
        age_ms,
        silence_ms,
        left_ms,
        window: Some(window.to_owned()),
        tools: progress.tools,
        held: matches!(stage, Stage::Held(..)),
        adopted: turn.adopted,
    }
}

/// The window that ends first, and how much is left of it.
fn nearest(spec: &Spec, progress: &Progress, age_ms: u64, silence_ms: u64) -> (&'static str, Option<u64>) {
    let policy = &spec.policy;
    if progress.trigger.is_some_and(|trigger| trigger != Trigger::Budget) {
        return ("grace", None);
    }
    let total = policy.budget_ms.saturating_add(policy.backstop_ms);
    let clock = if age_ms < policy.budget_ms {
        ("budget", policy.budget_ms - age_ms)
    } else {
        ("wall_clock", total.saturating_sub(age_ms))
    };
    let stall = if progress.tools > 0 { policy.stall_in_tool_ms } else { policy.stall_ms };
    let stall = Some(("stall", stall.saturating_sub(silence_ms))).filter(|_| stall > 0);
    let (window, left) = stall.into_iter().chain([clock]).min_by_key(|(_, left)| *left).unwrap_or(clock);
    (window, Some(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_that_ends_first_is_shown() {
        let mut spec = super::super::samples::spec("api");
        spec.policy.budget_ms = 60_000;
        spec.policy.backstop_ms = 10_000;
        spec.policy.stall_ms = 5_000;
        let mut progress = Progress::default();
        assert_eq!(nearest(&spec, &progress, 10_000, 2_000), ("stall", Some(3_000)));
        assert_eq!(nearest(&spec, &progress, 58_000, 1_000), ("budget", Some(2_000)));
        progress.tools = 1;
        assert_eq!(nearest(&spec, &progress, 10_000, 9_000), ("budget", Some(50_000)));
        assert_eq!(nearest(&spec, &progress, 63_000, 9_000), ("wall_clock", Some(7_000)));
        progress.trigger = Some(Trigger::Cancel);
        assert_eq!(nearest(&spec, &progress, 1_000, 0), ("grace", None));
    }
}
