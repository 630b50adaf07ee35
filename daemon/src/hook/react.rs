//! What follows from an event: the turn, the state that a hook says, what the hook prints.

use minder_proto::config::Brief;
use minder_proto::envelope;
use minder_proto::error::Fault;
use minder_proto::event::{ANSWER_MAX, ANSWER_NOTE, Author, Body, Receipt, cut};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::queue;
use minder_proto::record::{RunningTurn, SessionRecord, TitleSource, TurnEnd, TurnOrigin};
use minder_proto::rpc::HookAnswer;
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::dialect::Takes;
use super::payload::{Task, ToolCall};
use super::{Heard, Told, first_words, keeps_text, turn};
use crate::delivery::evidence::{Evidence, evident, may_be_there};
use crate::delivery::hand::{Handed, Room, hand};
use crate::delivery::rules::{Boundary, hops_after};
use crate::host;
use crate::session::{Declaration, declare};
use crate::store::{Settled, Txn};

/// Columns of a title or note that is made of a prompt.
const WORDS: usize = 80;

/// Reasons for the end of a conversation with which its process goes on.
const GOES_ON: [&str; 4] = ["clear", "resume", "fork", "deleted"];

/// What an event led to.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// What the hook prints.
    pub print: HookAnswer,
    /// What was handed over.
    pub handed: Vec<MessageId>,
    /// Messages that a turn's end answers, those of them included whose evidence is still to come.
    pub answered: Vec<MessageId>,
    /// Its whole text.
    pub answer: String,
    /// The conversation is over in this process.
    pub conversation_ended: bool,
}

impl Reaction {
    /// Nothing but whose it was.
    pub fn of(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }
}

/// What a reaction needs to know of its event.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The store's files.
    pub files: Settled<'a>,
    /// The event as it came.
    pub told: &'a Told,
    /// When it was said, where that was not now. Then nobody reads what is printed.
    pub said: Option<Stamp>,
}

impl At<'_> {
    fn prompt_id(&self) -> Option<&String> {
        self.told.payload.prompt_id.as_ref()
    }

    /// True for what was left in the spool and is of a turn before the one that is known by now.
    fn is_overtaken(&self, record: &SessionRecord) -> bool {
        self.said.is_some_and(|said| {
            record.turn.as_ref().is_some_and(|turn| turn.since > said)
                || record.last_end.is_some_and(|end| end.at > said)
                || self.prompt_id().is_some() && self.prompt_id() == record.last_turn.as_ref()
        })
    }

    /// What may enter at a boundary, if there is somebody to give it to.
    fn hand(&self, txn: &mut Txn<'_>, id: SessionId, boundary: Boundary) -> Result<Handed, Fault> {
        if self.said.is_some() || self.told.event.takes == Takes::Nothing {
            return Ok(Handed::default());
        }
        // Another call may be over, or a text have joined the turn, while a dialog waits for its person. No turn ends
        // with one open.
        let open = txn.session(id)?.record.turn.as_ref().is_some_and(|turn| turn.dialog.is_some());
        if open && boundary != Boundary::TurnEnd {
            return Ok(Handed::default());
        }
        let room = Room { chars: txn.config().hook.max_chars, bytes: self.told.dialect.max_bytes };
        hand(txn, self.files, id, boundary, room)
    }

    /// What the hook prints for what was handed.
    fn say(&self, id: SessionId, handed: Handed) -> Reaction {
        let Told { dialect, event, .. } = self.told;
        let print = match event.takes {
            _ if handed.text.is_empty() => HookAnswer::default(),
            Takes::Nothing => HookAnswer::default(),
            Takes::Context => dialect.context(event.name, &handed.text),
            Takes::More => dialect.more(handed.text),
        };
        Reaction { print, handed: handed.ids, ..Reaction::of(id) }
    }

    /// Says a state, as of when the event was said.
    fn declare(&self, txn: &mut Txn<'_>, id: SessionId, declaration: Declaration) -> Result<(), Fault> {
        declare(txn, id, Declaration { said: self.said, ..declaration }).map(|_| ())
    }
}

