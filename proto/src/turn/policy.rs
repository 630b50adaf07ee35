//! The windows of a turn and where each of them came from: an option, the session, a variable, the file, or the
//! default, most specific first.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config;

/// Every adapter.
pub const ADAPTERS: [&str; 7] = ["command", "claude", "codex", "opencode", "pi", "gemini", "cursor"];

/// Longest window, in milliseconds: what a timer of the field's usual kind can hold.
pub const WINDOW_MAX_MS: u64 = 2_147_483_647;
/// Shortest budget, in milliseconds.
pub const BUDGET_MIN_MS: u64 = 1_000;
/// Adapter names whose stall window is on without being asked for, with the window in milliseconds. Codex writes an event per
/// item: of 9,703 turns on one host the longest silence was 162 s.
const STALL_DEFAULTS_MS: [(&str, u64); 1] = [("codex", 15 * 60_000)];

/// The windows and bounds of one turn; milliseconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// What the adapter's own time-out would be.
    pub budget_ms: u64,
    /// Silence after which a turn is stalled; 0 is off.
    pub stall_ms: u64,
    /// The same while a tool call is open; 0 is off.
    pub stall_in_tool_ms: u64,
    /// From the cancel to the kill.
    pub grace_ms: u64,
    /// From the budget to the wall clock.
    pub backstop_ms: u64,
    /// How long an exit is waited for after a failure.
    pub exit_wait_ms: u64,
    /// Bytes of standard output that are kept.
    pub output_max: u64,
    /// More output than that is a failure.
    #[serde(default)]
    pub overflow_fails: bool,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An option of the command line.
    Flag(String),
    /// The session's own.
    Session,
    /// A variable.
    Variable(String),
    /// A key of the file.
    File(String),
    /// Nothing was said.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::Session => f.write_str("the session"),
            Self::File(key) => write!(f, "{key} in the file"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sourced {
    /// Milliseconds or bytes.
    pub value: u64,
    /// Where from.
    pub from: Origin,
}

/// What options say; none where they say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    /// `--timeout`, milliseconds.
    pub timeout_ms: Option<u64>,
    /// `--stall`
    pub stall_ms: Option<u64>,
    /// `--grace`
    pub grace_ms: Option<u64>,
    /// `--backstop`
    pub backstop_ms: Option<u64>,
}

/// The policy in force with the source of every value, and what had to be ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The values.
    pub policy: Policy,
    /// Each by its name, in the order in which they are shown.
    pub sources: Vec<(&'static str, Sourced)>,
    /// One line for each variable that cannot be used.
    pub warnings: Vec<String>,
}

/// Decides the windows of one adapter's turn. `env` are the caller's variables; `session` is the session's own budget
/// where it has one, in milliseconds.
pub fn resolve(
    adapter: &str,
    asked: Asked,
    session: Option<u64>,
    env: impl Fn(&str) -> Option<String>,
    file: &config::Turn,
) -> Resolved {
    let mut warnings = Vec::new();
    let mut variable = |name: &str| {
        let read = read_variable(name, &env(name)?);
        read.map_err(|warning| warnings.push(warning)).ok().map(|value| (value, name.to_owned()))
    };
    let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let set = |span: Option<config::Span>, key: &str| span.map(|s| (ms(s.0), Origin::File(key.to_owned())));
    let flag = |value: Option<u64>, name: &str| value.map(|v| (v, Origin::Flag(name.to_owned())));
    let var = |found: Option<(u64, String)>| found.map(|(v, name)| (v, Origin::Variable(name)));
    let or = |default: u64| (default, Origin::Default);
    let made = |(value, from): (u64, Origin)| Sourced { value: value.min(WINDOW_MAX_MS), from };

    let mut budget = made(
        flag(asked.timeout_ms, "--timeout")
            .or(session.map(|v| (v, Origin::Session)))
            .or_else(|| var(variable("MINDER_TURN_TIMEOUT_MS")))
            .or_else(|| set(file.timeout, "turn.timeout"))
            .unwrap_or(or(45 * 60_000)),
    );
    budget.value = budget.value.max(BUDGET_MIN_MS);
    let own = format!("MINDER_STALL_MS_{}", variable_part(adapter));
    let default_stall = STALL_DEFAULTS_MS.iter().find(|(name, _)| *name == adapter).map_or(0, |(_, ms)| *ms);
    let stall = made(
        flag(asked.stall_ms, "--stall")
            .or_else(|| var(variable(&own)))
            .or_else(|| var(variable("MINDER_STALL_MS")))
            .or_else(|| set(file.stall.get(adapter).copied(), &format!("turn.stall.{adapter}")))
            .unwrap_or(or(default_stall)),
    );
    let grace = made(
        flag(asked.grace_ms, "--grace")
            .or_else(|| var(variable("MINDER_CANCEL_GRACE_MS")))
            .or_else(|| set(file.cancel_grace, "turn.cancel_grace"))
            .unwrap_or(or(15_000)),
    );
    let backstop = made(
        flag(asked.backstop_ms, "--backstop")
            .or_else(|| var(variable("MINDER_WALL_BACKSTOP_MS")))
            .or_else(|| set(file.wall_backstop, "turn.wall_backstop"))
            .unwrap_or(or(60_000)),
    );
    let in_tool = made(set(file.stall_in_tool, "turn.stall_in_tool").unwrap_or(or(0)));
    let exit_wait = made(set(file.exit_wait, "turn.exit_wait").unwrap_or(or(3_000)));
    let output = match file.output_max {
        Some(bytes) => Sourced { value: bytes, from: Origin::File("turn.output_max".to_owned()) },
        None => Sourced { value: 8 * 1024 * 1024, from: Origin::Default },
    };
    let policy = Policy {
        budget_ms: budget.value,
        stall_ms: stall.value,
        stall_in_tool_ms: in_tool.value,
        grace_ms: grace.value,
        backstop_ms: backstop.value,
        exit_wait_ms: exit_wait.value,
        output_max: output.value,
        overflow_fails: file.overflow == config::Overflow::Fail,
    };
    let sources = vec![
        ("timeout", budget),
        ("stall", stall),
        ("stall in a tool", in_tool),
        ("cancel grace", grace),
        ("wall backstop", backstop),
        ("exit wait", exit_wait),
        ("output kept", output),
    ];
    Resolved { policy, sources, warnings }
}

