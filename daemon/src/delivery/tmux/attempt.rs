//! One attempt for the head of a queue: the machine's orders carried out, and what came of it written down. Before
//! anything is typed the message is `handed`, so that no other road gives it meanwhile; it is held again where it was not
//! submitted. One at a time in a pane, whatever the sessions.

use std::sync::Arc;

use minder_proto::error::Fault;
use minder_proto::event::{Message, Receipt};
use minder_proto::hold::Hold;
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue::{self, FINAL};
use minder_proto::record::{Channel, RunningTurn, SessionRecord};
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use tokio::time::Instant;

use super::machine::{Act, Done, End, Look, Machine};
use super::server::{Failed, Pane, Shown};
use super::sight::Manner;
use super::{owner, text, word};
use crate::delivery::Delivery;
use crate::delivery::evidence::may_be_there;
use crate::delivery::hand::{POINTER, POINTER_SEEN};
use crate::delivery::mailbox::bury_unreadable;
use crate::delivery::rules::{self, Backoff, Boundary, Entry, waits};
use crate::store::State;
use crate::store::kill_point::reach;

/// How the ledger names the channel.
pub const CHANNEL: &str = "tmux";

/// Seconds since a person's key after which a pane is free again. tmux tells whole seconds.
const QUIET: i64 = 6;

/// What is known of the typing into one session, beside the store. What is lost costs a second look.
#[derive(Debug, Default)]
pub struct Typing {
    /// What the record said at the last attempt: an attempt follows when it says something else.
    seen: Option<Signs>,
    /// The message that stands in the composer under a word of the harness's, and that word.
    collapsed: Option<(MessageId, String)>,
}

/// What of a record may lift a hold.
#[derive(Clone, Debug, PartialEq)]
struct Signs {
    turn: Option<RunningTurn>,
    last_end: Option<Stamp>,
    conversation: Option<String>,
    channel: Channel,
}

impl Signs {
    fn of(record: &SessionRecord) -> Self {
        Self {
            turn: record.turn.clone(),
            last_end: record.last_end.map(|end| end.at),
            conversation: record.live_binding().map(|binding| binding.id.clone()),
            channel: record.channel.clone(),
        }
    }
}

/// The head of a queue, and where it goes.
struct Job {
    record: SessionRecord,
    pane: Pane,
    manner: &'static Manner,
    head: queue::Entry,
}

/// What an attempt came to.
enum Outcome {
    Submitted,
    Held(Hold),
    /// Nothing to type: it was given by another road, or its text is damaged.
    Nothing,
    /// What has to be written down first could not be: it is tried again, after a pause.
    Later,
}