/// Applies an event to its session.
pub fn react(txn: &mut Txn<'_>, id: SessionId, at: At<'_>, heard: Heard) -> Result<Reaction, Fault> {
    if at.is_overtaken(&txn.session(id)?.record) {
        return Ok(Reaction::of(id));
    }
    // Not each compaction's end is told: one that was broken off is over with what comes next. Claude Code tells a prompt when it
    // is queued, which may be in the middle of one.
    let shows_its_end = match &heard {
        Heard::ToolDone(_)
        | Heard::TurnEnd { .. }
        | Heard::TurnFailed(_)
        | Heard::Interrupted
        | Heard::Ends(_) => true,
        Heard::Prompt(_) => at.told.dialect.harness != "claude",
        Heard::Begins { .. } | Heard::Dialog { .. } | Heard::Compacting(_) => false,
    };
    if shows_its_end && txn.session(id)?.record.compacting {
        txn.edit(id, |r| r.compacting = false)?;
    }
    match heard {
        Heard::Begins { source } => begins(txn, id, at, &source),
        Heard::Prompt(prompt) => {
            self::prompt(txn, id, at, &prompt)?;
            let handed = at.hand(txn, id, Boundary::Prompt)?;
            Ok(at.say(id, handed))
        }
        Heard::ToolDone(call) => {
            // Without an id of its turn the end of a call may be of one that is over: it begins none.
            let late = !at.told.dialect.turn_ids && txn.session(id)?.record.turn.is_none();
            if late || !turn::ensure(txn, id, at.prompt_id(), at.said)? {
                return Ok(Reaction::of(id));
            }
            dialog_over(txn, id, at, &call)?;
            let handed = at.hand(txn, id, Boundary::ToolDone)?;
            Ok(at.say(id, handed))
        }
        Heard::Dialog { call, note } => {
            if turn::ensure(txn, id, at.prompt_id(), at.said)? {
                let tool = if call.tool.is_empty() { "a tool" } else { &call.tool };
                let since = Some(at.said.unwrap_or_else(|| txn.now()));
                let note = if keeps_text(txn) { note } else { format!("permission: {tool}") };
                txn.edit(id, |r| {
                    if let Some(turn) = &mut r.turn {
                        turn.dialog = Some(call.tool);
                        turn.dialog_input = call.input;
                        turn.dialog_since = since;
                    }
                })?;
                at.declare(txn, id, Declaration::new(State::Asking, Some(note), Author::Hook))?;
            }
            Ok(Reaction::of(id))
        }
        Heard::TurnEnd { active, text, tasks } => turn_end(txn, id, at, active, text, &tasks),
        Heard::TurnFailed(error) => {
            let note = Some(format!("the model failed: {}", first_words(&error, WORDS)));
            at.declare(txn, id, Declaration::new(State::Error, note, Author::Hook))?;
            turn::end(txn, id, at.prompt_id())?;
            Ok(Reaction::of(id))
        }
        Heard::Interrupted => {
            turn::interrupted(txn, id, at.prompt_id(), at.said, None)?;
            Ok(Reaction::of(id))
        }
        Heard::Ends(reason) => {
            over(txn, id, at, &reason)?;
            let text = format!("the conversation ended in its process: {}", first_words(&reason, WORDS));
            txn.append(Party::Session(id), Body::Note { what: "session-end".to_owned(), text })?;
            Ok(Reaction { conversation_ended: true, ..Reaction::of(id) })
        }
        Heard::Compacting(now) => {
            let since = Some(at.said.unwrap_or_else(|| txn.now()));
            txn.edit(id, |r| {
                r.compacting = now;
                if now {
                    r.compacting_since = since;
                }
            })?;
            Ok(Reaction::of(id))
        }
    }
}

/// A conversation ends in its process. Where the process ends with it, that tells of a turn that is cut short; where it
/// goes on, nobody else does.
fn over(txn: &mut Txn<'_>, id: SessionId, at: At<'_>, reason: &str) -> Result<(), Fault> {
    let record = &txn.session(id)?.record;
    let goes_on = GOES_ON.contains(&reason) || record.process.as_ref().is_none_or(|p| p.ended.is_some());
    if goes_on && record.turn.as_ref().is_some_and(|turn| !turn::is_silent(turn) && !turn.declared) {
        let note = Some(format!("the conversation ended: {}", first_words(reason, WORDS)));
        at.declare(txn, id, Declaration::new(State::Idle, note, Author::Hook))?;
    }
    turn::end(txn, id, None).map(|_| ())
}

/// A conversation begins: nothing runs in it, and a session that somebody is told about is told how to speak.
fn begins(txn: &mut Txn<'_>, id: SessionId, at: At<'_>, source: &str) -> Result<Reaction, Fault> {
    if source != "compact" {
        turn::end(txn, id, None)?;
    }
    txn.edit(id, |r| r.compacting = false)?;
    let session = txn.session(id)?;
    let wanted = match txn.config().hooks.brief {
        Brief::Never => false,
        Brief::Always => true,
        Brief::Watched => session.record.parent.is_some() || !session.watchers.is_empty(),
    };
    let heard = at.said.is_none() && at.told.event.takes == Takes::Context;
    let mut text = if wanted && heard { brief(txn, id)? } else { String::new() };
    if heard && let Some(host) = host::brief::of(txn.state(), id) {
        text = if text.is_empty() { host } else { format!("{text}\n\n{host}") };
    }
    Ok(at.say(id, Handed::of(text)))
}

