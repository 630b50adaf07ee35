//! Harnesses in harnesses, runs that nobody sits at, processes that minder started: whose word a hook is, and whose a
//! command.

use std::os::unix::fs::symlink;

use minder_proto::caller::{SESSION_VAR, TOKEN_VAR};
use minder_proto::id::SessionId;
use minder_proto::rpc;
use minder_proto::state::State;
use minder_tests::fake::Host;
use serde_json::json;

use super::bench::{Bench, is_silent};
use super::rig::{CODEX, CURSOR, OPENCODE, PI, Rig};
use crate::world::{World, must};

/// A shell that goes by this name.
fn shell(rig: &Rig, name: &str) -> String {
    let folder = rig.scene.isolated.root().join("shells");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    if !program.exists() {
        symlink("/bin/sh", &program).unwrap();
    }
    program.display().to_string()
}

#[test]
fn h3_a_hook_that_another_harness_runs_speaks_for_nobody() {
    // Codex with Claude's settings, and a Claude that runs what was meant for Codex.
    let mut rig = Rig::new(CODEX, "");
    let claude = Bench::without_daemon("").payload("UserPromptSubmit");
    let mut call = rig.call(&claude, false);
    call.command = format!("exec {} hook claude", rig.program());
    assert!(is_silent(&rig.host.call(call).unwrap()));
    let mut rig = Rig::under("claude", CODEX, "");
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        rig.quietly(event);
    }
    assert_eq!(rig.scene.records(), []);
}

#[test]
fn h3_a_run_that_nobody_sits_at_is_no_session() {
    let mut rig = Rig::under("terminal", CODEX, "");
    let codex = shell(&rig, "codex");
    for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
        let mut call = rig.call(&rig.payload(event), false);
        call.command = format!("{codex} -c '{} hook codex; true' exec", rig.program());
        assert!(is_silent(&rig.host.call(call).unwrap()), "{event}");
    }
    assert_eq!(rig.scene.records(), []);
    // The same in a terminal is one.
    let mut call = rig.call(&rig.payload("SessionStart"), false);
    call.command = format!("{codex} -c '{} hook codex; true'", rig.program());
    rig.host.call(call).unwrap();
    assert_eq!(rig.scene.records().len(), 1);
}

#[test]
fn i4_a_harness_in_a_harness_is_a_session_of_its_own_and_speaks_as_itself() {
    let mut rig = Rig::new(CODEX, "");
    let outer = rig.begin();
    let claude = shell(&rig, "claude");
    let payload = json!({"session_id": "inner", "hook_event_name": "UserPromptSubmit", "prompt_id": "x",
        "prompt": "within", "cwd": rig.scene.isolated.project("q").unwrap()});
    let minder = rig.program();
    // It tells its prompt and, as itself, a state; and all that the outer one set is inherited.
    let mut call = rig.call(&payload, false);
    call.environment
        .insert("CODEX_THREAD_ID".into(), rig.payload("Stop")["session_id"].as_str().unwrap().into());
    call.environment.insert("CLAUDE_CODE_SESSION_ID".into(), "inner".into());
    call.command = format!("{claude} -c '{minder} hook claude; {minder} state review --note mine; true'");
    let answer = rig.host.call(call).unwrap();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let inner = rig.scene.session("q");
    assert_ne!(inner, outer);
    assert_eq!(rig.states(inner), [State::Working, State::Review]);
    assert_eq!(rig.states(outer), []);
    // One that is no session has nobody to speak as.
    let mut call = rig.call(&payload, false);
    call.environment
        .insert("CODEX_THREAD_ID".into(), rig.payload("Stop")["session_id"].as_str().unwrap().into());
    call.command = format!("{claude} -c '{minder} state done; exit $?'");
    let answer = rig.host.call(call).unwrap();
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(rig.states(outer), []);
}

