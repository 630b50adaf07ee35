//! The configuration: `config.toml`, then `MINDER_*` variables. A value that cannot be used is an error,
//! never a silent default.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::stamp::parse_duration;
use crate::turn::policy::ADAPTERS;
use crate::whole;

/// Everything that can be set. Every field's name is its key: `adopt.mode`, …
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Which conversations become sessions by themselves.
    pub adopt: Adopt,
    /// What hooks print.
    pub hook: Hook,
    /// What a session is told at its start.
    pub hooks: Hooks,
    /// Bounds of a queue.
    pub queue: QueueLimits,
    /// Bounds of a message.
    pub message: MessageLimits,
    /// When deliveries are tried again.
    pub delivery: Delivery,
    /// The mailbox channel.
    pub mailbox: Mailbox,
    /// The exec channel.
    pub exec: Exec,
    /// Followers.
    pub follow: Follow,
    /// The store.
    pub store: Store,
    /// Supervised turns.
    pub turn: Turn,
    /// Sessions whose messages are turns.
    pub headless: Headless,
    /// Sessions whose process minder starts.
    pub launch: Launch,
    /// Supervision hosts.
    pub host: Host,
    /// Variables of `host.*` that could not be used, a line each: the file or the default holds instead.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// `adopt.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adopt {
    /// `attended` (default), `all`, or `off`.
    pub mode: AdoptMode,
    /// Folders whose conversations are not taken in.
    pub ignore: Vec<PathBuf>,
    /// Whether the words of prompts and answers go into the store (default true).
    pub text: bool,
    /// How long after its process ended a session that a hook registered is closed (default 7 d).
    pub keep: Span,
}

impl Default for Adopt {
    fn default() -> Self {
        Self { mode: AdoptMode::Attended, ignore: Vec::new(), text: true, keep: Span::from_secs(7 * 86_400) }
    }
}

/// Which conversations become sessions by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdoptMode {
    /// Those that a person sits at.
    #[default]
    Attended,
    /// Unattended runs too.
    All,
    /// None: only what `new` registers.
    Off,
}

/// `hook.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// Most characters that one hook call prints (default 9,000).
    pub max_chars: usize,
}

impl Default for Hook {
    fn default() -> Self {
        Self { max_chars: 9_000 }
    }
}

/// `hooks.*`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Who is told at session start how to speak.
    pub brief: Brief,
}

/// Who gets the four lines at session start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Brief {
    /// A session with a parent or a watcher (default).
    #[default]
    Watched,
    /// Every session.
    Always,
    /// None.
    Never,
}

/// `queue.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueLimits {
    /// Most messages that wait for one session (default 1,000).
    pub max_messages: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { max_messages: 1_000 }
    }
}

/// `message.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MessageLimits {
    /// Longest body in bytes (default 256 KiB, which is also the most).
    pub max_bytes: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self { max_bytes: crate::event::BODY_MAX }
    }
}

/// `delivery.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delivery {
    /// After this long without evidence a handed message waits again (default 60 s).
    pub evidence_timeout: Span,
    /// Refusals after which a message is dead (default 50).
    pub max_attempts: u32,
    /// Age after which a message is dead (default 7 d).
    pub max_age: Span,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { evidence_timeout: Span::from_secs(60), max_attempts: 50, max_age: Span::from_secs(7 * 86_400) }
    }
}

/// `mailbox.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mailbox {
    /// How long a taken message is given to nobody else (default 10 m).
    pub visibility: Span,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self { visibility: Span::from_secs(600) }
    }
}

/// `exec.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exec {
    /// How long the user's program may take for one message (default 60 s); then it is killed and the message is
    /// held as `offline`.
    pub timeout: Span,
}

impl Default for Exec {
    fn default() -> Self {
        Self { timeout: Span::from_secs(60) }
    }
}

/// `follow.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Follow {
    /// The floor under the bell: how often a follower looks by itself (default 2 s).
    pub backstop: Span,
}

impl Default for Follow {
    fn default() -> Self {
        Self { backstop: Span::from_secs(2) }
    }
}

