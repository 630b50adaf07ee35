//! minder as a user has it, in private surroundings: its commands run from a person's shell, its store read as its
//! files show it, and waiting for what is written there.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use minder_proto::event::{Body, Event, Line, Message, Receipt, Transition};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::record::{QueueLine, SessionRecord};
use minder_proto::state::State;
use minder_proto::{caller, queue, snapshot, timeline};
use minder_tests::files;
use minder_tests::isolate::Isolated;
use minder_tests::process;

/// How long anything may take on a machine that is busy.
pub const LIMIT: Duration = Duration::from_secs(60);

/// One user's minder.
pub struct Scene {
    pub isolated: Arc<Isolated>,
    pub home: Home,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// What it printed; the command must have succeeded.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }
}

/// Runs the words after the first one as a command whose parent is gone, and leaves its exit code in the file that
/// the first one names. A test that is itself run by an agent is under a harness, and so would be what it starts.
const ORPHAN: &str = r#"exec 3<&0; { "$@" <&3 3<&-; echo $? >"$0.part"; mv "$0.part" "$0"; } & exit 0"#;

impl Scene {
    pub fn new() -> Self {
        let isolated = Isolated::new().unwrap();
        let home = Home::at(isolated.minder_home());
        Self { isolated, home }
    }

    /// Runs `minder` from a person's shell.
    pub fn minder(&self, words: &[&str]) -> Ran {
        self.minder_with(words, "")
    }

    /// The same, with a text on its standard input.
    pub fn minder_with(&self, words: &[&str], input: &str) -> Ran {
        let mut command = Command::new(self.isolated.program("minder").unwrap());
        command.args(words);
        self.orphan(&command, input, LIMIT)
    }

