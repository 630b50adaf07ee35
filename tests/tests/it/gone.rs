//! Callers, programs and texts that go away in the middle, and messages that must not go with them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use minder_proto::event::Receipt;
use minder_proto::id::Party;
use minder_proto::record::Channel;
use minder_proto::rpc::{self, Call};
use minder_proto::snapshot;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use minder_tests::files;
use serde_json::json;

use crate::queues::{of_program, program, until_empty};
use crate::world::{Agent, LIMIT, World, must, refused};

/// Posts a call and goes away without reading its answer, after a moment of `patience`.
fn post_and_leave<C: Call + serde::Serialize>(world: &World, call: &C, patience: Duration) {
    let socket = std::fs::read_link(world.home().socket_link()).unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": C::METHOD, "params": call}).to_string();
    let head = "POST / HTTP/1.1\r\nhost: minder\r\ncontent-type: application/json\r\ncontent-length: ";
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(stream, "{head}{}\r\n\r\n{body}", body.len()).unwrap();
    // At most this long: an answer that comes sooner ends the moment.
    stream.set_read_timeout(Some(patience)).unwrap();
    let _ = std::io::Read::read(&mut stream, &mut [0]);
}

fn until(agent: &Agent, what: impl Fn() -> bool) {
    files::wait_for(&agent.dir(), LIMIT, || what().then_some(())).unwrap();
}

#[test]
fn a_caller_who_goes_away_has_taken_nothing() {
    const MESSAGES: usize = 40;
    // Each commit takes its time, so that callers go away on both sides of one.
    let world = World::durable();
    let _daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    for n in 0..MESSAGES {
        must(&mut client, &w.letter(&s, format!("{n}")));
    }
    let take = rpc::Take { caller: s.caller(), key: None };
    for n in 0..MESSAGES {
        post_and_leave(&world, &take, Duration::from_micros(200 + 300 * n as u64));
    }
    until(&s, || s.queue().iter().all(|e| matches!(e.receipt, Receipt::Queued | Receipt::Held)));
    let taken: Vec<String> = s.take_all(&mut client).into_iter().map(|t| t.body).collect();
    let mut sorted: Vec<usize> = taken.iter().map(|t| t.parse().unwrap()).collect();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..MESSAGES), "{taken:?}");
}

