//! `watch.*`.

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::id::SessionId;
use crate::record::Watcher;
use crate::state::{State, StateSet};

/// `watch.add`: the calling session watches every session that the selector matches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchAdd {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector.
    pub sessions: String,
    /// Which states are sent; all but `working` where absent.
    #[serde(default)]
    pub states: Option<StateSet>,
}

/// Answer to `watch.add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchAddAnswer {
    /// One entry per target.
    pub watched: Vec<Watched>,
}

/// One target of `watch.add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The target.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// Its title.
    pub title: String,
    /// The state it stands in.
    pub state: State,
    /// True if the relation was there already, as asked for.
    pub already: bool,
}

impl Call for WatchAdd {
    const METHOD: &'static str = "watch.add";
    type Answer = WatchAddAnswer;
}

/// `watch.cancel`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchCancel {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector.
    pub sessions: String,
}

/// Answer to `watch.cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchCancelAnswer {
    /// One entry per target.
    pub cancelled: Vec<Cancelled>,
}

/// One target of `watch.cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// The target.
    pub session: SessionId,
    /// Its label.
    pub label: String,
    /// Its title.
    pub title: String,
    /// False if there was no relation.
    pub was: bool,
    /// Queued notices about it that will not be given.
    pub notices: usize,
}

impl Call for WatchCancel {
    const METHOD: &'static str = "watch.cancel";
    type Answer = WatchCancelAnswer;
}

/// `watch.list`: the caller's relations, or who watches `of`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchList {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// A selector for one session.
    #[serde(default)]
    pub of: Option<String>,
}

/// Answer to `watch.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchListAnswer {
    /// One row per relation.
    pub rows: Vec<WatchRow>,
}

/// One relation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchRow {
    /// The session that is watched.
    pub target: SessionId,
    /// Its label.
    pub label: String,
    /// The relation.
    pub relation: Watcher,
}

impl Call for WatchList {
    const METHOD: &'static str = "watch.list";
    type Answer = WatchListAnswer;
}
