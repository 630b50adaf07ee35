//! The store against a disk, with a runtime only to await its answers.

use minder_proto::event::{Author, Body, Class, Message, Transition};
use minder_proto::id::{MessageId, Party, SessionId};
use minder_proto::record::{Channel, ClosedLine, Process, SessionRecord, TitleSource};
use minder_proto::stamp::Stamp;
use minder_proto::state::State as Declared;
use minder_proto::{snapshot, timeline};
use serde_json::Value;

use super::*;

mod damage;

fn record(label: &str) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        label: label.to_owned(),
        label_given: true,
        title: label.to_owned(),
        title_from: TitleSource::Label,
        harness: None,
        dir: "/".to_owned(),
        parent: None,
        primary: false,
        channel: Channel::Mailbox,
        until_hook: false,
        account: None,
        created: Stamp::now(),
        adopted: false,
        state: Declared::Idle,
        state_at: Stamp::now(),
        state_by: Author::Minder,
        turn_end: false,
        note: None,
        last_seq: 0,
        state_seq: 1,
        bindings: Vec::new(),
        incarnation: 0,
        process: None,
        compacting: false,
        compacting_since: None,
        turn: None,
        last_turn: None,
        last_end: None,
        env: std::collections::BTreeMap::new(),
        env_names: Vec::new(),
        circuit: None,
        account_hold: None,
        launch: None,
        unknown: serde_json::Map::new(),
    }
}

fn message(body: &str) -> Message {
    Message {
        id: MessageId::now(),
        from: Party::Operator,
        about: None,
        body: body.to_owned(),
        class: Class::Now,
        key: None,
        reply_to: None,
        thread: None,
        cause: None,
        hops: 0,
        expires: None,
    }
}

struct Rig {
    dir: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    store: Store,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = Self::open(&dir);
        Self { dir, runtime, store }
    }

    fn open(dir: &tempfile::TempDir) -> Store {
        let mut config = Config::default();
        config.store.durability = Durability::None;
        Store::open(&Home::at(dir.path()), Arc::new(config), Vec::new(), Vec::new()).unwrap().0
    }

    /// Forgets the daemon without a clean stop: the next one replays the journal.
    fn crash(&mut self) {
        // What it does after an answer is done by then.
        let _ = self.runtime.block_on(self.store.read(|_| ()));
        self.store.vanish();
        self.store = Self::open(&self.dir);
    }

    fn write<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Txn<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.runtime.block_on(self.store.write(run))
    }

    fn create(&self, label: &str) -> SessionId {
        let record = record(label);
        let id = record.id;
        self.write(move |txn| txn.create(record)).unwrap();
        id
    }

    fn declare(&self, id: SessionId, to: Declared) -> Result<u64, Fault> {
        self.write(move |txn| {
            let from = txn.session(id)?.record.state;
            txn.edit(id, |r| r.state = to)?;
            txn.append(
                Party::Session(id),
                Body::State(Transition {
                    from,
                    to,
                    note: None,
                    by: Author::Agent,
                    cause: None,
                    turn: None,
                    turn_end: false,
                    text: None,
                    proof: None,
                }),
            )
        })
    }

    fn seqs(&self, id: SessionId) -> Vec<u64> {
        let home = Home::at(self.dir.path());
        let dir = snapshot::timeline_dir(&home, id).unwrap();
        timeline::last(&dir, 10_000).unwrap().iter().map(|e| e.seq).collect()
    }
}

#[test]
fn what_was_told_is_there_after_a_crash_and_after_a_stop() {
    let mut rig = Rig::new();
    let id = rig.create("api");
    for round in 0..3 {
        rig.declare(id, Declared::Working).unwrap();
        rig.declare(id, Declared::Review).unwrap();
        rig.write(move |txn| txn.post(Party::Session(id), message("hello"))).unwrap();
        if round == 1 {
            rig.store.stop();
        }
        rig.crash();
        let waiting = rig.runtime.block_on(rig.store.read(move |s| s.session(id).unwrap().inbox.queue.len()));
        assert_eq!(waiting.unwrap(), round + 1);
    }
    assert_eq!(rig.seqs(id), (1..=10).collect::<Vec<_>>());
    let read = snapshot::record(&Home::at(rig.dir.path()), id).unwrap();
    assert_eq!((read.state, read.label.as_str()), (Declared::Review, "api"));
}

