//! Messages to a harness in a terminal that has minder's hooks: a conversation that lives, with prompts, tools, ends,
//! waiters and a transcript, where no test says which hook runs when.

use std::path::PathBuf;

use minder_proto::event::Receipt;
use minder_proto::id::{MessageId, SessionId};
use minder_proto::state::State;
use minder_tests::fake::stage::Actor;
use minder_tests::files;
use minder_tests::process::Process;
use minder_tests::tmux::Tmux;
use rustix::process::Signal;
use serde_json::Value;

use crate::scene::{LIMIT, Scene};

/// A daemon, and an actor that it knows as a session.
struct Cast {
    actor: Actor,
    // Ends before the folder goes.
    _tmux: Tmux,
    scene: Scene,
    id: SessionId,
}

impl Cast {
    fn new(config: &str) -> Self {
        let scene = Scene::new();
        let folder = scene.isolated.config_home().join("minder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        scene.minder(&["hooks", "install", "claude"]).ok();
        scene.minder(&["daemon", "start"]).ok();
        let tmux = Tmux::start(&scene.isolated).unwrap();
        let folder = scene.isolated.project("p").unwrap();
        let actor = Actor::start(&tmux, &scene.isolated, "claude", &folder, "look claude\nturn held", &[]);
        let id = scene.session("p");
        Self { actor: actor.unwrap(), _tmux: tmux, scene, id }
    }

    /// A person types.
    fn prompt(&self, text: &str) {
        let before = self.actor.noted("turn-begins").len();
        self.actor.pane().paste(text).unwrap();
        self.actor.pane().key("Enter").unwrap();
        self.actor.wait_noted("turn-begins", before + 1).unwrap();
    }

    fn send(&self, text: &str) -> MessageId {
        let printed = self.scene.minder(&["send", "p", text]).ok();
        self.scene.sent(self.id, &printed)
    }

    fn reaches(&self, id: MessageId, receipt: Receipt) {
        self.scene.wait_receipt(self.id, id, receipt);
    }

    fn say(&self, steps: &[&str]) {
        steps.iter().for_each(|step| self.actor.say(step).unwrap());
    }

    /// Where the transcripts of its conversations lie.
    fn transcripts(&self) -> PathBuf {
        let folder = self.scene.isolated.project("p").unwrap();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = folder.display().to_string().chars().map(plain).collect();
        self.scene.isolated.home().join(".claude/projects").join(name)
    }

    /// What the model was given: the texts of all transcripts.
    fn given(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.transcripts()).into_iter().flatten().flatten();
        let of_model = |line: &Value| {
            let kind = line["attachment"]["type"].as_str().or(line["type"].as_str());
            let kinds = ["user", "queued_command", "hook_additional_context", "hook_blocking_error"];
            kind.is_some_and(|kind| kinds.contains(&kind))
        };
        let lines = files.flat_map(|file| files::json_lines(&file.path()));
        lines.filter(of_model).map(|line| line.to_string()).collect()
    }

    /// How often the model was given a message.
    fn times(&self, id: MessageId) -> usize {
        self.given().iter().filter(|text| text.contains(&format!("message {}", id.short()))).count()
    }

    fn seen_once(&self, id: MessageId) {
        self.reaches(id, Receipt::Seen);
        // A prompt is told of before it is written.
        files::wait_for(&self.transcripts(), LIMIT, || (self.times(id) > 0).then_some(())).unwrap();
        assert_eq!(self.times(id), 1, "{}\n{:#?}", self.scene.history(self.id), self.given());
    }
}