#[test]
fn i4_two_conversations_of_one_server_are_two_sessions_and_each_speaks_for_itself() {
    let mut rig = Rig::new(OPENCODE, "");
    let one = rig.begin();
    let mut second = rig.payload("SessionStart");
    second["session_id"] = "ses_2".into();
    second["cwd"] = rig.scene.isolated.project("q").unwrap().to_str().unwrap().into();
    assert!(is_silent(&rig.tell(&second)));
    let two = rig.scene.session("q");
    let pid = i32::try_from(rig.host.pid()).unwrap();
    for id in [one, two] {
        assert_eq!(rig.scene.record(id).process.map(|p| p.pid), Some(pid), "both live in it");
    }
    // A tool is told by the plugin whose it is; without a word it is nobody's.
    let mut says = |name: Option<&str>, state: &str| {
        let mut call = rig.call(&json!({}), false);
        call.command = format!("exec {} state {state}", rig.program());
        if let Some(name) = name {
            call.environment.insert(SESSION_VAR.to_owned(), name.to_owned());
        }
        rig.host.call(call).unwrap().code
    };
    assert_eq!(says(Some("opencode:ses_2"), "review"), Some(0));
    assert_eq!(says(Some("opencode:ses_1"), "done"), Some(0));
    assert_eq!(says(Some("opencode:ses_3"), "done"), Some(3));
    assert_eq!(says(None, "done"), Some(3));
    assert_eq!((rig.states(one), rig.states(two)), (vec![State::Done], vec![State::Review]));
}

