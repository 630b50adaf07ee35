//! `host.*`: the supervision host of a primary.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::host::episode::Stage;
use crate::id::{MessageId, SessionId};
use crate::stamp::Stamp;

/// `host.switch`: turns the host of a session on or off.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSwitch {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector; the calling session, or the only host there is, where absent.
    #[serde(default)]
    pub session: Option<String>,
    /// On, or off.
    pub enabled: bool,
}

/// Answer to `host.switch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSwitchAnswer {
    /// Which session.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// It is on now, or off.
    pub enabled: bool,
    /// It was so before.
    pub already: bool,
}

impl Call for HostSwitch {
    const METHOD: &'static str = "host.switch";
    type Answer = HostSwitchAnswer;
}

/// `host.status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStatus {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector; the calling session, or the only host there is, where absent.
    #[serde(default)]
    pub session: Option<String>,
}

/// Answer to `host.status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStatusAnswer {
    /// The primary.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// Its harness.
    pub harness: Option<String>,
    /// It supervises.
    pub enabled: bool,
    /// The generation of the primary's conversation and process.
    pub binding: u64,
    /// That process lives.
    pub owned: bool,
    /// Since when that is so.
    pub since: Option<Stamp>,
    /// A hook waits beside it.
    pub parked: bool,
    /// A turn of it runs.
    pub working: bool,
    /// Rows that nobody has.
    pub rows_free: usize,
    /// Rows that the primary was shown.
    pub rows_primary: usize,
    /// Rows that cannot be read.
    pub rows_broken: usize,
    /// When the first thing happened that waits.
    pub oldest: Option<Stamp>,
    /// When the next batch is due.
    pub due: Option<Stamp>,
    /// The newest hand-back.
    pub generation: u64,
    /// How far it got.
    pub stage: Stage,
    /// Since when.
    pub episode_since: Option<Stamp>,
    /// When its rows are told again.
    pub next_announce: Option<Stamp>,
    /// Rows that the primary was told of and has not acknowledged.
    pub owed: usize,
}

impl Call for HostStatus {
    const METHOD: &'static str = "host.status";
    type Answer = HostStatusAnswer;
}

/// `host.drain`: shows the primary what waits for it. What it printed of that is said with `host.drained`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDrain {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector; the calling session, or the only host there is, where absent.
    #[serde(default)]
    pub session: Option<String>,
}

/// Answer to `host.drain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostDrainAnswer {
    /// The primary.
    pub session: SessionId,
    /// A line for each wake.
    pub wakes: Vec<String>,
    /// News that is no wake: moves that nobody has to act on.
    pub notices: Vec<String>,
    /// The ids of that news.
    pub notice_ids: Vec<MessageId>,
    /// Supervised sessions that ask.
    pub questions: Vec<String>,
    /// States that somebody should act on and that no wake told of.
    pub unseen: Vec<String>,
    /// The lines of these, to be given back once they are printed.
    pub unseen_lines: Vec<(SessionId, u64)>,
    /// Rows that cannot be read: the first of them.
    pub broken: Vec<String>,
    /// How many those are in all.
    pub broken_count: usize,
    /// What an acknowledgement of all that is shown says; 0 where no row is.
    pub through: u64,
    /// And under which generation.
    pub generation: u64,
}

impl Call for HostDrain {
    const METHOD: &'static str = "host.drain";
    type Answer = HostDrainAnswer;
}

/// `host.drained`: what a drain showed beside its rows was printed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDrained {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The primary, by its id.
    #[serde(default)]
    pub session: Option<String>,
    /// News that was printed.
    #[serde(default)]
    pub notices: Vec<MessageId>,
    /// The lines of what was unseen and was printed.
    #[serde(default)]
    pub unseen: Vec<(SessionId, u64)>,
    /// Rows that cannot be read and were told of.
    #[serde(default)]
    pub broken: usize,
}

/// Answer to `host.drained`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostDrainedAnswer {}

impl Call for HostDrained {
    const METHOD: &'static str = "host.drained";
    type Answer = HostDrainedAnswer;
}

/// `host.ack`: consumes rows that a drain has shown.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAck {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector; the calling session, or the only host there is, where absent.
    #[serde(default)]
    pub session: Option<String>,
    /// Up to which row.
    pub through: u64,
    /// Under which generation it was shown.
    pub generation: u64,
}

/// Answer to `host.ack`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostAckAnswer {
    /// The rows that are gone.
    pub rows: Vec<u64>,
    /// A newer hand-back waits.
    pub newer: bool,
    /// Nothing was acknowledged although rows were shown: what would be right.
    pub instead: Option<(u64, u64)>,
}

impl Call for HostAck {
    const METHOD: &'static str = "host.ack";
    type Answer = HostAckAnswer;
}
