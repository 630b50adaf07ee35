//! K3: strict, and undecided where two things fit.

use serde_json::json;

use crate::world::World;
use crate::world::daemon::Reply;
use crate::world::store::Session;

#[test]
fn k3_what_cannot_be_understood_does_nothing() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::Silence);
    let file = world.root().join("body");
    std::fs::write(&file, "text").unwrap();
    let file = file.to_str().unwrap();
    let before = world.tree();
    for words in [
        &["frobnicate"][..],
        &["ls", "--everything"],
        &["state"],
        &["state", "reviw"],
        &["state", "api", "review"],
        &["state", "review", "api", "web"],
        &["state", "review", "--if", "busy"],
        &["state", "review", "--note", "x", "--body-file", file],
        &["send"],
        &["send", "api"],
        &["send", "-"],
        &["send", "api", "text", "--body-file", file],
        &["send", "api", "-", "--body-file", file],
        &["send", "api", "text", "--stdin"],
        &["send", "api", "unquoted", "words"],
        &["send", "api", ""],
        &["send", "api", "-", "--class", "soon"],
        &["send", "api", "-", "--wait", "--timeout", "1.5h"],
        &["send", "api", "-", "--timeout", "9s"],
        &["send", "--reply-to", "7be21c09"],
        &["new", "--label", "Not A Label"],
        &["new", "--label", "review"],
        &["new", "--label", "cancel"],
        &["new", "--channel", "pigeon"],
        &["new", "--channel", "exec"],
        &["new", "--dir", "/nonexistent/folder"],
        &["set", "api"],
        &["set", "api", "--label", "operator"],
        &["set", "api", "--harness", "claude"],
        &["close"],
        &["retry"],
        &["drop"],
        &["watch", "list", "api"],
        &["watch", "cancel"],
        &["watch", "api", "--states", "offline"],
        &["inbox", "take", "x"],
        &["inbox", "ack"],
        &["queue", "a,b,"],
        &["show", "state:offline"],
        &["show", "@bogus"],
        &["show", "--timeline", "99999999"],
        &["turn"],
        &["turn", "frobnicate"],
        &["turn", "show"],
        &["turn", "show", "short"],
        &["turn", "logs", "7be21c0g"],
        &["turn", "cancel"],
        &["turn", "finish", "7be21c09"],
        &["turn", "finish", "7be21c09", "failed"],
        &["turn", "report", "--since", "monday"],
        &["turn", "policy"],
        &["turn", "policy", "vim"],
        &["turn", "run", "--timeout", "1.5h"],
        &["daemon"],
        &["daemon", "frobnicate"],
        &["store"],
        &["hooks", "install", "vim"],
        &["setup", "vim"],
        &["hook"],
        &["hook", "claude", "--frobnicate"],
        &["ls", "--as"],
    ] {
        let line = world.run(words).failed(64).to_owned();
        let json = world.run(&[words, &["--json"]].concat());
        assert_eq!(json.code, 64, "{words:?}: {json:?}");
        assert_eq!(json.error()["exit"], 64);
        assert!(line.len() < 300, "{line}");
    }
    assert_eq!(daemon.calls(), []);
    assert_eq!(world.tree(), before);
}

#[test]
fn k3_text_that_cannot_be_kept_is_broken_data() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::Silence);
    let long = vec![b'x'; 256 * 1024 + 1];
    for (input, says) in [
        (&b"a\0b"[..], "a NUL byte, at byte 1"),
        (&b"abc\xff"[..], "not UTF-8, at byte 3"),
        (&long, "longer than 256 KiB"),
    ] {
        let ran = world.run_with(&["send", "api", "-"], input);
        assert!(ran.failed(65).contains(says), "{ran:?}");
        let ran = world.run_with(&["send", "api", "-", "--json"], input);
        assert_eq!(ran.error()["exit"], 65);
    }
    let ran = world.run_with(&["state", "review", "--note", "-"], &[b'x'; 4097]);
    assert!(ran.failed(65).contains("the note is longer than 4 KiB"), "{ran:?}");
    assert!(world.run_with(&["send", "api", "-"], b"").failed(64).contains("empty"));
    world.run(&["send", "api", "--body-file", "/nonexistent/file"]).failed(74);
    // An argument that is no UTF-8 is no argument.
    let mut command = world.command(&["send", "api"]);
    command.arg(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"a\xff"));
    crate::world::finish(&mut command, b"").failed(64);
    assert_eq!(daemon.calls(), []);
    assert_eq!(world.spooled(), [] as [serde_json::Value; 0]);
}

#[test]
fn k3_a_prefix_of_two_sessions_is_answered_with_both() {
    let world = World::new();
    let home = world.home();
    Session::new(&home, "api", &json!({"id": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700"}));
    Session::new(&home, "web", &json!({"id": "5f1c2d4b-90c3-4f0e-8a17-c2b6d1e4f700"}));
    let line = world.run(&["show", "5f1c2d"]).failed(64).to_owned();
    assert!(line.contains("api (5f1c2d4a)") && line.contains("web (5f1c2d4b)"), "{line}");
    assert!(world.run(&["show", "5f1c2d4a"]).ok().starts_with("api  5f1c2d4a-"));
    world.run(&["show", "5f1c"]).failed(2);
    // Verbs on one session refuse a glob that fits two.
    assert!(world.run(&["show", "*"]).failed(64).contains("2 sessions"));
    assert_eq!(world.run(&["ls", "*", "--json"]).json()["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_variable_that_cannot_be_used_is_a_wrong_configuration() {
    let world = World::new();
    let mut command = world.command(&["ls"]);
    command.env("MINDER_HOME", "relative/store");
    crate::world::finish(&mut command, b"").failed(78);
    // What needs no store is not held up by it.
    let mut command = world.command(&["help", "agent"]);
    command.env("MINDER_HOME", "relative/store");
    crate::world::finish(&mut command, b"").ok();
}