/// What `minder launch` writes into the record of a session that it starts a process for, with the token `abc`.
fn started(rig: &Rig, label: &str) -> SessionId {
    rig.scene.minder(&["new", "--label", label, "--harness", "codex", "--channel", "hook"]).ok();
    let id = rig.scene.session(label);
    rig.scene.minder(&["daemon", "stop"]).ok();
    let file = rig.scene.home.session(id).join("session.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["launch"] = json!({"at": record["created"], "token": "a9993e364706816aba3e25717850c26c9cd0d89d"});
    std::fs::write(&file, record.to_string()).unwrap();
    rig.scene.minder(&["daemon", "start"]).ok();
    id
}

#[test]
fn a_token_makes_the_first_conversation_the_session_that_was_launched_and_no_other() {
    let mut rig = Rig::new(CODEX, "");
    let launched = started(&rig, "launched");
    let tell = |rig: &mut Rig, conversation: &str, token: &str| {
        let mut payload = rig.payload("SessionStart");
        payload["session_id"] = conversation.into();
        let mut call = rig.call(&payload, false);
        call.environment.insert(SESSION_VAR.to_owned(), launched.to_string());
        call.environment.insert(TOKEN_VAR.to_owned(), token.to_owned());
        assert!(is_silent(&rig.host.call(call).unwrap()));
        let file = rig.scene.home.binding("codex", conversation);
        minder_proto::caller::read_id(&file).unwrap()
    };
    assert_ne!(tell(&mut rig, "guessed", "abd"), launched);
    assert_eq!(tell(&mut rig, "first", "abc"), launched);
    assert_eq!(rig.scene.record(launched).process.map(|p| p.pid), i32::try_from(rig.host.pid()).ok());
    // Its thread's neighbours have inherited it.
    assert_ne!(tell(&mut rig, "second", "abc"), launched);
    assert_eq!(tell(&mut rig, "first", "abc"), launched);
    assert_eq!(rig.scene.record(launched).bindings.len(), 1);

    // Under no harness that can be seen it speaks as the session, and without its proof as nobody.
    let says = |token: &str| {
        let mut command = std::process::Command::new("/usr/bin/env");
        command.arg(format!("{SESSION_VAR}={launched}")).arg(format!("{TOKEN_VAR}={token}"));
        command.arg(rig.program()).args(["state", "review"]);
        rig.scene.orphan(&command, "", crate::scene::LIMIT).code
    };
    assert_eq!((says("abd"), says("abc")), (3, 0));
    assert_eq!(rig.states(launched), [State::Review]);
}

#[test]
fn i3_a_new_id_in_the_same_process_is_the_same_session() {
    for harness in [CODEX, PI] {
        let name = harness.name;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        rig.quietly("UserPromptSubmit");
        rig.quietly("Stop");
        let sent = rig.send(id, "not lost");
        let mut cleared = rig.payload("SessionStart");
        cleared["session_id"] = "after".into();
        cleared["source"] = "clear".into();
        assert!(is_silent(&rig.tell(&cleared)));
        assert_eq!(rig.scene.records().len(), 1, "{name}");
        let record = rig.scene.record(id);
        let bindings: Vec<_> = record.bindings.iter().map(|b| (b.id.as_str(), b.until.is_none())).collect();
        let before = rig.payload("Stop")["session_id"].as_str().unwrap().to_owned();
        assert_eq!(bindings, [(before.as_str(), false), ("after", true)], "{name}");
        // A late word of the old one is placed right and begins nothing.
        rig.quietly("SessionEnd");
        assert_eq!(rig.scene.records().len(), 1, "{name}");
        let mut prompt = rig.of_turn("UserPromptSubmit", "turn-2");
        prompt["session_id"] = "after".into();
        let mut stop = rig.of_turn("Stop", "turn-2");
        stop["session_id"] = "after".into();
        let told = [rig.tell(&prompt), rig.tell(&stop)];
        let times: usize =
            told.iter().map(|a| (a.stdout.clone() + &a.stderr).matches("not lost").count()).sum();
        assert_eq!(times, 1, "{name}: {told:?}");
        assert!(rig.scene.road(id, sent).ends_with("handed"), "{name}");
    }
}

#[test]
fn i2_a_session_stays_one_wherever_its_folder_goes() {
    let mut rig = Rig::new(CODEX, "");
    let id = rig.begin();
    rig.scene.minder(&["new", "--label", "lead"]).ok();
    rig.scene.minder(&["--as", "lead", "watch", "p"]).ok();
    let before = rig.scene.record(id);
    let project = rig.scene.isolated.project("p").unwrap();
    // It works elsewhere; its folder has another name; there is none any more.
    let mut elsewhere = rig.payload("UserPromptSubmit");
    elsewhere["cwd"] = "/usr".into();
    rig.tell(&elsewhere);
    let renamed = project.with_file_name("renamed");
    std::fs::rename(&project, &renamed).unwrap();
    let tool = rig.payload("PostToolUse");
    rig.tell(&tool);
    std::fs::remove_dir_all(&renamed).unwrap();
    let stop = json!({"cwd": project, "turn_id": "turn-1", "session_id": tool["session_id"],
        "hook_event_name": "Stop", "last_assistant_message": "done"});
    rig.tell(&stop);
    let record = rig.scene.record(id);
    assert_eq!((&record.dir, &record.label, record.bindings.len()), (&before.dir, &before.label, 1));
    assert_eq!(rig.scene.records().len(), 2);
    let lead = rig.scene.session("lead");
    let told = rig.scene.notices(lead, id);
    assert!(!told.is_empty(), "{}", rig.scene.history(lead));
}

#[test]
fn i2_sessions_of_folders_that_are_gone_leave_nothing_else_behind() {
    let world = World::new();
    let _daemon = world.start();
    let mut client = world.client();
    let names = |folder: std::path::PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    };
    world.session("one");
    world.run("send one hello").ok();
    world.run("close one").ok();
    let before = names(world.home().root().to_owned());
    for n in 0..100 {
        let folder = tempfile::tempdir_in(world.isolated.root()).unwrap();
        let dir = Some(folder.path().to_str().unwrap().to_owned());
        must(&mut client, &rpc::Create { label: Some(format!("w-{n}")), dir, ..rpc::Create::default() });
    }
    assert_eq!(world.run("ls --json").json()["sessions"].as_array().unwrap().len(), 100);
    world.run("send w-7 hello").ok();
    for n in 0..100 {
        world.run(&format!("close w-{n}")).ok();
    }
    assert_eq!(names(world.home().root().to_owned()), before);
    assert_eq!(names(world.home().sessions()), Vec::<String>::new());
    assert_eq!(names(world.home().label("x").parent().unwrap().to_owned()), Vec::<String>::new());
    assert_eq!(world.run("store check").code, 0);
}

