//! The channel `headless`: what waits for a session is the input of a supervised turn, and the turn's answer goes back to
//! those who sent it. One turn of a session at a time, so many of all sessions together.
//!
//! `gate` decides whether a turn may begin, `batch` takes what it is given, `settle` writes what it led to; here is the
//! way between them, and `accounts` shows and ends what holds them.
//!
//! Uses: `delivery`, `turn`. Used by: `delivery`, `server`.

pub mod accounts;
mod batch;
pub mod gate;
mod settle;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::account::Clocks;
use minder_proto::error::{Fault, Kind};
use minder_proto::event::Receipt;
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, SessionId, TurnId};
use minder_proto::queue;
use minder_proto::record::{Channel, SessionRecord};
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_proto::turn::folder::Purpose;
use minder_proto::turn::names::{Class, Outcome, Trigger};
use minder_proto::turn::policy::Asked;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::Delivery;
use crate::identity::boot_id;
use crate::session::{Declaration, declare};
use crate::turn::adapter::Message;
use crate::turn::{Caller, Ended, Input, Request, Started, Turns, env};
use gate::Held;

/// The channel's name in ledgers.
const CHANNEL: &str = "headless";
/// Columns of a note that is made of a prompt or an answer.
const WORDS: usize = 80;
/// Most bytes of an answer that are taken from a file.
const ANSWER_FILE_MAX: u64 = 1024 * 1024;
/// The first pause after a failed turn, where it is not known that the other side needs longer.
const PAUSE: Duration = Duration::from_secs(5);
/// The same where the other side is overloaded or out of reach.
const LONG_PAUSE: Duration = Duration::from_secs(30);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(600);

/// The clocks now.
fn clocks() -> Clocks<'static> {
    let mono = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    Clocks {
        boot: boot_id().unwrap_or_default(),
        mono_ms: u64::try_from(mono.as_millis()).unwrap_or(u64::MAX),
        wall: Stamp::now(),
    }
}

/// How long after a failed turn the next one may begin: longer where the other side has a bad hour, and longer with every
/// failure.
fn pause_after(class: Class, before: Option<Duration>) -> Duration {
    let first = match class {
        Class::RateLimit | Class::Unavailable => LONG_PAUSE,
        Class::Quota | Class::Configuration | Class::Runtime => PAUSE,
    };
    before.map_or(first, |before| (before * 2).clamp(first, LAST_PAUSE))
}

impl Delivery {
    /// Gives headless sessions their runner, at whose end the turns of queues come out. Once, before the first look at a
    /// queue.
    pub async fn run_turns(self: &Arc<Self>, turns: Turns, ended: mpsc::UnboundedReceiver<Ended>) {
        let known = turns.of_queues();
        self.turns.set(turns).unwrap_or_else(|_| unreachable!("delivery has one runner"));
        self.take_up(known).await;
        tokio::spawn(Arc::clone(self).hear(ended));
    }

    /// What an earlier daemon began: turns that are there go on, others never began.
    async fn take_up(self: &Arc<Self>, known: Vec<(TurnId, Option<SessionId>)>) {
        let records: Vec<SessionRecord> =
            self.store.read(|state| state.records().cloned().collect()).await.unwrap_or_default();
        let mut never = Vec::new();
        {
            let mut memory = self.memory();
            for record in &records {
                memory.runs.learn(record);
                let Some(id) = record.turn.as_ref().and_then(|t| t.prompt_id.as_deref()) else { continue };
                match known.iter().find(|(turn, of)| turn.to_string() == id && *of == Some(record.id)) {
                    Some((turn, _)) => memory.runs.begin(record, *turn),
                    None if matches!(record.channel, Channel::Headless { .. }) => {
                        // Its place is kept until that is written down, which a full disk may make long.
                        let turn = TurnId::now();
                        memory.runs.begin(record, turn);
                        never.push((record.id, turn));
                    }
                    None => {}
                }
            }
        }
        for (turn, of) in known {
            if of.is_none_or(|id| !records.iter().any(|r| r.id == id)) {
                let this = Arc::clone(self);
                tokio::spawn(async move { this.cancel_turn(turn).await });
            }
        }
        for (session, turn) in never {
            let this = Arc::clone(self);
            tokio::spawn(async move {
                this.undo(session, "its turn had not begun when the daemon ended").await;
                this.over(session, turn);
            });
        }
    }

    /// Ends a turn of a session that is gone.
    async fn cancel_turn(&self, turn: TurnId) {
        let Some(turns) = self.turns.get() else { return };
        if let Ok(known) = turns.find(&turn.to_string()).await
            && let Err(fault) = turns.cancel(&known, Trigger::Cancel).await
        {
            tracing::warn!(%turn, %fault, "the turn of a session that is gone could not be ended");
        }
    }

