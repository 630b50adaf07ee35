//! The files beside a timeline: `session.json`, `watchers.json`, `cursors.json`, and the store's own lists.
//! Fields that a newer build wrote are kept when a record is rewritten.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::account::{AccountHold, Circuit};
use crate::event::{Author, Class};
use crate::id::{MessageId, Party, SessionId};
use crate::stamp::Stamp;
use crate::state::{State, StateSet};

/// `session.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// The minder id.
    pub id: SessionId,
    /// Unique among open sessions.
    pub label: String,
    /// True if a person or agent chose the label, false if minder derived it.
    #[serde(default)]
    pub label_given: bool,
    /// For reading, never for matching.
    pub title: String,
    /// Where the title came from.
    #[serde(default)]
    pub title_from: TitleSource,
    /// The harness, if one is known: `claude`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The working directory it was born in.
    pub dir: String,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// True for a session its operator talks to.
    #[serde(default)]
    pub primary: bool,
    /// How messages get in.
    pub channel: Channel,
    /// Nobody chose the channel: the first hook of its conversation that is heard makes it `hook`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_hook: bool,
    /// The account whose limits it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// When it was registered.
    pub created: Stamp,
    /// True if a hook registered it, so that minder may close it by itself.
    #[serde(default)]
    pub adopted: bool,
    /// What it declared last.
    pub state: State,
    /// When.
    pub state_at: Stamp,
    /// Who declared it.
    pub state_by: Author,
    /// True if `state` is the end of a turn with nothing declared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn_end: bool,
    /// What was said with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The timeline's last line as of this writing; the timeline is the truth.
    pub last_seq: u64,
    /// The line that declared `state`; 1 is the arrival.
    #[serde(default)]
    pub state_seq: u64,
    /// Conversations of harnesses, oldest first.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// Actions decided for an older incarnation are dropped.
    #[serde(default)]
    pub incarnation: u64,
    /// The process that is this session now, or was last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The conversation is being compacted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacting: bool,
    /// Since when, or since when it was last; unknown where an older build wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting_since: Option<Stamp>,
    /// The turn that runs, as far as hooks told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<RunningTurn>,
    /// The harness's id of the turn that ended last: what a late hook says of it is no news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<String>,
    /// How that turn ended, where it came to an end of its own: evidence for what was given in it may come later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<TurnEnd>,
    /// Variables for turns that no caller starts, kept when it was registered: none of them is a secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of further variables that those turns need. Their values are kept nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// Failures of its turns in a row, where the last one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Circuit>,
    /// What a turn of it found its account to be held by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_hold: Option<AccountHold>,
    /// How minder started its process, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Fields of a newer build.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl SessionRecord {
    /// The account whose limits it shares: the one that was named, else its harness's.
    pub fn account(&self) -> &str {
        self.account.as_deref().or(self.harness.as_deref()).unwrap_or("command")
    }

    /// The conversation that is live now: the newest binding that has not ended.
    pub fn live_binding(&self) -> Option<&Binding> {
        self.bindings.iter().rev().find(|b| b.until.is_none())
    }
}

/// Where a title came from, weakest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleSource {
    /// Somebody gave it.
    Given,
    /// A given label.
    Label,
    /// The first words of the first prompt.
    Prompt,
    /// Nothing better than the derived label was known.
    #[default]
    None,
}

/// How messages get into a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Channel {
    /// None: `session inbox take` and `ack`.
    Mailbox,
    /// The harness asks at its own boundaries.
    Hook,
    /// A program of the user's, run once a message.
    Exec {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// What waits is given to a supervised turn of its harness, whose answer goes back.
    Headless {
        /// The program and its arguments, for a session without a harness; further arguments for one with.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        argv: Vec<String>,
    },
    /// Codex's own server, which holds the conversation.
    Codex {
        /// Its control socket, where that is not in Codex's own folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        socket: Option<String>,
    },
    /// OpenCode's own server, which holds the conversation.
    Opencode {
        /// Where it listens, on this machine: `http://127.0.0.1:4096`.
        url: String,
    },
    /// What waits is typed into a pane of tmux.
    Tmux {
        /// The socket of the tmux server.
        socket: String,
        /// The pane, by its id: `%3`.
        pane: String,
    },
}

impl Channel {
    /// How messages get into a session of a harness from the first hook on that is heard of it.
    pub fn of_hooks(harness: &str) -> Self {
        match harness {
            // Its hooks wake nobody, and its server does.
            "codex" => Self::Codex { socket: None },
            _ => Self::Hook,
        }
    }

    /// The word on the command line.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Mailbox => "mailbox",
            Self::Hook => "hook",
            Self::Exec { .. } => "exec",
            Self::Headless { .. } => "headless",
            Self::Codex { .. } => "codex",
            Self::Opencode { .. } => "opencode",
            Self::Tmux { .. } => "tmux",
        }
    }
}

/// One conversation of a harness that is, or was, this session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The harness.
    pub harness: String,
    /// Its own id of the conversation.
    pub id: String,
    /// When it was bound.
    pub since: Stamp,
    /// When it was replaced or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// `startup`, `resume`, `clear`, `compact`, `new`.
    pub why: String,
    /// Where the harness writes the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// A process by pid, start time and boot: what no later process can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub start: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
    /// Its controlling terminal, `pts/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty: Option<String>,
    /// When it was seen to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Stamp>,
}

impl Process {
    /// True if both are one process; what else is noted of it does not matter.
    pub fn is(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start) && self.boot == other.boot
    }
}