/// `store.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// `flush` (default), or `none` for throw-away stores: a power cut may then lose what was told.
    pub durability: Durability,
    /// How many days a closed session lies in the trash (default 7).
    pub trash_days: u32,
    /// After how many days history is dropped that nothing waits for (default 90).
    pub keep_days: u32,
}

impl Default for Store {
    fn default() -> Self {
        Self { durability: Durability::Flush, trash_days: 7, keep_days: 90 }
    }
}

/// `turn.*`. What is absent has the default that `turn policy` prints.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// What a harness's own time-out would be (default 45 m).
    pub timeout: Option<Span>,
    /// Silence after which a turn is stalled, by adapter; 0 is off.
    pub stall: BTreeMap<String, Span>,
    /// The same while a tool call is open (default off).
    pub stall_in_tool: Option<Span>,
    /// From the cancel to the kill (default 15 s).
    pub cancel_grace: Option<Span>,
    /// From the budget to the wall clock (default 60 s).
    pub wall_backstop: Option<Span>,
    /// How long an exit is waited for after a failure (default 3 s).
    pub exit_wait: Option<Span>,
    /// Bytes of standard output that are kept (default 8 MiB).
    pub output_max: Option<u64>,
    /// What more output than that does: `keep` (default) or `fail`.
    pub overflow: Overflow,
    /// How long a held turn waits for its `finish` (default 10 m).
    pub finish_timeout: Span,
    /// How long the folder of a failed turn is kept (default 24 h).
    pub keep_failed: Span,
    /// Further variables of the caller that a child gets.
    pub env_pass: Vec<String>,
    /// A file of `NAME=VALUE` lines, yours alone, for turns that no caller starts.
    pub env_file: Option<PathBuf>,
    /// Variables of the daemon that turns get which no caller starts.
    pub env_from_daemon: Vec<String>,
    /// Resource limits of a child by name: `cpu`, `as`, `fsize`, `nofile`, `nproc`, `core`.
    pub limits: BTreeMap<String, u64>,
    /// Niceness of a child.
    pub nice: Option<i32>,
    /// `oom_score_adj` of a child.
    pub oom_score_adj: Option<i32>,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            timeout: None,
            stall: BTreeMap::new(),
            stall_in_tool: None,
            cancel_grace: None,
            wall_backstop: None,
            exit_wait: None,
            output_max: None,
            overflow: Overflow::Keep,
            finish_timeout: Span::from_secs(600),
            keep_failed: Span::from_secs(86_400),
            env_pass: Vec::new(),
            env_file: None,
            env_from_daemon: Vec::new(),
            limits: BTreeMap::new(),
            nice: None,
            oom_score_adj: None,
        }
    }
}

/// What more output than is kept does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// The rest is counted and not kept.
    #[default]
    Keep,
    /// The turn fails.
    Fail,
}

/// `launch.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Launch {
    /// How long a harness whose hooks tell of its start may be silent before its session says `asking` (default 60 s).
    pub ready: Span,
}

impl Default for Launch {
    fn default() -> Self {
        Self { ready: Span::from_secs(60) }
    }
}

/// `host.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// From the first move of a batch until its primary is told of it (default 30 s).
    pub coalesce: Span,
    /// Sessions that work and show no sign of it.
    pub stale: Stale,
    /// What waits beside a primary.
    pub park: Park,
}

impl Default for Host {
    fn default() -> Self {
        Self { coalesce: Span::from_secs(30), stale: Stale::default(), park: Park::default() }
    }
}

/// `host.stale.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stale {
    /// How long a session may work without a sign of it before its primary is told (default 15 m); 0 is never.
    pub silent: Span,
}

impl Default for Stale {
    fn default() -> Self {
        Self { silent: Span::from_secs(900) }
    }
}

/// `host.park.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Park {
    /// After this long without a hook that waits, the primary is told through its ordinary channel (default 5 m).
    pub absent_after: Span,
}

impl Default for Park {
    fn default() -> Self {
        Self { absent_after: Span::from_secs(300) }
    }
}