    /// A session was closed: its turn is not let run on.
    pub(super) fn session_gone(self: &Arc<Self>, session: SessionId) {
        let turn = {
            let mut memory = self.memory();
            memory.pauses.remove(&session);
            memory.alone.remove(&session);
            memory.runs.forget(session);
            memory.runs.turns.get(&session).copied()
        };
        if let Some(turn) = turn {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.cancel_turn(turn).await });
        }
    }

    /// Looks whether a headless session's next turn may begin, and begins it; gives when to look again.
    pub(super) async fn headless(
        self: &Arc<Self>,
        record: &SessionRecord,
        waiting: &[queue::Entry],
    ) -> Option<Instant> {
        let session = record.id;
        // Of a long queue the whole is asked: what only goes along may stand before what starts a turn.
        let ready = move |state: &crate::store::State| {
            state.session(session).is_some_and(|s| batch::may_start(&s.inbox.queue))
        };
        if !self.store.read(ready).await.unwrap_or(false) {
            return None;
        }
        let now = Instant::now();
        let capacity = self.store.config().headless.capacity;
        let gate = {
            let mut memory = self.memory();
            let pause = memory.pauses.get(&session).map(|(until, _)| *until).filter(|at| *at > now);
            // What holds it is said whether it pauses or not.
            match (memory.runs.gate(record, capacity, clocks()), pause) {
                (Ok(()), Some(until)) => return Some(until),
                (Ok(()), None) => {
                    let turn = TurnId::now();
                    memory.runs.begin(record, turn);
                    Ok(turn)
                }
                (Err(held), _) => {
                    // Nobody but the end of another turn, or a release, may say that it goes on.
                    if held.reason != Hold::Busy.as_str() && !memory.runs.waiting.contains(&session) {
                        memory.runs.waiting.push(session);
                    }
                    Err(held)
                }
            }
        };
        match gate {
            Ok(turn) => {
                tokio::spawn(Arc::clone(self).begin_turn(record.clone(), turn));
                None
            }
            Err(held) => {
                let Held { reason, again } = held;
                self.note_held(record, waiting, &reason).await;
                again.map(|again| now + again.min(Duration::from_secs(86_400)))
            }
        }
    }

    /// Writes why messages wait, for each once a reason; a session that waits for its turn among others is `queued`.
    async fn note_held(&self, record: &SessionRecord, waiting: &[queue::Entry], reason: &str) {
        let session = record.id;
        let differs = |e: &&queue::Entry| {
            matches!(e.receipt, Receipt::Queued | Receipt::Held) && e.reason.as_deref() != Some(reason)
        };
        let ids: Vec<(MessageId, u32)> = waiting.iter().filter(differs).map(|e| (e.id, e.attempt)).collect();
        let queued = reason == Hold::Capacity.as_str() && record.state == State::Idle;
        if ids.is_empty() && !queued {
            return;
        }
        let reason = reason.to_owned();
        let written = self.store.write(move |txn| {
            settle::hold(txn, session, &ids, &reason)?;
            if queued && txn.session(session)?.record.state == State::Idle {
                let said = Declaration::new(State::Queued, None, minder_proto::event::Author::Runner);
                declare(txn, session, said)?;
            }
            Ok(())
        });
        if let Err(fault) = written.await {
            tracing::debug!(%session, %fault, "a hold could not be written");
        }
    }

    /// From the queue to a turn that runs. The place among those that run was taken before.
    async fn begin_turn(self: Arc<Self>, record: SessionRecord, turn: TurnId) {
        let session = record.id;
        let begun = self.try_begin(&record, turn).await;
        match begun {
            Ok(true) => return,
            // Somebody else took what waited. What comes is looked at when it comes.
            Ok(false) => return self.memory().runs.end(session, turn),
            Err(Unbegun::Held(reason)) => {
                let waiting = self.waiting(session).await;
                self.note_held(&record, &waiting, &reason).await;
                // Only a person can give what is missing: looked at again now and then, and at their word.
                self.pause(session, LAST_PAUSE);
            }
            Err(Unbegun::Refused(fault)) => {
                tracing::warn!(%session, %fault, "a turn could not be begun");
                self.refused(session, &fault).await;
            }
        }
        self.over(session, turn);
    }

    /// A turn could not be begun. What no turn can be given is not tried again for ever: by itself first, then it is dead.
    async fn refused(&self, session: SessionId, fault: &Fault) {
        let for_good = matches!(fault.kind, Kind::TooLarge | Kind::InvalidParams);
        if !for_good {
            self.undo(session, "a turn could not be begun").await;
            let before = self.memory().pauses.get(&session).map(|(_, pause)| *pause);
            return self.pause(session, pause_after(Class::Runtime, before));
        }
        let why = format!("no turn can be given it: {}", fault.message);
        let refused = self.store.write_on_files_patiently(move |txn, files| {
            if txn.session(session).is_err() {
                return Ok(true);
            }
            settle::refuse(txn, files, session, &why)
        });
        match refused.await {
            Ok(true) => drop(self.memory().alone.remove(&session)),
            Ok(false) => drop(self.memory().alone.insert(session)),
            Err(fault) => tracing::warn!(%session, %fault, "what a turn was refused is not given back yet"),
        }
    }

    async fn waiting(&self, session: SessionId) -> Vec<queue::Entry> {
        let entries = move |state: &crate::store::State| {
            state.session(session).map(|s| s.inbox.queue.iter().cloned().collect()).unwrap_or_default()
        };
        self.store.read(entries).await.unwrap_or_default()
    }

    async fn try_begin(&self, record: &SessionRecord, turn: TurnId) -> Result<bool, Unbegun> {
        let Some(turns) = self.turns.get() else { return Ok(false) };
        let session = record.id;
        let environment = self.environment(record).await?;
        let alone = self.memory().alone.contains(&session);
        let most = if alone { 1 } else { self.store.config().headless.batch };
        let messages = self
            .store
            .write_on_files(move |txn, files| {
                let now = &txn.session(session)?.record;
                if now.turn.is_some() || !matches!(now.channel, Channel::Headless { .. }) {
                    return Ok(Vec::new());
                }
                batch::take(txn, files, session, turn, most)
            })
            .await
            .map_err(Unbegun::Refused)?;
        if messages.is_empty() {
            return Ok(false);
        }
        let request = request(record, turn, messages, environment);
        if let Started::Live(turn) = turns.start(request).await.map_err(Unbegun::Refused)? {
            // Where not even its folder could be made, nobody will tell of its end.
            turns.begun(&turn).await.map_err(Unbegun::Refused)?;
        }
        self.memory().alone.remove(&session);
        Ok(true)
    }

    /// The variables that were kept, and those of which only the name was.
    async fn environment(&self, record: &SessionRecord) -> Result<BTreeMap<String, String>, Unbegun> {
        let mut environment = record.env.clone();
        if record.env_names.is_empty() {
            return Ok(environment);
        }
        let (names, config) = (record.env_names.clone(), self.store.config().turn.clone());
        let read = move || env::without_caller(&names, &config, |name| std::env::var(name).ok());
        let found = tokio::task::spawn_blocking(read).await;
        let found = found.map_err(|e| Unbegun::Refused(Fault::new(Kind::Internal, e.to_string())))?;
        match found {
            Ok(found) => {
                environment.extend(found);
                Ok(environment)
            }
            Err(error) => Err(Unbegun::Held(format!("{}({error})", Hold::Auth))),
        }
    }

    /// Hears of turns that are settled.
    async fn hear(self: Arc<Self>, mut ended: mpsc::UnboundedReceiver<Ended>) {
        while let Some(ended) = ended.recv().await {
            let this = Arc::clone(&self);
            // One that has to wait for the disk delays no other.
            tokio::spawn(async move { this.ended(ended).await });
        }
    }

    async fn ended(self: Arc<Self>, ended: Ended) {
        let Some(session) = ended.session else { return };
        let text = answer_of(&ended).await;
        if ended.settled.failure.is_none() {
            self.answer_text(&ended.messages, &text);
        }
        let outside = ended.settled.trigger == Some(Trigger::Boundary);
        let succeeded = ended.settled.failure.is_none();
        let class = ended.settled.failure.map(|_| ended.settled.class.unwrap_or(Class::Runtime));
        let class = class.filter(|_| !outside);
        let outcome = outcome_of(&ended, &text);
        let turn = ended.turn;
        let this = Arc::clone(&self);
        let written = self
            .store
            .write_on_files_patiently(move |txn, files| {
                // Asked now: on a disk that refuses whoever waited may have gone meanwhile.
                let awaited = this.awaited(&ended.messages);
                let account = txn.session(session).map(|s| s.record.account().to_owned()).ok();
                let account_held = account.is_some_and(|a| this.memory().runs.holds.contains_key(&a));
                let over = settle::Over {
                    ended: &ended,
                    text: &text,
                    awaited: &awaited,
                    account_held,
                    now: clocks(),
                };
                settle::conclude(txn, files, session, over)
            })
            .await;
        let concluded = matches!(written, Ok(Some(_)));
        match written {
            Ok(Some(record)) => {
                let mut memory = self.memory();
                memory.runs.learn(&record);
                if succeeded {
                    let account = record.account().to_owned();
                    memory.runs.release(&account);
                }
            }
            Ok(None) => {}
            // The daemon goes: the next one is told of this turn again.
            Err(fault) => return tracing::warn!(%session, %fault, "what a turn led to is not written yet"),
        }
        match class {
            None => drop(self.memory().pauses.remove(&session)),
            Some(class) if concluded => {
                let before = self.memory().pauses.get(&session).map(|(_, pause)| *pause);
                self.pause(session, pause_after(class, before));
            }
            // A session that is gone has no next turn.
            Some(_) => {}
        }
        // Named after its reply was committed.
        if let Some(turns) = self.turns.get()
            && let Ok(known) = turns.find(&turn.to_string()).await
            && let Err(fault) = turns.finish(&known, outcome).await
        {
            tracing::warn!(%turn, %fault, "the outcome of a turn could not be named");
        }
        self.over(session, turn);
    }

    /// The session's turn is over: it is looked at again, and so are those that waited for a place.
    fn over(self: &Arc<Self>, session: SessionId, turn: TurnId) {
        let waiting = {
            let mut memory = self.memory();
            memory.runs.end(session, turn);
            std::mem::take(&mut memory.runs.waiting)
        };
        self.look_again(session);
        waiting.into_iter().for_each(|other| self.look_again(other));
    }

    fn pause(&self, session: SessionId, pause: Duration) {
        self.memory().pauses.insert(session, (Instant::now() + pause, pause));
    }

    /// What a turn was given that never began waits again.
    async fn undo(&self, session: SessionId, note: &'static str) {
        let undone = self.store.write_on_files_patiently(move |txn, _| {
            if txn.session(session).is_err() {
                return Ok(());
            }
            settle::undo(txn, session, Some(note.to_owned()))
        });
        if let Err(fault) = undone.await {
            tracing::warn!(%session, %fault, "what a turn was to be given is not given back yet");
        }
    }
}

