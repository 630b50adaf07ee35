//! Writes a store as the daemon would, for followers: records, timelines, ledgers and the feed, each line with one
//! write, the feed last. No daemon and no journal.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use minder_proto::id::{MessageId, SessionId};
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use minder_proto::timeline::{ACTIVE, sealed_name};
use serde_json::{Value, json};

/// What the writer knows of a session.
#[derive(Clone, Debug)]
struct Known {
    label: String,
    parent: Option<SessionId>,
    created: Stamp,
    state: String,
    seq: u64,
    first: u64,
}

pub struct StoreWriter {
    home: Home,
    sessions: HashMap<SessionId, Known>,
    n: u64,
}

impl StoreWriter {
    pub fn new(root: &Path) -> Self {
        let home = Home::at(root);
        for dir in [home.sessions(), home.trash(), home.root().join("labels"), home.operator()] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(home.feed(), "").unwrap();
        Self { home, sessions: HashMap::new(), n: 0 }
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    pub fn dir(&self, id: SessionId) -> PathBuf {
        self.home.session(id)
    }

    pub fn timeline(&self, id: SessionId) -> PathBuf {
        self.dir(id).join(ACTIVE)
    }

    pub fn seq(&self, id: SessionId) -> u64 {
        self.sessions[&id].seq
    }

    /// A new session that stands `idle`.
    pub fn session(&mut self, label: &str) -> SessionId {
        self.child(label, None)
    }

    pub fn child(&mut self, label: &str, parent: Option<SessionId>) -> SessionId {
        self.with_id(SessionId::random(), label, parent)
    }

    pub fn with_id(&mut self, id: SessionId, label: &str, parent: Option<SessionId>) -> SessionId {
        fs::create_dir_all(self.dir(id)).unwrap();
        let known = Known {
            label: label.to_owned(),
            parent,
            created: Stamp::now(),
            state: "idle".to_owned(),
            seq: 0,
            first: 1,
        };
        self.sessions.insert(id, known);
        fs::write(self.home.label(label), format!("{id}\n")).unwrap();
        self.record(id);
        let title = format!("{label} worker");
        let body =
            json!({"kind": "created", "label": label, "title": title, "parent": parent, "state": "idle"});
        self.line(id, body);
        id
    }

    /// A conversation of Codex that is this session.
    pub fn bind(&self, id: SessionId, thread: &str) {
        let path = self.home.binding("codex", thread);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{id}\n")).unwrap();
    }

    /// A declaration.
    pub fn state(&mut self, id: SessionId, to: &str) -> u64 {
        self.declare(id, to, json!({}))
    }

    pub fn noted(&mut self, id: SessionId, to: &str, note: &str) -> u64 {
        self.declare(id, to, json!({"note": note}))
    }

    /// The end of a turn with nothing declared.
    pub fn turn_end(&mut self, id: SessionId, answer: &str) -> u64 {
        let note = answer.lines().next();
        self.declare(id, "idle", json!({"note": note, "text": answer, "turn_end": true, "by": "hook"}))
    }

    fn declare(&mut self, id: SessionId, to: &str, more: Value) -> u64 {
        let from = std::mem::replace(&mut self.sessions.get_mut(&id).unwrap().state, to.to_owned());
        let mut body = json!({"kind": "state", "from": from, "to": to, "by": "agent"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let seq = self.line(id, body);
        self.record(id);
        seq
    }

    /// A message, queued. Its id, and its line.
    pub fn message(&mut self, to: SessionId, from: &str, body: &str) -> (MessageId, u64) {
        let id = MessageId::now();
        let line = json!({"kind": "message", "id": id, "from": from, "body": body});
        (id, self.queued(to, id, line))
    }

    pub fn keyed_message(&mut self, to: SessionId, from: &str, body: &str, key: &str) -> MessageId {
        let id = MessageId::now();
        let line = json!({"kind": "message", "id": id, "from": from, "body": body, "key": key});
        self.queued(to, id, line);
        id
    }

    /// A notice about line `seq` of `about`, queued.
    pub fn notice(&mut self, to: SessionId, about: SessionId, seq: u64) -> MessageId {
        let id = MessageId::now();
        let about =
            json!({"session": about, "seq": seq, "notice": "state", "from": "working", "to": "review"});
        let line = json!({"kind": "message", "id": id, "from": "minder", "about": about});
        self.queued(to, id, line);
        id
    }

    fn queued(&mut self, to: SessionId, id: MessageId, line: Value) -> u64 {
        let seq = self.append_line(to, line);
        let queued = json!({"at": Stamp::now(), "id": id, "seq": seq, "r": "queued", "class": "now"});
        append(&self.dir(to).join("queue.jsonl"), &queued);
        self.ring(to, seq);
        seq
    }

    /// A message that the person was sent: the feed names no session.
    pub fn message_to_operator(&mut self, from: SessionId, body: &str) -> MessageId {
        let id = MessageId::now();
        let dir = self.home.operator();
        let text = fs::read_to_string(dir.join(ACTIVE)).unwrap_or_default();
        let seq = text.lines().count() as u64 + 1;
        let line =
            json!({"seq": seq, "at": Stamp::now(), "kind": "message", "id": id, "from": from, "body": body});
        append(&dir.join(ACTIVE), &line);
        append(&dir.join("queue.jsonl"), &json!({"at": Stamp::now(), "id": id, "seq": seq, "r": "queued"}));
        id
    }

    /// A receipt that settles a message.
    pub fn settle(&mut self, of: SessionId, id: MessageId, message_seq: u64, receipt: &str) {
        append(
            &self.dir(of).join("queue.jsonl"),
            &json!({"at": Stamp::now(), "id": id, "seq": message_seq, "r": receipt}),
        );
        self.line(of, json!({"kind": "receipt", "id": id, "receipt": receipt}));
    }

    /// Any line.
    pub fn line(&mut self, id: SessionId, body: Value) -> u64 {
        let seq = self.append_line(id, body);
        self.ring(id, seq);
        seq
    }

    fn append_line(&mut self, id: SessionId, body: Value) -> u64 {
        let known = self.sessions.get_mut(&id).unwrap();
        known.seq += 1;
        let seq = known.seq;
        let mut line = json!({"seq": seq, "at": Stamp::now()});
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        append(&self.timeline(id), &line);
        seq
    }

    /// Closes a session: its last line, its tombstone, and its folder goes to the trash.
    pub fn close(&mut self, id: SessionId, note: &str) {
        let seq = self.append_line(id, json!({"kind": "closed", "note": note, "by": "operator"}));
        let Known { label, state, .. } = self.sessions[&id].clone();
        let tombstone = json!({"id": id, "label": label, "title": format!("{label} worker"), "state": state,
            "note": note, "by": "operator", "at": Stamp::now()});
        append(&self.home.closed(), &tombstone);
        fs::remove_file(self.home.label(&label)).unwrap();
        fs::rename(self.dir(id), self.home.trashed(id)).unwrap();
        self.ring(id, seq);
    }

    /// The active segment is full: it gets its sealed name, and the next line begins a new one.
    pub fn seal(&mut self, id: SessionId) {
        let known = self.sessions.get_mut(&id).unwrap();
        let sealed = sealed_name(known.first);
        known.first = known.seq + 1;
        fs::rename(self.timeline(id), self.dir(id).join(sealed)).unwrap();
    }

    /// A foreign hand cuts the log; the writer goes on behind it.
    pub fn cut(&self, id: SessionId, keep: u64) {
        File::options().write(true).open(self.timeline(id)).unwrap().set_len(keep).unwrap();
    }

    /// The feed is full: it is moved aside, and the next line begins a new one.
    pub fn rotate_feed(&mut self) {
        fs::rename(self.home.feed(), self.home.feed().with_extension("jsonl.1")).unwrap();
        fs::write(self.home.feed(), "").unwrap();
    }

    /// So many moves between `working` and `parked`, ending in `review`, in large writes.
    pub fn burst(&mut self, id: SessionId, moves: u64) {
        let known = self.sessions.get_mut(&id).unwrap();
        let mut left = moves;
        while left > 0 {
            let (mut lines, mut feed) = (String::new(), String::new());
            for _ in 0..left.min(500) {
                left -= 1;
                let to = match (left, known.seq % 2) {
                    (0, _) => "review",
                    (_, 0) => "working",
                    _ => "parked",
                };
                known.seq += 1;
                self.n += 1;
                let (seq, n, from) = (known.seq, self.n, &known.state);
                let line = json!({"seq": seq, "at": Stamp::now(), "kind": "state", "from": from, "to": to, "by": "agent"});
                lines.push_str(&format!("{line}\n"));
                feed.push_str(&format!("{}\n", json!({"n": n, "s": id, "q": seq})));
                to.clone_into(&mut known.state);
            }
            write(&self.home.session(id).join(ACTIVE), &lines);
            write(&self.home.feed(), &feed);
        }
    }

    /// Says nothing in the feed from here on but a jump in its numbers.
    pub fn lose_feed_lines(&mut self, lines: u64) {
        self.n += lines;
    }

    fn ring(&mut self, id: SessionId, seq: u64) {
        self.n += 1;
        append(&self.home.feed(), &json!({"n": self.n, "s": id, "q": seq}));
    }

    fn record(&self, id: SessionId) {
        let known = &self.sessions[&id];
        let record = json!({"id": id, "label": known.label, "label_given": true,
            "title": format!("{} worker", known.label), "title_from": "given", "dir": "/", "parent": known.parent,
            "channel": {"kind": "mailbox"}, "created": known.created, "state": known.state,
            "state_at": Stamp::now(), "state_by": "agent", "last_seq": known.seq});
        let path = self.dir(id).join("session.json");
        fs::write(path.with_extension("new"), record.to_string()).unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    }
}

fn append(path: &Path, line: &Value) {
    write(path, &format!("{line}\n"));
}

fn write(path: &Path, text: &str) {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