#[test]
fn a_refused_mutation_leaves_nothing_behind() {
    let rig = Rig::new();
    let id = rig.create("api");
    let refused: Result<(), Fault> = rig.write(move |txn| {
        txn.append(Party::Session(id), Body::Note { what: "x".into(), text: "x".into() })?;
        txn.edit(id, |r| r.label = "other".into())?;
        txn.post(Party::Session(id), message("hello"))?;
        Err(Fault::new(Kind::Refused, "no"))
    });
    assert_eq!(refused.unwrap_err().kind, Kind::Refused);
    rig.declare(id, Declared::Done).unwrap();
    assert_eq!(rig.seqs(id), [1, 2]);
    let (label, waiting) = rig
        .runtime
        .block_on(rig.store.read(move |s| (s.by_label("api"), s.session(id).unwrap().inbox.queue.len())))
        .unwrap();
    assert_eq!((label, waiting), (Some(id), 0));
    assert_eq!(std::fs::read_to_string(Home::at(rig.dir.path()).label("api")).unwrap(), format!("{id}\n"));
}

#[test]
fn closing_moves_the_folder_and_frees_the_label() {
    let mut rig = Rig::new();
    let id = rig.create("api");
    let line = ClosedLine {
        id,
        label: "api".into(),
        title: "api".into(),
        state: Declared::Done,
        note: Some("merged".into()),
        by: Author::Operator,
        at: Stamp::now(),
        process: None,
    };
    rig.write(move |txn| txn.close(line)).unwrap();
    rig.crash();
    let home = Home::at(rig.dir.path());
    assert!(!home.session(id).exists() && home.trashed(id).is_dir() && !home.label("api").exists());
    assert_eq!(snapshot::tombstone(&home, id).unwrap().note.as_deref(), Some("merged"));
    assert_ne!(rig.create("api"), id);
    assert_eq!(rig.declare(id, Declared::Idle).unwrap_err().kind, Kind::Gone);
}

#[test]
fn sessions_are_found_by_their_process() {
    let mut rig = Rig::new();
    let process = |pid, boot: &str| Process { pid, start: 7, boot: boot.into(), tty: None, ended: None };
    let at = |rig: &Rig, pid, boot: &str| {
        let wanted = process(pid, boot);
        let look = move |s: &State| s.by_process(&wanted).map(|s| s.record.label.clone()).collect::<Vec<_>>();
        rig.runtime.block_on(rig.store.read(look)).unwrap().join(" ")
    };
    let mut born = record("a");
    born.process = Some(process(1, "x"));
    let a = born.id;
    rig.write(move |txn| txn.create(born)).unwrap();
    let b = rig.create("b");
    let bind = move |rig: &Rig, id, pid| {
        rig.write(move |txn| txn.edit(id, |r| r.process = Some(process(pid, "x")))).unwrap();
    };
    bind(&rig, b, 1);
    assert_eq!((at(&rig, 1, "x").as_str(), at(&rig, 1, "another boot").as_str()), ("a b", ""));

    // What is refused has moved nothing.
    let refused = rig.write(move |txn| {
        txn.edit(a, |r| r.process = Some(process(2, "x")))?;
        txn.edit(b, |r| r.process = None)?;
        assert_eq!(txn.state().by_process(&process(2, "x")).count(), 1);
        Err::<(), _>(Fault::new(Kind::Refused, "no"))
    });
    assert!(refused.is_err());
    assert_eq!((at(&rig, 1, "x").as_str(), at(&rig, 2, "x").as_str()), ("a b", ""));

    bind(&rig, a, 2);
    rig.write(move |txn| txn.edit(b, |r| r.process.as_mut().unwrap().ended = Some(Stamp::now()))).unwrap();
    for _ in 0..2 {
        assert_eq!((at(&rig, 1, "x").as_str(), at(&rig, 2, "x").as_str()), ("b", "a"));
        rig.crash();
    }
    let line = ClosedLine {
        id: a,
        label: "a".into(),
        title: "a".into(),
        state: Declared::Idle,
        note: None,
        by: Author::Operator,
        at: Stamp::now(),
        process: None,
    };
    rig.write(move |txn| txn.close(line)).unwrap();
    std::fs::remove_dir_all(Home::at(rig.dir.path()).session(b)).unwrap();
    rig.declare(b, Declared::Done).unwrap_err();
    assert_eq!((at(&rig, 1, "x").as_str(), at(&rig, 2, "x").as_str()), ("", ""));
    let left = rig.runtime.block_on(rig.store.read(|s| s.processes.len())).unwrap();
    assert_eq!(left, 0, "nothing is kept of sessions that are gone");
}

