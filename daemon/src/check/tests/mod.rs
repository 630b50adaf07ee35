//! Checks of stores that the daemon's own store made: whole, after a crash, beside a writer, and damaged by hand.

mod crash;
mod damage;
mod live;
mod relations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use minder_proto::config::{Config, Durability};
use minder_proto::error::Fault;
use minder_proto::event::{Author, Body, Receipt};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::{Channel, Cursor, Cursors};
use minder_proto::rpc::Spooled;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;

use super::check;
use crate::session::{self, Born, Changes, Declaration, from_minder};
use crate::store::{Store, Txn};
use crate::watch::{self, FanOut};

/// A store that is open.
pub struct Writer {
    pub store: Store,
    runtime: tokio::runtime::Runtime,
}

impl Writer {
    pub fn open(dir: &Path) -> Self {
        let mut config = Config::default();
        config.store.durability = Durability::None;
        let opened = Store::open(&Home::at(dir), Arc::new(config), vec![Box::new(FanOut)], Vec::new());
        Self {
            store: opened.unwrap().0,
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    pub fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> T {
        self.runtime.block_on(self.store.write(run)).unwrap()
    }

    /// Waits for something that needs a runtime.
    pub fn wait<T>(&self, what: impl Future<Output = Result<T, Fault>>) -> T {
        self.runtime.block_on(what).unwrap()
    }

    /// Another one after a crash of this.
    pub fn crash(self, dir: &Path) -> Self {
        self.wait(self.store.read(|_| ()));
        self.store.vanish();
        Self::open(dir)
    }

    pub fn create(&self, label: &str, parent: Option<SessionId>, conversation: Option<&str>) -> SessionId {
        let born = Born {
            label: Some(label.to_owned()),
            title: None,
            harness: conversation.map(|_| "claude".to_owned()),
            conversation: conversation.map(|c| (c.to_owned(), "startup".to_owned(), None)),
            dir: "/".to_owned(),
            parent,
            primary: false,
            channel: Channel::Mailbox,
            process: None,
            adopted: false,
            said: None,
            launch: None,
        };
        self.write(move |txn| session::create(txn, born))
    }

    pub fn declare(&self, id: SessionId, to: State, note: &str) {
        let note = (!note.is_empty()).then(|| note.to_owned());
        self.write(move |txn| session::declare(txn, id, Declaration::new(to, note, Author::Agent)));
    }

    pub fn post(&self, to: Party, body: &str) -> MessageId {
        let message =
            minder_proto::event::Message { from: Party::Operator, ..from_minder(None, body.to_owned()) };
        self.write(move |txn| txn.post(to, message)).0
    }

    pub fn receipt(&self, to: Party, id: MessageId, receipt: Receipt) {
        self.write(move |txn| txn.receipt(to, id, receipt, None, 1, Some("mailbox")));
    }

    pub fn close(&self, id: SessionId) {
        let close = self
            .store
            .write_on_files(move |txn, files| session::close(txn, files, id, None, Author::Operator, false));
        self.runtime.block_on(close).unwrap();
    }
}

/// A copy of a store with something of everything in it, and the names of what is in it.
pub struct Sample {
    dir: tempfile::TempDir,
    names: Arc<BTreeMap<String, &'static str>>,
}

struct Template {
    _dir: tempfile::TempDir,
    stopped: PathBuf,
    crashed: PathBuf,
    names: Arc<BTreeMap<String, &'static str>>,
}

/// Makes the sample. `pause` is called between commits.
pub fn fill(writer: &Writer, mut pause: impl FnMut()) -> BTreeMap<String, &'static str> {
    let mut names = BTreeMap::new();
    let home = writer.store.home().clone();
    let api = writer.create("api", None, Some("conversation-1"));
    pause();
    let web = writer.create("web", Some(api), None);
    let old = writer.create("old", None, Some("conversation-2"));
    names.extend([(api.to_string(), "API"), (web.to_string(), "WEB"), (old.to_string(), "OLD")]);
    writer.declare(api, State::Working, "begins");
    writer.declare(web, State::Working, "");
    writer.declare(web, State::Review, "look at this");
    pause();
    for (name, receipts) in [
        ("QUEUED", &[][..]),
        ("HELD", &[Receipt::Held]),
        ("HANDED", &[Receipt::Handed, Receipt::Queued, Receipt::Handed]),
        ("SEEN", &[Receipt::Handed, Receipt::Seen]),
        ("DEAD", &[Receipt::Dead]),
    ] {
        let id = writer.post(Party::Session(api), name);
        names.insert(id.to_string(), name);
        receipts.iter().for_each(|r| writer.receipt(Party::Session(api), id, *r));
        if name == "SEEN" {
            writer.write(move |txn| txn.answered(Party::Session(api), id, 0, "turn 3".to_owned()));
        }
        pause();
    }
    names.insert(writer.post(Party::Operator, "to you").to_string(), "YOURS");
    writer.write(move |txn| watch::add(txn, web, &[api, old], None));
    let changes = Changes { label: Some("site".to_owned()), ..Changes::default() };
    writer.write(move |txn| session::set(txn, web, changes));
    let changes = Changes {
        conversation: Some(("claude".to_owned(), "conversation-3".to_owned())),
        ..Changes::default()
    };
    writer.write(move |txn| session::set(txn, api, changes));
    writer.post(Party::Session(old), "too late");
    pause();
    writer.close(old);
    writer.write(|txn| {
        txn.remember("operator/message.send/k".to_owned(), 7, serde_json::json!({}));
        Ok(())
    });
    writer.declare(api, State::Done, "");
    let cursors =
        Cursors { version: 1, follows: [(web, Cursor { seq: 1, offset: 0, segment: 1 })].into(), told: 1 };
    let cursors = serde_json::to_vec(&cursors).unwrap();
    private(&home.session(api).join("cursors.json"), &cursors);
    private(&home.followers().join("deploy.json"), &cursors);
    let spooled =
        Spooled { method: "session.state".into(), params: serde_json::Value::Null, at: Stamp::now() };
    let name = format!("{}.json", uuid::Uuid::now_v7());
    private(&home.spool().join(&name), &serde_json::to_vec(&spooled).unwrap());
    names.insert(name, "REQUEST.json");
    pause();
    // The notices that minder sent to the one who is told of all this.
    for event in minder_proto::timeline::last(&home.session(api), 100).unwrap() {
        if let Body::Message(message) = event.body {
            names.entry(message.id.to_string()).or_insert("NOTICE");
        }
    }
    names
}

pub fn private(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Copies a tree with its modes.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else if to.extension().is_some_and(|e| e == "wal") {
            // Without most of the room that is allocated in advance.
            let bytes = std::fs::read(entry.path()).unwrap();
            let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
            private(&to, &bytes[..bytes.len().min(used + 64)]);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn template() -> &'static Template {
    static MADE: OnceLock<Template> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let [live, crashed, stopped] = ["live", "crashed", "stopped"].map(|n| dir.path().join(n));
        let writer = Writer::open(&live);
        let names = Arc::new(fill(&writer, || {}));
        copy(&live, &crashed);
        writer.store.stop();
        copy(&live, &stopped);
        Template { _dir: dir, stopped, crashed, names }
    })
}

