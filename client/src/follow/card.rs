//! What a follower shows and asks of a session's record, and no more: a thousand records are read in a few
//! milliseconds.

use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use serde::Deserialize;

/// The part of `session.json` that a follower needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Card {
    /// The minder id.
    pub id: SessionId,
    /// For selecting.
    pub label: String,
    /// For reading.
    pub title: String,
    /// The session that started it.
    #[serde(default)]
    pub parent: Option<SessionId>,
    /// When it was registered.
    pub created: Stamp,
    /// How it stood when this was written.
    pub state: State,
    /// Since when.
    pub state_at: Stamp,
    /// True if that is the end of a turn with nothing declared.
    #[serde(default)]
    pub turn_end: bool,
    /// What was said with it.
    #[serde(default)]
    pub note: Option<String>,
    /// The timeline's last line when this was written.
    pub last_seq: u64,
}

/// An open session's card, where it can be read.
pub fn open(home: &Home, id: SessionId) -> Option<Card> {
    let bytes = minder_proto::whole::read(&home.session(id).join("session.json")).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The label and title of a session, open or closed; its short id where nothing else is known.
pub fn names(home: &Home, id: SessionId) -> (String, String) {
    let closed = || {
        let bytes = minder_proto::whole::read(&home.trashed(id).join("session.json")).ok()?;
        serde_json::from_slice::<Card>(&bytes).ok()
    };
    if let Some(card) = open(home, id).or_else(closed) {
        return (card.label, card.title);
    }
    match snapshot::tombstone(home, id) {
        Some(line) => (line.label, line.title),
        None => (id.short(), id.short()),
    }
}