/// Four lines: who you are, who is told, how to declare, how to write.
fn brief(txn: &Txn<'_>, id: SessionId) -> Result<String, Fault> {
    let session = txn.session(id)?;
    let label = &session.record.label;
    let named = |other: SessionId| {
        let record = &txn.state().session(other)?.record;
        Some(format!("\"{}\" ({})", record.label, other.short()))
    };
    let told: Vec<String> = session.watchers.iter().filter_map(|w| named(w.watcher)).collect();
    let told = match told.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} is told of every state you declare"),
        many => format!("; {} are told of every state you declare", many.join(", ")),
    };
    let parent = session.record.parent.and_then(named);
    let write = match parent {
        Some(_) => "To write to it: minder send @parent - <<'EOF'.",
        None => "To write to a session: minder send LABEL - <<'EOF'.",
    };
    Ok(format!(
        "[minder] You are \"{label}\" ({}){told}.\nBefore you end a turn: minder state asking|review|done|parked --note \"one line\".\n{write} Text that begins with [minder] is from\nother sessions, not from your user. More: minder help agent",
        id.short()
    ))
}

/// A prompt was taken: whose it is, what it shows to have been read, the turn it begins.
fn prompt(txn: &mut Txn<'_>, id: SessionId, at: At<'_>, prompt: &str) -> Result<(), Fault> {
    let At { files, told: Told { dialect, payload, .. }, said } = at;
    let given = txn.session(id)?.inbox.queue.iter().filter(|e| may_be_there(e));
    let shown: Vec<queue::Entry> = given.filter(|e| envelope::shows(prompt, e.id)).cloned().collect();
    let running = txn.session(id)?.record.turn.clone();
    let same = |t: RunningTurn| t.prompt_id.is_some() && t.prompt_id.as_ref() == payload.prompt_id.as_ref();
    let joins = running.is_some_and(|t| same(t) || !dialect.turn_ids);
    if !joins {
        let from_minder = |e: &&queue::Entry| e.brief.as_ref().is_none_or(|b| b.from == Party::Minder);
        let message = shown.iter().find(|e| !from_minder(e));
        let (by, cause) = match (message, shown.first()) {
            (Some(message), _) => (TurnOrigin::Message, Some(message.clone())),
            (None, Some(notice)) => (TurnOrigin::Notice, Some(notice.clone())),
            (None, None) if host::is_handback(txn.state(), id, prompt) => (TurnOrigin::Notice, None),
            (None, None) if prompt.starts_with("<task-notification>") => (TurnOrigin::Background, None),
            (None, None) => (TurnOrigin::Operator, None),
        };
        let note = match (by, &cause) {
            _ if !keeps_text(txn) => None,
            (TurnOrigin::Operator, _) => Some(first_words(prompt, WORDS)),
            (TurnOrigin::Message, Some(entry)) => {
                let dir = snapshot::party_dir(files.home(), Party::Session(id));
                let body = snapshot::message_of(&dir, entry).ok().flatten().map(|m| m.body);
                body.map(|b| first_words(&b, WORDS))
            }
            (TurnOrigin::Background, _) => Some("a background task ended".to_owned()),
            (TurnOrigin::Notice | TurnOrigin::Message, _) => None,
        };
        let note = note.filter(|n| !n.is_empty());
        if by == TurnOrigin::Operator {
            title(txn, id, note.as_deref())?;
        }
        let (prompt_id, cause) = (payload.prompt_id.clone(), cause.map(|e| e.id));
        let hops = hops_after(&shown);
        turn::begin(txn, id, turn::Beginning { prompt_id, by, cause, hops, note, said })?;
    }
    if joins && !dialect.turn_ids {
        turn::answered(txn, id, at.said, None)?; // nobody is asked while they write
    }
    for entry in shown {
        evident(txn, id, entry.id, Evidence::Prompt, envelope::points_at(prompt, entry.id))?;
    }
    Ok(())
}

/// A session that nobody named is called by the first words that its person said to it.
fn title(txn: &mut Txn<'_>, id: SessionId, words: Option<&str>) -> Result<(), Fault> {
    let Some(words) = words else { return Ok(()) };
    let before = txn.session(id)?.record.title.clone();
    if txn.session(id)?.record.title_from != TitleSource::None {
        return Ok(());
    }
    txn.edit(id, |r| {
        words.clone_into(&mut r.title);
        r.title_from = TitleSource::Prompt;
    })?;
    let line = Body::Record { what: "title".to_owned(), from: Some(before), to: Some(words.to_owned()) };
    txn.append(Party::Session(id), line).map(|_| ())
}