/// Why no turn was begun.
enum Unbegun {
    /// Something is missing that only a person can give.
    Held(String),
    /// It could not be.
    Refused(Fault),
}

fn request(
    record: &SessionRecord,
    turn: TurnId,
    messages: Vec<Message>,
    env: BTreeMap<String, String>,
) -> Request {
    let adapter = record.harness.clone().unwrap_or_else(|| "command".to_owned());
    let conversation = record.live_binding().filter(|b| b.harness == adapter).map(|b| b.id.clone());
    let argv = match &record.channel {
        Channel::Headless { argv } => argv.clone(),
        _ => Vec::new(),
    };
    Request {
        turn,
        seat: record.label.clone(),
        session: Some(record.id),
        by: None,
        event_type: Some("message".to_owned()),
        purpose: Purpose::Queue { messages: messages.iter().map(|m| m.id).collect() },
        caller: Caller::Elsewhere,
        empty_is_silent: false,
        policy: Asked::default(),
        budget_ms: None,
        input: Input::Messages(messages),
        argv,
        conversation,
        fresh: Uuid::new_v4(),
        dir: record.dir.clone(),
        env,
        adapter,
    }
}

fn outcome_of(ended: &Ended, text: &str) -> Outcome {
    match ended.settled.failure {
        Some(_) => Outcome::Failed,
        None if ended.silent || text.trim().is_empty() => Outcome::Silent,
        None => Outcome::Delivered,
    }
}

/// The turn's whole answer: the adapter's final text, else what the program wrote.
async fn answer_of(ended: &Ended) -> String {
    if let Some(text) = &ended.settled.text {
        return text.clone();
    }
    let Some(file) = ended.settled.stdout.as_ref().map(PathBuf::from) else { return String::new() };
    let read = move || minder_proto::whole::beginning(&file, ANSWER_FILE_MAX).unwrap_or_default();
    let bytes = tokio::task::spawn_blocking(read).await.unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_longer_where_the_other_side_has_a_bad_hour() {
        let mut pause = None;
        let mut seconds = Vec::new();
        for _ in 0..9 {
            pause = Some(pause_after(Class::Runtime, pause));
            seconds.push(pause.map_or(0, |p| p.as_secs()));
        }
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(pause_after(Class::Unavailable, None), LONG_PAUSE);
        assert_eq!(pause_after(Class::RateLimit, Some(PAUSE)), LONG_PAUSE);
    }
}
