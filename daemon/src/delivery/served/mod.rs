//! What the channels to a server have in common that holds the conversation itself, as those of Codex and OpenCode do: a
//! message joins what runs there or starts a turn, its id goes with it, and what the conversation has under that id is the
//! evidence. Nothing is sent a second time before the conversation was read.
//!
//! `moves` decides, `attempt` is the loop in front of one conversation. How a server is asked is in the channel's own
//! folder: [`Server`] is what the loop needs of it.

use std::io;
use std::time::Duration;

use minder_proto::id::MessageId;
use minder_proto::record::SessionRecord;
use minder_proto::stamp::Stamp;

mod attempt;
mod moves;

pub use moves::{Conversation, in_doubt, is_wanted};

/// Why something asked was not done.
#[derive(Debug)]
pub enum Refusal {
    /// The server said no, and why.
    No(String),
    /// Nobody can say whether it was done.
    Lost,
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// How far a clock may have been set back since a message was accepted.
const SET_BACK: Duration = Duration::from_secs(600);

/// What was there before this is older than each of these messages: behind it none is looked for.
pub fn oldest(ids: &[MessageId]) -> Stamp {
    let made = ids.iter().map(|id| id.made().unwrap_or(Stamp::from_millis(0)));
    made.min().unwrap_or_else(Stamp::now).minus(SET_BACK)
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The message.
    pub id: MessageId,
    /// When it was first sent: the same for a server that knows what it is sent again.
    pub at: Stamp,
    /// What it reads like.
    pub text: &'a str,
}

/// A connection to a server.
pub trait Server: Sized + Send + Sync + 'static {
    /// The channel, in ledgers, and the harness.
    const CHANNEL: &'static str;
    /// What the evidence is called.
    const EVIDENCE: &'static str;

    /// Connects to the server of a session. The error is why its messages wait; none where somebody else says so.
    fn connect(
        record: &SessionRecord,
        conversation: &str,
    ) -> impl Future<Output = Result<Self, Option<String>>> + Send;

    /// How a conversation is.
    fn look(&mut self, conversation: &str) -> impl Future<Output = Result<Conversation, Refusal>> + Send;

    /// Which of these messages the conversation has. What cannot be read is a refusal: that it has none is said only of what was
    /// looked through as far back as [`oldest`].
    fn has(
        &mut self,
        conversation: &str,
        ids: &[MessageId],
    ) -> impl Future<Output = Result<Vec<MessageId>, Refusal>> + Send;

    /// Gives a message to the turn that runs, or starts one with it.
    fn give(
        &mut self,
        conversation: &str,
        turn: Option<&str>,
        sent: Sent<'_>,
    ) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Waits until something is said of a conversation. May be given up and called again.
    fn news(&mut self, conversation: &str) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// True if what was first sent then may be sent again as the same: the server would know it. After [`Self::has`].
    fn knows_again(&self, _first: Stamp) -> bool {
        false
    }
}
