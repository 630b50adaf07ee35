//! What a caller may put into a record: every field has a bound, a key stands for all that was asked, and a session is
//! promised only the way in that it has.

use minder_proto::event::Receipt;
use minder_proto::limits::{CONVERSATION_MAX, HARNESS_MAX, PATH_MAX, PROGRAM_MAX, TITLE_MAX};
use minder_proto::record::Channel;
use minder_proto::{event, rpc, snapshot};
use serde_json::json;

use crate::world::{World, must, refused, tree};

#[allow(clippy::unnecessary_wraps, reason = "it is a call's field as it is")]
fn long(limit: usize) -> Option<String> {
    Some("x".repeat(limit + 1))
}

#[test]
fn what_is_too_long_for_a_record_is_refused_and_leaves_nothing() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let api = world.session("api");
    let create = rpc::Create { label: Some("web".into()), ..rpc::Create::default() };
    let exec = Some(Channel::Exec { argv: vec!["mail".into(), "x".repeat(PROGRAM_MAX)] });
    let before = tree(&world.home().sessions());
    for (what, call) in [
        ("title", rpc::Create { title: long(TITLE_MAX), ..create.clone() }),
        ("dir", rpc::Create { dir: long(PATH_MAX), ..create.clone() }),
        ("harness", rpc::Create { harness: long(HARNESS_MAX), ..create.clone() }),
        ("channel", rpc::Create { channel: exec.clone(), ..create.clone() }),
    ] {
        assert_eq!(refused(&mut client, &call).0, 65, "{what}");
    }
    let set = rpc::Set { session: "api".into(), ..rpc::Set::default() };
    let bind = |harness: Option<String>, harness_id| rpc::Set { harness, harness_id, ..set.clone() };
    for (what, call) in [
        ("title", rpc::Set { title: long(TITLE_MAX), ..set.clone() }),
        ("channel", rpc::Set { channel: exec, ..set.clone() }),
        ("harness", bind(long(HARNESS_MAX), Some("c".into()))),
        ("conversation", bind(Some("claude".into()), long(CONVERSATION_MAX))),
    ] {
        assert_eq!(refused(&mut client, &call).0, 65, "{what}");
    }
    let close = |note| rpc::Close { session: "api".into(), note, ..rpc::Close::default() };
    assert_eq!(refused(&mut client, &close(long(event::NOTE_MAX))).0, 65);
    assert_eq!(refused(&mut client, &close(Some("a\0b".into()))).0, 65);
    let review =
        rpc::Declare { note: long(event::NOTE_MAX), ..api.declaration("review".parse().unwrap(), None) };
    assert_eq!(refused(&mut client, &review).0, 65);
    assert_eq!(tree(&world.home().sessions()), before);
    // The conversation of a caller that registers itself is such a field too.
    let mut new = world.minder(["new"]);
    new.env("CLAUDE_CODE_SESSION_ID", "x".repeat(CONVERSATION_MAX + 1));
    crate::world::ran(&mut new, b"").failed(65);
    must(&mut client, &close(Some("x".repeat(event::NOTE_MAX))));
}

#[test]
fn a_key_stands_for_everything_that_was_asked() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let lead = world.session("lead");
    let exec = |program: &str| Some(Channel::Exec { argv: vec![program.into()] });
    let first = rpc::Create {
        title: Some("pages".into()),
        dir: Some("/".into()),
        channel: exec("page-me"),
        parent: Some("lead".into()),
        key: Some("k".into()),
        ..rpc::Create::default()
    };
    let made = must(&mut client, &first);
    let by_id = rpc::Create { parent: Some(lead.id.to_string()), ..first.clone() };
    for same in [&first, &by_id] {
        let again = must(&mut client, same);
        assert_eq!((again.id, again.duplicate), (made.id, true));
    }
    for (what, other) in [
        ("dir", rpc::Create { dir: Some("/usr".into()), ..first.clone() }),
        ("program", rpc::Create { channel: exec("page-him"), ..first.clone() }),
        ("channel", rpc::Create { channel: None, ..first.clone() }),
        ("primary", rpc::Create { primary: true, ..first.clone() }),
        ("parent", rpc::Create { parent: None, ..first.clone() }),
    ] {
        let (code, line) = refused(&mut client, &other);
        assert!(code == 3 && line.contains("something else"), "{what}: {code} {line}");
    }
    must(&mut client, &rpc::Close { session: made.id.to_string(), ..rpc::Close::default() });
    let (code, line) = refused(&mut client, &first);
    assert!(code == 2 && line.contains("not open any more"), "{line}");
}