/// `headless.*`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headless {
    /// Most messages that one turn is given (default 20).
    pub batch: usize,
    /// Most turns of sessions that run at once (default 4).
    pub capacity: usize,
}

impl Default for Headless {
    fn default() -> Self {
        Self { batch: 20, capacity: 4 }
    }
}

/// Whether a commit waits for the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// It does.
    #[default]
    Flush,
    /// It does not.
    None,
}

/// A duration in the file: `"90s"`, `"15m"`, or a bare number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    const fn from_secs(s: u64) -> Self {
        Self(Duration::from_secs(s))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        let text = match Raw::deserialize(deserializer)? {
            Raw::Number(n) => n.to_string(),
            Raw::Text(text) => text,
        };
        parse_duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A configuration that cannot be used; the line says where.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its error.
        error: std::io::Error,
    },
    /// The file holds something that cannot be used.
    #[error("{}:{line}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A variable holds something that cannot be used.
    #[error("{name}: {why}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// Keys that a variable may set: `adopt.mode` is `MINDER_ADOPT_MODE`. The windows of a turn have variables of their own,
/// which the caller of a turn sets and `turn::policy` reads.
pub const KEYS: [&str; 33] = [
    "adopt.mode",
    "adopt.ignore",
    "adopt.text",
    "adopt.keep",
    "hook.max_chars",
    "hooks.brief",
    "queue.max_messages",
    "message.max_bytes",
    "delivery.evidence_timeout",
    "delivery.max_attempts",
    "delivery.max_age",
    "mailbox.visibility",
    "exec.timeout",
    "follow.backstop",
    "store.trash_days",
    "store.keep_days",
    "turn.stall_in_tool",
    "turn.exit_wait",
    "turn.output_max",
    "turn.overflow",
    "turn.finish_timeout",
    "turn.keep_failed",
    "turn.env_pass",
    "turn.env_file",
    "turn.env_from_daemon",
    "turn.nice",
    "turn.oom_score_adj",
    "headless.batch",
    "headless.capacity",
    "launch.ready",
    "host.coalesce",
    "host.stale.silent",
    "host.park.absent_after",
];

/// The variable of a key.
pub fn variable(key: &str) -> String {
    format!("MINDER_{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Most bytes of the file.
const FILE_MAX: u64 = 1024 * 1024;

/// Reads the file (an absent one is empty), then the variables.
pub fn load(path: &Path, env: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let bytes = match whole::at_most(path, FILE_MAX) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        Err(e) if e.kind() == ErrorKind::InvalidData => {
            return Err(ConfigError::File { path: path.to_owned(), line: 1, why: e.to_string() });
        }
        Err(error) => return Err(ConfigError::Io { path: path.to_owned(), error }),
    };
    let text = String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = good.split(|b| *b == b'\n').count();
        ConfigError::File { path: path.to_owned(), line, why: "not UTF-8".to_owned() }
    })?;
    parse(path, &text, env)
}

fn parse(path: &Path, text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let at = |e: &toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        ConfigError::File { path: path.to_owned(), line, why: e.message().replace('\n', " ") }
    };
    let mut table: toml::Table = toml::from_str(text).map_err(|e| at(&e))?;
    // Checked before the variables are laid over it, so that an error names the right place.
    let checked: Config = toml::from_str(text).map_err(|e| at(&e))?;
    check(&checked).map_err(|(key, why)| ConfigError::File {
        path: path.to_owned(),
        line: line_of(text, key),
        why: format!("{key}: {why}"),
    })?;
    let mut warnings = Vec::new();
    for key in KEYS {
        let name = variable(key);
        let Some(value) = env(&name) else { continue };
        match with_variable(&table, key, &value) {
            Ok(new) => table = new,
            // Supervision goes on with what it had: a primary that nobody wakes is the worse fault.
            Err(why) if key.starts_with("host.") => warnings.push(format!("{name}: {why}; not used")),
            Err(why) => return Err(ConfigError::Variable { name, why }),
        }
    }
    let config: Config = table.try_into().map_err(|e| at(&e))?;
    Ok(Config { warnings, ..config })
}