/// How minder started a session's process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// When it was last asked for.
    pub at: Stamp,
    /// The checksum of the token that the process was given in `MINDER_TOKEN`, beside `MINDER_SESSION`. The token itself
    /// is kept nowhere.
    pub token: String,
    /// Further arguments of the harness; without a harness the program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The socket of the tmux server that it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmux: Option<String>,
    /// Its pane there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// Nothing shows yet that it is up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// A hook of this process was heard: which conversation it has is known. That may be long after it is up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heard: bool,
}

/// A turn that hooks reported and that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningTurn {
    /// The harness's id of it, the same for all its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// When its prompt was taken.
    pub since: Stamp,
    /// Who started it.
    pub by: TurnOrigin,
    /// The message that started it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MessageId>,
    /// True once the session declared something in it.
    #[serde(default)]
    pub declared: bool,
    /// An open dialog: the name of the tool that it is about, or `question`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
    /// A checksum of that call's input: the end of another call of the same tool is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog_input: Option<u32>,
    /// When it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog_since: Option<Stamp>,
    /// Messages that were seen in this turn: its final text answers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<SeenMessage>,
    /// The session that the notice which started it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice_about: Option<SessionId>,
    /// Notices and messages between this turn and a person's act.
    #[serde(default)]
    pub hops: u8,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// When.
    pub at: Stamp,
    /// The state line with its text, where it authored one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl TurnEnd {
    /// What the receipt of a message that it answers gives as its reason.
    pub fn reason(&self) -> String {
        self.seq.map_or_else(|| "turn".to_owned(), |seq| format!("turn {seq}"))
    }
}

/// A message that was seen in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenMessage {
    /// The message.
    pub id: MessageId,
    /// Its line in the timeline.
    pub seq: u64,
}

/// What started a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnOrigin {
    /// The person typed.
    Operator,
    /// A message of a session or person.
    Message,
    /// A notice of minder's: such a turn authors no state.
    Notice,
    /// The harness's own background task.
    Background,
}

/// One entry of `watchers.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watcher {
    /// Who is told.
    pub watcher: SessionId,
    /// Why the relation exists.
    pub sources: Vec<WatchSource>,
    /// Which states are sent.
    pub states: StateSet,
    /// Since when.
    pub since: Stamp,
    /// Fields of a newer build.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// Why a watch exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchSource {
    /// Somebody asked for it.
    Manual,
    /// The watcher is the target's parent.
    Parent,
}

/// One line of `queue.jsonl`: a change of one message's receipt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueLine {
    /// When.
    pub at: Stamp,
    /// The message.
    pub id: MessageId,
    /// Its line in the timeline, where the body is.
    pub seq: u64,
    /// How far it got.
    pub r: crate::event::Receipt,
    /// Why, for `held`, `dead`, `returned`; what the evidence is, for `seen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which attempt, from 1; 0 before the first.
    #[serde(default)]
    pub attempt: u32,
    /// The channel that it went by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// On the `queued` line: what a scheduler needs to know without the body.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
}

/// What the ledger's `queued` line says of a message beside its id, so that neither a scheduler nor a list has to
/// read the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    /// When it may enter.
    pub class: Class,
    /// Who sent it.
    pub from: Party,
    /// For a watch's notice: the session it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<SessionId>,
    /// First `seq` of the timeline's segment in which its line stands.
    pub segment: u64,
    /// Where its line begins in that segment, in bytes.
    pub offset: u64,
    /// Not given after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Stamp>,
    /// Notices and messages between it and a person's act; none where an older build wrote it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// `cursors.json`, or a follower's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cursors {
    /// The form of this file, 1.
    #[serde(default = "one")]
    pub version: u32,
    /// How far each target was read.
    #[serde(default)]
    pub follows: BTreeMap<SessionId, Cursor>,
    /// Highest `seq` of the own timeline whose message a wait returned.
    #[serde(default)]
    pub told: u64,
}

fn one() -> u32 {
    1
}

/// How far one timeline was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The last line read; 0 for none.
    pub seq: u64,
    /// The byte after it in its segment.
    pub offset: u64,
    /// The first `seq` of that segment.
    pub segment: u64,
}

/// One line of `feed.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedLine {
    /// Rises by one a line.
    pub n: u64,
    /// The session whose timeline grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s: Option<SessionId>,
    /// Up to which line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<u64>,
    /// The daemon started: look at everything once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// One line of `closed.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedLine {
    /// The session.
    pub id: SessionId,
    /// Its last label.
    pub label: String,
    /// Its last title.
    pub title: String,
    /// The state it stood in.
    pub state: State,
    /// The closing note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who closed it.
    pub by: Author,
    /// When.
    pub at: Stamp,
    /// Its process, where that was left running: what a hook says of it is not heard until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// One line of `keys.jsonl`: an idempotency key and what it gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLine {
    /// Whose key, and the key: `<party>/<method>/<key>`.
    pub key: String,
    /// When it was used.
    pub at: Stamp,
    /// Checksum (CRC-32C) of the request, so that the same key with another content is refused.
    pub sum: u32,
    /// The result of the first use.
    pub result: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_newer_build_survive_a_rewrite() {
        let text = r#"{"id":"5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700","label":"api","title":"api","dir":"/","channel":{"kind":"mailbox"},
            "created":"2026-11-30T12:00:00.000Z","state":"idle","state_at":"2026-11-30T12:00:00.000Z","state_by":"minder","last_seq":1,
            "mood":{"of":"a newer build"}}"#;
        let record: SessionRecord = serde_json::from_str(text).unwrap();
        let again = serde_json::to_value(&record).unwrap();
        assert_eq!(again["mood"]["of"], "a newer build");
    }
}
