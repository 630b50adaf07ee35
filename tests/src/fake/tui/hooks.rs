//! The hook commands that stand in the settings, run as harnesses run them: by a shell, in a group of their own, all of
//! an event at once, the payload on standard input, Claude Code's variables in the environment of its own.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::step::Hooks;
use super::transcript::Dialect;
use crate::fake::run::children::Children;
use crate::fake::run::record::Record;

/// How long the outputs of a hook may stay open behind it.
const GRACE: Duration = Duration::from_millis(500);

/// The settings' hooks, and what is done to them.
pub struct Runner {
    pub record: Record,
    pub children: Arc<Children>,
    pub how: Hooks,
    pub dialect: Dialect,
    /// An event whose turn has not come yet, with its payload.
    kept: Option<Value>,
}

/// One hook of the settings.
#[derive(Clone, Debug)]
struct Hook {
    command: String,
    limit: Duration,
    /// It runs beside the conversation; exit 2 wakes it.
    wakes: bool,
}

/// What came of one.
#[derive(Clone, Debug)]
pub struct Ran {
    pub command: String,
    /// Its exit code; none if it was ended.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Why the event may not go on.
    pub fn blocks(&self) -> Option<String> {
        let answer: Option<Value> = serde_json::from_str(&self.stdout).ok();
        let reason = answer
            .filter(|a| a["decision"] == "block")
            .map(|a| a["reason"].as_str().unwrap_or_default().to_owned());
        reason.or_else(|| (self.code == Some(2)).then(|| self.stderr.trim_end().to_owned()))
    }

