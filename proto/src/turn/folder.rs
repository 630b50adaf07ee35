//! The files of one turn in `turns/run/<turn id>/`, from its start until its line is written: what the daemon asks of a
//! shim (`spec.json`), what the shim shows while it runs (`progress`) and what it found (`result.json`). The
//! environment is in none of them: the shim has it from its parent, and gives it on.

use serde::{Deserialize, Serialize};

use super::names::{Action, TraceKind, Trigger};
use super::policy::Policy;
use super::stream::Rules;
use crate::id::{MessageId, SessionId, TurnId};
use crate::stamp::Stamp;

/// What the shim is to do, from the daemon.
pub const SPEC: &str = "spec.json";
/// Held with `flock` by the shim for its life.
pub const LOCK: &str = "lock";
/// Where the shim listens.
pub const SOCKET: &str = "socket";
/// The prompt, where it goes in by standard input.
pub const PROMPT: &str = "prompt";
/// The beginning of standard output, at most `output_max` bytes.
pub const STDOUT: &str = "stdout";
/// The last [`TAIL_MAX`] bytes of standard output, where it was longer than is kept.
pub const STDOUT_TAIL: &str = "stdout.tail";
/// The last [`TAIL_MAX`] bytes of standard error.
pub const STDERR: &str = "stderr";
/// One [`Progress`] line of [`PROGRESS_LEN`] bytes, written anew in place.
pub const PROGRESS: &str = "progress";
/// What the shim found; there once the turn is settled.
pub const RESULT: &str = "result.json";
/// A byte for each daemon that adopted the turn; the daemon's.
pub const ADOPTED: &str = "adopted";
/// The word of an outcome that somebody was told counts, where the turn's line could not be written soon; the daemon's.
pub const OUTCOME: &str = "outcome";
/// There once the turn's line is written and nothing waits for the turn any more; the daemon's.
pub const WRITTEN: &str = "written";

/// Bytes of a tail.
pub const TAIL_MAX: usize = 256 * 1024;
/// Bytes of the progress line with its newline, filled up with blanks.
pub const PROGRESS_LEN: usize = 320;

/// `spec.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The turn.
    pub turn: TurnId,
    /// Whose log gets the line.
    pub seat: String,
    /// The adapter.
    pub adapter: String,
    /// The session whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The session that asked for it, where one did: it may cancel and finish it, as the person may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SessionId>,
    /// The caller's word for what brought the turn about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Who names the outcome.
    pub purpose: Purpose,
    /// A reply that is empty is a silence, and nobody else has to say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_is_silent: bool,
    /// When it was asked for.
    pub asked: Stamp,
    /// The boot in which it was asked for.
    pub boot: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What is run instead, once, where the first run failed before any progress and its standard error has one of these
    /// texts: a conversation that the harness does not know any more is begun anew. What the first run wrote is dropped,
    /// a typed result with it (Claude Code says on both streams that it does not know the conversation).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heal: Option<Heal>,
    /// The working directory.
    pub dir: String,
    /// Standard input is the file `prompt`; else `/dev/null`.
    #[serde(default)]
    pub prompt: bool,
    /// Windows and bounds.
    pub policy: Policy,
    /// The rules of a typed stream; without them every byte of standard output is progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Rules>,
    /// Standard error is progress too.
    #[serde(default)]
    pub stderr_is_progress: bool,
    /// The signal to the root that asks it to end, where the adapter names one. Not sent where there is no subreaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_signal: Option<i32>,
    /// The signal to the root at the budget.
    pub budget_signal: i32,
    /// Bounds of the child.
    #[serde(default)]
    pub limits: Limits,
}

/// Who names the outcome of a run that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "for", deny_unknown_fields)]
pub enum Purpose {
    /// The daemon, when it answers its caller.
    #[default]
    Caller,
    /// A caller, by `turn.finish`; the end of its connection without one is `reply_lost`.
    Connection,
    /// A caller, by `turn.finish`, within `turn.finish_timeout`.
    Held,
    /// A headless session's queue: these messages are the prompt.
    Queue {
        /// The messages.
        messages: Vec<MessageId>,
    },
}

/// Another way to run the same prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heal {
    /// Any of these in standard error.
    pub texts: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
}