    /// Runs a program as a person's shell does, under no harness.
    pub fn orphan(&self, command: &Command, input: &str, limit: Duration) -> Ran {
        let scratch = tempfile::tempdir_in(self.isolated.root()).unwrap();
        let code = scratch.path().join("code");
        let mut shell = self.isolated.command("/bin/sh");
        shell.args(["-c", ORPHAN]).arg(&code).arg(command.get_program()).args(command.get_args());
        shell.current_dir(command.get_current_dir().unwrap_or(self.isolated.root()));
        let out = process::run(&mut shell, input.as_bytes(), limit).unwrap();
        let code = files::wait_for_text(&code, LIMIT, |text| text.trim().parse().ok()).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code, stdout: text(out.stdout), stderr: text(out.stderr) }
    }

    /// Runs `minder` beside the test; its result is waited for with `join`.
    pub fn minder_beside(self: &Arc<Self>, words: &[&str], input: &str) -> std::thread::JoinHandle<Ran> {
        let scene = Arc::clone(self);
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let input = input.to_owned();
        std::thread::spawn(move || {
            scene.minder_with(&words.iter().map(String::as_str).collect::<Vec<_>>(), &input)
        })
    }

    /// The session that has this label, as soon as there is one.
    pub fn session(&self, label: &str) -> SessionId {
        let file = self.home.label(label);
        let found = files::wait_for(&file, LIMIT, || caller::read_id(&file));
        found.unwrap_or_else(|e| panic!("no session {label}: {e}\n{}", self.told()))
    }

    pub fn record(&self, id: SessionId) -> SessionRecord {
        snapshot::record(&self.home, id).unwrap()
    }

    pub fn records(&self) -> Vec<SessionRecord> {
        let (good, bad) = snapshot::records(&self.home).unwrap();
        assert!(bad.is_empty(), "{bad:?}");
        good
    }

    /// Waits until something is found in a session's folder, which is where all changes of it are written.
    pub fn wait<T>(&self, id: SessionId, what: &str, found: impl FnMut() -> Option<T>) -> T {
        files::wait_for(&self.home.session(id), LIMIT, found)
            .unwrap_or_else(|e| panic!("waiting for {what}: {e}\n{}\n{}", self.history(id), self.told()))
    }

    /// Waits for a record.
    pub fn wait_record(&self, id: SessionId, what: &str, wanted: impl Fn(&SessionRecord) -> bool) {
        self.wait(id, what, || {
            snapshot::record(&self.home, id).ok().filter(|record| wanted(record)).map(drop)
        });
    }

    /// A session's timeline.
    pub fn events(&self, id: SessionId) -> Vec<Event> {
        let mut events = Vec::new();
        let dir = snapshot::timeline_dir(&self.home, id).unwrap();
        timeline::read_after(&dir, None, |item| {
            match item.line {
                Line::Event(event) => events.push(*event),
                other => panic!("{other:?} in the timeline of {id}"),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        events
    }

    /// A session's state lines, with their place.
    pub fn moves(&self, id: SessionId) -> Vec<(u64, Transition)> {
        let state = |e: Event| match e.body {
            Body::State(t) => Some((e.seq, t)),
            _ => None,
        };
        self.events(id).into_iter().filter_map(state).collect()
    }

    /// The states that a session went through, and the notes.
    pub fn path(&self, id: SessionId) -> Vec<(State, String)> {
        self.moves(id).into_iter().map(|(_, t)| (t.to, t.note.unwrap_or_default())).collect()
    }

    /// Waits for a state line after a place in the timeline; gives it and its own place.
    pub fn wait_move(&self, id: SessionId, after: u64, to: State) -> (u64, Transition) {
        let wanted = |(seq, line): &(u64, Transition)| *seq > after && line.to == to;
        self.wait(id, &format!("{to} of {id} after line {after}"), || self.moves(id).into_iter().find(wanted))
    }

    /// The last line of a session's timeline.
    pub fn last(&self, id: SessionId) -> u64 {
        self.events(id).last().map_or(0, |e| e.seq)
    }

    /// What a session was sent.
    pub fn messages(&self, id: SessionId) -> Vec<Message> {
        let message = |e: Event| match e.body {
            Body::Message(message) => Some(*message),
            _ => None,
        };
        self.events(id).into_iter().filter_map(message).collect()
    }

    /// The notices about a session that another was sent.
    pub fn notices(&self, to: SessionId, about: SessionId) -> Vec<Message> {
        let of =
            |m: &Message| m.from == Party::Minder && m.about.as_ref().is_some_and(|a| a.session == about);
        self.messages(to).into_iter().filter(of).collect()
    }

    /// How far a message to a session got, every change of it.
    pub fn receipts(&self, to: SessionId, id: MessageId) -> Vec<QueueLine> {
        let file = self.home.session(to).join("queue.jsonl");
        queue::history(&std::fs::read(file).unwrap_or_default(), id)
    }

    /// True once nothing more becomes of a message.
    pub fn is_settled(&self, to: SessionId, id: MessageId) -> bool {
        self.receipts(to, id).pop().is_some_and(|line| line.r.is_settled())
    }

    /// Waits until a message got this far.
    pub fn wait_receipt(&self, to: SessionId, id: MessageId, receipt: Receipt) -> QueueLine {
        let far = || self.receipts(to, id).into_iter().find(|line| line.r == receipt);
        self.wait(to, &format!("message {} {receipt}", id.short()), far)
    }

    /// The words of a message's receipts, in order: `queued, handed, seen`.
    pub fn road(&self, to: SessionId, id: MessageId) -> String {
        let words = self.receipts(to, id).into_iter().map(|line| match line.reason {
            Some(reason) if line.r == Receipt::Held => format!("held({reason})"),
            _ => line.r.to_string(),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The message that a person's `minder send` printed.
    pub fn sent(&self, to: SessionId, printed: &str) -> MessageId {
        let short = printed.split_whitespace().next().unwrap_or_default();
        let messages = self.messages(to);
        let message = messages.iter().find(|m| m.id.short() == short);
        message.unwrap_or_else(|| panic!("{printed:?} names none of {messages:?}")).id
    }

    /// How many messages have not been given to a session for good.
    pub fn snapshot_queue(&self, id: SessionId) -> usize {
        snapshot::queue(&self.home.session(id)).unwrap().len()
    }

    /// What the daemon wrote into its log.
    pub fn told(&self) -> String {
        std::fs::read_to_string(self.home.log()).unwrap_or_default()
    }

    /// A session's timeline and ledger, for the report of a test that fails.
    pub fn history(&self, id: SessionId) -> String {
        let dir = self.home.session(id);
        let text = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap_or_default();
        format!("timeline:\n{}ledger:\n{}", text("timeline.jsonl"), text("queue.jsonl"))
    }

    /// Requests that lie in the spool.
    pub fn spooled(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.home.spool()).into_iter().flatten().flatten();
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect()
    }
}