/// A plain decimal number of milliseconds, blanks around it allowed.
fn read_variable(name: &str, text: &str) -> Result<u64, String> {
    let digits = text.trim();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("{name} is ignored: a whole number of milliseconds is wanted"));
    }
    // More digits than a number holds are still a number, and clamped like one.
    Ok(digits.parse().unwrap_or(u64::MAX).min(WINDOW_MAX_MS))
}

/// An adapter's name as part of a variable's: upper case, every other character `_`.
fn variable_part(adapter: &str) -> String {
    adapter.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_wins_and_says_so() {
        let file =
            config::Turn { cancel_grace: Some(config::Span(Duration::from_secs(4))), ..Default::default() };
        let env = |name: &str| match name {
            "MINDER_STALL_MS_MY_BOT" => Some(" 5 ".to_owned()),
            "MINDER_STALL_MS" => Some("7".to_owned()),
            _ => None,
        };
        let asked = Asked { timeout_ms: Some(9_000), ..Asked::default() };
        let resolved = resolve("my-bot", asked, Some(60_000), env, &file);
        let policy = resolved.policy;
        assert_eq!((policy.budget_ms, policy.stall_ms, policy.grace_ms), (9_000, 5, 4_000));
        assert_eq!(resolved.sources[1].1.from, Origin::Variable("MINDER_STALL_MS_MY_BOT".to_owned()));
        assert_eq!(resolved.warnings, Vec::<String>::new());
        assert_eq!(resolve("codex", Asked::default(), None, |_| None, &file).policy.stall_ms, 900_000);
    }

    /// G7, the variables: what cannot be used is said once and counts for nothing.
    #[test]
    fn g7_a_variable_that_cannot_be_used_is_ignored_with_one_warning() {
        let file = config::Turn::default();
        let plain = resolve("codex", Asked::default(), None, |_| None, &file).policy;
        let of = |name: &'static str, value: &'static str| {
            let env = move |asked: &str| (asked == name).then(|| value.to_owned());
            resolve("codex", Asked::default(), None, env, &file)
        };
        let value = |policy: Policy, name: &str| match name {
            "MINDER_TURN_TIMEOUT_MS" => policy.budget_ms,
            "MINDER_CANCEL_GRACE_MS" => policy.grace_ms,
            "MINDER_WALL_BACKSTOP_MS" => policy.backstop_ms,
            _ => policy.stall_ms,
        };
        for name in [
            "MINDER_TURN_TIMEOUT_MS",
            "MINDER_STALL_MS_CODEX",
            "MINDER_STALL_MS",
            "MINDER_CANCEL_GRACE_MS",
            "MINDER_WALL_BACKSTOP_MS",
        ] {
            for bad in ["", " ", "abc", "-1", "+1", "1.5h", "1e3", "0x10", "5 5", "5ms", "٣"] {
                let resolved = of(name, bad);
                assert_eq!(resolved.policy, plain, "{name}={bad}");
                let told = format!("{name} is ignored: a whole number of milliseconds is wanted");
                assert_eq!(resolved.warnings, [told], "{name}={bad}");
            }
            // The clock that ends everything has a least value, and no value switches it off.
            let least = if name == "MINDER_TURN_TIMEOUT_MS" { BUDGET_MIN_MS } else { 0 };
            let powers = "100000000000000000000";
            for (good, ms) in
                [(" 5", 5), ("5\n", 5), ("0", 0), ("1200000", 1_200_000), (powers, WINDOW_MAX_MS)]
            {
                let resolved = of(name, good);
                assert_eq!(value(resolved.policy, name), ms.max(least), "{name}={good}");
                assert_eq!(resolved.warnings, [] as [&str; 0]);
                assert_eq!(
                    Policy { budget_ms: 0, stall_ms: 0, grace_ms: 0, backstop_ms: 0, ..resolved.policy },
                    Policy { budget_ms: 0, stall_ms: 0, grace_ms: 0, backstop_ms: 0, ..plain }
                );
            }
        }
        // A bad one for the adapter leaves the one for all in force.
        let env = |name: &str| Some(if name == "MINDER_STALL_MS" { "7" } else { "x" }.to_owned());
        let resolved = resolve("codex", Asked::default(), None, env, &file);
        assert_eq!((resolved.policy.stall_ms, resolved.warnings.len()), (7, 4));
    }
}
