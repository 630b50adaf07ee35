//! What was left in the spool, taken by the real program.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use minder_proto::event::{Author, Body, Message};
use minder_proto::id::{Party, SessionId};
use minder_proto::layout::Home;
use minder_proto::rpc::Spooled;
use minder_proto::stamp::Stamp;
use minder_proto::state::State;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stored::{self, Wanted};
use crate::surroundings::Surroundings;

fn leave(home: &Home, method: &str, params: Value) -> PathBuf {
    let name = Uuid::now_v7();
    let spooled = Spooled { method: method.to_owned(), params, at: Stamp::now() };
    let temp = home.spool().join(format!(".{name}.new"));
    let path = home.spool().join(format!("{name}.json"));
    std::fs::write(&temp, serde_json::to_vec(&spooled).unwrap()).unwrap();
    std::fs::set_permissions(&temp, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&temp, &path).unwrap();
    path
}

fn as_conversation(id: &str) -> Value {
    json!({"vars": {"CLAUDE_CODE_SESSION_ID": id}})
}

fn messages(home: &Home, id: SessionId) -> Vec<Message> {
    let lines = stored::lines(home, id).into_iter();
    lines.filter_map(|l| if let Body::Message(m) = l.body { Some(*m) } else { None }).collect()
}

fn left(home: &Home) -> usize {
    std::fs::read_dir(home.spool()).unwrap().count()
}

fn reasons(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.quarantine()).unwrap().map(|e| e.unwrap().path());
    let mut reasons: Vec<String> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "why"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    reasons.sort();
    reasons
}

/// Two sessions at work, each known by its conversation.
fn api_and_web(home: &Home) -> [SessionId; 2] {
    let wanted = |label, conversation| Wanted {
        label,
        conversation: Some(conversation),
        process: None,
        state: State::Working,
        by: Author::Hook,
    };
    let ids = stored::put(home, &[wanted("api", "conversation-a"), wanted("web", "conversation-w")]);
    ids.try_into().expect("two were put")
}