/// What a child may use; none where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Niceness.
    pub nice: Option<i32>,
    /// `oom_score_adj`.
    pub oom_score_adj: Option<i32>,
    /// Resource limits by name: `cpu` (seconds), `as` and `fsize` (bytes), `nofile`, `nproc` (counts), `core` (bytes).
    pub rlimits: std::collections::BTreeMap<String, u64>,
    /// The soft limit on open files that the daemon found at its start, and gives back.
    pub files: Option<u64>,
}

/// The `progress` line. Times are milliseconds since the turn's start on the clock that stands still in suspend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The root's pid.
    pub pid: Option<i32>,
    /// When the line was written.
    pub at_ms: u64,
    /// The last progress.
    pub progress_ms: u64,
    /// Bytes of standard output so far.
    pub stdout: u64,
    /// Bytes of standard error so far.
    pub stderr: u64,
    /// Open tool calls.
    pub tools: u32,
    /// Milliseconds of the boot's running clock (CLOCK_MONOTONIC) at the turn's start.
    pub start_mono_ms: u64,
    /// What set the ladder off, if anything.
    pub trigger: Option<Trigger>,
}

/// `result.json`: what the shim saw. It names no outcome: the adapter does, from this and the output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Why no process ran, if so.
    pub unspawned: Option<Unspawned>,
    /// The root's pid.
    pub pid: Option<i32>,
    /// Calendar time of the start.
    pub started: Option<Stamp>,
    /// Calendar time of the end.
    pub ended: Option<Stamp>,
    /// From start to settling.
    pub duration_ms: u64,
    /// What ended it, if not itself.
    pub trigger: Option<Trigger>,
    /// The root ended well, or a typed result came, after the trigger and before the kill.
    pub late: bool,
    /// The root's exit code.
    pub exit_code: Option<i32>,
    /// The signal that the root died of, by number.
    pub signal: Option<i32>,
    /// The root's end was seen.
    pub exit_observed: bool,
    /// A typed result was seen on the stream.
    pub result_seen: bool,
    /// Stalled at some time.
    pub stalled: bool,
    /// The cancel rung was reached.
    pub cancelled: bool,
    /// The kill rung was reached.
    pub killed: bool,
    /// How often the program was started.
    pub attempts: u32,
    /// What happened when.
    pub trace: Vec<Trace>,
    /// First byte of standard output.
    pub first_output_ms: Option<u64>,
    /// Longest time without progress.
    pub longest_silence_ms: u64,
    /// Time that the machine was suspended.
    pub suspended_ms: u64,
    /// Bytes of standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes of standard error, kept or not.
    pub stderr_bytes: u64,
    /// Lines of a typed stream that were progress.
    pub events: u64,
    /// Tool calls that began.
    pub tool_calls: u64,
    /// Processes that were killed, the root included.
    pub killed_processes: u32,
    /// Of these, descendants that lived after the root had ended.
    pub left_behind: u32,
    /// What could not be killed.
    pub survivors: Vec<Survivor>,
    /// CPU time of the whole tree.
    pub cpu_ms: u64,
    /// Largest resident size of one process of it.
    pub max_rss_kb: u64,
    /// The boot in which it ran.
    pub boot: String,
}

/// Why no process ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unspawned {
    /// Which of the four names it is.
    pub failure: super::names::Failure,
    /// The system's error number, where there is one.
    pub errno: Option<i32>,
}

/// One entry of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// What.
    pub kind: TraceKind,
    /// Milliseconds since the turn's start.
    pub at_ms: u64,
    /// Which rung, for a recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

/// A process that could not be killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its pid.
    pub pid: i32,
    /// Its start time in clock ticks since boot.
    pub start: u64,
    /// The name of its program, no arguments.
    pub command: String,
}

/// A line from the daemon to a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do", deny_unknown_fields)]
pub enum Order {
    /// End the turn by the ladder; said again in the grace, at once.
    End {
        /// Why.
        why: Trigger,
    },
    /// The turn's line is written, so that nothing more of a settled turn has to be there after a loss of power; the shim
    /// need not wait for the disk, and goes.
    Leave {
        /// The folder is kept: the shim waits for the disk first.
        keep: bool,
    },
}

/// A line from a shim to the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum News {
    /// The process runs.
    Spawned {
        /// Its pid.
        pid: i32,
    },
    /// The result is in its place.
    Settled {
        /// What stands in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<Box<Found>>,
    },
}
