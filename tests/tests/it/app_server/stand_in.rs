//! The codex channel before a stand-in for the server of Codex's terminals: it cannot be reached, forks, lets turns die and is
//! late, as its script says.

use std::sync::Arc;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::rpc;
use minder_tests::fake::stage::Server;
use rustix::process::Signal;
use serde_json::Value;

use crate::cuts;
use crate::scene::{LIMIT, Scene};
use crate::world::World;

/// A session that is the conversation `one` of such a server.
struct Stage {
    server: Server,
    id: SessionId,
    // Its folder goes last.
    scene: Scene,
}

impl Stage {
    fn new(script: &str, config: &str) -> Self {
        let scene = Scene::new();
        let folder = scene.isolated.config_home().join("minder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        scene.minder(&["daemon", "start"]).ok();
        let script = format!("server thread one\n{script}");
        let server = Server::start(&scene.isolated, "codex", &script, None).unwrap();
        let socket = server.socket().to_str().unwrap();
        scene.minder(&["new", "--label", "w", "--channel", "codex", "--socket", socket]).ok();
        scene.minder(&["set", "w", "--harness", "codex", "--harness-id", "one"]).ok();
        let id = scene.session("w");
        Self { server, id, scene }
    }

    fn send(&self, text: &str) -> MessageId {
        let printed = self.scene.minder(&["send", "w", text]).ok();
        self.scene.sent(self.id, &printed)
    }

    fn held(&self, id: MessageId, reason: &str) {
        let held = || {
            let line = self.scene.receipts(self.id, id).pop()?;
            (line.r == Receipt::Held && line.reason.as_deref() == Some(reason)).then_some(())
        };
        self.scene.wait(self.id, &format!("{} held({reason})", id.short()), held);
    }

    fn reaches(&self, id: MessageId, receipt: Receipt) {
        self.scene.wait_receipt(self.id, id, receipt);
    }

    /// The conversations whose model was given a message.
    fn taken(&self, id: MessageId) -> Vec<String> {
        let its = |line: &Value| line["client"].as_str() == Some(&id.to_string());
        let lines = self.server.noted("taken");
        let lines = lines.iter().filter(|line| its(line));
        lines.map(|line| line["thread"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn c13_a_socket_that_was_cleaned_away_is_offline_while_its_agent_lives() {
    let stage = Stage::new("", "");
    stage.server.say("server unlink").unwrap();
    let id = stage.send("are you there?");
    stage.held(id, "offline");
    assert_eq!(stage.taken(id), Vec::<String>::new());
    let shown = stage.scene.minder(&["queue", "w"]).ok();
    assert!(shown.contains("held(offline)"), "{shown}");
    // It listens again, and nobody has to say so.
    stage.server.say(&format!("serve {}", stage.server.socket().display())).unwrap();
    stage.reaches(id, Receipt::Seen);
    assert_eq!(stage.taken(id), ["one"]);
}

#[test]
fn c13_a_conversation_that_was_forked_accepts_and_is_given_nothing() {
    let stage = Stage::new("server turn held fine", "");
    let first = stage.send("begin");
    stage.reaches(first, Receipt::Seen);
    stage.server.say("server steers lost").unwrap();
    let second = stage.send("on its way");
    stage.reaches(second, Receipt::Handed);
    // Another conversation acts in its place. The old one still runs, and takes what comes.
    stage.server.say("server fork one two").unwrap();
    stage.server.say("server steers taken").unwrap();
    stage.scene.minder(&["set", "w", "--harness", "codex", "--harness-id", "two"]).ok();
    stage.reaches(second, Receipt::Seen);
    let third = stage.send("and more");
    stage.reaches(third, Receipt::Handed);
    stage.server.say("server answer two all of it").unwrap();
    stage.reaches(third, Receipt::Seen);
    stage.server.say("server answer one the end").unwrap();
    assert_eq!([first, second, third].map(|id| stage.taken(id).join(" ")), ["one", "two", "two"]);
}

#[test]
fn c13_what_a_turn_that_died_at_once_was_sent_is_not_handed() {
    let stage = Stage::new("server turn dies", "");
    let id = stage.send("hello");
    stage.server.wait_noted("turn-ends", 1).unwrap();
    // The turn after it lives.
    stage.server.say("server turn held fine").unwrap();
    stage.reaches(id, Receipt::Seen);
    let road = stage.scene.road(stage.id, id);
    let died = stage.server.noted("turn-ends").len();
    assert_eq!((stage.taken(id).join(" ").as_str(), road.matches("handed").count()), ("one", 1), "{road}");
    assert_eq!(road.matches("held(unknown)").count(), died + 1, "{road}");
    assert!(
        road.rfind("held(unknown)") < road.find("handed"),
        "not before there was a turn that lives: {road}"
    );
}

#[test]
fn c13_turns_that_die_are_not_begun_for_ever() {
    let stage = Stage::new("server turn dies", "delivery.max_attempts = 2");
    let id = stage.send("hello");
    stage.reaches(id, Receipt::Dead);
    let last = stage.scene.receipts(stage.id, id).pop().unwrap();
    assert_eq!((last.reason.as_deref(), last.attempt), (Some("refused"), 2));
    assert_eq!(stage.server.noted("turn-begins").len(), 2);
}

#[test]
fn c13_a_text_that_comes_just_after_the_end_of_a_turn_starts_one_of_its_own() {
    let stage = Stage::new("server turn held fine", "");
    let first = stage.send("begin");
    stage.reaches(first, Receipt::Seen);
    stage.server.say("server steers late").unwrap();
    let second = stage.send("one more thing");
    stage.reaches(second, Receipt::Seen);
    assert_eq!(stage.taken(second), ["one"]);
    let asked = stage.server.noted("request");
    let asked = asked.iter().filter(|line| line["params"]["clientUserMessageId"] == second.to_string());
    let asked: Vec<_> = asked.map(|line| line["method"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(asked, ["turn/steer", "turn/start"], "the same id");
    let told =
        stage.server.noted("taken").iter().filter(|line| line.to_string().contains("one more thing")).count();
    assert_eq!((told, stage.server.noted("turn-begins").len()), (1, 2));
}

/// Nothing that was sent is known by its sender any more: the thread is read before it is sent again.
#[test]
fn c1_a_server_is_given_every_message_once_though_the_daemon_is_killed() {
    let stage = Stage::new("", "");
    let mut sent = Vec::new();
    for round in 0..8 {
        let id = stage.send(&format!("number {round}"));
        let daemon = stage.scene.isolated.daemon().unwrap();
        if round % 2 == 1 {
            // It was asked to take it; the answer may not have come.
            let of_it = |line: &Value| line["params"]["clientUserMessageId"] == id.to_string();
            stage.server.wait(of_it).unwrap();
        }
        daemon.signal(Signal::KILL);
        assert!(daemon.wait(LIMIT));
        sent.push(id);
    }
    stage.scene.minder(&["daemon", "start"]).ok();
    sent.iter().for_each(|id| stage.reaches(*id, Receipt::Seen));
    for id in &sent {
        assert_eq!(stage.taken(*id), ["one"], "{}", stage.scene.road(stage.id, *id));
    }
}

#[test]
fn c1_a_server_is_given_a_message_once_wherever_the_daemon_is_killed() {
    let stage = Stage::new("", "");
    let world = World { isolated: Arc::clone(&stage.scene.isolated) };
    let sender = world.session("sender");
    let daemon = stage.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(Signal::KILL) && daemon.wait(LIMIT));
    let mut sent = Vec::new();
    cuts::everywhere(|at| {
        let (to, key) = (Some(stage.id.to_string()), Some(at.to_owned()));
        let letter =
            rpc::Send { to, key, body: at.to_owned(), caller: sender.caller(), ..rpc::Send::default() };
        let mut arrives = |id| {
            stage.reaches(id, Receipt::Seen);
            sent.push(id);
        };
        cuts::cut(&world, at, &letter, &mut |id| stage.scene.is_settled(stage.id, id), &mut arrives)
    });
    for id in &sent {
        assert_eq!(stage.taken(*id), ["one"], "{}", stage.scene.road(stage.id, *id));
    }
}
