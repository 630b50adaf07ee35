//! Timeline lines: `{"seq":N,"at":"…","kind":…,…}`, one JSON object a line, `seq` from 1 per session.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, Party, SessionId, TurnId};
use crate::stamp::Stamp;
use crate::state::State;
use crate::turn::{Failure, Outcome};

/// Longest note of a declaration, in bytes.
pub const NOTE_MAX: usize = 4 * 1024;
/// Longest message body, in bytes (`message.max_bytes`).
pub const BODY_MAX: usize = 256 * 1024;
/// Bytes of a turn's last answer that a state line keeps.
pub const ANSWER_MAX: usize = 2_000;
/// What a note is called that holds the last answer of a turn whose state was declared before its end.
pub const ANSWER_NOTE: &str = "answer";

/// The `proof` of a state that a person declared with `--as`: its author is the session, its writer was not.
pub const PERSON_AS_SESSION: &str = "--as";

/// One line of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Position in this session's history, from 1.
    pub seq: u64,
    /// When the daemon accepted it.
    pub at: Stamp,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
}

/// What a timeline line says, by its `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Body {
    /// The arrival; always line 1.
    Created {
        /// The label at birth.
        label: String,
        /// The title at birth.
        title: String,
        /// The harness, if one is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        harness: Option<String>,
        /// The parent session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// The first state.
        state: State,
    },
    /// A declaration that changed something.
    State(Transition),
    /// A message for this session was accepted.
    Message(Box<Message>),
    /// A receipt that a reader of the history needs: `seen`, `answered`, `dead`, `returned`.
    Receipt {
        /// Whose receipt.
        id: MessageId,
        /// How far it got.
        receipt: Receipt,
        /// Why, for `dead` and `returned`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A conversation of a harness was bound to this session.
    Binding {
        /// The harness.
        harness: String,
        /// Its own id of the conversation.
        harness_id: String,
        /// `startup`, `resume`, `clear`, `compact`, `new`.
        why: String,
    },
    /// A field of the record changed.
    Record {
        /// Which: `label`, `title`, `parent`, `channel`.
        what: String,
        /// Its value before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Its value now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// A supervised turn of this session is over.
    Turn {
        /// The turn.
        id: TurnId,
        /// What became of it.
        outcome: Outcome,
        /// What failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// How long it ran, suspend not counted.
        duration_ms: u64,
    },
    /// The last line.
    Closed {
        /// Why or how.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Who closed it.
        by: Author,
    },
    /// Free text for the reader; `what` is `gap`, `torn`, `repaired`, [`ANSWER_NOTE`], or another word.
    Note {
        /// A word for programs.
        what: String,
        /// The text for people.
        text: String,
    },
}

/// A state line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
    /// What was said with it, at most [`NOTE_MAX`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who declared it.
    pub by: Author,
    /// The message that brought it about, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MessageId>,
    /// The turn it belongs to, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// A turn is over and nothing was declared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn_end: bool,
    /// The first [`ANSWER_MAX`] bytes of the turn's last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it was read from, where it was not declared; [`PERSON_AS_SESSION`] where the person declared it as the
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// An accepted message, as it stands in its recipient's timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its id; the order of ids is the order of acceptance.
    pub id: MessageId,
    /// Who the daemon knows the sender to be.
    pub from: Party,
    /// For a notice: what it is about. Its text is rendered when it is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// The text; empty for a notice that is a reference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// When it may enter.
    #[serde(default)]
    pub class: Class,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// The first message of its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MessageId>,
    /// The message that brought it about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MessageId>,
    /// Messages between this one and a person's act, at most 4 for what minder sends.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u8,
    /// Not given after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Stamp>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(n: &u8) -> bool {
    *n == 0
}

/// What a notice is about: a line of another session's timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The target.
    pub session: SessionId,
    /// The target's line, whose newest text is read when the notice is handed over.
    pub seq: u64,
    /// Which kind of notice.
    pub notice: NoticeKind,
    /// The state before, for `state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<State>,
    /// The state then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<State>,
}

/// Kinds of notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// The target's state moved.
    State,
    /// A watch was set up: the state the target stands in.
    Snapshot,
    /// The target was closed.
    Closed,
    /// A message of the recipient's own to `session` ended undelivered.
    DeadLetter,
    /// Somebody follows the recipient from now on.
    Follower,
}

impl NoticeKind {
    /// True if a watch sent it, so that cancelling the watch silences it.
    pub fn is_watch(self) -> bool {
        matches!(self, Self::State | Self::Snapshot | Self::Closed)
    }
}