#[test]
fn c4_what_an_actor_drops_is_given_again_and_seen_once() {
    let cast = Cast::new("delivery.evidence_timeout = \"1s\"");
    cast.prompt("work");
    cast.say(&["hooks dropped"]);
    let sent = cast.send("take this");
    cast.say(&[r#"tool Bash {"command":"ls"}"#]);
    cast.reaches(sent, Receipt::Handed);
    // The turn ends, and nothing shows that the text was read.
    cast.say(&["answer done"]);
    cast.actor.wait_noted("turn-ends", 1).unwrap();
    cast.say(&["hooks on"]);
    cast.seen_once(sent);
    let road = cast.scene.road(cast.id, sent);
    assert!(road.matches("handed").count() > 1 && road.matches("seen").count() == 1, "{road}");
}

#[test]
fn c5_one_body_though_every_hook_runs_twice() {
    let cast = Cast::new("");
    cast.say(&["hooks twice PostToolUse"]);
    cast.prompt("work");
    let sent = cast.send("only once");
    cast.say(&[r#"tool Bash {"command":"ls"}"#, r#"tool Bash {"command":"pwd"}"#]);
    cast.seen_once(sent);
    cast.say(&["hooks twice Stop", "answer done"]);
    cast.actor.wait_noted("turn-ends", 1).unwrap();
    assert_eq!(cast.times(sent), 1);
    // One that waits beside the conversation brings the next; nobody brings it a second time.
    let next = cast.send("wake up");
    cast.actor.wait_noted("turn-begins", 2).unwrap();
    cast.seen_once(next);
    cast.say(&[r#"tool Bash {"command":"ls"}"#, "answer done"]);
    assert_eq!((cast.times(sent), cast.times(next)), (1, 1));
}

#[test]
fn c7_a_turn_that_ends_without_a_text_leaves_it_for_the_next() {
    let cast = Cast::new("delivery.evidence_timeout = \"1s\"");
    cast.prompt("work");
    let sent = cast.send("not lost");
    cast.say(&["hooks dropped", "answer done"]);
    cast.actor.wait_noted("turn-ends", 1).unwrap();
    cast.reaches(sent, Receipt::Handed);
    assert_eq!(cast.times(sent), 0);
    cast.say(&["hooks on"]);
    cast.seen_once(sent);
}

#[test]
fn c7_what_comes_during_a_compaction_comes_after_it_in_order() {
    let cast = Cast::new("");
    cast.prompt("work");
    cast.say(&["answer done", "compact held new-id"]);
    let sent = ["the first", "the second"].map(|text| cast.send(text));
    sent.iter().for_each(|id| cast.reaches(*id, Receipt::Held));
    cast.say(&["compacted"]);
    for id in sent {
        cast.seen_once(id);
        assert!(
            cast.scene.road(cast.id, id).contains("held(compacting)"),
            "{}",
            cast.scene.road(cast.id, id)
        );
    }
    let given = cast.given().join("\n");
    assert!(given.find("the first").unwrap() < given.find("the second").unwrap());
    assert_eq!(cast.scene.records().len(), 1, "it is the same session under a new id");
}

/// The daemon dies at any time while an actor is given one message after the other.
#[test]
fn c1_an_actor_is_given_every_message_though_the_daemon_is_killed() {
    let cast = Cast::new("delivery.evidence_timeout = \"1s\"");
    cast.prompt("work");
    let mut sent = Vec::new();
    for round in 0..6 {
        sent.push(cast.send(&format!("number {round}")));
        let daemon = cast.scene.isolated.daemon().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| cast.say(&[r#"tool Bash {"command":"ls"}"#]));
            // Sometimes before the hook has asked, sometimes while it does or after it.
            for _ in 0..round * 2 {
                cast.scene.isolated.daemon();
            }
            daemon.signal(Signal::KILL);
        });
        assert!(daemon.wait(LIMIT));
    }
    cast.scene.minder(&["daemon", "start"]).ok();
    cast.say(&[r#"tool Bash {"command":"ls"}"#, "turn 0 done", "answer done"]);
    sent.iter().for_each(|id| cast.seen_once(*id));
}

#[test]
fn c14_who_waits_is_told_of_his_own_turn() {
    let cast = Cast::new("");
    cast.prompt("turn one");
    let ask = |words: &[&str]| {
        cast.scene.minder(&[&["send", "p", "--class", "turn-end", "--wait"], words].concat())
    };
    // Not in time: the message waits all the same.
    let asked = ask(&["--timeout", "300ms", "which one?"]);
    assert_eq!((asked.code, cast.scene.snapshot_queue(cast.id)), (1, 1), "{asked:?}");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&["and which other?"]));
        cast.scene.wait(cast.id, "both messages", || (cast.scene.messages(cast.id).len() == 2).then_some(()));
        // The end of the first turn brings them; it is no answer.
        cast.say(&["answer the first is done"]);
        cast.scene.messages(cast.id).iter().for_each(|message| cast.seen_once(message.id));
        assert!(!asking.is_finished());
        cast.say(&["answer the red one"]);
        let asked = asking.join().unwrap();
        assert_eq!((asked.code, asked.stdout.as_str()), (0, "the red one\n"), "{asked:?}");
    });
    cast.actor.wait_noted("turn-ends", 1).unwrap();

    cast.prompt("turn two");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&["and now?"]));
        cast.scene
            .wait(cast.id, "the third message", || (cast.scene.messages(cast.id).len() == 3).then_some(()));
        cast.say(&[
            "dialog 1 Do you want to proceed? | Yes | No",
            r#"hook PermissionRequest {"tool_name":"Bash","tool_input":{"command":"touch made"}}"#,
        ]);
        let asked = asking.join().unwrap();
        assert_eq!(asked.code, 3, "somebody must answer first: {asked:?}");
    });
}

#[test]
fn c14_a_turn_that_fails_is_told_as_one() {
    let cast = Cast::new("");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| cast.scene.minder(&["send", "p", "--wait", "try it"]));
        // Nothing runs: the one that waits beside the conversation begins a turn.
        cast.actor.wait_noted("turn-begins", 1).unwrap();
        cast.say(&[r#"hook StopFailure {"error":"server_error","last_assistant_message":"API Error: 529"}"#]);
        let asked = asking.join().unwrap();
        assert_eq!(asked.code, 4, "{asked:?}");
    });
}

