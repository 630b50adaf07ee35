//! What harnesses say through their hooks: conversations become sessions, turns begin and end, dialogs open. Each call
//! is one round trip that also brings what waits for the session. A hook speaks for a session only where the session
//! does not speak for itself.
//!
//! Uses: `store`, `session`, `delivery`, `host`, `identity`, `readable`. Used by: `server`, `spool`.

use std::sync::Arc;

use minder_proto::error::{Fault, Kind};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::Process;
use minder_proto::rpc::{Adopt, AdoptAnswer, HookAnswer, HookEnv, HookEvent, HookWait, SecondWriter};
use minder_proto::stamp::Stamp;

use crate::delivery::evidence::may_be_there;
use crate::delivery::mailbox::give_back;
use crate::delivery::waiters::PATIENCE;
use crate::delivery::{self, Delivery};
use crate::host::upkeep::Signs;
use crate::identity::Ancestry;
use crate::session;
use crate::store::{HOOK_KEY, State, Store, Txn};

mod adopt;
pub mod dialect;
pub mod payload;
mod react;
mod seconds;
pub mod status;
mod turn;

pub use payload::{Heard, Payload, Told};
use seconds::Seconds;
pub use status::StatusFiles;

/// Serves hooks.
#[derive(Clone)]
pub struct Hooks {
    store: Store,
    delivery: Arc<Delivery>,
    status: Arc<StatusFiles>,
    /// Signs of life, for those who supervise.
    signs: Arc<Signs>,
    seconds: Arc<Seconds>,
}

/// True if a process is of this daemon's user.
fn is_own(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let folder = std::fs::metadata(format!("/proc/{pid}"));
    folder.is_ok_and(|m| m.uid() == nix::unistd::geteuid().as_raw())
}

/// Where a hook's call came from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Over the socket: the kernel says who its ancestors are.
    Peer(Ancestry),
    /// From the spool, said then.
    Spooled(Stamp),
}

impl Origin {
    /// When it was said, where that was not now.
    fn said(&self) -> Option<Stamp> {
        match self {
            Self::Peer(_) => None,
            Self::Spooled(at) => Some(*at),
        }
    }
}

impl Hooks {
    /// Hooks over a store.
    pub fn new(store: Store, delivery: Arc<Delivery>, status: Arc<StatusFiles>, signs: Arc<Signs>) -> Self {
        Self { store, delivery, status, signs, seconds: Arc::default() }
    }

    /// One event. What is not for minder is answered with silence. It is served to its end even if the hook goes away:
    /// what follows from a commit is not the caller's to break off.
    pub async fn event(&self, call: HookEvent, origin: Origin) -> Result<HookAnswer, Fault> {
        let this = self.clone();
        match tokio::spawn(async move { this.serve(call, origin).await }).await {
            Ok(answer) => answer,
            Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
            Err(_) => Err(Fault::new(Kind::Unavailable, "the daemon is going down")),
        }
    }

    async fn serve(&self, call: HookEvent, origin: Origin) -> Result<HookAnswer, Fault> {
        let Some((told, heard)) = payload::read(&call.harness, call.payload) else {
            return Ok(HookAnswer::default());
        };
        if call.env.turn.is_some() {
            return Ok(HookAnswer::default()); // minder's own run: the runner speaks for it
        }
        self.gather_evidence(&call.harness, &told.payload).await;
        let (harness, env, key) = (call.harness, call.env, call.key);
        let conversation = told.payload.session_id.clone();
        let writer = seconds::writer(&harness, &origin);
        let transcript = told.payload.transcript_path.clone();
        let begins = matches!(heard, Heard::Begins { .. });
        let done = self
            .store
            .write_on_files(move |txn, files| {
                let once = format!("{HOOK_KEY}{key}");
                if let Some(before) = txn.state().remembered(&once) {
                    let handed = serde_json::from_value(before.result.clone()).unwrap_or_default();
                    let at = react::At { files, told: &told, said: origin.said() };
                    return unheard(txn, once, handed, &harness, at, heard);
                }
                let Some(session) = adopt::session_of(txn, &harness, &told.payload, &heard, &env, &origin)?
                else {
                    return Ok(react::Reaction::default());
                };
                session::came_up(txn, session)?;
                // One that nobody chose a channel for is reached through its hooks from the first one on.
                let way = delivery::way_of_hooks(&txn.session(session)?.record);
                session::hook_heard(txn, session, way)?;
                let at = react::At { files, told: &told, said: origin.said() };
                let reaction = react::react(txn, session, at, heard)?;
                if !txn.is_unchanged() {
                    txn.remember(
                        once,
                        0,
                        serde_json::to_value(&reaction.handed).expect("ids are plain data"),
                    );
                }
                Ok(reaction)
            })
            .await?;
        if done.session.is_none()
            && let Some(writer) = writer
        {
            self.seconds.look(&self.store, writer, conversation.clone()).await?;
        }
        if let Some(session) = done.session {
            self.signs.note(session, Stamp::now());
            if let Some(path) = &transcript {
                self.status.follow(path.as_ref()).await;
            }
            if !done.answered.is_empty() {
                self.delivery.answer_text(&done.answered, &done.answer);
            }
            if !done.handed.is_empty()
                && let Some(path) = &transcript
            {
                self.delivery.watch_transcript(session, path.into()).await;
            }
            if begins {
                self.delivery.conversation_began(session);
            }
            if done.conversation_ended {
                self.delivery.conversation_ended(session, &conversation).await;
            }
        }
        Ok(done.print)
    }

    /// The processes that live and were not heard because another one has their conversation.
    pub async fn second_writers(&self) -> Result<Vec<SecondWriter>, Fault> {
        self.seconds.all(&self.store).await
    }

