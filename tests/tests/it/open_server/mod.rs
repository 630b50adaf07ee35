//! The opencode channel: with a scripted end, what is sent, what is not sent again, and what is waited for; with the real OpenCode,
//! that its server and its plugin together give each message once.

mod cuts;
mod end;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::state::State;
use minder_proto::{queue, snapshot};
use minder_tests::files;
use minder_tests::model::Model;
use minder_tests::opencode::Server;
use serde_json::json;

use crate::scene::Scene;
use crate::world::{Minderd, World, ran};
use end::{CONVERSATION, End, Takes};

/// How long anything may take on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// A session whose conversation a scripted server has.
struct Bench {
    world: World,
    _daemon: Minderd,
    end: End,
    session: SessionId,
}

impl Bench {
    fn new() -> Self {
        let world = World::new();
        let daemon = world.start();
        let end = End::start();
        let new = ["new", "--label", "w", "--channel", "opencode", "--url", &end.url()];
        let session = ran(&mut world.minder(new), b"").ok().trim().parse().unwrap();
        world.run(&format!("set w --harness opencode --harness-id {CONVERSATION}")).ok();
        Self { world, _daemon: daemon, end, session }
    }

    fn send(&self, words: &[&str]) -> MessageId {
        let words: Vec<&str> = ["--json", "send", "w"].iter().chain(words).copied().collect();
        let sent = ran(&mut self.world.minder(words), b"").ok();
        let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
        sent["id"].as_str().unwrap().parse().unwrap()
    }

    fn road(&self, id: MessageId) -> Vec<String> {
        let dir = self.world.home().session(self.session);
        let ledger = std::fs::read(dir.join("queue.jsonl")).unwrap();
        let said = queue::history(&ledger, id).into_iter().map(|l| match l.reason {
            Some(reason) => format!("{}({reason})", l.r),
            None => l.r.to_string(),
        });
        said.collect()
    }

    fn until(&self, id: MessageId, receipt: &str) {
        let dir = self.world.home().session(self.session);
        let found = files::wait_for(&dir, LIMIT, || self.road(id).iter().any(|r| r == receipt).then_some(()));
        found.unwrap_or_else(|e| panic!("{receipt}: {e}\n{:?}", self.road(id)));
    }
}

/// What a message's id is made of there.
fn tail(id: MessageId) -> String {
    id.to_string().replace('-', "")
}

#[test]
fn a_message_goes_under_its_own_ids_for_whom_the_last_one_was_and_its_being_there_is_the_evidence() {
    let bench = Bench::new();
    let id = bench.send(&["do it"]);
    bench.until(id, "seen(conversation)");
    assert_eq!(bench.road(id), ["queued", "held(unknown)", "handed", "seen(conversation)"]);
    let prompt = &bench.end.prompts(1)[0];
    let (message, part) = (prompt["messageID"].as_str().unwrap(), &prompt["parts"][0]);
    assert!(message.starts_with("msg_") && message.ends_with(&tail(id)), "{message}");
    assert_eq!(part["id"].as_str().unwrap().trim_start_matches("prt_"), &message[4..]);
    assert!(part["text"].as_str().unwrap().ends_with("do it"), "{part}");
    assert_eq!(
        (&prompt["agent"], &prompt["model"]),
        (&json!("plan"), &json!({"providerID": "p", "modelID": "m"}))
    );
    assert_eq!(bench.end.prompts(1).len(), 1);
}

#[test]
fn what_may_join_a_turn_joins_it_what_may_not_waits_for_its_end_and_nothing_answers_a_question() {
    let bench = Bench::new();
    bench.end.works(Some("busy"));
    let later = bench.send(&["--class", "turn-end", "later"]);
    bench.until(later, "held(busy)");
    let now = bench.send(&["now"]);
    bench.until(now, "seen(conversation)");
    bench.end.asks(true);
    let asked = bench.send(&["meanwhile"]);
    bench.until(asked, "held(dialog)");
    assert_eq!(bench.end.prompts(1).len(), 1);
    bench.end.asks(false);
    bench.until(asked, "seen(conversation)");
    assert!(!bench.road(later).contains(&"handed".to_owned()), "{:?}", bench.road(later));
    bench.end.works(None);
    bench.until(later, "seen(conversation)");
    assert_eq!(bench.end.prompts(3).len(), 3);
}