/// When a message may enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// May enter the running turn.
    #[default]
    Now,
    /// After the running tool call.
    NextTool,
    /// At the end of the running turn.
    TurnEnd,
    /// Only when the session is idle.
    Idle,
    /// Shown with whatever is given next; never starts a turn.
    WithNext,
}

impl Class {
    /// Every class, in the order of the contract.
    pub const ALL: [Self; 5] = [Self::Now, Self::NextTool, Self::TurnEnd, Self::Idle, Self::WithNext];

    /// The word on disk and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::NextTool => "next-tool",
            Self::TurnEnd => "turn-end",
            Self::Idle => "idle",
            Self::WithNext => "with-next",
        }
    }
}

impl std::str::FromStr for Class {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|c| c.as_str() == text)
            .ok_or_else(|| "no such class (now, next-tool, turn-end, idle, with-next)".to_owned())
    }
}

/// Who declared a state or closed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// The session itself.
    Agent,
    /// A hook of its harness.
    Hook,
    /// The turn runner.
    Runner,
    /// The person.
    Operator,
    /// minder, from what the kernel said.
    Minder,
}

impl Author {
    /// The word on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Hook => "hook",
            Self::Runner => "runner",
            Self::Operator => "operator",
            Self::Minder => "minder",
        }
    }
}

/// How far one message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receipt {
    /// Accepted.
    Queued,
    /// Waits for a named reason.
    Held,
    /// The channel took it; no proof that it was read.
    Handed,
    /// There is evidence bound to its id.
    Seen,
    /// A reply, or the final text of the turn it started.
    Answered,
    /// Will never be given.
    Dead,
    /// The conversation it was given to was replaced while its sender waited.
    Returned,
}

impl Receipt {
    /// The word on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Held => "held",
            Self::Handed => "handed",
            Self::Seen => "seen",
            Self::Answered => "answered",
            Self::Dead => "dead",
            Self::Returned => "returned",
        }
    }

    /// True once nothing more will be tried for it.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Seen | Self::Answered | Self::Dead | Self::Returned)
    }
}

impl std::fmt::Display for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One complete line of a timeline as a reader meets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A line this build understands.
    Event(Box<Event>),
    /// A line of a newer build: skipped and narrated.
    Unknown {
        /// Its position.
        seq: u64,
        /// Its kind.
        kind: String,
    },
    /// Not JSON, or without a position: damage.
    Torn,
}

/// Lines count from 1, and never so far that a JSON reader would not tell two of them apart.
fn is_position(seq: u64) -> bool {
    (1..=1 << 53).contains(&seq)
}

impl Line {
    /// Reads one line, without its newline.
    pub fn parse(bytes: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Header {
            seq: u64,
            kind: String,
        }
        match serde_json::from_slice::<Event>(bytes) {
            Ok(event) if is_position(event.seq) => return Self::Event(Box::new(event)),
            Ok(_) => return Self::Torn,
            Err(_) => {}
        }
        match serde_json::from_slice::<Header>(bytes) {
            Ok(Header { seq, kind }) if is_position(seq) => Self::Unknown { seq, kind },
            _ => Self::Torn,
        }
    }

    /// The position, where the line has one.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Event(event) => Some(event.seq),
            Self::Unknown { seq, .. } => Some(*seq),
            Self::Torn => None,
        }
    }
}

/// The longest prefix of `text` that has at most `max` bytes and ends at a whole character.
pub fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_line_has_the_documented_form() {
        let event = Event {
            seq: 7,
            at: Stamp::from_millis(1_796_040_000_120),
            body: Body::State(Transition {
                from: State::Working,
                to: State::ClosePending,
                note: Some("PR \"12\"".into()),
                by: Author::Agent,
                cause: None,
                turn: None,
                turn_end: false,
                text: None,
                proof: None,
            }),
        };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            format!(
                r#"{{"seq":7,"at":"{}","kind":"state","from":"working","to":"close-pending","note":"PR \"12\"","by":"agent"}}"#,
                event.at
            )
        );
        assert_eq!(Line::parse(line.as_bytes()), Line::Event(Box::new(event)));
    }

    #[test]
    fn strange_lines_are_told_apart() {
        assert_eq!(
            Line::parse(br#"{"seq":3,"at":"2026-11-30T00:00:00Z","kind":"hologram","x":1}"#),
            Line::Unknown { seq: 3, kind: "hologram".into() }
        );
        for torn in [&b""[..], b"{\"seq\":3", b"\0\0\0", b"[]", b"\xff\xfe"] {
            assert_eq!(Line::parse(torn), Line::Torn);
        }
    }

    #[test]
    fn cuts_end_at_characters() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("añb", 3), "añ");
        assert_eq!(cut("ab", 9), "ab");
    }
}
