//! Following timelines from files alone: no socket, no daemon, no process, nothing asked of any session.
//!
//! `wait.rs` decides what a wait does next, `book.rs` how several waits of one caller share their positions,
//! `start.rs` where reading starts, `track.rs` what a line is: pure, with tables. Around them are the files:
//! `source.rs` (feed, bell, timelines), `keeper.rs` (the positions and their lock), `roster.rs` (who is followed),
//! `inbox.rs` (the caller's own messages). `waiting.rs` and `streaming.rs` put them together for `session wait` and
//! `watch stream`. Uses `proto` and the kernel; used by the commands of these names and by `send`, which notes the
//! place of its message.

mod announce;
mod bell;
pub mod book;
mod card;
pub mod feed;
mod filter;
mod hint;
mod inbox;
mod keeper;
mod lean;
mod merge;
mod news;
mod opening;
mod place;
mod render;
mod roster;
#[cfg(test)]
mod samples;
mod show;
mod signals;
mod source;
mod standing;
mod start;
mod streaming;
mod track;
mod wait;
mod waiting;
mod watch;

use std::io;
use std::time::Duration;

use minder_proto::caller::Identity;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;

pub use announce::{Announcement, MARK as ANNOUNCEMENT_MARK};
pub use signals::{Signal, Signals};
pub use streaming::{Announce, Since, StreamOptions, stream};
pub use waiting::{WaitOptions, wait};

/// Who follows, and where.
#[derive(Clone, Debug)]
pub struct Follower<'a> {
    /// The store.
    pub home: &'a Home,
    /// Who it is.
    pub identity: Identity,
    /// The harness of an agent's shell, by its variable.
    pub harness: Option<String>,
    /// `follow.backstop`.
    pub backstop: Duration,
}

/// One of the two things that a wait looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Moves of sessions.
    Sessions,
    /// Messages for the caller.
    Inbox,
}

/// Notes the place of a message that the caller sent to a session: a later follow of that session starts there,
/// unless the caller has a position in it already. `seq` is the message's line in the session's timeline.
pub fn note_sent(
    home: &Home,
    identity: &Identity,
    name: Option<&str>,
    target: SessionId,
    seq: u64,
) -> io::Result<()> {
    let keeper = keeper::Keeper::new(Some(place::Place::of(home, identity, name)));
    if keeper.look().follows.contains_key(&target) {
        return Ok(());
    }
    let mut held = keeper.hold();
    if held.book.note_sent(target, seq) { keeper.keep(held) } else { Ok(()) }
}