/// What was set, with a variable's value for a key laid over it.
fn with_variable(table: &toml::Table, key: &str, value: &str) -> Result<toml::Table, String> {
    let parsed = from_variable(key, value)?;
    let mut table = table.clone();
    let (sections, field) = key.rsplit_once('.').expect("every key has a section");
    let mut place = Some(&mut table);
    for section in sections.split('.') {
        place = place.and_then(|place| {
            let inner = place.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            inner.as_table_mut()
        });
    }
    if let Some(place) = place {
        place.insert(field.to_owned(), parsed);
    }
    let config = table.clone().try_into::<Config>().map_err(|e| e.message().replace('\n', " "))?;
    check(&config).map_err(|(_, why)| why)?;
    Ok(table)
}

/// The line, from 1, on which a key of a section is set; 1 where it is not found.
fn line_of(text: &str, key: &str) -> usize {
    let (section, name) = key.rsplit_once('.').expect("every key has a section");
    let mut here = "";
    for (i, line) in text.lines().map(str::trim_start).enumerate() {
        if let Some(head) = line.strip_prefix('[') {
            here = head.split(']').next().unwrap_or_default().trim();
        }
        let word = line.split(['=', ' ', '\t']).next().unwrap_or_default();
        if (here == section && word.split('.').next() == Some(name)) || word == key || here == key {
            return i + 1;
        }
    }
    1
}

fn from_variable(key: &str, value: &str) -> Result<toml::Value, String> {
    Ok(match key {
        "adopt.ignore" => toml::Value::Array(
            std::env::split_paths(value)
                .map(|p| toml::Value::String(p.to_string_lossy().into_owned()))
                .collect(),
        ),
        "adopt.text" => match value {
            "true" | "1" => toml::Value::Boolean(true),
            "false" | "0" => toml::Value::Boolean(false),
            _ => return Err(format!("not true or false: {value:?}")),
        },
        "hook.max_chars"
        | "queue.max_messages"
        | "message.max_bytes"
        | "delivery.max_attempts"
        | "store.trash_days"
        | "store.keep_days"
        | "turn.output_max"
        | "turn.nice"
        | "turn.oom_score_adj"
        | "headless.batch"
        | "headless.capacity" => {
            // Only what may be below zero has a sign.
            let signed = ["turn.nice", "turn.oom_score_adj"].contains(&key);
            let digits = value.strip_prefix('-').filter(|_| signed).unwrap_or(value);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!("not a whole number: {value:?}"));
            }
            toml::Value::Integer(value.parse().map_err(|_| format!("too large: {value:?}"))?)
        }
        "turn.env_pass" | "turn.env_from_daemon" => {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            toml::Value::Array(names.map(|name| toml::Value::String(name.to_owned())).collect())
        }
        _ => toml::Value::String(value.to_owned()),
    })
}

/// Bounds that hold whatever is set; gives the key and what is wrong.
fn check(config: &Config) -> Result<(), (&'static str, String)> {
    let range = |key, value: usize, min: usize, max: usize| {
        if (min..=max).contains(&value) { Ok(()) } else { Err((key, format!("must be {min} to {max}"))) }
    };
    range("hook.max_chars", config.hook.max_chars, 500, 10_000)?;
    range("queue.max_messages", config.queue.max_messages, 1, 100_000)?;
    range("message.max_bytes", config.message.max_bytes, 1, crate::event::BODY_MAX)?;
    range("delivery.max_attempts", config.delivery.max_attempts as usize, 1, 1_000_000)?;
    range("store.trash_days", config.store.trash_days as usize, 0, 36_500)?;
    range("store.keep_days", config.store.keep_days as usize, 1, 36_500)?;
    for (key, span) in [
        ("delivery.evidence_timeout", config.delivery.evidence_timeout),
        ("delivery.max_age", config.delivery.max_age),
        ("mailbox.visibility", config.mailbox.visibility),
        ("exec.timeout", config.exec.timeout),
        ("follow.backstop", config.follow.backstop),
        ("turn.timeout", config.turn.timeout.unwrap_or(Span::from_secs(1))),
        ("turn.finish_timeout", config.turn.finish_timeout),
        ("launch.ready", config.launch.ready),
        ("host.park.absent_after", config.host.park.absent_after),
    ] {
        if span.0.is_zero() {
            return Err((key, "must be longer than 0".to_owned()));
        }
    }
    if let Some(path) = config.adopt.ignore.iter().find(|p| !p.is_absolute()) {
        return Err(("adopt.ignore", not_absolute(path)));
    }
    range("headless.batch", config.headless.batch, 1, 1_000)?;
    range("headless.capacity", config.headless.capacity, 0, 1_000)?;
    check_turn(&config.turn)
}

