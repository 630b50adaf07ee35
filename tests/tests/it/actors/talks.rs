//! The conversation of an actor: turns, hooks, transcript, status file.

use std::sync::Arc;
use std::time::Duration;

use minder_tests::fake::stage::Actor;
use minder_tests::files;
use minder_tests::isolate::Isolated;
use serde_json::{Value, json};

use super::Play;

const LIMIT: Duration = Duration::from_secs(60);

/// Hooks that print what a test has them print: `event` to a command.
fn with_hooks(hooks: &[(&str, &str)]) -> Arc<Isolated> {
    let isolated = Isolated::new().unwrap();
    let folder = isolated.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    let mut settings = json!({ "hooks": {} });
    for (event, command) in hooks {
        settings["hooks"][event] = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    }
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    isolated
}

/// The events whose hooks have run, in order.
fn events(actor: &Actor) -> String {
    let lines = actor.noted("hook");
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    events.join(" ")
}

fn prompt(actor: &Actor, text: &str) {
    actor.pane().paste(text).unwrap();
    actor.pane().key("Enter").unwrap();
}

/// The transcript's lines, as `type: what is in it`.
fn transcript(payload: &Value) -> Vec<String> {
    let path = payload["transcript_path"].as_str().unwrap();
    let line = |line: Value| {
        let attachment = &line["attachment"];
        let kind = attachment["type"].as_str().or(line["type"].as_str()).unwrap().to_owned();
        let texts = [&line["message"]["content"], &line["message"]["content"][0]["text"], &line["content"]];
        let texts = texts.into_iter().chain([&attachment["content"][0], &attachment["prompt"]]);
        let reason = &attachment["blockingError"]["blockingError"];
        let text = texts.chain([reason]).find_map(Value::as_str).unwrap_or_default();
        format!("{kind}: {text}")
    };
    files::json_lines(path.as_ref()).into_iter().map(line).collect()
}

