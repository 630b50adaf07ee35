//! Commands that talk: waiting for an answer, taking a message, watching.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::bodies::sent;
use crate::world::World;
use crate::world::daemon::Reply;
use crate::world::store::Session;

fn receipt(change: &Value) -> Value {
    let mut receipt = json!({"id": sent()["id"], "from": "operator", "to": sent()["to"], "history": [],
        "receipt": "seen"});
    for (key, value) in change.as_object().unwrap() {
        receipt[key] = value.clone();
    }
    receipt
}

#[test]
fn waiting_for_an_answer_ends_as_the_contract_says() {
    let world = World::new();
    let wait = |end: Value, words: &[&str]| {
        let daemon = world.daemon(move |method, _| {
            Reply::With(if method == "message.send" { sent() } else { receipt(&end) })
        });
        let ran = world.run(&[&["send", "api", "q", "--wait"][..], words].concat());
        let calls = daemon.calls();
        assert_eq!(calls[1].method, "message.receipt");
        (ran, calls[1].params.clone())
    };
    let answered = json!({"receipt": "answered", "verdict": "answered", "answer": "Three tests:\n a\x1b\n"});
    let (ran, params) = wait(answered.clone(), &["--timeout", "90s"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Three tests:\n a\u{1b}\n"));
    assert_eq!(ran.err, "7be21c09 queued\n7be21c09 answered\n");
    assert_eq!((&params["wait_s"], &params["id"]), (&json!(90), &sent()["id"]));
    let (ran, _) = wait(answered, &["--json"]);
    assert_eq!((ran.json()["answer"].as_str(), ran.err.as_str()), (Some("Three tests:\n a\u{1b}\n"), ""));

    for (end, code, says) in [
        (
            json!({"receipt": "queued", "verdict": "timeout"}),
            1,
            "no answer after 20m; it is queued: minder queue 7be21c09",
        ),
        (
            json!({"receipt": "held", "reason": "dialog", "verdict": "blocked"}),
            3,
            "is held(dialog): it goes on with an answer to the dialog",
        ),
        (
            json!({"receipt": "held", "reason": "no-wake-path", "verdict": "blocked"}),
            3,
            "nothing wakes this session",
        ),
        (
            json!({"receipt": "dead", "reason": "expired", "verdict": "failed"}),
            4,
            "is dead(expired): no answer will come",
        ),
    ] {
        let (ran, _) = wait(end.clone(), &[]);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        assert!(
            ran.err.starts_with("7be21c09 queued\nminder: 7be21c09 ") && ran.err.contains(says),
            "{ran:?}"
        );
        let (ran, _) = wait(end, &["--json"]);
        assert_eq!(ran.error()["exit"], code);
    }
}

#[test]
fn a_wait_outlives_the_daemon() {
    let world = World::new();
    let asked = AtomicUsize::new(0);
    let daemon = world.daemon(move |method, _| match method {
        "message.send" => Reply::With(sent()),
        _ if asked.fetch_add(1, Ordering::SeqCst) < 2 => Reply::Die,
        _ => Reply::With(receipt(&json!({"receipt": "answered", "verdict": "answered", "answer": "yes"}))),
    });
    let ran = world.run(&["send", "api", "q", "--wait"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "yes\n"), "{ran:?}");
    assert_eq!(daemon.calls().len(), 4);
}

#[test]
fn a_message_is_acknowledged_on_the_same_connection_once_it_is_written() {
    let world = World::new();
    let text = "[minder] message 7be21c09 from your user\n\nmerge `it`";
    let daemon = world.daemon(move |method, _| {
        Reply::With(match method {
            "message.take" => {
                json!({"message": {"id": sent()["id"], "from": "operator", "seq": 2, "text": text,
                "body": "merge `it`"}, "more": 1})
            }
            _ => json!({"id": sent()["id"], "receipt": "seen"}),
        })
    });
    assert_eq!(world.run(&["inbox", "take", "--key", "k"]).ok(), format!("{text}\n"));
    let (take, ack) = (daemon.next(), daemon.next());
    assert_eq!((take.method.as_str(), ack.method.as_str()), ("message.take", "message.ack"));
    assert_eq!(take.connection, ack.connection);
    assert_eq!((&take.params["key"], &ack.params["id"]), (&json!("k"), &sent()["id"]));
    // What could not be written, or had no reader, was not read.
    assert_eq!(world.shell("minder inbox take >/dev/full").code, 74);
    assert_eq!(daemon.next().method, "message.take");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["inbox", "take"]);
    let child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert_eq!(output.stderr, b"minder: nobody read 7be21c09; it waits again\n");
    assert_eq!(daemon.next().method, "message.take");
    assert_eq!(daemon.calls(), []);
}

#[test]
fn an_empty_inbox_is_a_no() {
    let world = World::new();
    let _daemon = world.daemon(|_, _| Reply::With(json!({"message": null, "more": 0})));
    assert_eq!(world.run(&["inbox", "take"]).failed(1), "minder: nothing waits");
}

#[test]
fn to_watch_needs_an_address() {
    let world = World::new();
    let lead = Session::new(&world.home(), "lead", &json!({}));
    lead.bind("conv-lead");
    let id = lead.id;
    let you = json!({"kind": "operator"});
    let daemon = world.daemon(move |method, params| {
        Reply::With(match method {
            "daemon.status" => json!({"version": "1", "protocol": 1, "pid": 1, "started": "2026-11-30T12:00:00Z",
                "store": "/s", "socket": "/x", "sessions": 2, "corrupt": [], "waiting": 0, "held": 0, "dead": 0,
                "commits": 1, "flushes": 1, "journal_bytes": 0, "start_ms": 1, "replayed": 0, "you": you}),
            _ => {
                let already = params["states"] == "done";
                json!({"watched": [{"session": id, "label": "api", "title": "api worker", "state": "review",
                    "already": already}]})
            }
        })
    });
    let line = world.run(&["watch", "api-*", "web", "--states", "done"]).failed(3).to_owned();
    assert!(line.ends_with(": minder session wait 'api-*' web --states done"), "{line}");
    assert_eq!(daemon.next().method, "daemon.status");
    assert_eq!(daemon.calls(), [], "nothing was set up");
    let as_lead = |words: &[&str]| {
        let mut command = world.command(words);
        crate::world::finish(command.env("CLAUDE_CODE_SESSION_ID", "conv-lead"), b"")
    };
    let short = id.short();
    assert_eq!(
        as_lead(&["watch", "api", "web"]).ok(),
        format!("watching api worker (api, {short}): review\n")
    );
    let add = daemon.next();
    assert_eq!((add.method.as_str(), &add.params["sessions"]), ("watch.add", &json!("api,web")));
    assert_eq!(add.params["caller"]["vars"]["CLAUDE_CODE_SESSION_ID"], "conv-lead");
    let again = as_lead(&["watch", "api", "--states", "done"]);
    assert_eq!(again.ok(), format!("already watching api worker (api, {short}): review\n"));
    as_lead(&["watch"]).failed(64);
}

#[test]
fn how_the_daemon_is() {
    let world = World::new();
    let status = |change: Value| {
        let mut status = json!({"version": "1.2.3", "protocol": 1, "pid": 4, "started": "2026-11-30T12:00:00Z",
            "store": "/s", "socket": "/x", "sessions": 2, "corrupt": [], "waiting": 3, "held": 1, "dead": 0,
            "commits": 1, "flushes": 1, "journal_bytes": 0, "start_ms": 1, "replayed": 0,
            "you": {"kind": "operator"}});
        for (key, value) in change.as_object().unwrap() {
            status[key] = value.clone();
        }
        world.daemon(move |_, _| Reply::With(status.clone()))
    };
    let daemon = status(json!({}));
    let well = world.run(&["daemon", "status"]);
    assert!(well.ok().contains("minderd 1.2.3 (pid 4), minder ") && well.out.contains("3 waiting, 1 held"));
    assert_eq!(world.run(&["daemon", "status", "--json"]).json()["well"], true);
    assert!(world.run(&["daemon", "start"]).ok().contains("runs already (pid 4)"));
    drop(daemon);
    let daemon = status(json!({"read_only": "/s: No space left on device"}));
    let ran = world.run(&["daemon", "status"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert!(ran.out.contains("WRONG    nothing new is taken: /s: No space left"), "{ran:?}");
    drop(daemon);
    let _daemon = status(json!({"pid": "four"}));
    assert!(world.run(&["daemon", "status"]).failed(76).ends_with(": minder daemon restart"));
}
