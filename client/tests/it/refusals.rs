//! K2 and K6, as far as they need no daemon of minder's own: a failure has the code of the table, one line on
//! standard error, nothing on standard output; as an object it has the code in it.

use minder_proto::error::{Fault, Kind};
use serde_json::json;

use crate::world::daemon::Reply;
use crate::world::{World, finish};

/// Commands that ask the daemon.
const ASKING: [&[&str]; 16] = [
    &["new", "--label", "api"],
    &["state", "review", "api"],
    &["send", "api", "text"],
    &["send", "api", "text", "--wait"],
    &["retry", "7be21c09"],
    &["drop", "7be21c09"],
    &["inbox", "take"],
    &["inbox", "ack", "7be21c09"],
    &["set", "api", "--title", "t"],
    &["close", "api"],
    &["watch", "cancel", "api"],
    &["turn", "ls"],
    &["turn", "cancel", "7be21c09"],
    &["turn", "finish", "7be21c09", "silent"],
    &["daemon", "stop"],
    &["daemon", "restart"],
];

#[test]
fn every_refusal_keeps_its_code_its_hint_and_its_silence() {
    let world = World::new();
    for kind in Kind::ALL {
        let _daemon = world.daemon(move |_, _| {
            Reply::Fault(Fault::new(kind, "it cannot be\nso\u{1b}[2J").hint("minder ls"))
        });
        for words in ASKING {
            let line = world.run(words).failed(i32::from(kind.exit())).to_owned();
            assert_eq!(line, "minder: it cannot be\\nso\\x1b[2J: minder ls", "{words:?}");
            let ran = world.run(&[words, &["--json"]].concat());
            assert_eq!(ran.code, i32::from(kind.exit()), "{words:?}: {ran:?}");
            let error = ran.error();
            assert_eq!(error["exit"], kind.exit());
            assert_eq!((&error["kind"], &error["hint"]), (&json!(kind), &json!("minder ls")));
        }
    }
    assert_eq!(world.spooled(), [] as [serde_json::Value; 0], "what was refused is not tried again");
}