/// The turn that runs is over for minder too.
fn is_over(cast: &Cast) {
    cast.scene.wait_record(cast.id, "the end of its turn", |r| r.turn.is_none() && r.state == State::Idle);
}

#[test]
fn g4_an_escape_that_no_hook_tells_is_found() {
    let cast = Cast::new("");
    cast.prompt("work");
    let sent = cast.send("and then this");
    cast.reaches(sent, Receipt::Held);
    cast.say(&["escape"]);
    // Nothing is refused to it for a turn that is over.
    cast.seen_once(sent);
    let path = cast.scene.path(cast.id);
    assert!(path.contains(&(State::Idle, "interrupted".to_owned())), "{path:?}");
    assert_eq!(cast.actor.noted("hook").iter().filter(|line| line["event"] == "Stop").count(), 0);
}

#[test]
fn g4_an_end_whose_event_is_lost_is_found() {
    let cast = Cast::new("");
    cast.say(&["hooks missing Stop"]);
    cast.prompt("work");
    cast.say(&["answer done"]);
    cast.actor.wait_noted("turn-ends", 1).unwrap();
    is_over(&cast);
    let sent = cast.send("go on");
    cast.seen_once(sent);
}

/// Nothing tells of the end: the turn stays one that runs, the reason says so, and the next boundary brings what waits.
#[test]
fn g4_without_any_source_it_goes_on_at_the_next_boundary() {
    let cast = Cast::new("");
    cast.say(&["status off", "hooks missing Stop"]);
    cast.prompt("work");
    cast.say(&["answer done"]);
    cast.actor.wait_noted("turn-ends", 1).unwrap();
    let sent = cast.send("do not forget");
    cast.reaches(sent, Receipt::Held);
    assert!(cast.scene.road(cast.id, sent).ends_with("held(busy)"), "{}", cast.scene.road(cast.id, sent));
    assert_eq!(cast.scene.record(cast.id).state, State::Working);
    cast.prompt("what is new?");
    cast.seen_once(sent);
}

/// What a process is called says nothing of whether it lives, and that it was killed is told by the kernel.
#[test]
fn f9_who_is_called_otherwise_lives_and_who_is_killed_is_told_of() {
    let cast = Cast::new("");
    cast.prompt("work");
    cast.say(&["title something-else"]);
    let sent = cast.send("still there?");
    cast.say(&[r#"tool Bash {"command":"ls"}"#]);
    cast.seen_once(sent);
    let record = cast.scene.record(cast.id);
    let process = record.process.unwrap();
    assert_eq!((record.state, process.ended), (State::Working, None));
    let last = cast.scene.last(cast.id);
    let process = Process::open(u32::try_from(process.pid).unwrap()).unwrap().unwrap();
    assert!(process.signal(Signal::KILL));
    let (_, line) = cast.scene.wait_move(cast.id, last, State::Error);
    assert!(line.note.unwrap().ends_with("is gone"));
    let waits = cast.send("and now?");
    cast.scene.wait(cast.id, "the reason", || {
        cast.scene.road(cast.id, waits).ends_with("held(offline)").then_some(())
    });
}

/// Somebody else's hooks: one that keeps each turn going once, and one that hangs until it is ended.
const NEIGHBOURS: &str = r#"[
  {"hooks": [{"type": "command", "command": "grep -q '\"stop_hook_active\":true' && exit 0; echo 'not yet' >&2; exit 2"}]},
  {"hooks": [{"type": "command", "command": "exec sleep 600", "timeout": 1}]}
]"#;

#[test]
fn h2_beside_hooks_that_block_or_hang_messages_arrive_once() {
    for first in [true, false] {
        let cast = Cast::new("");
        let file = cast.scene.isolated.home().join(".claude/settings.json");
        let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let theirs: Vec<Value> = serde_json::from_str(NEIGHBOURS).unwrap();
        let stop = settings["hooks"]["Stop"].as_array_mut().unwrap();
        let place = if first { 0 } else { stop.len() };
        stop.splice(place..place, theirs);
        std::fs::write(&file, settings.to_string()).unwrap();
        cast.prompt("work");
        let id = cast.send("a word from me");
        cast.reaches(id, Receipt::Held);
        // It would end, and both keep it going.
        cast.say(&["answer first end"]);
        cast.seen_once(id);
        cast.say(&["answer second end"]);
        cast.actor.wait_noted("turn-ends", 1).unwrap();
        // Idle, it is woken.
        let second = cast.send("a second word");
        cast.seen_once(second);
        assert_eq!((cast.times(id), cast.times(second)), (1, 1), "{first}");
    }
}
