//! Replaces what differs from run to run: paths, ids, times, process ids.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

/// Replacements of one scene. The same id is replaced by the same value in all its records.
pub struct Normal {
    /// Texts and what stands for them, longest first.
    fixed: Vec<(String, String)>,
    uuids: HashMap<String, String>,
    tools: HashMap<String, String>,
    agents: HashMap<String, String>,
}

impl Normal {
    pub fn new(root: &Path, port: u16, pid: u32) -> Self {
        let root = root.to_string_lossy().into_owned();
        let dashed = root.replace('/', "-");
        let fixed = vec![
            (dashed, "-rig".to_owned()),
            (root, "/rig".to_owned()),
            (format!("127.0.0.1:{port}"), "127.0.0.1:8000".to_owned()),
            (format!("/{pid}.sock"), "/4242.sock".to_owned()),
            (format!("/claude-{}/", nix::unistd::getuid()), "/claude-1000/".to_owned()),
        ];
        Self { fixed, uuids: HashMap::new(), tools: HashMap::new(), agents: HashMap::new() }
    }

    pub fn apply(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.apply(item)).collect(),
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| (self.text(key), self.field(key, value));
                Value::Object(fields.iter().map(field).collect())
            }
            _ => value.clone(),
        }
    }

    fn field(&mut self, key: &str, value: &Value) -> Value {
        match key {
            "pid" => 4242.into(),
            "duration_ms" | "durationMs" => 7.into(),
            "startedAt" | "updatedAt" | "statusUpdatedAt" | "nameSince" | "sentAtMs" => {
                1_700_000_000_000_u64.into()
            }
            "procStart" => "1000".into(),
            "pidDomain" => "linux:0:pid:[0]".into(),
            "timestamp" => "2026-01-01T00:00:00.000Z".into(),
            "runId" => "run-1".into(),
            // Derived from the folder's name and a random suffix.
            "name" if value.as_str().is_some_and(|v| v.starts_with("p-")) => "p-01".into(),
            _ => self.apply(value),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.fixed {
            text = text.replace(from, to);
        }
        // Words are what ids are made of; everything between them stays.
        let mut out = String::new();
        let mut word = String::new();
        for c in text.chars().chain(['\0']) {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                word.push(c);
                continue;
            }
            out += &self.word(&std::mem::take(&mut word));
            if c != '\0' {
                out.push(c);
            }
        }
        out
    }

    fn word(&mut self, word: &str) -> String {
        if let Some(prefix) = ["hook-", "agent-"].into_iter().find(|p| word.starts_with(p)) {
            return format!("{prefix}{}", self.word(&word[prefix.len()..]));
        }
        let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let dashes: Vec<_> = word.match_indices('-').map(|(at, _)| at).collect();
        if dashes == [8, 13, 18, 23] && word.len() == 36 && hex(&word.replace('-', "")) {
            let next = self.uuids.len() + 1;
            let id = || format!("00000000-0000-4000-8000-{next:012}");
            return self.uuids.entry(word.to_owned()).or_insert_with(id).clone();
        }
        if let Some(rest) = word.strip_prefix("toolu_").or(word.strip_prefix("msg_"))
            && hex(rest)
        {
            let prefix = &word[..word.len() - rest.len()];
            let next = self.tools.len() + 1;
            return self.tools.entry(word.to_owned()).or_insert_with(|| format!("{prefix}{next:02}")).clone();
        }
        // Ids of sub-agents (`a` and 16 hex digits) and of background commands (`b` and 8 characters).
        let agent = word.len() == 17 && word.starts_with('a') && hex(word);
        let task = word.len() == 9
            && word.starts_with('b')
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && self.agents.contains_key(word);
        if agent || task {
            let next = self.agents.len() + 1;
            return self.agents.entry(word.to_owned()).or_insert_with(|| format!("task{next:02}")).clone();
        }
        word.to_owned()
    }

    /// Names a background command's id, which cannot be told from a word.
    pub fn task(&mut self, id: &str) {
        let next = self.agents.len() + 1;
        self.agents.insert(id.to_owned(), format!("task{next:02}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_replaced_and_the_same_id_stays_the_same() {
        let mut normal = Normal::new(Path::new("/tmp/mt-x1"), 4711, 99);
        normal.task("bq1w2e3r4");
        let (a, b) = ("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "6fa459ea-ee8a-3ca4-894e-db77e160355e");
        let record = json!({
            "session_id": a, "prompt_id": b, "path": format!("/tmp/mt-x1/home/-tmp-mt-x1-p/{a}.jsonl"),
            "hook": format!("hook-{b}"), "tool_use_id": "toolu_00ff", "pid": 99, "sock": "/r/99.sock",
            "text": "<id>bq1w2e3r4</id> at 127.0.0.1:4711, agent-a0123456789abcdef.jsonl", "plain": "a-b_c [x]",
        });
        let one = "00000000-0000-4000-8000-000000000001";
        let two = "00000000-0000-4000-8000-000000000002";
        assert_eq!(
            normal.apply(&record),
            json!({
                "session_id": one, "prompt_id": two, "path": format!("/rig/home/-rig-p/{one}.jsonl"),
                "hook": format!("hook-{two}"), "tool_use_id": "toolu_01", "pid": 4242, "sock": "/r/4242.sock",
                "text": "<id>task01</id> at 127.0.0.1:8000, agent-task02.jsonl", "plain": "a-b_c [x]",
            })
        );
    }
}
