//! `turn.*`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Call;
use crate::caller::Caller;
use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;
use crate::turn::folder::{Survivor, Trace};
use crate::turn::line::{SignalName, Usage};
use crate::turn::names::{Class, Failure, Outcome, Source, Trigger};
use crate::turn::policy::{Asked, Policy};

/// `turn.run`: a turn, answered when it is settled. `turn.start` takes the same and answers when the process runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRun {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// The turn's id, made by the caller, who can ask for it again when the connection is lost; one is made where
    /// absent. The same id twice is the same turn.
    #[serde(default)]
    pub turn: Option<TurnId>,
    /// Whose log gets the line; the session's label, else the program's name.
    #[serde(default)]
    pub seat: Option<String>,
    /// A selector for the session whose turn it is.
    #[serde(default)]
    pub session: Option<String>,
    /// The adapter; `command` where a program is given.
    #[serde(default)]
    pub adapter: Option<String>,
    /// A word for what brought it about.
    #[serde(default)]
    pub event_type: Option<String>,
    /// Windows.
    #[serde(default)]
    pub policy: Asked,
    /// Who names the outcome of a run that succeeds.
    #[serde(default)]
    pub hold: Hold,
    /// A reply of `command` that is empty needs no `turn.finish`: where the program ended well and wrote nothing at all, the
    /// daemon names the outcome `silent` before it answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_is_silent: bool,
    /// The prompt.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The program and its arguments, for `command`; further arguments for other adapters.
    #[serde(default)]
    pub argv: Vec<String>,
    /// The working directory; the session's where absent.
    #[serde(default)]
    pub dir: Option<String>,
    /// The caller's environment: the daemon takes from it what a child may have.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Who names the outcome of a run that succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The daemon, when it answers.
    #[default]
    No,
    /// The caller, by `turn.finish` on this connection or another; the end of this connection without it is
    /// `reply_lost`.
    Connection,
    /// The caller, by `turn.finish` within `turn.finish_timeout`.
    Id,
}

/// Answer to `turn.run` and `turn.get`: a turn that is settled, or one that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnAnswer {
    /// The turn.
    pub turn: TurnId,
    /// Whose log gets the line.
    pub seat: String,
    /// The adapter.
    pub adapter: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When it was asked for.
    pub asked: Stamp,
    /// The windows in force.
    pub policy: Policy,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// What became of it; absent while a success is held for its `finish`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Who says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// What set the ladder off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// One line of what is known of a failure, for people; from the harness's own words where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The root's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that the root died of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalName>,
    /// That signal's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_number: Option<i32>,
    /// The kill rung was reached.
    pub killed: bool,
    /// The answer came after the trigger.
    pub late: bool,
    /// From start to settling.
    pub duration_ms: u64,
    /// The final text of an adapter that has one, at most 1 MiB of it. For `command`: absent, the reply is the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes of standard output, kept or not.
    #[serde(default)]
    pub stdout_bytes: u64,
    /// The kept standard output, a file of the store that is there until the turn's line is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The kept end of standard error, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The harness's own id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// What was used.
    #[serde(default)]
    pub usage: Usage,
    /// What happened when.
    #[serde(default)]
    pub trace: Vec<Trace>,
    /// What could not be killed.
    #[serde(default)]
    pub survivors: Vec<Survivor>,
    /// Processes that lived after the root had ended, and were killed.
    #[serde(default)]
    pub left_behind: u32,
}

impl Call for TurnRun {
    const METHOD: &'static str = "turn.run";
    const LONG: bool = true;
    type Answer = TurnAnswer;
}

/// `turn.start`: as `turn.run`, answered when the process runs (or could not be started).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnStart(pub TurnRun);

impl Call for TurnStart {
    const METHOD: &'static str = "turn.start";
    type Answer = TurnAnswer;
}

/// `turn.get`: one turn that runs, or is settled and still has its folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnGet {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
    /// Answer only when it is settled. A turn that is held for its connection is held for this one from now on.
    #[serde(default)]
    pub wait: bool,
}

impl Call for TurnGet {
    const METHOD: &'static str = "turn.get";
    const LONG: bool = true;
    type Answer = TurnAnswer;
}

/// `turn.list`: the turns that run, and those that are held for their `finish`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnList {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
}

/// Answer to `turn.list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnListAnswer {
    /// Oldest first.
    pub turns: Vec<TurnRow>,
}

/// A turn in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRow {
    /// The turn.
    pub turn: TurnId,
    /// Whose log gets the line.
    pub seat: String,
    /// The adapter.
    pub adapter: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When it was asked for.
    pub asked: Stamp,
    /// The root's pid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// How long it has run.
    pub age_ms: u64,
    /// Since the last progress.
    pub silence_ms: u64,
    /// The window that is nearest: milliseconds that are left, and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// `stall`, `budget`, `wall_clock`, `grace`, or `finish` for a turn that is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Open tool calls.
    pub tools: u32,
    /// True once it is settled and waits for its `finish`.
    pub held: bool,
    /// Restarts of the daemon that it lived through.
    pub adopted: u32,
}

impl Call for TurnList {
    const METHOD: &'static str = "turn.list";
    type Answer = TurnListAnswer;
}

/// `turn.cancel`: the ladder; said again in its grace, the kill.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnCancel {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
}

/// Answer to `turn.cancel` and `turn.finish`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnDone {
    /// The turn.
    pub turn: TurnId,
    /// Its outcome, where it has one by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// For a finish: false where an earlier one counted.
    pub counted: bool,
}

impl Call for TurnCancel {
    const METHOD: &'static str = "turn.cancel";
    type Answer = TurnDone;
}

/// `turn.finish`: the outcome of a turn that is held. The first counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnFinish {
    /// Who calls.
    #[serde(default)]
    pub caller: Option<Caller>,
    /// An id or its end.
    pub id: String,
    /// The outcome; a word that is none is recorded as `unknown`.
    pub outcome: String,
}

impl Call for TurnFinish {
    const METHOD: &'static str = "turn.finish";
    type Answer = TurnDone;
}