#[test]
fn what_can_only_be_refused_starts_no_daemon() {
    let world = World::new();
    let (program, started) = (world.root().join("minderd"), world.root().join("started"));
    std::fs::write(&program, format!("#!/bin/sh\n: >'{}'\n", started.display())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let run = |words: &[&str], variable: Option<&str>| {
        let mut command = world.command(words);
        command.env_remove("MINDER_NO_AUTOSTART").env("MINDER_DAEMON", &program);
        command.envs(variable.map(|name| (name, "conversation-x")));
        finish(&mut command, b"")
    };
    for (words, code) in [
        (&["state", "working"][..], 64),
        (&["state", "busy", "api"], 64),
        (&["watch", "api"], 3),
        (&["watch", "cancel", "api"], 3),
    ] {
        run(words, None).failed(code);
    }
    run(&["--as", "api", "send", "web", "hello"], Some("CLAUDE_CODE_SESSION_ID")).failed(3);
    assert!(!started.exists());
    assert_eq!(world.spooled(), [] as [serde_json::Value; 0]);
    // Who may be a session is asked for.
    run(&["state", "working"], Some("CLAUDE_CODE_SESSION_ID"));
    assert!(started.exists());
}

#[test]
fn without_a_daemon_what_needs_one_says_so() {
    let world = World::new();
    for words in ASKING {
        if matches!(words, ["state" | "daemon", ..] | ["inbox", "ack", _] | ["send", "api", "text"])
            || matches!(words, ["watch", "cancel", _])
        {
            continue; // spooled, or its own answer, or not for this caller
        }
        let line = world.run(words).failed(69).to_owned();
        assert_eq!(line, "minder: no daemon is running, and MINDER_NO_AUTOSTART is set: minder daemon start");
    }
    assert_eq!(world.run(&["daemon", "stop"]).ok(), "minderd is not running\n");
    assert!(world.run(&["daemon", "status"]).failed(69).ends_with(": minder daemon start"));
    assert!(world.run(&["daemon", "logs"]).failed(2).contains("no log yet"));
    assert_eq!(world.run(&["daemon", "status", "--json"]).error()["exit"], 69);
}

#[test]
fn a_daemon_that_would_not_start_gives_its_reason() {
    let world = World::new();
    let program = world.root().join("minderd");
    let start = |words: &[&str]| {
        let mut command = world.command(words);
        finish(command.env_remove("MINDER_NO_AUTOSTART").env("MINDER_DAEMON", &program), b"")
    };
    assert!(start(&["close", "api"]).failed(69).contains("no daemon could be started"));
    crate::place::script(&program, "echo 'error 78 config.toml:3: unknown field'");
    assert!(start(&["close", "api"]).failed(78).contains("config.toml:3: unknown field"));
    assert!(start(&["daemon", "start"]).failed(78).contains("config.toml:3: unknown field"));
    crate::place::script(&program, "exit 1");
    start(&["daemon", "start"]).failed(69);
}

#[test]
fn a_turn_neither_starts_nor_restarts_the_daemon() {
    let world = World::new();
    let (program, started) = (world.root().join("minderd"), world.root().join("started"));
    crate::place::script(&program, &format!("touch {}", started.display()));
    for what in ["start", "restart"] {
        let mut command = world.command(&["daemon", what]);
        command.env("MINDER_DAEMON", &program).env("MINDER_TURN", "t");
        let ran = finish(command.env_remove("MINDER_NO_AUTOSTART"), b"");
        assert!(ran.failed(3).contains("this is a turn"), "{ran:?}");
    }
    assert!(!started.exists());
}

#[test]
fn answers_are_objects_where_objects_are_asked_for() {
    let world = World::new();
    let id = "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700";
    let message = "0199c2d4-90c3-7f0e-8a17-c2b67be21c09";
    let _daemon = world.daemon(move |method, _| {
        Reply::With(match method {
            "session.create" => json!({"id": id, "label": "api", "title": "api", "seq": 1}),
            "session.state" => json!({"session": id, "from": "idle", "to": "review", "seq": 2}),
            "message.send" => crate::bodies::sent(),
            "session.set" => json!({"session": id, "changed": ["label: a → b"]}),
            "session.close" => json!({"session": id, "label": "api", "dead": 1, "recalled": 0}),
            "watch.cancel" => {
                json!({"cancelled": [{"session": id, "label": "api", "title": "api", "was": true,
                "notices": 2}]})
            }
            "message.take" => {
                json!({"message": {"id": message, "from": "operator", "seq": 2, "text": "t\n\nb",
                "body": "b"}, "more": 0})
            }
            _ => json!({"id": message, "receipt": "queued"}),
        })
    });
    for (words, line) in [
        (&["new"][..], "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700\n"),
        (&["state", "review"], "idle → review\n"),
        (&["send", "api", "x"], "7be21c09 queued\n"),
        (&["set", "a", "--label", "b"], "label: a → b\n"),
        (&["close", "api"], "api (5f1c2d4a) closed\n1 message for it not delivered; the senders are told\n"),
        (&["watch", "cancel", "api"], "api (5f1c2d4a) is not watched any more; 2 notices taken back\n"),
        (&["retry", "7be21c09"], "7be21c09 queued\n"),
        (&["drop", "7be21c09"], "7be21c09 queued\n"),
        (&["inbox", "ack", "7be21c09"], "7be21c09 queued\n"),
        (&["inbox", "take"], "t\n\nb\n"),
    ] {
        assert_eq!(world.run(words).ok(), line);
        let json = world.run(&[words, &["--json"]].concat());
        json.ok();
        assert!(json.json().is_object() && json.out.lines().count() == 1, "{json:?}");
    }
}
