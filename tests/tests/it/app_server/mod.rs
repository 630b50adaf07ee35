//! The codex channel with the real server of Codex, in which another client holds the conversation as a terminal does, and with a
//! scripted one.

mod doubt;
mod end;

mod stand_in;

use std::path::PathBuf;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::queue;
use minder_proto::snapshot;
use minder_tests::codex::{AppServer, Codex, Terminal};
use minder_tests::files;
use minder_tests::model::Model;
use serde_json::{Value, json};

use crate::matrix::{Cell, Harness, proven};
use crate::world::{LIMIT, Minderd, World};

/// A conversation in a server, and a session that it is.
struct Bench {
    world: World,
    _daemon: Minderd,
    model: Model,
    server: Option<AppServer>,
    terminal: Terminal,
    thread: String,
    folder: PathBuf,
    session: SessionId,
}

impl Bench {
    fn new(more: &Value) -> Self {
        let world = World::new();
        let daemon = world.start();
        let model = Model::start().unwrap();
        let folder = world.isolated.project("worker").unwrap();
        let codex = Codex::new(&world.isolated, &model, &[&folder]).unwrap();
        let server = AppServer::start(&world.isolated, &codex, LIMIT).unwrap();
        let mut terminal = Terminal::connect(server.socket(), LIMIT).unwrap();
        let thread = terminal.thread(&folder, more).unwrap();
        let socket = server.socket().to_str().unwrap();
        let new = ["new", "--label", "w", "--channel", "codex", "--socket", socket];
        let session = crate::world::ran(&mut world.minder(new), b"").ok().trim().parse().unwrap();
        world.run(&format!("set w --harness codex --harness-id {thread}")).ok();
        Self { world, _daemon: daemon, model, server: Some(server), terminal, thread, folder, session }
    }

    fn send(&self, text: &str) -> MessageId {
        let ran = crate::world::ran(&mut self.world.minder(["send", "w", text]), b"").ok();
        let end = ran.split_whitespace().next().unwrap().to_owned();
        let waiting = snapshot::queue(&self.dir()).unwrap();
        let sent = waiting.iter().map(|e| e.id).find(|id| id.short() == end);
        sent.unwrap_or_else(|| panic!("{ran} is settled before it was looked for"))
    }

    fn dir(&self) -> PathBuf {
        self.world.home().session(self.session)
    }

    fn road(&self, id: MessageId) -> String {
        let ledger = std::fs::read(self.dir().join("queue.jsonl")).unwrap();
        let said = queue::history(&ledger, id).into_iter().map(|l| match l.reason {
            Some(reason) => format!("{}({reason})", l.r),
            None => l.r.to_string(),
        });
        said.collect::<Vec<_>>().join(", ")
    }

    fn until(&self, id: MessageId, receipt: Receipt, reason: Option<&str>) {
        let found = files::wait_for(&self.dir(), LIMIT, || {
            let ledger = std::fs::read(self.dir().join("queue.jsonl")).ok()?;
            let lines = queue::history(&ledger, id);
            lines
                .iter()
                .any(|l| l.r == receipt && (reason.is_none() || l.reason.as_deref() == reason))
                .then_some(())
        });
        found.unwrap_or_else(|e| panic!("{e}\n{}", self.road(id)));
    }
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_that_is_idle_is_woken_and_its_thread_is_the_evidence() {
    let mut bench = Bench::new(&json!({}));
    bench.terminal.prompt(&bench.thread, "[[say hello]]").unwrap();
    bench.terminal.hear("turn/completed").unwrap();
    let id = bench.send("do the next thing [[say got-it]]");
    bench.until(id, Receipt::Seen, Some("thread"));
    let request = bench.model.wait_for_text(LIMIT, "do the next thing").unwrap();
    assert_eq!(request.count("do the next thing"), 1);
    // It is a turn of the conversation that the terminal holds.
    bench.terminal.hear("turn/completed").unwrap();
    assert!(bench.road(id).contains("held(unknown)"), "{}", bench.road(id));

    // And of what it watches it is told.
    bench.world.run("new --label api").ok();
    bench.world.run("--as w watch api").ok();
    bench.world.run("--as api state review --note news").ok();
    bench.model.wait_for_text(LIMIT, "\u{2014} news").unwrap();
    proven(Harness::Codex, &[Cell::Idle, Cell::Notice]);
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_that_works_is_given_it_in_the_turn_that_runs() {
    let mut bench = Bench::new(&json!({}));
    let fifo = bench.folder.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    bench.terminal.prompt(&bench.thread, &format!("[[sh cat {}]] [[say first]]", fifo.display())).unwrap();
    while bench.terminal.hear("item/started").unwrap()["params"]["item"]["type"] != "commandExecution" {}
    let id = bench.send("one more thing [[say second]]");
    bench.until(id, Receipt::Handed, None);
    assert!(!bench.road(id).contains("seen"), "{}", bench.road(id));
    std::fs::write(&fifo, "go\n").unwrap();
    bench.until(id, Receipt::Seen, Some("thread"));
    bench.terminal.hear("turn/completed").unwrap();
    let of_it = bench.model.requests().into_iter().filter(|r| r.brought("one more thing")).count();
    assert_eq!(of_it, 1, "{}", bench.road(id));
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn codex_with_an_open_dialog_is_given_it_after_the_answer() {
    let mut bench = Bench::new(&json!({"approvalPolicy": "untrusted", "sandbox": "read-only"}));
    bench.terminal.prompt(&bench.thread, "[[sh touch x]] [[say done]]").unwrap();
    let dialog = bench.terminal.hear("item/commandExecution/requestApproval").unwrap();
    let id = bench.send("by the way [[say noted]]");
    bench.until(id, Receipt::Held, Some("dialog"));
    assert!(!bench.model.requests().iter().any(|r| r.brought("by the way")), "{}", bench.road(id));
    bench.terminal.answer(&dialog, &json!({"decision": "accept"})).unwrap();
    bench.until(id, Receipt::Seen, Some("thread"));
    bench.model.wait_for_text(LIMIT, "by the way").unwrap();
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn c13_a_server_that_is_gone_and_a_conversation_that_it_does_not_hold_take_nothing() {
    let mut bench = Bench::new(&json!({}));
    bench.terminal.prompt(&bench.thread, "[[say hello]]").unwrap();
    bench.terminal.hear("turn/completed").unwrap();
    // Another conversation's server would take it: this one is not that.
    bench.world.run("set w --harness codex --harness-id 01a22e4e-0000-7fa0-87b2-9f03718a0dde").ok();
    let id = bench.send("for another one");
    bench.until(id, Receipt::Held, Some("offline"));
    drop(bench.server.take());
    bench.world.run(&format!("set w --harness codex --harness-id {}-x", bench.thread)).ok();
    let second = bench.send("for nobody");
    bench.until(second, Receipt::Held, Some("offline"));
    assert!(!bench.model.requests().iter().any(|r| r.brought("for another one") || r.brought("for nobody")));
}
