//! A store as a test writes it: the files of the contract, without a daemon.

use std::path::PathBuf;

use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use serde_json::{Value, json};

/// A session's files, which grow with each call.
pub struct Session {
    pub id: SessionId,
    dir: PathBuf,
    home: Home,
    seq: u64,
}

/// When everything in a test's store happened.
pub fn at() -> Stamp {
    Stamp::now()
}

impl Session {
    /// A session of this label, idle and with a mailbox; `change` is laid over its record.
    pub fn new(home: &Home, label: &str, change: &Value) -> Self {
        let id = change["id"].as_str().map_or_else(SessionId::random, |id| id.parse().unwrap());
        let dir = home.session(id);
        fs_err::create_dir_all(&dir).unwrap();
        fs_err::create_dir_all(home.root().join("labels")).unwrap();
        fs_err::write(home.label(label), format!("{id}\n")).unwrap();
        let mut record = json!({
            "id": id, "label": label, "title": label, "dir": "/w", "channel": {"kind": "mailbox"},
            "created": at(), "state": "idle", "state_at": at(), "state_by": "minder", "last_seq": 1,
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            record[key] = value.clone();
        }
        fs_err::write(dir.join("session.json"), record.to_string()).unwrap();
        let mut session = Self { id, dir, home: home.clone(), seq: 0 };
        session.line(&json!({"kind": "created", "label": label, "title": label, "state": "idle"}));
        session
    }

    /// The person's own folder.
    pub fn operator(home: &Home) -> Self {
        let dir = home.operator();
        fs_err::create_dir_all(&dir).unwrap();
        Self { id: SessionId::from_bytes([0; 16]), dir, home: home.clone(), seq: 0 }
    }

    /// Appends a line to the timeline; gives its number.
    pub fn line(&mut self, body: &Value) -> u64 {
        self.seq += 1;
        let mut line = json!({"seq": self.seq, "at": at()});
        for (key, value) in body.as_object().unwrap() {
            line[key] = value.clone();
        }
        append(&self.dir.join("timeline.jsonl"), &line);
        self.seq
    }

    /// A message that waits.
    pub fn message(&mut self, from: &str, body: &str) -> MessageId {
        let id = MessageId::now();
        let offset = fs_err::metadata(self.dir.join("timeline.jsonl")).map_or(0, |m| m.len());
        let seq =
            self.line(&json!({"kind": "message", "id": id, "from": from, "body": body, "class": "now"}));
        self.ledger(&json!({"at": at(), "id": id, "seq": seq, "r": "queued", "class": "now", "from": from,
            "segment": 1, "offset": offset}));
        id
    }

    /// A change in the ledger.
    pub fn ledger(&self, line: &Value) {
        append(&self.dir.join("queue.jsonl"), line);
    }

    /// Binds a conversation of Claude's, as its variable names it.
    pub fn bind(&self, harness_id: &str) {
        let path = self.home.binding("claude", harness_id);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, format!("{}\n", self.id)).unwrap();
    }

    /// Writes a file beside the record.
    pub fn write(&self, name: &str, value: &Value) {
        fs_err::write(self.dir.join(name), value.to_string()).unwrap();
    }
}

fn append(path: &std::path::Path, line: &Value) {
    let mut text = fs_err::read(path).unwrap_or_default();
    text.extend_from_slice(line.to_string().as_bytes());
    text.push(b'\n');
    fs_err::write(path, text).unwrap();
}
