//! What the files of a store say. Read line by line, by nothing of the programs' own readers: a fault that writer and
//! reader share would hide from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use minder_proto::id::SessionId;
use minder_proto::layout::Home;
use serde_json::Value;

use super::Findings;

/// One session's files.
#[derive(Debug, Default)]
pub struct Pages {
    /// Its timeline, every line.
    pub lines: Vec<Value>,
    /// Messages that are not settled by its ledger, with their lines.
    pub waiting: BTreeMap<String, u64>,
    /// Messages that its ledger settles.
    pub settled: BTreeSet<String>,
}

impl Pages {
    /// Lines of a kind, with their numbers.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (u64, &Value)> {
        let of = move |line: &&Value| line["kind"] == kind;
        self.lines.iter().filter(of).map(|line| (line["seq"].as_u64().unwrap_or(0), line))
    }

    /// Notices of a kind about a session: the lines that they are about.
    pub fn notices(&self, about: SessionId, notice: &str) -> Vec<u64> {
        let about = about.to_string();
        let all = self.of_kind("message").map(|(_, m)| &m["about"]);
        let those = all.filter(|a| a["session"] == about.as_str() && a["notice"] == notice);
        those.filter_map(|a| a["seq"].as_u64()).collect()
    }
}

/// Reads a session's files, wherever its folder is; with what is wrong with them by themselves.
pub fn read(home: &Home, id: SessionId, findings: &mut Findings) -> Result<Option<Pages>> {
    let dir = [home.session(id), home.trashed(id)].into_iter().find(|d| d.is_dir());
    let Some(dir) = dir else { return Ok(None) };
    let mut pages = Pages { lines: timeline(&dir, id, findings)?, ..Pages::default() };
    let ledger = text(&dir.join("queue.jsonl"))?;
    for line in ledger.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            findings
                .add(format!("{id}: its ledger has a line that is none: {:?}", &line[..line.len().min(80)]));
            continue;
        };
        let message = line["id"].as_str().unwrap_or_default().to_owned();
        let settled = matches!(line["r"].as_str(), Some("seen" | "answered" | "dead" | "returned"));
        if settled {
            pages.waiting.remove(&message);
            pages.settled.insert(message);
        } else {
            pages.waiting.insert(message, line["seq"].as_u64().unwrap_or(0));
        }
    }
    Ok(Some(pages))
}

/// Every line of a timeline: sealed segments first. Numbers count from 1 without holes.
fn timeline(dir: &Path, id: SessionId, findings: &mut Findings) -> Result<Vec<Value>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?
        .flatten()
        .map(|e| e.path())
        .filter(|p| {
            let name = p.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let first = name.strip_prefix("timeline.").and_then(|rest| rest.strip_suffix(".jsonl"));
            first.is_some_and(|first| first.parse::<u64>().is_ok())
        })
        .collect();
    files.sort();
    files.push(dir.join("timeline.jsonl"));
    let mut lines = Vec::new();
    for file in files {
        let text = text(&file)?;
        if !text.is_empty() && !text.ends_with('\n') {
            findings.add(format!("{}: ends within a line", file.display()));
        }
        for line in text.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(line) => lines.push(line),
                Err(_) => {
                    findings.add(format!(
                        "{}: has a line that is none: {:?}",
                        file.display(),
                        line.get(..80)
                    ));
                }
            }
        }
    }
    if let Some((n, line)) = (1..).zip(&lines).find(|(n, line)| line["seq"].as_u64() != Some(*n)) {
        findings.add(format!("{id}: line {n} says that it is {}", line["seq"]));
    }
    for line in &lines {
        if line["kind"] == "note" {
            findings.add(format!("{id}: line {} is a note that nobody wrote: {}", line["seq"], line["text"]));
        }
    }
    Ok(lines)
}

fn text(path: &Path) -> Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}

/// The sessions of `closed.jsonl`, with how often each is there.
pub fn tombstones(home: &Home) -> Result<BTreeMap<String, usize>> {
    let mut found = BTreeMap::new();
    for line in text(&home.closed())?.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| format!("closed.jsonl: {line}"))?;
        *found.entry(line["id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    Ok(found)
}

/// Files that are there for a moment only.
pub fn temporary(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![home.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(entry.path());
            } else if name.starts_with(".tmp-") || Path::new(&name).extension().is_some_and(|e| e == "new") {
                found.push(entry.path());
            }
        }
    }
    found
}