#[test]
fn a_program_is_over_at_its_exit_whatever_it_left_or_said() {
    let world = World::with("[exec]\ntimeout = \"30s\"\n");
    let _daemon = world.start();
    let (w, ran) = (world.session("w"), of_program(&world, "ran"));
    let ran_times = || std::fs::read_to_string(&ran).unwrap_or_default().lines().count();
    let texts = [
        // A child that holds its output far longer than the program may take.
        format!("echo ran >> {0}; sleep 600 & echo $! > {0}.child", ran.display()),
        // More than a pipe holds, after what is kept.
        format!("echo ran >> {}; head -c 300000 /dev/zero", ran.display()),
    ];
    let mut client = world.client();
    for (n, text) in texts.iter().enumerate() {
        let s = world.session_by(&format!("s{n}"), program(&world, text));
        must(&mut client, &w.letter(&s, "hello"));
        until_empty(&s);
        assert_eq!(ran_times(), n + 1, "{text}");
        let (_, letter) = s.messages().remove(0);
        let history = minder_proto::queue::history(&std::fs::read(s.file("queue.jsonl")).unwrap(), letter.id);
        assert_eq!(history.last().unwrap().r, Receipt::Seen);
    }
    let child = std::fs::read_to_string(ran.with_extension("child")).unwrap();
    let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_a_program_has_is_given_to_nobody_else() {
    let world = World::new();
    let _daemon = world.start();
    let (go, has) = (of_program(&world, "go"), of_program(&world, "has"));
    let text = format!("mkfifo {0} 2>/dev/null; echo > {1}; read line < {0}", go.display(), has.display());
    let (s, w) = (world.session_by("s", program(&world, &text)), world.session("w"));
    let mut client = world.client();
    must(&mut client, &w.letter(&s, "first"));
    files::wait_for(&has, LIMIT, || has.exists().then_some(())).unwrap();
    must(&mut client, &w.letter(&s, "second"));
    let take = rpc::Take { caller: s.caller(), key: None };
    let taken = must(&mut client, &take).message.unwrap();
    assert_eq!(taken.body, "second");
    must(&mut client, &rpc::Ack { caller: s.caller(), id: taken.id.to_string(), key: None });
    std::fs::write(&go, "go\n").unwrap();
    until_empty(&s);
    let seen =
        minder_proto::queue::history(&std::fs::read(s.file("queue.jsonl")).unwrap(), s.messages()[0].1.id);
    assert_eq!(seen.last().unwrap().channel.as_deref(), Some("exec"));
}

#[test]
fn what_was_said_to_the_person_does_not_die_of_age() {
    let world = World::with("[delivery]\nmax_age = \"1s\"\n");
    let _daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    let to_person = rpc::Send {
        caller: w.caller(),
        to: Some("@operator".to_owned()),
        body: "which database?".to_owned(),
        ..rpc::Send::default()
    };
    must(&mut client, &to_person);
    must(&mut client, &w.letter(&s, "hello"));
    // The one for a session is over, and its sender is told; both were looked at.
    until(&w, || w.messages().iter().any(|(_, m)| m.body.contains("it waited too long")));
    assert_eq!(w.messages().len(), 1, "{:?}", w.messages());
    let inbox = world.run("inbox").ok();
    assert!(inbox.contains("which database?"), "{inbox}");
}

#[test]
fn a_message_that_its_ledger_has_forgotten_is_still_one() {
    let world = World::new();
    let daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    must(&mut client, &w.letter(&s, "what is it?"));
    let taken = s.take_all(&mut client).remove(0);
    let gone = must(&mut client, &w.letter(&s, "never mind")).id.to_string();
    must(&mut client, &rpc::Drop { caller: w.caller(), id: gone.clone() });
    daemon.stop();
    // As a checkpoint leaves it when it has grown long: what waits, which is nothing.
    std::fs::write(s.file("queue.jsonl"), "").unwrap();
    let _daemon = world.start();
    let mut client = world.client();
    let reply = rpc::Send {
        caller: s.caller(),
        body: "42".to_owned(),
        reply_to: Some(taken.id.to_string()),
        ..rpc::Send::default()
    };
    assert_eq!(must(&mut client, &reply).to, Party::Session(w.id));
    let receipt = |client: &mut _, id: &str| {
        must(client, &rpc::Receipt { id: id.to_owned(), ..rpc::Receipt::default() }).receipt
    };
    assert_eq!(receipt(&mut client, &gone), Receipt::Dead);
    assert_eq!(receipt(&mut client, &taken.id.to_string()), Receipt::Answered);
    // To have read what is dead, or to drop it again, changes nothing and is said.
    let ack = rpc::Ack { caller: s.caller(), id: gone.clone(), key: None };
    assert_eq!(must(&mut client, &ack).receipt, Receipt::Dead);
    let (code, said) = refused(&mut client, &rpc::Drop { caller: w.caller(), id: gone });
    assert!(code == 2 && said.contains("does not wait any more"), "{code} {said}");
}

#[test]
fn a_message_that_cannot_be_read_blocks_nothing_behind_it() {
    let world = World::new();
    let daemon = world.start();
    let (s, w) = (world.session("s"), world.session("w"));
    let mut client = world.client();
    for body in ["the first one", "the second one"] {
        must(&mut client, &w.letter(&s, body));
    }
    daemon.stop();
    let text = std::fs::read_to_string(s.file("timeline.jsonl")).unwrap();
    std::fs::write(s.file("timeline.jsonl"), text.replacen("\"the first one", "#the first one", 1)).unwrap();
    let _daemon = world.start();
    let mut client = world.client();
    let taken: Vec<String> = s.take_all(&mut client).into_iter().map(|t| t.body).collect();
    assert_eq!(taken, ["the second one"]);
    let told = w.messages().remove(0).1;
    assert!(told.body.contains("cannot be read"), "{told:?}");
    assert!(snapshot::queue(&s.dir()).unwrap().is_empty());
}

/// A hook's call of this conversation.
fn event(s: &Agent, name: &str, key: &str, more: serde_json::Value) -> rpc::HookEvent {
    let mut payload = json!({"session_id": s.conversation, "hook_event_name": name, "prompt_id": "turn-1"});
    payload.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let env = rpc::HookEnv::default();
    rpc::HookEvent { harness: "claude".to_owned(), payload, env, key: key.to_owned() }
}

#[test]
fn an_answer_that_came_too_late_gave_nothing_and_its_turn_ends() {
    let world = World::new();
    let _daemon = world.start();
    let (s, w) = (world.session_by("s", Channel::Hook), world.session("w"));
    let mut client = world.client();
    must(&mut client, &event(&s, "UserPromptSubmit", "k1", json!({"prompt": "go"})));
    must(&mut client, &w.letter(&s, "one more thing"));
    let key = uuid::Uuid::now_v7().to_string();
    let stop = event(&s, "Stop", &key, json!({"last_assistant_message": "all done"}));
    let answer = must(&mut client, &stop);
    assert!(answer.exit == 2 && answer.stderr.contains("one more thing"), "{answer:?}");
    // The hook had given up by then, and left what it was told.
    let left = rpc::Spooled {
        method: rpc::HookEvent::METHOD.to_owned(),
        params: serde_json::to_value(&stop).unwrap(),
        at: Stamp::now(),
    };
    let file = world.home().spool().join(format!("{key}.json"));
    let new = file.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(&left).unwrap()).unwrap();
    std::fs::rename(&new, &file).unwrap();
    files::wait_for(&file, LIMIT, || (!file.exists()).then_some(())).unwrap();
    let state = s.moves().pop().unwrap().1;
    assert!(state.to == State::Idle && state.turn_end, "{state:?}");
    let waits: Vec<Receipt> = s.queue().iter().map(|e| e.receipt).collect();
    assert!(matches!(waits[..], [Receipt::Queued | Receipt::Held]), "{waits:?}");
    // Given to the next prompt, it stays given, though what was left is found once more.
    must(&mut client, &event(&s, "UserPromptSubmit", "k3", json!({"prompt": "next", "prompt_id": "turn-2"})));
    assert_eq!(s.queue().iter().next().unwrap().receipt, Receipt::Handed);
    std::fs::write(&new, serde_json::to_vec(&left).unwrap()).unwrap();
    std::fs::rename(&new, &file).unwrap();
    files::wait_for(&file, LIMIT, || (!file.exists()).then_some(())).unwrap();
    assert_eq!(s.queue().iter().next().unwrap().receipt, Receipt::Handed);
    assert_eq!(s.moves().pop().unwrap().1.to, State::Working);
}

#[test]
fn the_end_of_another_call_of_the_same_tool_answers_no_dialog() {
    let world = World::new();
    let _daemon = world.start();
    let s = world.session_by("s", Channel::Hook);
    let mut client = world.client();
    let call = |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}});
    let tell = |client: &mut _, name, key, more| drop(must(client, &event(&s, name, key, more)));
    tell(&mut client, "UserPromptSubmit", "k1", json!({"prompt": "go"}));
    tell(&mut client, "PermissionRequest", "k2", call("rm -rf build/"));
    tell(&mut client, "PostToolUse", "k3", call("npm test"));
    let now = |s: &Agent| s.moves().pop().unwrap().1.to;
    assert_eq!(now(&s), State::Asking);
    tell(&mut client, "PostToolUse", "k4", call("rm -rf build/"));
    assert_eq!(now(&s), State::Working);
}
