//! The one line that is left of a turn, in `turns/<seat>.jsonl`. It is built here and nowhere else, from fields that can
//! only hold a number, a boolean, a time or a word of a fixed list: no text of a prompt, a reply, an error or the
//! environment can reach it.

use serde::{Deserialize, Serialize};

use super::folder::{Found, Spec};
use super::names::{Class, Failure, Outcome, Source};
use crate::id::{SessionId, TurnId};
use crate::stamp::Stamp;

/// The form of the line.
pub const VERSION: u32 = 2;
/// Bytes at which a seat's file is rotated.
pub const ROTATE_AT: u64 = 8 * 1024 * 1024;
/// Rotated files that are kept: `<seat>.jsonl.1`, the newest, to `.8`.
pub const KEEP: u32 = 8;
/// Longest seat in characters.
const SEAT_MAX: usize = 64;
/// Longest adapter in characters.
const ADAPTER_MAX: usize = 32;
/// Longest word of a caller for what brought a turn about.
const EVENT_TYPE_MAX: usize = 40;

/// One line. The names of the fields on disk are those of the turn log's format, `durationMs` and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// [`VERSION`].
    pub v: u32,
    /// When it was settled.
    pub ts: Stamp,
    /// The seat, cleaned.
    pub seat: String,
    /// The adapter, cleaned.
    pub adapter: String,
    /// `supervised`.
    pub path: Path,
    /// The caller's word, where it is one.
    pub event_type: Option<String>,
    /// When it began.
    pub turn_start: Stamp,
    /// When the run ended.
    pub turn_end: Stamp,
    /// Milliseconds between them, suspend not counted.
    pub duration_ms: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// True for `delivered` and `silent`.
    pub ok: bool,
    /// What failed.
    pub failure: Option<Failure>,
    /// Who says so.
    pub failure_source: Option<Source>,
    /// What kind of failure.
    pub failure_class: Option<Class>,
    /// It was silent for the window at some time.
    pub stalled: bool,
    /// The ladder's cancel was reached.
    pub cancelled: bool,
    /// The ladder's kill was reached.
    pub killed: bool,
    /// The root's exit code.
    pub exit_code: Option<i32>,
    /// The signal that the root died of, `SIGKILL`.
    pub signal: Option<SignalName>,
    /// The root's end was seen.
    pub exit_observed: bool,
    /// A process of it lives on; none where that is not known.
    pub child_left_running: Option<bool>,
    /// How often the program was started.
    pub attempts: u32,
    /// The stall window.
    pub stall_ms: u64,
    /// The grace.
    pub cancel_grace_ms: u64,
    /// The wall clock: budget and backstop.
    pub timeout_ms: u64,
    /// The turn.
    pub turn: TurnId,
    /// The session.
    pub session: Option<SessionId>,
    /// The root's pid.
    pub pid: Option<i32>,
    /// First byte of output.
    pub first_output_ms: Option<u64>,
    /// Longest time without progress.
    pub longest_silence_ms: u64,
    /// Time that the machine was suspended.
    pub suspended_ms: u64,
    /// Bytes of output, kept or not.
    pub output_bytes: u64,
    /// Progress events of a typed stream.
    pub events: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Processes killed.
    pub killed_processes: u32,
    /// Of these, what lived after the root had ended.
    pub left_behind: u32,
    /// What could not be killed.
    pub survivors: u32,
    /// Restarts of the daemon that it lived through.
    pub adopted: u32,
    /// CPU time of the whole tree.
    pub cpu_ms: u64,
    /// Largest resident size of one process.
    pub max_rss_kb: u64,
    /// What the harness's typed result says was used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The answer came after the trigger.
    pub late: bool,
}

/// On which road a turn ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// Under a shim.
    Supervised,
}

/// What a turn used, only from the harness's typed result and once per message id; none where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens read by the model, cached ones apart.
    pub input_tokens: Option<u64>,
    /// Tokens written by the model.
    pub output_tokens: Option<u64>,
    /// Tokens read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// A signal by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SignalName(String);