impl Delivery {
    /// A session that is typed to: an attempt, unless one runs, what was typed last waits for evidence, or a pause is not
    /// over and nothing has changed. Gives when to look again.
    pub(in crate::delivery) async fn tmux(
        self: &Arc<Self>,
        record: &SessionRecord,
        waiting: &[queue::Entry],
    ) -> Option<Instant> {
        let session = record.id;
        let open = |entry: &queue::Entry| !matches!(entry.reason.as_deref(), Some(POINTER_SEEN | FINAL));
        let in_flight = waiting.iter().any(|e| e.receipt == Receipt::Handed && !e.is_of_host() && open(e));
        if in_flight || !waiting.iter().any(is_ready) {
            return None;
        }
        if let Some(hold) = rules::hold(record, false) {
            self.note_hold(session, waiting, hold, CHANNEL).await;
            return None;
        }
        let signs = Signs::of(record);
        let now = Instant::now();
        {
            let mut memory = self.memory();
            let seen = memory.typing.get(&session).and_then(|typing| typing.seen.as_ref());
            if seen != Some(&signs) {
                memory.retry.remove(&session);
            }
            if let Some(early) = memory.retry.get(&session).map(Backoff::next).filter(|at| *at > now) {
                return Some(early);
            }
            if !memory.running.insert(session) {
                return None;
            }
            memory.typing.entry(session).or_default().seen = Some(signs);
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let held = this.type_head(session).await;
            this.end_attempt(session, held);
        });
        None
    }

    /// Types the head of the queue; true if it has to be tried again.
    async fn type_head(self: &Arc<Self>, session: SessionId) -> bool {
        let Ok(Some(job)) = self.store.read(move |state| job(state, session)).await else { return false };
        let turn = self.panes.of(&job.pane);
        let _alone = turn.lock().await;
        // What was typed before and held may have been submitted since, by a person's key: then it is not typed again.
        if may_be_there(&job.head) {
            self.look_for_evidence(session).await;
        }
        let outcome = self.deliver(&job).await;
        let hold = match outcome {
            Outcome::Submitted | Outcome::Nothing => return false,
            Outcome::Later => return true,
            Outcome::Held(hold) => hold,
        };
        self.give_up(&job, hold).await;
        true
    }

    async fn deliver(self: &Arc<Self>, job: &Job) -> Outcome {
        let session = job.record.id;
        let message = match self.message(job).await {
            Ok(Some(message)) => message,
            Ok(None) => return Outcome::Nothing,
            Err(hold) => return Outcome::Held(hold),
        };
        let (line, whole) = text::line(self.store.home(), &message, job.manner.whole);
        let collapsed = {
            let memory = self.memory();
            let before = memory.typing.get(&session).and_then(|typing| typing.collapsed.clone());
            before.filter(|(id, _)| *id == message.id).map(|(_, word)| word)
        };
        let buffer = format!("minder-{}", message.id);
        let mark = message.id.short();
        let mut machine = Machine::new(line.clone(), collapsed);
        let mut done = Done::Begun;
        let mut seen: Option<Shown> = None;
        let mut pressed = false;
        let end = loop {
            let act = machine.next(&done);
            let result = match (act, &seen) {
                (Act::Look, _) => match self.look_at_pane(job).await {
                    Ok((look, shown)) => {
                        seen = Some(shown);
                        Ok(Done::Looked(look))
                    }
                    Err(failed) => Err(failed),
                },
                (Act::Claim, _) => match self.claim(job, whole).await {
                    Ok(true) => {
                        reach("type.claimed");
                        Ok(Done::Claimed)
                    }
                    Ok(false) => return Outcome::Nothing,
                    Err(fault) => {
                        tracing::debug!(%session, %fault, "a message cannot be made this attempt's yet");
                        return Outcome::Later;
                    }
                },
                (Act::Wait(pause), _) => {
                    tokio::time::sleep(pause).await;
                    Ok(Done::Waited)
                }
                (Act::Paste, Some(seen)) => {
                    let pasted = job.pane.paste(&line, seen, &buffer).await;
                    reach("type.pasted");
                    pasted.map(went)
                }
                (Act::Enter, Some(seen)) => {
                    let shown = machine.collapsed().map_or(mark.as_str(), one_word);
                    let entered = job.pane.enter(seen, shown).await;
                    reach("type.entered");
                    // One that was asked for and of which nothing was heard may have gone in.
                    pressed |= !matches!(entered, Ok(false));
                    entered.map(went)
                }
                // It looks before it types.
                (Act::Paste | Act::Enter, None) => Ok(Done::Moved),
                (Act::End(end), _) => break end,
            };
            match result {
                Ok(next) => done = next,
                Err(failed) => {
                    tracing::debug!(%session, pane = %job.pane.id, %failed, "a pane was not reached");
                    if pressed {
                        // It may have been taken: evidence tells.
                        break End::Submitted;
                    }
                    break End::Held(match failed {
                        Failed::Gone(_) => Hold::Offline,
                        Failed::TooOld(_) => Hold::Unknown,
                    });
                }
            }
        };
        {
            let mut memory = self.memory();
            let word = machine.collapsed().map(|word| (message.id, word.to_owned()));
            // Where a person was at the keys, what stands for a paste by the next time may be theirs.
            let ours = end == End::Held(Hold::NotSubmitted);
            memory.typing.entry(session).or_default().collapsed = word.filter(|_| ours);
        }
        match end {
            End::Submitted => Outcome::Submitted,
            End::Held(hold) => Outcome::Held(hold),
        }
    }

    /// The message, or why it cannot be read now; nothing if it is damaged, which is written down.
    async fn message(&self, job: &Job) -> Result<Option<Message>, Hold> {
        let party = Party::Session(job.record.id);
        let dir = snapshot::party_dir(self.store.home(), party);
        match snapshot::message_of(&dir, &job.head) {
            Ok(Some(message)) => Ok(Some(message)),
            Ok(None) => {
                let entry = job.head.clone();
                let buried =
                    self.store.write_on_files(move |txn, files| bury_unreadable(txn, files, party, &[entry]));
                if let Err(fault) = buried.await {
                    tracing::warn!(%fault, "a damaged message could not be put aside yet");
                    return Err(Hold::Offline);
                }
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "a message cannot be read");
                Err(Hold::Offline)
            }
        }
    }

    /// Looks at the pane, and at what else forbids typing.
    async fn look_at_pane(&self, job: &Job) -> Result<(Look, Shown), Failed> {
        let shown = job.pane.look().await?;
        let pressed = shown.key_at.map(|at| Stamp::now().as_millis() / 1000 - at);
        let hold = owner::check(&job.record, &shown)
            .or(self.is_anothers(&job.record, &shown).await.then_some(Hold::WrongProcess))
            .or(shown.in_mode.then_some(Hold::CopyMode))
            .or(shown.shut.then_some(Hold::Unknown))
            .or_else(|| word::hold(&job.record))
            .or(pressed.is_some_and(|age| age < QUIET).then_some(Hold::Draft));
        let sight = job.manner.see(&shown.screen);
        Ok((Look { hold, sight }, shown))
    }

    /// True where no process of the session is known and the terminal's keys go to that of another session: a person may
    /// have gone over to another conversation in the same program.
    async fn is_anothers(&self, record: &SessionRecord, shown: &Shown) -> bool {
        if record.process.is_some() {
            return false;
        }
        let session = record.id;
        let others = self.store.read(move |state| {
            let others = state.records().filter(|other| other.id != session);
            let live = others.filter_map(|other| other.process.clone().filter(|p| p.ended.is_none()));
            live.collect::<Vec<_>>()
        });
        // What cannot be known is no leave.
        others.await.map_or(true, |others| others.iter().any(|process| owner::is_in_front(process, shown)))
    }

    /// Makes the message this attempt's, if it waits still; from here on no other road gives it.
    async fn claim(self: &Arc<Self>, job: &Job, whole: bool) -> Result<bool, Fault> {
        let (session, id) = (job.record.id, job.head.id);
        self.remember_transcript(session).await;
        // Before it is handed: from then on it is nobody else's to give back.
        self.memory().attempts.insert(session, id);
        self.store
            .write(move |txn| {
                let here = txn.session(session)?;
                let evidence = here.record.live_binding().is_some_and(|binding| binding.transcript.is_some());
                let Some(entry) = here.inbox.queue.get(id).cloned().filter(waits) else { return Ok(false) };
                let reason = match (whole, evidence) {
                    (true, true) => None,
                    (true, false) => Some(FINAL),
                    (false, true) => Some(POINTER),
                    (false, false) => Some(POINTER_SEEN),
                };
                let reason = reason.map(str::to_owned);
                let attempt = entry.attempt + 1;
                txn.receipt(Party::Session(session), id, Receipt::Handed, reason, attempt, Some(CHANNEL))?;
                Ok(true)
            })
            .await
    }

    /// What was not submitted is held again, with the reason. A hold is no attempt.
    async fn give_up(self: &Arc<Self>, job: &Job, hold: Hold) {
        let (session, id, attempt) = (job.record.id, job.head.id, job.head.attempt);
        let party = Party::Session(session);
        let back = self
            .store
            .write_patiently(move |txn| {
                let Ok(here) = txn.session(session) else { return Ok(()) };
                let entry = here.inbox.queue.get(id);
                // Evidence may have come all the same.
                if entry.is_some_and(|e| e.receipt == Receipt::Handed && e.attempt == attempt + 1) {
                    let reason = Some(hold.to_string());
                    txn.receipt(party, id, Receipt::Held, reason, attempt, Some(CHANNEL))?;
                }
                Ok(())
            })
            .await;
        if let Err(fault) = back {
            tracing::warn!(%session, %fault, "a message that was not submitted stays handed");
        }
        let waiting = self.store.read(move |state| {
            let queue = &state.session(session)?.inbox.queue;
            Some(queue.iter().take(64).cloned().collect::<Vec<_>>())
        });
        if let Ok(Some(waiting)) = waiting.await {
            self.note_hold(session, &waiting, hold, CHANNEL).await;
        }
    }
}

fn went(went: bool) -> Done {
    if went { Done::Went } else { Done::Moved }
}

/// The longest word of letters and digits of what stands for a paste: tmux looks for it as it stands.
fn one_word(collapsed: &str) -> &str {
    let words = collapsed.split(|c: char| !c.is_ascii_alphanumeric());
    words.max_by_key(|word| word.len()).unwrap_or_default()
}

/// True for what may start a turn of an idle conversation.
fn is_ready(entry: &queue::Entry) -> bool {
    waits(entry) && rules::may_enter(entry.class(), Boundary::Idle) == Entry::Yes
}

fn job(state: &State, session: SessionId) -> Option<Job> {
    let found = state.session(session)?;
    let Channel::Tmux { socket, pane } = &found.record.channel else { return None };
    let manner = Manner::of(found.record.harness.as_deref()?)?;
    let head = found.inbox.queue.iter().find(|entry| is_ready(entry))?;
    Some(Job {
        record: found.record.clone(),
        pane: Pane { socket: socket.clone(), id: pane.clone() },
        manner,
        head: head.clone(),
    })
}
