//! Plain `sh` hooks that record every call of the real program, and answer it as a test says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::Claude;
use crate::files;
use crate::isolate::Isolated;

/// The events that are recorded. `PreToolUse` and the like get a matcher for all tools.
pub const EVENTS: [&str; 17] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "ConfigChange",
    "CwdChanged",
];

/// What each hook runs: it puts one file for each call into `calls`, whole, in order of time, and then does
/// what `EVENT.once` (used up) or `EVENT.do` say.
const HOOK: &str = r#"
cd "$RIG_ROOT/hooks" || exit 0
label=$1 at=$(date +%s%N) input=$(cat)
transcript=$(printf %s "$input" | sed -n 's/.*"transcript_path":"\([^"]*\)".*/\1/p')
lines=$(cat "$transcript" 2>/dev/null | wc -l)
printf '{"at":%s,"label":"%s","pid":%s,"transcript_lines":%s,"payload":%s}\n' \
  "$at" "$label" $$ "$lines" "$input" >"part.$$"
mv "part.$$" "calls/$at.$label.$$"
if mv "$label.once" "once.$$" 2>/dev/null; then . "./once.$$"
elif [ -f "$label.do" ]; then . "./$label.do"
fi
exit 0
"#;

/// Recorded calls of one isolated user's hooks.
pub struct Recorder {
    isolated: Arc<Isolated>,
}

/// One call of a hook.
#[derive(Debug, Clone)]
pub struct Call {
    /// Nanoseconds of the wall clock when the hook had started.
    pub at: u64,
    pub event: String,
    /// The payload on its standard input.
    pub payload: Value,
    /// How many complete lines the transcript had at that moment.
    pub transcript_lines: u64,
}

impl Recorder {
    /// Makes the hook program, without telling Claude Code of it.
    pub fn new(isolated: &Arc<Isolated>) -> Result<Self> {
        let recorder = Self { isolated: Arc::clone(isolated) };
        std::fs::create_dir_all(recorder.calls_folder())?;
        std::fs::write(recorder.folder().join("hook.sh"), HOOK)?;
        Ok(recorder)
    }

    /// The `hooks` part of settings: every event of [`EVENTS`], recorded.
    pub fn hooks(&self) -> Value {
        let mut hooks = Map::new();
        for event in EVENTS {
            hooks.insert(event.into(), json!([self.entry(event, event)]));
        }
        hooks.into()
    }

    /// One entry for an event, whose calls are recorded under `label`.
    pub fn entry(&self, event: &str, label: &str) -> Value {
        let command = format!("sh {} {label}", self.folder().join("hook.sh").display());
        let mut entry = json!({"hooks": [{"type": "command", "command": command}]});
        if event.contains("Tool") || event.contains("Permission") {
            entry["matcher"] = "*".into();
        }
        entry
    }

    /// Writes settings with these hooks and nothing else.
    pub fn install(&self, claude: &Claude) -> Result<()> {
        claude.write_settings(&json!({"hooks": self.hooks()}))
    }

    /// Makes the next call under this label run a piece of `sh`. It may print, exit 2, or look around.
    pub fn once(&self, label: &str, script: &str) -> Result<()> {
        let whole = self.folder().join("new");
        std::fs::write(&whole, script)?;
        std::fs::rename(whole, self.folder().join(format!("{label}.once"))).context("answering a hook")
    }

    /// Where hooks run, and keep what they write.
    pub fn folder(&self) -> PathBuf {
        self.isolated.root().join("hooks")
    }

    fn calls_folder(&self) -> PathBuf {
        self.folder().join("calls")
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        let entries = std::fs::read_dir(self.calls_folder()).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        // The names begin with the time, all of the same length.
        names.sort();
        let read = |name| {
            let text = std::fs::read_to_string(self.calls_folder().join(name)).expect("made whole");
            let call: Value = serde_json::from_str(&text).expect("a payload is JSON");
            Call {
                at: call["at"].as_u64().expect("a number"),
                event: call["label"].as_str().expect("a text").to_owned(),
                payload: call["payload"].clone(),
                transcript_lines: call["transcript_lines"].as_u64().expect("a number"),
            }
        };
        names.into_iter().map(read).collect()
    }

    /// Waits until `found` gives something on the calls so far, at most `limit`.
    pub fn wait<T>(&self, limit: Duration, mut found: impl FnMut(&[Call]) -> Option<T>) -> Result<T> {
        files::wait_for(&self.calls_folder(), limit, || found(&self.calls()))
    }

    /// Waits for the `n`th call (from 1) under a label.
    pub fn wait_nth(&self, limit: Duration, label: &str, n: usize) -> Result<Call> {
        self.wait(limit, |calls| calls.iter().filter(|call| call.event == label).nth(n - 1).cloned())
            .with_context(|| format!("waiting for call {n} of the hook {label}"))
    }
}