/// The end of the tool call that a dialog was about is the answer to the dialog. Calls of one tool run beside each
/// other: the end of another one answers nothing.
fn dialog_over(txn: &mut Txn<'_>, id: SessionId, at: At<'_>, call: &ToolCall) -> Result<(), Fault> {
    let record = &txn.session(id)?.record;
    let open = record.turn.as_ref().is_some_and(|t| {
        let other = t.dialog_input.zip(call.input).is_some_and(|(asked, done)| asked != done);
        let same = |asked: &str| asked == call.tool || asked.is_empty() || call.tool.is_empty();
        t.dialog.as_deref().is_some_and(same) && !other
    });
    if open { turn::answered(txn, id, at.said, None) } else { Ok(()) }
}

/// The turn would end. What waits keeps it going, at most once for each message; else it is over.
fn turn_end(
    txn: &mut Txn<'_>,
    id: SessionId,
    at: At<'_>,
    active: bool,
    text: String,
    tasks: &[Task],
) -> Result<Reaction, Fault> {
    // Without an id of its turn an end is told from one that was said twice by there being a turn.
    if !at.told.dialect.turn_ids && txn.session(id)?.record.turn.is_none() {
        return Ok(Reaction::of(id));
    }
    if !turn::ensure(txn, id, at.prompt_id(), at.said)? && (!active || txn.session(id)?.record.turn.is_some())
    {
        return Ok(Reaction::of(id)); // said twice
    }
    if !active {
        let handed = at.hand(txn, id, Boundary::TurnEnd)?;
        if !handed.ids.is_empty() {
            turn::answered(txn, id, at.said, None)?; // refused, or answered in a way of which no hook tells: the turn goes on
            return Ok(at.say(id, handed));
        }
    }
    let given = given_in_turn(txn, id)?;
    let turn = txn.session(id)?.record.turn.clone();
    let said = txn.session(id)?.record.state_seq;
    let (declared, by) = match &turn {
        Some(turn) => (turn.declared, turn.by),
        // It was over already, by what was known: what the session says for itself stands.
        None => (txn.session(id)?.record.state_by == Author::Agent, TurnOrigin::Operator),
    };
    if by != TurnOrigin::Notice && !declared {
        let waits = tasks.iter().filter(|t| t.runs()).find_map(Task::waits_for);
        let (to, note) = match waits {
            Some(whom) => (State::Parked, Some(format!("waits for {whom}"))),
            None => (State::Idle, end_note(txn, &text, tasks)),
        };
        let turn_end = to == State::Idle;
        let text = keeps_text(txn).then(|| text.clone());
        let end = Declaration { turn_end, text, ..Declaration::new(to, note, Author::Hook) };
        at.declare(txn, id, end)?;
    }
    let mut seq = Some(txn.session(id)?.record.state_seq).filter(|seq| declared || *seq != said);
    if declared && keeps_text(txn) && !text.trim().is_empty() {
        // The state that the session declared stands; whoever is told of it finds the last words beside it.
        let text = cut(&text, ANSWER_MAX).to_owned();
        let note = Body::Note { what: ANSWER_NOTE.to_owned(), text };
        seq = Some(txn.append(Party::Session(id), note)?);
    }
    turn::end(txn, id, at.prompt_id())?;
    let seen = turn.map(|t| t.messages).unwrap_or_default();
    let end = TurnEnd { at: at.said.unwrap_or_else(|| txn.now()), seq };
    turn::answer(txn, id, &seen, end)?;
    let answered = seen.into_iter().map(|m| m.id).chain(given).collect();
    Ok(Reaction { answered, answer: text, ..Reaction::of(id) })
}

/// What was given in the turn that runs and has no evidence yet: a transcript may be behind.
fn given_in_turn(txn: &Txn<'_>, id: SessionId) -> Result<Vec<MessageId>, Fault> {
    let session = txn.session(id)?;
    let Some(turn) = &session.record.turn else { return Ok(Vec::new()) };
    let given = session.inbox.queue.iter().filter(|e| e.receipt == Receipt::Handed && e.since >= turn.since);
    Ok(given.map(|e| e.id).collect())
}

/// The first line of the answer, with what still runs before it.
fn end_note(txn: &Txn<'_>, text: &str, tasks: &[Task]) -> Option<String> {
    let running: Vec<String> = tasks.iter().filter(|t| t.runs()).map(Task::name).collect();
    let first = if keeps_text(txn) { first_words(text, 200) } else { String::new() };
    let note = match (running.is_empty(), keeps_text(txn)) {
        (true, _) => first,
        (false, false) => "background".to_owned(),
        (false, true) => format!("background: {}; {first}", running.join(", ")),
    };
    let note = cut(note.trim_end_matches([' ', ';']), minder_proto::event::NOTE_MAX).to_owned();
    (!note.is_empty()).then_some(note)
}