#[test]
fn j3_a_torn_last_line_swallows_nothing() {
    let mut rig = Rig::new();
    let id = rig.create("api");
    rig.declare(id, Declared::Working).unwrap();
    let file = Home::at(rig.dir.path()).session(id).join(timeline::ACTIVE);
    let whole = std::fs::read(&file).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for restart in [false, true] {
        for cut in last..whole.len() {
            std::fs::write(&file, &whole[..cut]).unwrap();
            if restart {
                rig.store.stop();
                std::fs::write(&file, &whole[..cut]).unwrap();
                rig.crash();
            }
            let to = if cut % 2 == 0 { Declared::Review } else { Declared::Idle };
            let seq = rig.declare(id, to).unwrap();
            let lines = timeline::last(file.parent().unwrap(), 100).unwrap();
            let noted: Vec<_> = lines
                .iter()
                .filter(|e| matches!(&e.body, Body::Note { what, .. } if what == "torn"))
                .collect();
            assert_eq!(noted.len(), 1, "cut at {cut}: {lines:?}");
            assert_eq!(lines.last().unwrap().seq, seq);
            assert!(lines.windows(2).all(|w| w[0].seq < w[1].seq));
        }
    }
}

#[test]
fn j4_a_folder_taken_away_is_gone_once_and_nothing_is_recreated() {
    let rig = Rig::new();
    let (id, other) = (rig.create("api"), rig.create("web"));
    let home = Home::at(rig.dir.path());
    std::fs::remove_dir_all(home.session(id)).unwrap();
    assert_eq!(rig.declare(id, Declared::Done).unwrap_err().kind, Kind::Gone);
    rig.declare(other, Declared::Done).unwrap();
    assert_eq!(rig.declare(id, Declared::Done).unwrap_err().kind, Kind::Gone);
    assert!(!home.session(id).exists() && !home.label("api").exists());
    assert_eq!(snapshot::tombstone(&home, id).unwrap().note.as_deref(), Some("its folder is gone"));
    rig.create("api");
}

#[test]
fn j4_garbage_hides_nothing_else() {
    let mut rig = Rig::new();
    let (bad, good, watched) = (rig.create("bad"), rig.create("good"), rig.create("watched"));
    rig.write(move |txn| txn.post(Party::Session(good), message("hello"))).unwrap();
    rig.store.stop();
    let home = Home::at(rig.dir.path());
    std::fs::write(home.session(bad).join("session.json"), "{garbage").unwrap();
    std::fs::write(home.session(watched).join("watchers.json"), "[1,2").unwrap();
    let ledger = home.session(good).join("queue.jsonl");
    let text = format!("garbage\n{}", std::fs::read_to_string(&ledger).unwrap());
    std::fs::write(&ledger, text).unwrap();
    rig.crash();
    assert_eq!(rig.declare(bad, Declared::Done).unwrap_err().kind, Kind::InvalidState);
    rig.declare(good, Declared::Done).unwrap();
    rig.declare(watched, Declared::Done).unwrap();
    let waiting = rig.runtime.block_on(rig.store.read(move |s| s.session(good).unwrap().inbox.queue.len()));
    assert_eq!(waiting.unwrap(), 1);
    let quarantined = std::fs::read_dir(home.quarantine()).unwrap().count();
    assert_eq!(quarantined, 4, "two files, each with its .why");
    rig.crash();
    assert_eq!(std::fs::read_dir(home.quarantine()).unwrap().count(), 4, "told once");
}

