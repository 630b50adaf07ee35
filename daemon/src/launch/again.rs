//! What a further process of a session goes on with: its newest conversation, by its exact id, and never beside a process that
//! still has it. A conversation in which nothing was said has nothing to go on with.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::ops::Not;

use minder_proto::error::{Fault, Kind};
use minder_proto::record::{Binding, SessionRecord};

use super::programs::{self, Program};
use crate::process::is_alive;

/// What a new process is called with.
#[derive(Clone, Debug)]
pub struct Goes {
    /// The harness; none for a program that is none.
    pub harness: Option<&'static Program>,
    /// The conversation.
    pub conversation: Option<String>,
    /// Why it is a new one although there was one.
    pub note: Option<String>,
}

/// Decides it. Reads the conversation's file where one is known.
pub fn goes_on_with(record: &SessionRecord, fresh: bool) -> Result<Goes, Fault> {
    let label = &record.label;
    if let Some(process) = record.process.as_ref().filter(|p| p.ended.is_none() && is_alive(p)) {
        let why = format!(
            "{label} runs (pid {}): two processes of one conversation lose a branch of it",
            process.pid
        );
        return Err(Fault::new(Kind::Refused, why).about(record.id));
    }
    let Some(name) = record.harness.as_deref() else {
        let known = record.launch.as_ref().is_some_and(|launch| !launch.argv.is_empty());
        if known {
            return Ok(Goes { harness: None, conversation: None, note: None });
        }
        let why = format!("{label} has no harness, and no program that it was launched with");
        return Err(Fault::new(Kind::Refused, why).about(record.id));
    };
    let harness = programs::by_name(name).ok_or_else(|| {
        Fault::new(Kind::Refused, format!("how {name} is started in a terminal is not known"))
            .about(record.id)
    })?;
    let newest = record.bindings.iter().rev().find(|b| b.harness == name);
    let (conversation, note) = match newest {
        None => (None, None),
        Some(_) if fresh => (None, None),
        Some(binding) if says_something(binding) => (Some(binding.id.clone()), None),
        Some(binding) => {
            let note = format!("nothing was said in conversation {}: a new one is begun", binding.id);
            (None, Some(note))
        }
    };
    Ok(Goes { harness: Some(harness), conversation, note })
}

/// False only where the harness's own file of a conversation was never written, or was read to its end in that harness's
/// format and has no message in it. Where that is not known the harness decides: a conversation is not dropped on a guess.
fn says_something(binding: &Binding) -> bool {
    let Some(path) = &binding.transcript else { return true };
    let role = match binding.harness.as_str() {
        "claude" => Some("/message/role"),
        "codex" => Some("/payload/role"),
        _ => None,
    };
    match std::fs::metadata(path) {
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(about) => role.filter(|_| about.is_file()).is_none_or(|role| {
            let file = File::open(path).map(BufReader::new);
            file.is_ok_and(|file| has_none(file, role)).not()
        }),
    }
}

/// True if each line can be read and none is a message.
fn has_none(file: impl BufRead, role: &str) -> bool {
    file.split(b'\n').all(|line| {
        let Ok(line) = line else { return false };
        if line.iter().all(u8::is_ascii_whitespace) {
            return true;
        }
        let line = serde_json::from_slice::<serde_json::Value>(&line);
        line.is_ok_and(|line| {
            let said = line.pointer(role).and_then(serde_json::Value::as_str);
            !matches!(said, Some("user" | "assistant"))
        })
    })
}

#[cfg(test)]
mod tests {
    use minder_proto::stamp::Stamp;
    use serde_json::json;

    use super::*;

    fn record(bindings: &[(&str, &str, Option<&str>)]) -> SessionRecord {
        let mut record: SessionRecord = serde_json::from_value(json!({
            "id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "label": "api", "title": "api", "dir": "/",
            "harness": "claude", "channel": {"kind": "hook"}, "created": "2026-11-30T12:00:00Z", "state": "idle",
            "state_at": "2026-11-30T12:00:00Z", "state_by": "hook", "last_seq": 1,
        }))
        .unwrap();
        let bound = |(harness, id, transcript): &(&str, &str, Option<&str>)| Binding {
            harness: (*harness).to_owned(),
            id: (*id).to_owned(),
            since: Stamp::from_millis(0),
            until: None,
            why: "startup".to_owned(),
            transcript: transcript.map(str::to_owned),
        };
        record.bindings = bindings.iter().map(bound).collect();
        record
    }

    #[test]
    fn i5_an_id_belongs_to_its_harness() {
        let mut record =
            record(&[("claude", "one", None), ("claude", "two", None), ("codex", "three", None)]);
        assert_eq!(goes_on_with(&record, false).unwrap().conversation.as_deref(), Some("two"));
        record.harness = Some("codex".to_owned());
        assert_eq!(goes_on_with(&record, false).unwrap().conversation.as_deref(), Some("three"));
        record.harness = Some("pi".to_owned());
        assert_eq!(goes_on_with(&record, false).unwrap().conversation, None);
        record.harness = Some("nobody".to_owned());
        assert_eq!(goes_on_with(&record, false).unwrap_err().kind, Kind::Refused);
        record.harness = None;
        assert_eq!(goes_on_with(&record, false).unwrap_err().kind, Kind::Refused);
    }

    #[test]
    fn i1_a_conversation_without_a_word_is_not_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let path = path.to_str().unwrap();
        let goes = |fresh| goes_on_with(&record(&[("claude", "one", Some(path))]), fresh).unwrap();
        assert_eq!(goes(false).conversation, None, "it was never written");
        assert!(goes(false).note.unwrap().contains("conversation one"));
        std::fs::write(path, "{\"type\":\"mode\"}\n{\"type\":\"summary\",\"summary\":\"x\"}\n").unwrap();
        assert_eq!(goes(false).conversation, None);
        std::fs::write(path, "{\"type\":\"mode\"}\n{\"type\":\"user\",\"message\":{\"role\":\"user\"}}\n")
            .unwrap();
        assert_eq!(goes(false).conversation.as_deref(), Some("one"));
        assert_eq!(goes(true).conversation, None);
        // What cannot be read to its end in the harness's own format says nothing either way.
        std::fs::write(path, "{\"type\":\"mode\"}\nnot what it was\n").unwrap();
        assert_eq!(goes(false).conversation.as_deref(), Some("one"));
        let within = format!("{path}/t.jsonl");
        for path in [dir.path().to_str().unwrap(), &within] {
            let goes = goes_on_with(&record(&[("claude", "one", Some(path))]), false).unwrap();
            assert_eq!(goes.conversation.as_deref(), Some("one"), "{path}");
        }
        let mut other = record(&[("pi", "one", Some(path))]);
        other.harness = Some("pi".to_owned());
        std::fs::write(path, "{}\n").unwrap();
        assert_eq!(goes_on_with(&other, false).unwrap().conversation.as_deref(), Some("one"));
    }

    #[test]
    fn nobody_is_started_beside_a_process_that_lives() {
        let mut record = record(&[("claude", "one", None)]);
        record.process = crate::identity::process_of(i32::try_from(std::process::id()).unwrap());
        for fresh in [false, true] {
            let fault = goes_on_with(&record, fresh).unwrap_err();
            assert_eq!((fault.kind.exit(), fault.kind), (3, Kind::Refused));
        }
        record.process.as_mut().unwrap().start += 1;
        assert_eq!(goes_on_with(&record, false).unwrap().conversation.as_deref(), Some("one"));
    }
}