#[test]
fn a_session_is_reached_by_hooks_when_one_of_them_was_heard_and_not_before() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let record = |id| snapshot::record(&world.home(), id).unwrap();
    let new = |variable: &str, more: &[&str]| {
        let mut new = world.minder([&["new"], more].concat());
        new.env(variable, "conversation-q");
        let id = crate::world::ran(&mut new, b"").ok();
        id.trim().parse().unwrap()
    };

    // Nobody ever saw a hook of this one.
    let q = new("CODEX_THREAD_ID", &["--label", "q"]);
    assert_eq!(record(q).channel, Channel::Mailbox);
    let sent = world.run("send q hello --json").json();
    assert_eq!((&sent["receipt"], &sent["reason"]), (&json!("queued"), &json!(null)));
    let shown = world.run("queue q").ok();
    assert!(shown.contains("minder inbox take") && !shown.contains("prompt"), "{shown}");

    let heard = |key: &str, client: &mut minder_client::rpc::Client| {
        let payload = json!({
            "session_id": "conversation-q", "hook_event_name": "PostToolUse", "prompt_id": "t", "tool_name": "Bash",
        });
        let (harness, env) = ("claude".to_owned(), rpc::HookEnv::default());
        must(client, &rpc::HookEvent { harness, payload, env, key: key.into() })
    };
    let chosen = new("CLAUDE_CODE_SESSION_ID", &["--label", "c", "--channel", "mailbox"]);
    heard("k1", &mut client);
    assert_eq!(record(chosen).channel, Channel::Mailbox, "somebody chose it");
    must(&mut client, &rpc::Close { session: "c".into(), ..rpc::Close::default() });

    let c = new("CLAUDE_CODE_SESSION_ID", &["--label", "c"]);
    assert_eq!(record(c).channel, Channel::Mailbox);
    must(&mut client, &rpc::Send { to: Some("c".into()), body: "hello c".into(), ..rpc::Send::default() });
    let printed = heard("k2", &mut client);
    assert_eq!(record(c).channel, Channel::Hook);
    assert!(printed.stdout.contains("hello c"), "{printed:?}");
    let queue = snapshot::queue(&world.home().session(c)).unwrap();
    assert_eq!(queue.iter().map(|e| e.receipt).collect::<Vec<_>>(), [Receipt::Handed]);
}

#[test]
fn who_asks_for_what_is_not_there_or_taken_is_shown_where_to_look() {
    let world = World::new();
    let _daemon = world.start();
    let (api, _web) = (world.session("api"), world.session("web"));
    let show = format!("minder show {}", api.id.short());
    for (line, code, way_out) in [
        ("send nobody x", 2, "minder ls"),
        ("close nobody", 2, "minder ls"),
        ("drop 7be21c09", 2, "minder queue"),
        ("inbox ack 7be21c09", 2, "minder queue"),
        ("set web --label api", 3, show.as_str()),
        ("new --label api", 3, show.as_str()),
        ("state done api --if working", 3, show.as_str()),
    ] {
        let said = world.run(line).failed(code);
        assert!(said.trim_end().ends_with(&format!(": {way_out}")), "{line}: {said}");
    }
    must(&mut world.client(), &rpc::Close { session: "web".into(), ..rpc::Close::default() });
    assert!(world.run("send web x").failed(2).trim_end().ends_with(": minder ls"));
}

#[test]
fn the_person_is_shown_that_messages_wait_for_them() {
    let world = World::new();
    let _daemon = world.start();
    let api = world.session("api");
    let shown = || ["", "ls", "daemon status"].map(|line| world.run(line).ok());
    assert!(shown().iter().all(|text| !text.contains("for you:")), "{:?}", shown());
    world.run_as(&api, "send @operator look").ok();
    for text in shown() {
        assert_eq!(text.matches("1 message for you: minder inbox").count(), 1, "{text}");
    }
    for line in ["--json", "ls --json"] {
        assert_eq!(world.run(line).json()["for_you"], 1, "{line}");
    }
    assert_eq!(world.run("daemon status --json").json()["operator"], 1);
    // It is nothing to an agent, nor to who acts as one.
    for line in ["", "ls", "daemon status"] {
        let ran = world.run_as(&api, line).ok();
        assert!(!ran.contains("for you:"), "{ran}");
    }
    assert_eq!(world.run("--as api ls --json").json()["for_you"], json!(null));
    world.run("inbox").ok();
    assert!(shown().iter().all(|text| !text.contains("for you:")), "{:?}", shown());
}

#[test]
fn acting_as_somebody_is_for_a_persons_shell_whatever_the_command() {
    let world = World::new();
    let _daemon = world.start();
    let api = world.session("api");
    for line in ["ls", "", "show api", "queue api", "watch list", "daemon status", "help agent", "store path"]
    {
        let said = world.run_as(&api, &format!("--as api {line}")).failed(3);
        assert!(said.contains("--as is for a person's shell"), "{line}: {said}");
    }
    for line in ["ls", "", "show api", "queue api", "inbox", "watch list", "wait --timeout 0"] {
        world.run(&format!("--as nobody {line}")).failed(2);
    }
}

#[test]
fn a_command_that_becomes_the_daemons_program_fails_under_its_own_name() {
    let world = World::new();
    let said = world.run("store check /nonexistent").failed(2);
    assert!(said.starts_with("minder: ") && !said.contains("minderd: "), "{said}");
}