#[test]
fn a_turn_tells_its_hooks_and_writes_what_was_said() {
    let isolated = with_hooks(&[
        ("SessionStart", "true"),
        ("UserPromptSubmit", "echo more about it"),
        ("PreToolUse", "exit 1"),
        ("PostToolUse", r#"echo '{"hookSpecificOutput":{"additionalContext":"seen by the tool"}}'"#),
        ("Stop", r#"grep -q '"stop_hook_active":true' || { echo go on >&2; exit 2; }"#),
        ("SessionEnd", "true"),
    ]);
    let play = Play::in_home(isolated, "look claude\nturn held", &["--session-id", "its-own-id"]);
    let actor = &play.actor;
    prompt(actor, "do it");
    actor.wait_noted("turn-begins", 1).unwrap();
    actor.say(r#"tool Bash {"command":"ls"}"#).unwrap();
    prompt(actor, "and that");
    actor.wait(|line| line["what"] == "hook" && line["payload"]["prompt"] == "and that").unwrap();
    actor.say(r#"tool Bash {"command":"pwd"}"#).unwrap();
    actor.say("answer half done").unwrap();
    actor.say("answer all done").unwrap();
    actor.wait_noted("turn-ends", 1).unwrap();
    actor.say("end other").unwrap();
    let want = "SessionStart UserPromptSubmit PreToolUse PostToolUse UserPromptSubmit PreToolUse PostToolUse Stop Stop \
        SessionEnd";
    assert_eq!(events(actor), want);
    let ran = actor.noted("hook");
    let payload = &ran[1]["payload"];
    assert_eq!(payload["session_id"], "its-own-id");
    assert_eq!((&payload["prompt"], &ran[1]["stdout"]), (&"do it".into(), &"more about it\n".into()));
    assert_eq!(ran[7]["payload"]["stop_hook_active"], false);
    assert_eq!(ran[8]["payload"]["last_assistant_message"], "all done");
    assert!(ran[1..8].iter().all(|line| line["payload"]["prompt_id"] == payload["prompt_id"]));
    assert_eq!(
        transcript(payload),
        [
            "user: do it",
            "hook_additional_context: more about it",
            "assistant: ",
            "user: ",
            "hook_additional_context: seen by the tool",
            "queue-operation: and that",
            "assistant: ",
            "user: ",
            "hook_additional_context: seen by the tool",
            "queued_command: and that",
            "assistant: half done",
            "hook_blocking_error: go on",
            "assistant: all done",
        ]
    );
}

#[test]
fn hooks_are_left_out_doubled_swapped_and_dropped() {
    let all = ["SessionStart", "UserPromptSubmit", "Stop"].map(|event| (event, "echo text"));
    let play = Play::in_home(with_hooks(&all), "look claude\nhooks missing SessionStart", &[]);
    let actor = &play.actor;
    let turn = |how: &str, number: usize| {
        actor.say(how).unwrap();
        prompt(actor, how);
        actor.wait_noted("turn-ends", number).unwrap();
    };
    turn("hooks twice Stop", 1);
    assert_eq!(events(actor), "UserPromptSubmit Stop Stop");
    turn("hooks swapped UserPromptSubmit Stop", 2);
    assert_eq!(events(actor), "UserPromptSubmit Stop Stop Stop UserPromptSubmit");
    turn("hooks dropped", 3);
    assert_eq!(events(actor), "UserPromptSubmit Stop Stop Stop UserPromptSubmit UserPromptSubmit Stop");
    let payload = actor.noted("hook")[0]["payload"].clone();
    let contexts = transcript(&payload).iter().filter(|line| line.starts_with("hook")).count();
    assert_eq!(contexts, 1, "the last turn's was dropped, that of the second came at its end");
}

#[test]
fn a_submission_comes_late_without_its_text_or_into_no_record() {
    let play = Play::new("look claude\nturn held\nturn-delay 100ms\ntakes nothing");
    let actor = &play.actor;
    prompt(actor, "unheard");
    let begun = actor.wait_noted("turn-begins", 1).unwrap();
    assert_eq!(begun[0]["text"], Value::Null);
    let at = |line: &Value| line["at_ms"].as_u64().unwrap();
    assert!(at(&begun[0]) >= at(&actor.noted("submitted")[0]) + 100);
    for step in ["answer so what", "takes text", "turn-delay 0", "late-record 100ms"] {
        actor.say(step).unwrap();
    }
    prompt(actor, "heard");
    let begun = actor.wait_noted("turn-begins", 2).unwrap();
    let folder = play.isolated.home().join(".claude/projects");
    let file = files::wait_for(&folder, LIMIT, || {
        let project = std::fs::read_dir(&folder).ok()?.next()?.ok()?.path();
        Some(std::fs::read_dir(project).ok()?.next()?.ok()?.path())
    });
    let file = file.unwrap();
    let line =
        files::wait_for_lines(&file, LIMIT, |lines| lines.iter().find(|l| l["type"] == "user").cloned())
            .unwrap();
    assert_eq!(line["message"]["content"], "heard");
    assert_eq!(begun[1]["text"], "heard");
    assert!(files::json_lines(&file).iter().all(|line| !line.to_string().contains("unheard")));
}

#[test]
fn the_status_file_says_what_the_screen_shows_and_an_escape_tells_no_hook() {
    let isolated = with_hooks(&[("Stop", "true"), ("UserPromptSubmit", "true")]);
    let play = Play::in_home(isolated, "look claude\nturn held", &[]);
    let actor = &play.actor;
    let pid = actor.pane().process().pid();
    let file = play.isolated.home().join(format!(".claude/sessions/{pid}.json"));
    let status = |status: &str, waiting: Option<&str>| {
        let is = |text: &str| {
            let state: Value = serde_json::from_str(text).ok()?;
            (state["status"] == status && state["waitingFor"].as_str() == waiting).then_some(())
        };
        files::wait_for_text(&file, LIMIT, is).unwrap();
    };
    status("idle", None);
    prompt(actor, "work");
    status("busy", None);
    actor.say("dialog 1 May I? | Yes | No").unwrap();
    status("waiting", Some("permission prompt"));
    actor.pane().key("Enter").unwrap();
    status("busy", None);
    actor.say("question 1 Which? | This | That").unwrap();
    status("waiting", Some("input needed"));
    actor.say("composer").unwrap();
    actor.pane().key("Escape").unwrap();
    status("idle", None);
    // Nothing was made of it: it stands in the composer again.
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}work").unwrap();
    assert_eq!(events(actor), "UserPromptSubmit");
    actor.say("end prompt_input_exit").unwrap();
    assert!(!file.exists());
}

#[test]
fn a_conversation_goes_on_under_another_id() {
    let every = ["SessionStart", "SessionEnd", "UserPromptSubmit", "PreCompact", "PostCompact"];
    let play =
        Play::in_home(with_hooks(&every.map(|event| (event, "true"))), "look claude", &["--resume", "first"]);
    let actor = &play.actor;
    prompt(actor, "one");
    actor.wait_noted("turn-ends", 1).unwrap();
    prompt(actor, "/clear");
    actor.wait_noted("conversation", 2).unwrap();
    actor.say("compact held new-id").unwrap();
    // What comes meanwhile waits for its end.
    prompt(actor, "two");
    actor.wait_noted("submitted", 2).unwrap();
    actor.say("compacted").unwrap();
    actor.wait_noted("turn-ends", 2).unwrap();
    actor.say("resume another").unwrap();
    let ids: Vec<Value> = actor.noted("conversation").iter().map(|line| line["id"].clone()).collect();
    assert!(ids.len() == 4 && ids[0] == "first" && ids[3] == "another" && ids[1] != ids[2], "{ids:?}");
    let ran = actor.noted("hook");
    let told: Vec<String> = ran
        .iter()
        .map(|line| {
            let payload = &line["payload"];
            let of = ids.iter().position(|id| *id == payload["session_id"]).unwrap();
            let why = ["source", "reason", "prompt"].iter().find_map(|name| payload[*name].as_str());
            format!("{of} {} {}", line["event"].as_str().unwrap(), why.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        told,
        [
            "0 SessionStart resume",
            "0 UserPromptSubmit one",
            "0 SessionEnd clear",
            "1 SessionStart clear",
            "1 PreCompact ",
            "2 SessionStart compact",
            "2 PostCompact ",
            "2 UserPromptSubmit two",
            "2 SessionEnd other",
            "3 SessionStart resume",
        ]
    );
    let last = &ran[7]["payload"];
    assert_eq!(transcript(last), ["queue-operation: ", "user: two", "assistant: done"]);
}

#[test]
fn in_codexs_dialect_hooks_are_told_and_texts_are_written_as_codex_does() {
    let isolated = Isolated::new().unwrap();
    let home = isolated.home().join(".codex");
    std::fs::create_dir_all(&home).unwrap();
    let mut hooks = json!({ "hooks": {} });
    for (event, command) in [
        ("SessionStart", "echo a brief"),
        ("UserPromptSubmit", "env | grep -q CLAUDE && echo wrong; true"),
        ("PostToolUse", r#"echo '{"hookSpecificOutput":{"additionalContext":"seen by the tool"}}'"#),
        ("Stop", r#"grep -q '"stop_hook_active":true' || { echo go on >&2; exit 2; }"#),
        ("Interrupt", "true"),
    ] {
        hooks["hooks"][event] = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    }
    std::fs::write(home.join("hooks.json"), hooks.to_string()).unwrap();
    let play = Play::in_home(isolated, "look codex\ndialect codex\nturn held", &[]);
    let actor = &play.actor;
    assert_eq!(events(actor), "", "it begins with its first prompt");
    prompt(actor, "do it");
    actor.wait_noted("turn-begins", 1).unwrap();
    for step in [r#"tool Bash {"command":"ls"}"#, "answer half done", "answer all done"] {
        actor.say(step).unwrap();
    }
    prompt(actor, "more");
    actor.wait_noted("turn-begins", 2).unwrap();
    actor.say("escape").unwrap();
    let ran = actor.noted("hook");
    let want = "SessionStart UserPromptSubmit PostToolUse Stop Stop UserPromptSubmit Interrupt";
    assert_eq!(events(actor), want);
    let prompt = &ran[1]["payload"];
    assert!(prompt["turn_id"].is_string() && prompt["prompt_id"].is_null(), "{prompt}");
    assert_eq!((&ran[1]["stdout"], &ran[2]["payload"]["tool_response"]), (&"".into(), &"".into()));
    let said: Vec<String> = files::json_lines(prompt["transcript_path"].as_str().unwrap().as_ref())
        .iter()
        .map(|line| {
            let payload = &line["payload"];
            let who = payload["role"].as_str().or(payload["type"].as_str()).unwrap();
            format!("{who}: {}", payload["content"][0]["text"].as_str().unwrap_or_default())
        })
        .collect();
    let want = [
        "developer: a brief",
        "user: do it",
        "function_call: ",
        "function_call_output: ",
        "developer: seen by the tool",
        "assistant: half done",
        "user: <hook_prompt hook_run_id=\"run\">go on</hook_prompt>",
        "assistant: all done",
        "user: more",
        "turn_aborted: ",
    ];
    assert_eq!(said, want);
}