    /// A conversation that its harness lists and whose next event may be far away: it becomes a session by the rules
    /// of an event. `ancestry` is that of the process which the harness named for it.
    pub async fn adopt(&self, call: Adopt, ancestry: Ancestry) -> Result<AdoptAnswer, Fault> {
        let is_it = ancestry
            .iter()
            .next()
            .is_some_and(|a| a.process.pid == call.pid && a.harness == Some(call.harness.as_str()));
        if !is_it || !is_own(call.pid) {
            return Err(Fault::new(
                Kind::Refused,
                format!("process {} is no {} of this user's", call.pid, call.harness),
            ));
        }
        let begins = serde_json::json!({
            "session_id": call.harness_id, "cwd": call.dir, "hook_event_name": "SessionStart", "source": "startup",
        });
        let Some((told, heard)) = payload::read(&call.harness, begins) else {
            return Err(Fault::new(Kind::InvalidParams, "no such harness, or no id of one"));
        };
        let env = HookEnv { pid: Some(call.pid), attended: call.attended, ..HookEnv::default() };
        let payload = told.payload;
        self.store
            .write(move |txn| {
                let known = txn.state().by_binding(&call.harness, &payload.session_id).is_some();
                let origin = Origin::Peer(ancestry);
                let found = adopt::session_of(txn, &call.harness, &payload, &heard, &env, &origin)?;
                let session = found.ok_or_else(|| {
                    Fault::new(Kind::Refused, "not taken in by adopt.mode, adopt.ignore, or another process")
                })?;
                Ok(AdoptAnswer { session, label: txn.session(session)?.record.label.clone(), known })
            })
            .await
    }

    /// A waiter: answers when something may enter an idle session.
    pub async fn wait(&self, call: HookWait, ancestry: Ancestry) -> Result<HookAnswer, Fault> {
        let Some((Told { dialect, payload, .. }, _)) = payload::read(&call.harness, call.payload) else {
            return Ok(HookAnswer::default());
        };
        let unattended =
            call.env.attended == Some(false) || call.env.entrypoint.as_deref() == Some("sdk-cli");
        if call.env.turn.is_some() || unattended || !dialect.wakes {
            return Ok(HookAnswer::default());
        }
        match self.registered(&call.harness, &payload.session_id, ancestry).await? {
            Some(session) => self.delivery.wait(session, payload.session_id, call.resume).await,
            None => Ok(HookAnswer::default()),
        }
    }

    /// The session of a conversation, as soon as it is in the process that this waiter belongs to. An event's two hooks
    /// start together: the one that registers the session, or takes it up again, may be behind the one that waits. A
    /// second process of a conversation is not heard.
    async fn registered(
        &self,
        harness: &str,
        conversation: &str,
        ancestry: Ancestry,
    ) -> Result<Option<SessionId>, Fault> {
        let bell = self.delivery.any_change();
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let ancestry = Arc::new(ancestry);
        loop {
            let (harness, conversation) = (harness.to_owned(), conversation.to_owned());
            let ancestry = Arc::clone(&ancestry);
            let look = move |state: &State| {
                let id = state.by_binding(&harness, &conversation)?;
                let process = state.session(id)?.record.process.as_ref();
                process.is_none_or(|p| may_wait_for(&ancestry, p)).then_some(id)
            };
            let found = self.store.glance(look).await?;
            if found.is_some() || tokio::time::timeout_at(deadline, bell.notified()).await.is_err() {
                return Ok(found);
            }
        }
    }

    /// Looks whether what was handed before stands in the transcript by now: the end of a turn answers what was
    /// seen in it.
    async fn gather_evidence(&self, harness: &str, payload: &Payload) {
        let (harness, conversation) = (harness.to_owned(), payload.session_id.clone());
        let session = self
            .store
            .glance(move |state| {
                let id = state.by_binding(&harness, &conversation)?;
                let queue = &state.session(id)?.inbox.queue;
                queue.iter().any(may_be_there).then_some(id)
            })
            .await;
        if let Ok(Some(session)) = session {
            self.delivery.look_for_evidence(session).await;
        }
    }
}

/// What is left of an event in the spool although it was served: its answer came too late, and nobody has the messages
/// that were in it. They wait again; a turn that they were to keep going is over.
fn unheard(
    txn: &mut Txn<'_>,
    once: String,
    handed: Vec<MessageId>,
    harness: &str,
    at: react::At<'_>,
    heard: Heard,
) -> Result<react::Reaction, Fault> {
    let session = txn.state().by_binding(harness, &at.told.payload.session_id);
    let Some(session) = session.filter(|_| at.said.is_some() && !handed.is_empty()) else {
        return Ok(react::Reaction::default());
    };
    give_back(txn, Party::Session(session), &handed)?;
    // Once: it may be found in the spool again, and somebody else may have them by then.
    txn.remember(once, 0, serde_json::Value::Null);
    match heard {
        Heard::TurnEnd { .. } => react::react(txn, session, at, heard),
        _ => Ok(react::Reaction::of(session)),
    }
}

/// Whether a waiter is one of this process, as far as can be known.
fn may_wait_for(ancestry: &Ancestry, process: &Process) -> bool {
    let mut known = ancestry.iter().peekable();
    process.ended.is_none() && (known.peek().is_none() || known.any(|a| a.process.is(process)))
}

/// The first words of a text, for a note or a title.
fn first_words(text: &str, most: usize) -> String {
    let line = minder_proto::text::first_line(text);
    minder_proto::text::fit(&minder_proto::text::one_line(line), most)
}

/// Whether the words of prompts and answers may go into the store.
fn keeps_text(txn: &Txn<'_>) -> bool {
    txn.config().adopt.text
}