#[test]
fn a_long_timeline_is_sealed_and_read_through() {
    let mut rig = Rig::new();
    let id = rig.create("api");
    let body = "x".repeat(200 * 1024);
    for _ in 0..50 {
        let body = body.clone();
        rig.write(move |txn| txn.post(Party::Operator, message(&body))).unwrap();
        let body = "y".repeat(200 * 1024);
        rig.write(move |txn| txn.append(Party::Session(id), Body::Note { what: "n".into(), text: body }))
            .unwrap();
    }
    let home = Home::at(rig.dir.path());
    assert!(timeline::sealed(&home.session(id)).unwrap().len() >= 2);
    assert_eq!(rig.seqs(id), (1..=51).collect::<Vec<_>>());
    rig.crash();
    rig.declare(id, Declared::Done).unwrap();
    assert_eq!(rig.seqs(id), (1..=52).collect::<Vec<_>>());
    assert_eq!(timeline::tail(&home.operator()).unwrap().seq, 50);
}

#[test]
fn one_group_costs_one_flush() {
    let rig = Rig::new();
    let ids: Vec<SessionId> = (0..64).map(|n| rig.create(&format!("s{n}"))).collect();
    let before = rig.store.counters();
    rig.runtime.block_on(async {
        let calls: Vec<_> = ids
            .iter()
            .map(|id| {
                let id = *id;
                let run = move |txn: &mut Txn<'_>| txn.post(Party::Session(id), message("hello"));
                let mut call = Box::pin(rig.store.write(run));
                // Sent at the first poll; all of them before any is awaited.
                let waker = std::task::Waker::noop();
                assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
                call
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    });
    let after = rig.store.counters();
    assert_eq!(after.commits - before.commits, 64);
    let flushes = after.flushes - before.flushes;
    assert!(flushes < 64, "64 waiting mutations took {flushes} flushes");
}

type Call<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

#[test]
fn mutations_of_one_group_build_on_each_other() {
    let mut rig = Rig::new();
    let (old, other) = (rig.create("old"), rig.create("other"));
    let born = record("born");
    let id = born.id;
    let (let_go, wait) = channel::<()>();
    let note = |text: &str| Body::Note { what: "n".into(), text: text.into() };
    let store = rig.store.clone();
    rig.runtime.block_on(async {
        // The first one keeps the owner until all the others wait behind it.
        let first = store.write(move |txn| {
            wait.recv().expect("it is let go");
            txn.create(born).map(drop)
        });
        let refused = store.write(move |txn| {
            txn.append(Party::Session(id), note("refused"))?;
            txn.post(Party::Session(old), message("refused"))?;
            Err::<(), _>(Fault::new(Kind::Refused, "no"))
        });
        let sealed = store.write(move |txn| {
            for _ in 0..25 {
                txn.append(Party::Session(old), note(&"x".repeat(200 * 1024)))?;
            }
            Ok(())
        });
        let post = |to: SessionId, text: &'static str| {
            store.write(move |txn| txn.post(Party::Session(to), message(text)).map(drop))
        };
        let line = |to: SessionId| {
            store.write(move |txn| {
                txn.append(Party::Session(to), Body::Note { what: "n".into(), text: "y".into() }).map(drop)
            })
        };
        let mut calls: Vec<Call> = vec![
            Box::pin(first),
            Box::pin(post(id, "1")),
            Box::pin(line(id)),
            Box::pin(refused),
            Box::pin(post(id, "2")),
            Box::pin(sealed),
            Box::pin(post(old, "3")),
            Box::pin(line(old)),
            Box::pin(post(other, "4")),
        ];
        let waker = std::task::Waker::noop();
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
        }
        let_go.send(()).unwrap();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.is_ok(), n != 3, "{n}");
        }
    });
    let bodies = |rig: &Rig, id: SessionId| -> Vec<String> {
        let home = Home::at(rig.dir.path());
        let lines = timeline::last(&home.session(id), 1_000).unwrap();
        assert!(lines.iter().map(|l| l.seq).eq(1..=lines.len() as u64), "{lines:?}");
        let word = |event: &minder_proto::event::Event| match &event.body {
            Body::Message(m) => m.body.clone(),
            Body::Note { what, .. } => what.clone(),
            _ => "-".into(),
        };
        lines.iter().map(word).collect()
    };
    for _ in 0..2 {
        assert_eq!(bodies(&rig, id), ["-", "1", "n", "2"]);
        let long = bodies(&rig, old);
        assert_eq!((long.len(), &long[26..]), (28, &["3".to_owned(), "n".to_owned()][..]));
        assert_eq!(bodies(&rig, other), ["-", "4"]);
        let queues = [id, old, other].map(|id| {
            let queue = snapshot::queue(&Home::at(rig.dir.path()).session(id)).unwrap();
            queue.len()
        });
        assert_eq!(queues, [2, 1, 1]);
        rig.crash();
    }
}