fn not_absolute(path: &Path) -> String {
    format!("not an absolute path: {}", cut(&path.display().to_string()))
}

/// A text of the file in one short line.
fn cut(text: &str) -> String {
    format!("{:?}", text.chars().take(80).collect::<String>())
}

/// Most bytes of standard output that can be kept.
const OUTPUT_LIMIT: u64 = 1024 * 1024 * 1024;

/// Resource limits that a child can be given.
const LIMITS: [&str; 6] = ["cpu", "as", "fsize", "nofile", "nproc", "core"];

fn check_turn(turn: &Turn) -> Result<(), (&'static str, String)> {
    if let Some(name) = turn.stall.keys().find(|name| !ADAPTERS.contains(&name.as_str())) {
        return Err(("turn.stall", format!("no such adapter: {} ({})", cut(name), ADAPTERS.join(", "))));
    }
    if turn.output_max.is_some_and(|bytes| !(1..=OUTPUT_LIMIT).contains(&bytes)) {
        return Err(("turn.output_max", format!("must be 1 to {OUTPUT_LIMIT}")));
    }
    if turn.nice.is_some_and(|nice| !(-20..=19).contains(&nice)) {
        return Err(("turn.nice", "must be -20 to 19".to_owned()));
    }
    if turn.oom_score_adj.is_some_and(|adj| !(-1_000..=1_000).contains(&adj)) {
        return Err(("turn.oom_score_adj", "must be -1000 to 1000".to_owned()));
    }
    if let Some(path) = turn.env_file.as_ref().filter(|p| !p.is_absolute()) {
        return Err(("turn.env_file", not_absolute(path)));
    }
    let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0', ' ']);
    for (key, names) in [("turn.env_pass", &turn.env_pass), ("turn.env_from_daemon", &turn.env_from_daemon)] {
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err((key, format!("not the name of a variable: {}", cut(name))));
        }
    }
    match turn.limits.keys().find(|name| !LIMITS.contains(&name.as_str())) {
        Some(name) => Err(("turn.limits", format!("no such limit: {} ({})", cut(name), LIMITS.join(", ")))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str, vars: &[(&str, &str)]) -> Result<Config, String> {
        let env = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        parse(Path::new("c.toml"), text, env).map_err(|e| e.to_string())
    }

    #[test]
    fn variables_win_over_the_file() {
        let config =
            load_text("[adopt]\nmode = \"off\"\nkeep = \"2d\"\n", &[("MINDER_ADOPT_MODE", "all")]).unwrap();
        assert_eq!((config.adopt.mode, config.adopt.keep), (AdoptMode::All, Span::from_secs(172_800)));
        assert_eq!(load_text("", &[]).unwrap(), Config::default());
    }

    #[test]
    fn every_key_can_be_set_by_its_variable() {
        for key in KEYS {
            let value = match key {
                "adopt.mode" => "all",
                "adopt.ignore" => "/x:/y",
                "adopt.text" => "false",
                "hooks.brief" => "never",
                "turn.overflow" => "fail",
                "turn.env_pass" | "turn.env_from_daemon" => "A_KEY, B_KEY",
                "turn.env_file" => "/x/env",
                "turn.nice" | "turn.oom_score_adj" => "-7",
                k if k.contains("max_age") || k == "adopt.keep" => "3d",
                k if k.contains("timeout") || k.contains("visibility") || k.contains("backstop") => "7s",
                _ => "777",
            };
            let config = load_text("", &[(&variable(key), value)]).unwrap();
            assert_ne!(config, Config::default(), "{key}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_says_where() {
        assert!(load_text("[adopt]\nmodus = 1\n", &[]).unwrap_err().starts_with("c.toml:2: unknown field"));
        assert!(load_text("[adopt]\nmode = \"some\"\n", &[]).unwrap_err().starts_with("c.toml:2: "));
        assert!(
            load_text("\n[follow]\nbackstop = 0\n", &[])
                .unwrap_err()
                .starts_with("c.toml:3: follow.backstop")
        );
        assert!(load_text("x = ", &[]).is_err());
        for (name, value) in [
            ("MINDER_HOOK_MAX_CHARS", "1e3"),
            ("MINDER_HOOK_MAX_CHARS", "-1"),
            ("MINDER_HOOK_MAX_CHARS", ""),
            ("MINDER_FOLLOW_BACKSTOP", "1.5h"),
            ("MINDER_ADOPT_TEXT", "yes"),
            ("MINDER_ADOPT_IGNORE", "relative"),
            ("MINDER_TURN_OUTPUT_MAX", "-1"),
            ("MINDER_TURN_NICE", "20"),
            ("MINDER_TURN_ENV_FILE", "env"),
            ("MINDER_TURN_ENV_PASS", "A=b"),
            ("MINDER_HEADLESS_BATCH", "0"),
        ] {
            assert!(load_text("", &[(name, value)]).unwrap_err().starts_with(name), "{name}={value}");
        }
    }

    /// G7, the file: each window with what cannot be used.
    #[test]
    fn g7_the_windows_of_a_turn_are_strict_in_the_file() {
        for key in ["timeout", "stall.codex", "stall_in_tool", "cancel_grace", "wall_backstop", "exit_wait"] {
            for bad in [
                "\"\"", "\"abc\"", "\"-1\"", "-1", "\"1.5h\"", "1.5", "\"1e3\"", "\"0x10\"", "\" 5\"", "true",
            ] {
                let text = format!("[exec]\ntimeout = 9\n[turn]\n{key} = {bad}\n");
                let error = load_text(&text, &[]).unwrap_err();
                assert!(error.starts_with("c.toml:4: "), "{key} = {bad}: {error}");
            }
            let config = load_text(&format!("[turn]\n{key} = \"20m\"\n"), &[]).unwrap();
            assert_ne!(config, Config::default(), "{key}");
        }
        // 0 is a value but where it would mean that nothing ends a turn.
        for key in ["stall.codex", "stall_in_tool", "cancel_grace", "wall_backstop", "exit_wait"] {
            assert!(load_text(&format!("[turn]\n{key} = 0\n"), &[]).is_ok(), "{key}");
        }
        let error = load_text("[exec]\ntimeout = 9\n[turn]\ntimeout = 0\n", &[]).unwrap_err();
        assert!(error.starts_with("c.toml:4: turn.timeout: must be longer than 0"), "{error}");
        for (text, key) in [
            ("[turn]\nlimits.open = 5", "c.toml:2: turn.limits: no such limit: \"open\""),
            ("[turn]\nstall.codec = 5", "c.toml:2: turn.stall: no such adapter: \"codec\""),
            ("[turn.limits]\nopen = 5", "c.toml:1: turn.limits: no such limit: \"open\""),
            ("[turn]\noutput_max = 0", "c.toml:2: turn.output_max: must be 1 to 1073741824"),
            ("[turn]\nenv_from_daemon = [\"\"]", "c.toml:2: turn.env_from_daemon: not the name"),
            ("[headless]\n\ncapacity = 1001", "c.toml:3: headless.capacity: must be 0 to 1000"),
        ] {
            let error = load_text(text, &[]).unwrap_err();
            assert!(error.starts_with(key), "{text}: {error}");
        }
    }
}