impl Sample {
    /// A store whose daemon was stopped.
    pub fn stopped() -> Self {
        Self::of(&template().stopped)
    }

    /// One whose daemon was killed after everything was applied: its journal is full.
    pub fn crashed() -> Self {
        Self::of(&template().crashed)
    }

    fn of(template_dir: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(template_dir, &dir.path().join("store"));
        Self { dir, names: Arc::clone(&template().names) }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// A path with names in it, `sessions/API/session.json`.
    pub fn path(&self, named: &str) -> PathBuf {
        self.root().join(self.with_ids(named))
    }

    /// The id that a name is for.
    pub fn id(&self, name: &str) -> String {
        self.names.iter().find(|(_, n)| **n == name).unwrap().0.clone()
    }

    /// Names replaced by what they are for.
    pub fn with_ids(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (id, name)| text.replace(name, id))
    }

    pub fn write(&self, named: &str, text: &str) {
        private(&self.path(named), self.with_ids(text).as_bytes());
    }

    /// Changes the text of a file.
    pub fn edit(&self, named: &str, change: impl FnOnce(String) -> String) {
        let path = self.path(named);
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = change(text.clone());
        assert_ne!(text, changed, "{named}");
        std::fs::write(&path, changed).unwrap();
    }

    /// Changes the lines of a file, counted from 1.
    pub fn lines(&self, named: &str, change: impl FnOnce(&mut Vec<String>)) {
        self.edit(named, |text| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.insert(0, String::new());
            change(&mut lines);
            lines[1..].join("\n") + "\n"
        });
    }

    /// What a check says, with names, and its exit code.
    pub fn checked(&self) -> String {
        let report = check(&Home::at(self.root())).unwrap();
        format!("{}exit {}\n", self.named(&report.to_lines()), report.exit())
    }

    /// A text with names in the place of ids.
    pub fn named(&self, text: &str) -> String {
        let text = self.names.iter().fold(text.to_owned(), |text, (id, name)| text.replace(id, name));
        text.replace(&*self.root().to_string_lossy(), "STORE")
    }
}

/// What a check says of a stopped store after something was done to it.
pub fn after(damage: impl FnOnce(&Sample)) -> String {
    let sample = Sample::stopped();
    damage(&sample);
    sample.checked()
}

pub fn note(what: &str) -> Body {
    Body::Note { what: what.to_owned(), text: what.to_owned() }
}