#[test]
fn what_was_left_is_applied_once_before_the_first_call_and_as_it_comes() {
    let around = Surroundings::new();
    let home = around.home();
    let [api, web] = api_and_web(&home);

    let said = json!({"caller": as_conversation("conversation-a"), "state": "review", "note": "PR 12"});
    leave(&home, "session.state", said);
    let sent = json!({"caller": as_conversation("conversation-a"), "to": "web", "body": "from api"});
    let sent = leave(&home, "message.send", sent);
    let by_person = json!({"caller": {}, "to": "web", "body": "from the person"});
    let by_person = leave(&home, "message.send", by_person);
    leave(&home, "message.send", json!({"caller": as_conversation("nobody's"), "to": "web", "body": "no"}));
    leave(&home, "daemon.stop", json!({}));
    let files = [&sent, &by_person].map(|path| std::fs::read(path).unwrap());

    let mut daemon = around.started();
    assert_eq!((left(&home), reasons(&home).len()), (0, 2), "{:?}", reasons(&home));
    let line = stored::last_state(&home, api);
    assert_eq!((line.to, line.by, line.note.as_deref()), (State::Review, Author::Agent, Some("PR 12")));
    let got: Vec<(Party, String)> = messages(&home, web).into_iter().map(|m| (m.from, m.body)).collect();
    assert_eq!(
        got,
        [(Party::Session(api), "from api".to_owned()), (Party::Operator, "from the person".to_owned())]
    );

    // While it runs: a session's is taken, and one by nobody in particular is not the person's any more.
    leave(&home, "message.send", json!({"caller": {}, "to": "web", "body": "by whom?"}));
    let said = json!({"caller": as_conversation("conversation-w"), "state": "done"});
    leave(&home, "session.state", said);
    stored::until(&home, || stored::last_state(&home, web).to == State::Done);
    assert_eq!((messages(&home, web).len(), reasons(&home).len()), (2, 3));

    // Killed between the commit and the end of the file: the file is there again, and nothing is repeated.
    daemon.signal(Signal::SIGKILL);
    daemon.exit();
    let lines = stored::lines(&home, web);
    for (path, bytes) in [&sent, &by_person].into_iter().zip(files) {
        std::fs::write(path, bytes).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let _daemon = around.started();
    assert_eq!((stored::lines(&home, web), left(&home), reasons(&home).len()), (lines, 0, 3));
}

#[test]
fn what_the_person_left_while_a_daemon_was_on_its_way_is_the_persons() {
    let around = Surroundings::new();
    let home = around.home();
    let web =
        Wanted { label: "web", conversation: None, process: None, state: State::Working, by: Author::Hook };
    let [web] = stored::put(&home, &[web])[..] else { panic!("one was put") };
    let path = leave(&home, "message.send", json!({"caller": {}, "to": "web", "body": "from the person"}));
    // The process is there already, and the store takes long to open.
    let mut spooled: Spooled = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    spooled.at = spooled.at.plus(std::time::Duration::from_secs(60));
    std::fs::write(&path, serde_json::to_vec(&spooled).unwrap()).unwrap();

    let _daemon = around.started();
    assert_eq!((left(&home), reasons(&home)), (0, vec![]));
    assert_eq!(messages(&home, web).into_iter().map(|m| m.from).collect::<Vec<_>>(), [Party::Operator]);
}

#[test]
fn a_senders_messages_to_one_recipient_stay_in_order_behind_one_that_waits() {
    let around = Surroundings::new();
    let home = around.home();
    let [api, web] = api_and_web(&home);
    let send = |to: &str, body: &str, key: &str| {
        let caller = as_conversation("conversation-a");
        leave(&home, "message.send", json!({"caller": caller, "to": to, "body": body, "key": key}))
    };
    send("web", "first", "k1");
    let mut command = around.minderd();
    command.env("MINDER_QUEUE_MAX_MESSAGES", "1");
    let _daemon = around.start(command);

    // Its queue is full; what is behind could be answered at once, since it says what was said before.
    let (second, repeat) = (send("web", "second", "k2"), send(&web.to_string(), "first", "k1"));
    send("api", "to itself", "k3");
    stored::until(&home, || messages(&home, api).len() == 1);
    assert!(second.exists() && repeat.exists());
    let first = messages(&home, web)[0].id.to_string();
    leave(&home, "message.ack", json!({"caller": as_conversation("conversation-w"), "id": first}));
    stored::until(&home, || messages(&home, web).len() == 2);
    assert_eq!((messages(&home, web)[1].body.as_str(), reasons(&home)), ("second", vec![]));
}

#[test]
fn a_turn_that_was_over_before_its_process_was_has_not_failed() {
    let around = Surroundings::new();
    let home = around.home();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let wanted = |label, conversation| Wanted {
        label,
        conversation: Some(conversation),
        process: Some(stored::process(child.id())),
        state: State::Working,
        by: Author::Hook,
    };
    let ids =
        stored::put(&home, &[wanted("stopped", "conversation-s"), wanted("cut-short", "conversation-c")]);
    let [stopped, cut_short] = ids[..] else { panic!("two were put") };
    child.wait().unwrap();
    // Its last hook met no daemon.
    let payload = json!({"hook_event_name": "Stop", "session_id": "conversation-s", "cwd": "/",
        "stop_hook_active": false, "last_assistant_message": "all done"});
    leave(&home, "hook.event", json!({"harness": "claude", "payload": payload, "key": "k"}));

    let _daemon = around.started();
    assert_eq!((left(&home), reasons(&home)), (0, vec![]));
    let line = stored::last_state(&home, stopped);
    assert_eq!((line.to, line.turn_end), (State::Idle, true), "{line:?}");
    assert_eq!(stored::last_state(&home, cut_short).to, State::Error);
    for id in [stopped, cut_short] {
        assert!(stored::record(&home, id).process.unwrap().ended.is_some());
    }
}