#[test]
fn what_was_sent_into_the_dark_is_looked_for_before_it_is_sent_again_and_again_it_is_the_same() {
    let bench = Bench::new();
    // It is there, and nobody said so.
    bench.end.takes(Takes::Silently);
    let kept = bench.send(&["kept"]);
    bench.until(kept, "seen(conversation)");
    assert_eq!(bench.end.prompts(1).len(), 1);
    // It is not there: the second time the server would know it from the first.
    bench.end.takes(Takes::Nothing);
    let lost = bench.send(&["lost"]);
    bench.end.prompts(2);
    bench.end.takes(Takes::Well);
    bench.until(lost, "seen(conversation)");
    let prompts = bench.end.prompts(3);
    let ids: Vec<_> = prompts[1..].iter().map(|p| (&p["messageID"], &p["parts"][0]["id"])).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(bench.road(lost), ["queued", "held(unknown)", "handed", "seen(conversation)"]);
}

#[test]
fn c13_a_server_that_is_gone_or_has_another_conversation_or_a_password_takes_nothing() {
    let bench = Bench::new();
    bench.world.run("set w --harness opencode --harness-id ses_2").ok();
    let id = bench.send(&["for another one"]);
    bench.until(id, "held(offline)");
    bench.world.run(&format!("set w --harness opencode --harness-id {CONVERSATION}")).ok();
    bench.until(id, "seen(conversation)");
    bench.end.asks_for_a_password("Basic b3BlbmNvZGU6czNjcmV0");
    let id = bench.send(&["with a password"]);
    bench.until(id, "held(offline(it asks for a password))");
    bench.end.end();
    let id = bench.send(&["for nobody"]);
    bench.until(id, "held(offline)");
    assert_eq!(bench.end.prompts(1).len(), 1);
}

static TURN: Mutex<()> = Mutex::new(());

#[test]
#[cfg_attr(not(opencode), ignore = "needs OpenCode: run tests/setup.sh")]
fn opencode_with_a_server_and_a_plugin_is_given_each_message_once() {
    let _seat = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let scene = Scene::new();
    let model = Model::start().unwrap();
    let folder = scene.isolated.project("worker").unwrap();
    scene.minder(&["hooks", "install", "opencode"]).ok();
    scene.minder(&["daemon", "start"]).ok();
    let server = Server::start(&scene.isolated, &model, &folder).unwrap();
    let conversation = server.begin().unwrap();
    server.prompt(&conversation, "[[say hello]]").unwrap();
    let id = scene.session("worker");
    let (working, _) = scene.wait_move(id, 0, State::Working);
    let (seq, _) = scene.wait_move(id, working, State::Idle);

    // A server of somebody else at that address is not spoken to.
    let other = End::start();
    scene.minder(&["set", "worker", "--channel", "opencode", "--url", &other.url()]).ok();
    let sent = scene.minder(&["send", "worker", "and now? [[say woken]]"]).ok();
    let sent = scene.sent(id, &sent);
    assert_eq!(scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("wrong-process"));

    // Idle: a turn is started, for whom the last one was, and its end is the answer.
    scene.minder(&["set", "worker", "--channel", "opencode", "--url", server.url()]).ok();
    scene.wait_receipt(id, sent, Receipt::Answered);
    let (seq, _) = scene.wait_move(id, seq, State::Idle);

    // Busy: it joins the turn that runs.
    server.prompt(&conversation, "[[gate go]] [[sh echo busy]] [[say over]]").unwrap();
    let (seq, _) = scene.wait_move(id, seq, State::Working);
    let joins = scene.minder(&["send", "worker", "a word [[say heard]]"]).ok();
    let joins = scene.sent(id, &joins);
    scene.wait(id, "its being there", || {
        let queue = snapshot::queue(&scene.home.session(id)).unwrap();
        queue.iter().all(|e| e.id != joins).then_some(())
    });
    model.open("go");
    scene.wait_receipt(id, joins, Receipt::Answered);
    scene.wait_move(id, seq, State::Idle);
    for text in ["and now?", "a word"] {
        let most = model.requests().iter().map(|r| r.count(text)).max();
        assert_eq!(most, Some(1), "{text}\n{}", scene.history(id));
    }
}