#[test]
fn modes_are_narrow_whatever_the_umask() {
    let rig = Rig::new();
    rig.create("api");
    let mut todo = vec![rig.dir.path().to_owned()];
    while let Some(path) = todo.pop() {
        use std::os::unix::fs::PermissionsExt;
        let meta = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(meta.permissions().mode() & 0o077, 0, "{}", path.display());
        if meta.is_dir() {
            todo.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        }
    }
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("format"), "minder-store 2\n").unwrap();
    let opened = Store::open(&Home::at(dir.path()), Arc::new(Config::default()), Vec::new(), Vec::new());
    let error = opened.err().unwrap();
    assert_eq!(error.exit(), exit::VERSION);
    assert!(error.to_string().contains("minder-store 2"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was written");
}

#[test]
fn keys_of_hooks_go_when_nothing_of_theirs_can_come_any_more() {
    let mut rig = Rig::new();
    let home = Home::at(rig.dir.path());
    rig.store.stop();
    let line = |key: &str, minutes: u64| {
        let at = Stamp::now().minus(std::time::Duration::from_secs(60 * minutes));
        let line = minder_proto::record::KeyLine { key: key.to_owned(), at, sum: 0, result: Value::Null };
        serde_json::to_string(&line).unwrap() + "\n"
    };
    let text = [line("hook/old", 20), line("hook/new", 1), line("operator/message.send/k", 20)].concat();
    std::fs::write(home.keys(), text).unwrap();
    rig.store = Rig::open(&rig.dir);
    rig.runtime.block_on(rig.store.compact()).unwrap();
    let kept = std::fs::read_to_string(home.keys()).unwrap();
    assert!(!kept.contains("hook/old") && kept.contains("hook/new") && kept.contains("send/k"), "{kept}");
}

#[test]
fn a_commit_that_no_start_would_read_is_refused_and_the_next_one_counts() {
    let dir = tempfile::tempdir().unwrap();
    let found = recover(dir.path()).unwrap();
    let mut journal = journal::Journal::open(dir.path(), &found, false).unwrap();
    let op = |len| vec![Op::Replace { file: "f".into(), bytes: vec![7; len] }];
    assert!(journal.commit(&[op(journal::RECORD_MAX + 1)]).is_err());
    journal.commit(&[op(5)]).unwrap();
    assert_eq!(recover(dir.path()).unwrap().commits, [op(5)]);
}