    /// What the model is given of it; plain text counts for some events only.
    pub fn context(&self, event: &str) -> Option<String> {
        if self.code != Some(0) {
            return None;
        }
        let text = match serde_json::from_str::<Value>(&self.stdout) {
            Ok(answer) => answer["hookSpecificOutput"]["additionalContext"].as_str()?.to_owned(),
            Err(_) if ["SessionStart", "UserPromptSubmit"].contains(&event) => {
                self.stdout.trim_end().to_owned()
            }
            Err(_) => return None,
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

impl Runner {
    pub fn new(record: Record, children: Arc<Children>) -> Self {
        let dialect = Dialect::default();
        Self { record, children, how: Hooks::All, dialect, kept: None }
    }

    /// Runs an event's hooks, as the script has it; `wakes` is what a hook that runs beside does at its end.
    pub fn run(&mut self, payload: &Value, wakes: &(impl Fn(Ran) + Clone + Send + 'static)) -> Vec<Ran> {
        let event = payload["hook_event_name"].as_str().unwrap_or_default();
        let mut due = vec![payload.clone()];
        match &self.how {
            Hooks::None => due.clear(),
            Hooks::Missing(missing) if missing == event => due.clear(),
            Hooks::Twice(twice) if twice == event => due.push(payload.clone()),
            Hooks::Swapped(first, _) if first == event => self.kept = due.pop(),
            Hooks::Swapped(_, second) if second == event => due.extend(self.kept.take()),
            _ => {}
        }
        if due.is_empty() {
            self.record.note("hook-left-out", json!({ "event": event }));
        }
        let ran = due.iter().flat_map(|payload| self.run_event(payload, wakes)).collect();
        if self.how == Hooks::Dropped { Vec::new() } else { ran }
    }

    fn run_event(&self, payload: &Value, wakes: &(impl Fn(Ran) + Clone + Send + 'static)) -> Vec<Ran> {
        let event = payload["hook_event_name"].as_str().unwrap_or_default();
        let subject =
            payload["tool_name"].as_str().or_else(|| payload["source"].as_str()).unwrap_or_default();
        let (ended, end) = channel();
        let mut many = 0;
        for hook in self.hooks(event, subject) {
            let (record, children, payload) =
                (self.record.clone(), Arc::clone(&self.children), payload.clone());
            let wakes = hook.wakes.then(|| wakes.clone());
            let dialect = self.dialect;
            many += usize::from(wakes.is_none());
            let ended = ended.clone();
            std::thread::spawn(move || {
                let ran = call(&record, &children, &hook, &payload, dialect);
                match wakes {
                    Some(wakes) => wakes(ran),
                    // Whoever waits has its number.
                    None => drop(ended.send(ran)),
                }
            });
        }
        (0..many).filter_map(|_| end.recv().ok()).collect()
    }

    /// Read at each event: what is added while the program runs counts at once.
    fn hooks(&self, event: &str, subject: &str) -> Vec<Hook> {
        let mut found = Vec::new();
        for file in &files(self.dialect) {
            let settings: Value = std::fs::read(file)
                .ok()
                .and_then(|text| serde_json::from_slice(&text).ok())
                .unwrap_or_default();
            for group in settings["hooks"][event].as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                if !matcher.is_empty() && matcher != "*" && !matcher.split('|').any(|word| word == subject) {
                    continue;
                }
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    let is = |name: &str| hook[name].as_bool().unwrap_or(false);
                    let usual = match event {
                        "UserPromptSubmit" => 30,
                        "SessionEnd" => 2,
                        _ => 600,
                    };
                    found.push(Hook {
                        command: hook["command"].as_str().unwrap_or_default().to_owned(),
                        limit: Duration::from_secs(hook["timeout"].as_u64().unwrap_or(usual)),
                        wakes: is("asyncRewake") || is("async"),
                    });
                }
            }
        }
        found
    }
}

fn call(record: &Record, children: &Children, hook: &Hook, payload: &Value, dialect: Dialect) -> Ran {
    let begun = Instant::now();
    let mut ran =
        Ran { command: hook.command.clone(), code: None, stdout: String::new(), stderr: String::new() };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &hook.command]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let text = |name: &str| payload[name].as_str().unwrap_or_default();
    if dialect == Dialect::Claude {
        command.env("CLAUDE_PID", std::process::id().to_string());
        let fixed =
            [("CLAUDECODE", "1"), ("CLAUDE_CODE_ENTRYPOINT", "cli"), ("CLAUDE_CODE_SESSION_ATTENDED", "1")];
        command.envs(fixed);
        command.envs([("CLAUDE_CODE_SESSION_ID", text("session_id")), ("CLAUDE_PROJECT_DIR", text("cwd"))]);
    }
    match command.spawn() {
        Err(error) => ran.stderr = error.to_string(),
        Ok(mut child) => {
            record.note("hook-begins", json!({ "event": text("hook_event_name"), "child": child.id() }));
            let (sent, outputs) = channel();
            let pipes: [(bool, Option<Box<dyn Read + Send>>); 2] = [
                (false, child.stdout.take().map(|pipe| Box::new(pipe) as _)),
                (true, child.stderr.take().map(|pipe| Box::new(pipe) as _)),
            ];
            for (is_error, pipe) in pipes {
                let sent = sent.clone();
                std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
                    let _ = sent.send((is_error, String::from_utf8_lossy(&bytes).into_owned()));
                });
            }
            // A hook that does not read is no fault.
            let _ = child.stdin.take().map(|mut pipe| pipe.write_all(payload.to_string().as_bytes()));
            ran.code = children.wait(child.id(), hook.limit);
            for _ in 0..2 {
                match outputs.recv_timeout(GRACE) {
                    Ok((true, text)) => ran.stderr = text,
                    Ok((false, text)) => ran.stdout = text,
                    Err(_) => break,
                }
            }
        }
    }
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    record.note(
        "hook",
        json!({ "event": text("hook_event_name"), "command": ran.command, "payload": payload, "code": ran.code,
            "stdout": ran.stdout, "stderr": ran.stderr, "took_ms": took }),
    );
    ran
}

/// Where this user's hooks stand; for Claude Code also in what the arguments name.
fn files(dialect: Dialect) -> Vec<PathBuf> {
    if dialect == Dialect::Codex {
        return vec![dialect.home().join("hooks.json")];
    }
    let mut files = vec![dialect.home().join("settings.json")];
    let arguments: Vec<String> = std::env::args().collect();
    files.extend(
        arguments.windows(2).filter(|pair| pair[0] == "--settings").map(|pair| PathBuf::from(&pair[1])),
    );
    files
}
