//! What a caller may put into a record: every field has a bound, a key stands for all that was asked, and a session is
//! promised only the way in that it has.

use minder_proto::event::Receipt;
use minder_proto::limits::{CONVERSATION_MAX, HARNESS_MAX, PATH_MAX, PROGRAM_MAX, TITLE_MAX};
use minder_proto::record::Channel;
use minder_proto::{event, rpc, snapshot};
use serde_json::json;

use crate::world::{World, must, refused, tree};

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