/// A process has one conversation, the one that began in it last. What is said of another, late or by somebody else,
/// changes nothing in that.
#[test]
fn only_a_conversation_that_begins_takes_a_process_from_another() {
    let mut rig = Rig::new(CODEX, "");
    let one = rig.begin();
    let pid = i32::try_from(rig.host.pid()).ok();
    let of_two = |rig: &Rig, event: &str| {
        let mut payload = rig.payload(event);
        payload["session_id"] = "two".into();
        payload["source"] = "resume".into();
        payload["cwd"] = rig.scene.isolated.project("q").unwrap().to_str().unwrap().into();
        payload
    };
    for event in ["SessionStart", "UserPromptSubmit"] {
        let payload = of_two(&rig, event);
        assert!(is_silent(&rig.tell(&payload)));
    }
    let two = rig.scene.session("q");
    let processes = |rig: &Rig| [one, two].map(|id| rig.scene.record(id).process.map(|p| p.pid));
    assert_eq!(processes(&rig), [None, pid]);
    for event in ["Stop", "PostToolUse", "SessionEnd"] {
        rig.quietly(event);
        assert_eq!(processes(&rig), [None, pid], "{event}");
        assert!(rig.scene.record(two).turn.is_some(), "{event}: its turn goes on");
    }
    rig.quietly("SessionStart");
    assert_eq!(processes(&rig), [pid, None], "it is taken up again");
}

/// All that a harness which was started runs has its variables: another harness that runs in it is a session of its own.
#[test]
fn a_token_that_was_inherited_makes_another_harness_nobody_else() {
    let mut rig = Rig::new(CODEX, "");
    let launched = started(&rig, "launched");
    let claude = shell(&rig, "claude");
    let payload = json!({"session_id": "inner", "hook_event_name": "UserPromptSubmit", "prompt_id": "x",
        "prompt": "within", "cwd": rig.scene.isolated.project("q").unwrap()});
    let mut call = rig.call(&payload, false);
    call.environment.insert(SESSION_VAR.to_owned(), launched.to_string());
    call.environment.insert(TOKEN_VAR.to_owned(), "abc".to_owned());
    call.command = format!("{claude} -c '{} hook claude; true'", rig.program());
    assert!(is_silent(&rig.host.call(call).unwrap()));
    let record = rig.scene.record(launched);
    assert_eq!((record.harness.as_deref(), record.bindings.len(), record.process), (Some("codex"), 0, None));
    assert_ne!(rig.scene.session("q"), launched);
}

#[test]
fn only_a_hook_that_speaks_for_a_session_makes_hooks_its_way() {
    for harness in [CODEX, CURSOR] {
        let mut rig = Rig::new(harness, "");
        let name = rig.harness.name;
        let id = rig.begin();
        let heard = rig.scene.record(id).channel;
        rig.scene.minder(&["daemon", "stop"]).ok();
        let file = rig.scene.home.session(id).join("session.json");
        let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        record["channel"] = json!({"kind": "mailbox"});
        record["until_hook"] = true.into();
        std::fs::write(&file, record.to_string()).unwrap();
        rig.scene.minder(&["daemon", "start"]).ok();
        // A part of it that speaks for itself only, and a process that is not its own.
        let mut inner = rig.payload(rig.harness.prompt);
        inner["agent_id"] = "a1".into();
        assert!(is_silent(&rig.tell(&inner)), "{name}");
        let process = if name == "cursor" { "cursor-agent" } else { name };
        let mut other = Host::start(&rig.scene.isolated, process).unwrap();
        let call = rig.call(&rig.payload(rig.harness.prompt), false);
        assert!(is_silent(&other.call(call).unwrap()), "{name}");
        assert_eq!(rig.scene.record(id).channel.as_str(), "mailbox", "{name}");
        // Its own word.
        rig.quietly(rig.harness.prompt);
        assert_eq!(rig.scene.record(id).channel, heard, "{name}");
    }
}

#[test]
fn a_session_is_named_by_the_id_of_its_conversation_wherever_one_is_named() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    let conversation = bench.payload("Stop")["session_id"].as_str().unwrap().to_owned();
    let said = |words: &[&str]| bench.scene.minder(words).ok();
    said(&["set", &conversation, "--label", "api"]);
    assert_eq!(bench.scene.session("api"), id);
    let sent = bench.scene.sent(id, &said(&["send", &conversation, "hello"]));
    assert!(said(&["queue", &conversation]).contains(&sent.short()));
    assert!(said(&["show", &conversation]).contains("api"));
    assert!(said(&["ls", &conversation]).contains("api"));
    said(&["new", "--label", "lead"]);
    said(&["--as", "lead", "watch", &conversation]);
    assert_eq!(bench.scene.notices(bench.scene.session("lead"), id).len(), 1);
    said(&["close", &conversation]);
    assert!(bench.scene.records().iter().all(|r| r.id != id));
}
