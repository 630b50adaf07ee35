//! What is none of minder's: other programs' payloads, unattended runs, sub-agents. No word, no write, no time.

use std::collections::BTreeMap;
use std::path::Path;

use minder_proto::state::State;
use minder_tests::fake::Host;
use serde_json::{Value, json};

use super::bench::{Bench, is_silent};

/// Every file of the store, but for its daemon's own log.
fn files(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_none_or(|e| e != "log") {
            into.insert(path.display().to_string(), std::fs::read(&path).unwrap_or_default());
        }
    }
}

fn store(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(bench.scene.home.root(), &mut found);
    found
}

#[test]
fn h3_what_is_no_session_is_answered_with_silence_and_leaves_no_trace() {
    let mut bench = Bench::new("adopt.ignore = [\"/nowhere\"]");
    let before = store(&bench);
    let mut fastest = u64::MAX;
    let mut floor = u64::MAX;
    let mut silent = |bench: &mut Bench, what: &str, payload: &Value, variables: &[(&str, &str)]| {
        let mut call = bench.call(payload, false);
        call.environment.extend(variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let answer = bench.host.call(call).unwrap();
        assert!(is_silent(&answer), "{what}: {answer:?}");
        fastest = fastest.min(answer.took_ms);
        // A program that does nothing, run just so.
        let mut nothing = bench.call(payload, false);
        nothing.command = "/bin/true".to_owned();
        floor = floor.min(bench.host.call(nothing).unwrap().took_ms);
    };
    let unattended = [("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_SESSION_ATTENDED", "0")];
    for name in ["SessionStart", "UserPromptSubmit", "PostToolUse", "PermissionRequest", "Stop", "SessionEnd"]
    {
        let payload = bench.payload(name);
        silent(&mut bench, name, &payload, &unattended);
        silent(&mut bench, name, &payload, &[("MINDER_TURN", "01a22c29-bbac-74f8-8889-a90d096a520d")]);
        let mut ignored = payload.clone();
        ignored["cwd"] = "/nowhere/at/all".into();
        silent(&mut bench, name, &ignored, &[]);
        let mut subagent = payload.clone();
        subagent["agent_id"] = "a1".into();
        silent(&mut bench, name, &subagent, &[]);
    }
    // Another harness that reads the same settings sends what it sends.
    for (what, shape) in [
        ("names in another way", json!({"hookEventName": "Stop", "sessionId": "s"})),
        ("an event that is not known", json!({"hook_event_name": "AfterAgent", "session_id": "s"})),
        ("no conversation", json!({"hook_event_name": "Stop"})),
        ("a number for a name", json!({"hook_event_name": "Stop", "session_id": 7})),
    ] {
        let stop = bench.payload("Stop");
        let mut call = bench.call(&stop, false);
        call.payload = shape.to_string();
        let answer = bench.host.call(call).unwrap();
        assert!(is_silent(&answer), "{what}: {answer:?}");
    }
    for bytes in ["", "not json", "[1,2]", "{\"hook_event_name\":", "\u{0}"] {
        let stop = bench.payload("Stop");
        let mut call = bench.call(&stop, false);
        bytes.clone_into(&mut call.payload);
        let answer = bench.host.call(call).unwrap();
        assert!(is_silent(&answer), "{bytes:?}: {answer:?}");
    }
    assert_eq!(store(&bench), before);
    assert!(fastest <= floor * 10 + 10, "the fastest took {fastest} ms, and nothing at all {floor} ms");
}

#[test]
fn h3_with_adoption_off_nothing_becomes_a_session_by_itself() {
    let mut bench = Bench::new("adopt.mode = \"off\"");
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        bench.quietly(name);
    }
    assert_eq!(bench.scene.records(), []);
}

#[test]
fn h10_a_sub_agents_events_change_nothing_and_a_tools_input_does_not_fake_one() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.quietly("UserPromptSubmit");
    let mut asks = bench.payload("PermissionRequest");
    asks["tool_input"]["agent_id"] = "a1".into();
    assert!(is_silent(&bench.tell(&asks)));
    bench.send(id, &["a message"]);
    let stood = bench.scene.path(id);
    assert_eq!(stood.last().unwrap().0, State::Asking);
    bench.quietly("PostToolUse-subagent");
    let mut stop = bench.payload("Stop");
    stop["agent_id"] = "a1".into();
    assert!(is_silent(&bench.tell(&stop)));
    assert_eq!(bench.scene.path(id), stood, "the question stands");
    // Its own tool's end is the answer, whatever it was given.
    let mut done = bench.payload("PostToolUse");
    done["tool_input"] = asks["tool_input"].clone();
    let answer = bench.tell(&done);
    assert!(answer.stdout.contains("a message"), "{answer:?}");
    assert_eq!(bench.scene.path(id).last().unwrap().0, State::Working);
}

#[test]
fn a_session_that_was_closed_does_not_come_back_while_its_process_runs() {
    let mut bench = Bench::new("");
    let id = bench.begin();
    bench.scene.minder(&["close", "p"]).ok();
    let restart = |bench: &Bench| bench.scene.minder(&["daemon", "restart"]).ok();
    for again in 0..2 {
        for name in ["UserPromptSubmit", "PostToolUse", "Stop", "SessionStart-clear"] {
            bench.quietly(name);
        }
        assert!(bench.scene.records().is_empty(), "round {again}: {:?}", bench.scene.records());
        restart(&bench);
    }
    // Another process of the same folder is another session.
    bench.host = Host::start(&bench.scene.isolated, "claude").unwrap();
    let other = bench.begin();
    assert_ne!(other, id);
}
