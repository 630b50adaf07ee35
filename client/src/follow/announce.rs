//! The message by which a named session learns that somebody streams it: who, and how to reply. It goes by the
//! ordinary send and never starts a turn.

use minder_proto::caller::Identity;
use minder_proto::event::Body;
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use minder_proto::snapshot;
use minder_proto::text::one_line;
use minder_proto::timeline;

use super::card;

/// What the keys of these messages begin with.
pub const MARK: &str = "follower:";

/// One such message, to be sent with class `with-next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Who is told.
    pub target: SessionId,
    /// The text.
    pub body: String,
    /// Its key: the same process tells a session only once.
    pub key: String,
}

impl Announcement {
    /// What `target` is told of a follower.
    pub fn new(home: &Home, follower: &Identity, target: SessionId) -> Self {
        let (who, address) = match follower {
            Identity::Session { id } => {
                let title = one_line(&card::names(home, *id).1).replace('"', "'");
                (format!("session \"{title}\" ({})", id.short()), id.short())
            }
            Identity::Unregistered { harness, .. } => {
                (format!("a {harness} conversation"), "@operator".to_owned())
            }
            Identity::Operator => ("your user".to_owned(), "@operator".to_owned()),
        };
        let body = format!(
            "From now on {who} follows what you declare. No answer is needed; to write: minder send {address} - <<'EOF'"
        );
        let process = std::process::id();
        Self { target, body, key: format!("{}{process}:{target}", prefix(follower)) }
    }
}

/// True if an earlier one of this follower still waits for `target`.
pub fn is_unread(home: &Home, follower: &Identity, target: SessionId) -> bool {
    let dir = home.session(target);
    let prefix = prefix(follower);
    let Ok(queue) = snapshot::queue(&dir) else { return false };
    queue.iter().any(|entry| {
        let event = timeline::find(&dir, entry.seq).ok().flatten();
        event.is_some_and(|e| match e.body {
            Body::Message(m) => m.key.is_some_and(|k| k.starts_with(&prefix)),
            _ => false,
        })
    })
}

fn prefix(follower: &Identity) -> String {
    match follower {
        Identity::Session { id } => format!("{MARK}{id}:"),
        Identity::Unregistered { harness, harness_id } => format!("{MARK}{harness}/{harness_id}:"),
        Identity::Operator => format!("{MARK}operator:"),
    }
}
