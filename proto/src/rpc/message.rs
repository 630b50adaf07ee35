//! `message.*`.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::event::{self, Class};
use crate::id::{MessageId, Party};
use crate::record::QueueLine;

/// `message.send`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session, or `@operator`; the sender of `reply_to` where absent.
    #[serde(default)]
    pub to: Option<String>,
    /// The text.
    pub body: String,
    /// When it may enter.
    #[serde(default)]
    pub class: Class,
    /// Idempotency key.
    #[serde(default)]
    pub key: Option<String>,
    /// The message this answers: an id or its end.
    #[serde(default)]
    pub reply_to: Option<String>,
    /// Not given after this many seconds.
    #[serde(default)]
    pub expires_s: Option<u64>,
}

/// Answer to `message.send`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendAnswer {
    /// The message.
    pub id: MessageId,
    /// Who gets it.
    pub to: Party,
    /// Its line in the recipient's timeline.
    pub seq: u64,
    /// How far it is.
    pub receipt: event::Receipt,
    /// Why it is held, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the key gave an earlier result.
    #[serde(default)]
    pub duplicate: bool,
}

impl Call for Send {
    const METHOD: &'static str = "message.send";
    type Answer = SendAnswer;
}

/// `message.receipt`: how far one message got; with `wait_s`, when the turn that it started is over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
    /// Answer only when the message is answered, dead, or cannot be answered now, at most this many seconds.
    #[serde(default)]
    pub wait_s: Option<u64>,
}

/// Why a waited-for receipt was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitVerdict {
    /// There is an answer.
    Answered,
    /// Not in time; the message is where its receipt says.
    Timeout,
    /// Somebody must answer a dialog or question first, or no way wakes this session.
    Blocked,
    /// The turn failed, or the message will never be given.
    Failed,
}

/// Answer to `message.receipt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceiptAnswer {
    /// The message.
    pub id: MessageId,
    /// Who sent it.
    pub from: Party,
    /// Who gets it.
    pub to: Party,
    /// Every change, oldest first.
    pub history: Vec<QueueLine>,
    /// How far it is.
    pub receipt: event::Receipt,
    /// Why, where there is a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For a call with `wait_s`: what it ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<WaitVerdict>,
    /// The answer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Call for Receipt {
    const METHOD: &'static str = "message.receipt";
    const LONG: bool = true;
    type Answer = ReceiptAnswer;
}

/// `message.take`: the oldest message of the caller's mailbox. It is given to nobody else until its `ack`, the
/// end of this connection, a restart of the daemon, or `mailbox.visibility`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// Idempotency key: the same key gives the same message again until it is acknowledged.
    #[serde(default)]
    pub key: Option<String>,
}

/// Answer to `message.take`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TakeAnswer {
    /// The message, if one waits.
    pub message: Option<Taken>,
    /// Messages that wait behind it.
    pub more: usize,
}

/// A message that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// The message.
    pub id: MessageId,
    /// Who the daemon knows the sender to be.
    pub from: Party,
    /// Its line in the timeline.
    pub seq: u64,
    /// What the receiver reads: the envelope and the body.
    pub text: String,
    /// The body alone; empty for a notice.
    pub body: String,
}

impl Call for Take {
    const METHOD: &'static str = "message.take";
    type Answer = TakeAnswer;
}

/// `message.ack`: the caller has read a message of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
    /// Idempotency key.
    #[serde(default)]
    pub key: Option<String>,
}

/// Answer to `message.ack`, `message.retry` and `message.drop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AckAnswer {
    /// The message.
    pub id: MessageId,
    /// How far it is now.
    pub receipt: event::Receipt,
}

impl Call for Ack {
    const METHOD: &'static str = "message.ack";
    type Answer = AckAnswer;
}

/// `message.retry`: try a delivery again at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
}

impl Call for Retry {
    const METHOD: &'static str = "message.retry";
    type Answer = AckAnswer;
}

/// `message.drop`: never give it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
}

impl Call for Drop {
    const METHOD: &'static str = "message.drop";
    type Answer = AckAnswer;
}
