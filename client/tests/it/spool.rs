//! What is said while no daemon can be had is left for it.

use minder_proto::stamp::Stamp;
use serde_json::json;

use crate::world::daemon::Reply;
use crate::world::{World, finish};

#[test]
fn what_is_said_without_a_daemon_is_recorded_in_order() {
    let world = World::new();
    let before = Stamp::now();
    for words in [
        &["state", "review", "api", "--note", "PR 12"][..],
        &["send", "api", "text", "--key", "mine"],
        &["--as", "api", "inbox", "ack", "7be21c09"],
    ] {
        let ran = world.run(words);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (0, "", "recorded; no daemon is running\n")
        );
    }
    let spooled = world.spooled();
    let methods: Vec<_> = spooled.iter().map(|s| s["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["session.state", "message.send", "message.ack"]);
    assert_eq!(spooled[0]["params"]["note"], "PR 12");
    assert!(spooled[0]["params"]["key"].as_str().is_some_and(|k| k.len() == 36));
    assert_eq!(
        (&spooled[1]["params"]["key"], &spooled[1]["params"]["body"]),
        (&json!("mine"), &json!("text"))
    );
    assert_eq!(spooled[2]["params"]["caller"]["as"], "api");
    for one in &spooled {
        let at: Stamp = serde_json::from_value(one["at"].clone()).unwrap();
        assert!(at >= before && at <= Stamp::now());
    }
    let ran = world.run(&["state", "done", "api", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "{\"note\":\"recorded; no daemon is running\"}\n"));
}

#[test]
fn who_needs_an_answer_gets_none_from_a_spool() {
    let world = World::new();
    world.run(&["send", "api", "text", "--wait"]).failed(69);
    world.run(&["state", "review", "api", "--if", "working"]).failed(69);
    assert_eq!(world.spooled(), [] as [serde_json::Value; 0]);
    // Where nothing can be left either, nothing is said to be recorded.
    std::fs::write(world.home().root(), "a file stands where the store belongs").unwrap();
    let line = world.run(&["state", "review", "api"]).failed(69).to_owned();
    assert!(line.contains("cannot be left in"), "{line}");
}

#[test]
fn why_no_daemon_could_be_started_is_said_and_a_refusal_ends_with_its_own_code() {
    let world = World::new();
    let program = world.root().join("minderd");
    let run = |words: &[&str]| {
        let mut command = world.command(words);
        finish(command.env_remove("MINDER_NO_AUTOSTART").env("MINDER_DAEMON", &program), b"")
    };
    let saying: [&[&str]; 3] =
        [&["state", "review", "api"], &["send", "api", "text"], &["inbox", "ack", "7be21c09"]];

    for (words, left) in saying.into_iter().zip(1..) {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str(), world.spooled().len()), (0, "", left), "{ran:?}");
        assert!(
            ran.err.starts_with("recorded; no daemon is running: ") && ran.err.contains("minderd: No such")
        );
    }
    let says = |line: &str| {
        let new = world.root().join("new");
        std::fs::write(&new, format!("#!/bin/sh\necho '{line}'\n")).unwrap();
        std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::rename(&new, &program).unwrap();
    };
    for code in [74, 76, 77, 78] {
        says(&format!("error {code} so it is"));
        for words in saying {
            let before = world.spooled().len();
            assert_eq!(run(words).failed(code), "minder: recorded; no daemon is running: so it is");
            assert_eq!(world.spooled().len(), before + 1, "what was said is not lost");
        }
    }
    says("error 73 4 holds the store and does not listen");
    let ran = run(saying[0]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (0, "recorded; no daemon is running: 4 holds the store and does not listen\n")
    );
}

#[test]
fn nothing_is_left_in_a_store_of_another_format() {
    let world = World::new();
    let home = world.home();
    std::fs::create_dir_all(home.root()).unwrap();
    std::fs::write(home.format(), "minder-store 99\n").unwrap();
    let before = world.tree();
    for words in [
        &["state", "review", "api"][..],
        &["send", "api", "text"],
        &["--as", "api", "inbox", "ack", "7be21c09"],
    ] {
        let line = world.run(words).failed(76).to_owned();
        assert!(
            line.starts_with("minder: nothing was recorded: ") && line.contains("minder-store 99"),
            "{line}"
        );
    }
    let payload = br#"{"hook_event_name": "Stop", "session_id": "c"}"#;
    assert_eq!(world.run_with(&["hook", "claude"], payload).ok(), "");
    assert_eq!(world.tree(), before);
}

#[test]
fn a_daemon_that_ends_in_the_middle_is_asked_again_with_the_same_key() {
    let world = World::new();
    let first = std::sync::atomic::AtomicBool::new(true);
    let daemon = world.daemon(move |_, _| {
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            Reply::Die
        } else {
            let mut answer = crate::bodies::sent();
            answer["duplicate"] = json!(true);
            Reply::With(answer)
        }
    });
    // The key was not the caller's: that its own first try went through is no news.
    assert_eq!(world.run(&["send", "api", "text"]).ok(), "7be21c09 queued\n");
    let (a, b) = (daemon.next(), daemon.next());
    assert_eq!((a.params.clone(), a.connection + 1), (b.params, b.connection));
    assert!(a.params["key"].is_string());
    assert_eq!(
        world.run(&["send", "api", "text", "--key", "k"]).ok(),
        "7be21c09 queued  (a repeat: this key was used before)\n"
    );
}