impl SignalName {
    /// The name of a signal's number: `SIGKILL`, or `SIG34` for one without a name.
    pub fn of(number: i32) -> Self {
        const NAMES: [&str; 31] = [
            "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
            "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU",
            "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
        ];
        let index = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        match index.and_then(|i| NAMES.get(i)) {
            Some(name) => Self(format!("SIG{name}")),
            None => Self(format!("SIG{}", number.unsigned_abs())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SignalName {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        let ok = text.len() <= 16
            && text.strip_prefix("SIG").is_some_and(|t| !t.is_empty() && t.bytes().all(plain));
        if ok { Ok(Self(text)) } else { Err("not the name of a signal") }
    }
}

/// What an adapter and a caller made of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What became of it.
    pub outcome: Outcome,
    /// What failed.
    pub failure: Option<Failure>,
    /// What kind of failure.
    pub class: Option<Class>,
    /// What was used.
    pub usage: Usage,
}

impl Line {
    /// The line of a turn.
    pub fn of(spec: &Spec, found: &Found, verdict: &Verdict, adopted: u32, now: Stamp) -> Self {
        let failure = verdict.failure.filter(|_| verdict.outcome == Outcome::Failed);
        let started = found.started.unwrap_or(spec.asked);
        let lives =
            if found.survivors.is_empty() { found.exit_observed.then_some(false) } else { Some(true) };
        Self {
            v: VERSION,
            ts: now,
            seat: seat(&spec.seat),
            adapter: cleaned(&spec.adapter, ADAPTER_MAX),
            path: Path::Supervised,
            event_type: spec.event_type.as_deref().and_then(event_type),
            turn_start: started,
            turn_end: found.ended.unwrap_or(now),
            duration_ms: found.duration_ms,
            outcome: verdict.outcome,
            ok: verdict.outcome.is_ok(),
            failure,
            failure_source: failure.map(Failure::source),
            failure_class: failure.and(verdict.class),
            stalled: found.stalled,
            cancelled: found.cancelled,
            killed: found.killed,
            exit_code: found.exit_code,
            signal: found.signal.map(SignalName::of),
            exit_observed: found.exit_observed,
            child_left_running: if found.pid.is_none() { None } else { lives },
            attempts: found.attempts,
            stall_ms: spec.policy.stall_ms,
            cancel_grace_ms: spec.policy.grace_ms,
            timeout_ms: spec.policy.budget_ms.saturating_add(spec.policy.backstop_ms),
            turn: spec.turn,
            session: spec.session,
            pid: found.pid,
            first_output_ms: found.first_output_ms,
            longest_silence_ms: found.longest_silence_ms,
            suspended_ms: found.suspended_ms,
            output_bytes: found.stdout_bytes.saturating_add(found.stderr_bytes),
            events: found.events,
            tool_calls: found.tool_calls,
            killed_processes: found.killed_processes,
            left_behind: found.left_behind,
            survivors: u32::try_from(found.survivors.len()).unwrap_or(u32::MAX),
            adopted,
            cpu_ms: found.cpu_ms,
            max_rss_kb: found.max_rss_kb,
            usage: verdict.usage,
            late: found.late,
        }
    }
}

/// A seat as a file's name: every character outside `A-Za-z0-9_.-` is `_`, at most 64 characters, `unknown` where nothing
/// is left. A name that was changed gets 8 hexadecimal digits of a checksum, so that two seats never share a file.
pub fn seat(text: &str) -> String {
    let clean = cleaned(text, SEAT_MAX);
    // A name that begins with a dot would be hidden, or be a folder.
    if clean == text && !clean.starts_with('.') {
        return clean;
    }
    if text.is_empty() {
        return clean;
    }
    let kept: String = clean.trim_start_matches('.').chars().take(SEAT_MAX - 9).collect();
    format!("{kept}-{:08x}", crc32c::crc32c(text.as_bytes()))
}

/// A name of plain characters only; `unknown` where there is none.
pub fn cleaned(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let clean: String = text.chars().map(plain).take(most).collect();
    if clean.is_empty() { "unknown".to_owned() } else { clean }
}

/// A caller's word, if it is one: 1 to 40 of `A-Za-z0-9._-`.
pub fn event_type(text: &str) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    ((1..=EVENT_TYPE_MAX).contains(&text.len()) && text.bytes().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seats_never_share_a_file() {
        assert_eq!(seat("api-worker"), "api-worker");
        assert_eq!(seat(""), "unknown");
        let (a, b) = (seat("a/b"), seat("a:b"));
        assert!(a.starts_with("a_b-") && b.starts_with("a_b-") && a != b);
        let long = seat(&"x".repeat(65));
        assert_eq!(long.len(), 64);
        assert_ne!(long, seat(&"x".repeat(66)));
        assert!(!seat("..").starts_with('.'));
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(SignalName::of(9).as_str(), "SIGKILL");
        assert_eq!(SignalName::of(15).as_str(), "SIGTERM");
        assert_eq!(SignalName::of(40).as_str(), "SIG40");
        assert!(serde_json::from_str::<SignalName>("\"rm -rf\"").is_err());
    }

    #[test]
    fn a_callers_word_is_a_word_or_nothing() {
        assert_eq!(event_type("agent.ask").as_deref(), Some("agent.ask"));
        assert_eq!(event_type("the prompt, in words"), None);
        assert_eq!(event_type(""), None);
        assert_eq!(event_type(&"x".repeat(41)), None);
    }
}
