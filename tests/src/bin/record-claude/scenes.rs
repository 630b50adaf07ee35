//! The situations that are recorded, each with the real program.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{LIMIT, Scene};

type Play = fn() -> Result<()>;

pub const ALL: [(&str, Play); 12] = [
    ("a turn with a tool, the end", turn),
    ("text from hooks at a turn's boundaries", boundaries),
    ("a permission, given and refused", permission),
    ("a question", question),
    ("a command in the background", background),
    ("woken while idle", woken_idle),
    ("woken while busy", woken_busy),
    ("a prompt typed while busy", typed_busy),
    ("a sub-agent", subagent),
    ("a model that fails", failure),
    ("an interrupt", interrupt),
    ("a cleared and a compacted conversation, changed settings", renewed),
];

/// A command that needs no permission and runs until the file `go` is there.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.05; done";

fn plain() -> Result<Scene> {
    Scene::start(|_, _| ())
}

/// What a hook prints to add `text` to the model's context.
fn context(event: &str, text: &str) -> String {
    let output = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}});
    format!("cat <<'END'\n{output}\nEND\n")
}

fn turn() -> Result<()> {
    let mut s = plain()?;
    s.keep_call("SessionStart", 1, "SessionStart")?;
    s.keep_state("idle", "session-idle")?;
    s.tui.prompt("use a tool [[sh echo hi]] and [[gate go]] [[say all done]]")?;
    s.keep_call("UserPromptSubmit", 1, "UserPromptSubmit")?;
    s.keep_state("busy", "session-busy")?;
    s.keep_call("PreToolUse", 1, "PreToolUse")?;
    s.keep_call("PostToolUse", 1, "PostToolUse")?;
    s.model.open("go");
    s.keep_call("Stop", 1, "Stop")?;
    s.tui.wait_status(LIMIT, "idle")?;
    s.tui.prompt("a tool that fails [[sh cat no-such-file]] [[say well]]")?;
    s.keep_call("PostToolUseFailure", 1, "PostToolUseFailure")?;
    s.stopped(2)?;
    s.tui.prompt("/exit")?;
    s.keep_call("SessionEnd", 1, "SessionEnd")
}

fn boundaries() -> Result<()> {
    let mut s = plain()?;
    s.recorder.once("UserPromptSubmit", &context("UserPromptSubmit", "TEXT-AT-PROMPT"))?;
    s.recorder.once("PostToolUse", &context("PostToolUse", "TEXT-AFTER-TOOL"))?;
    s.recorder.once("Stop", "echo 'TEXT-AT-STOP by exit 2' >&2; exit 2")?;
    s.tui.prompt("one [[sh echo hi]] [[say a]]")?;
    s.stopped(2)?;
    s.keep_transcript("TEXT-AT-PROMPT", "hook_additional_context", "transcript-prompt-context")?;
    s.keep_transcript("TEXT-AFTER-TOOL", "hook_additional_context", "transcript-after-tool-context")?;
    s.keep_transcript("TEXT-AT-STOP by exit 2", "stop_hook_summary", "transcript-stop-exit-2")?;
    s.recorder.once("Stop", r#"echo '{"decision":"block","reason":"TEXT-AT-STOP by JSON"}'"#)?;
    s.tui.prompt("two [[say b]]")?;
    s.stopped(4)?;
    s.keep_call("Stop", 4, "Stop-after-block")?;
    s.keep_transcript("TEXT-AT-STOP by JSON", "stop_hook_summary", "transcript-stop-block")?;
    s.recorder.once("Stop", &context("Stop", "TEXT-AT-STOP as context"))?;
    s.tui.prompt("three [[say c]]")?;
    s.stopped(6)?;
    s.keep_transcript("TEXT-AT-STOP as context", "stop_hook_summary", "transcript-stop-context")
}

fn permission() -> Result<()> {
    let mut s = plain()?;
    s.tui.prompt("may I [[sh touch made]] [[say thanks]]")?;
    s.keep_call("PermissionRequest", 1, "PermissionRequest")?;
    s.keep_state("waiting", "session-waiting")?;
    s.keep_call("Notification", 1, "Notification")?;
    s.tui.answer_dialog(LIMIT, "Enter")?;
    s.stopped(1)?;
    s.tui.prompt("may I [[sh touch another]] [[say thanks]]")?;
    s.tui.answer_dialog(LIMIT, "Escape")?;
    s.keep_transcript("user-rejected", "user", "transcript-refused")
}

fn question() -> Result<()> {
    let mut s = plain()?;
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let question =
        json!({"question": "Which one?", "header": "Pick", "multiSelect": false, "options": options});
    s.tui.prompt(&format!("[[tool AskUserQuestion {}]] [[say thanks]]", json!({"questions": [question]})))?;
    s.keep_call("PermissionRequest", 1, "PermissionRequest-question")?;
    s.keep_state("waiting", "session-question")?;
    s.tui.answer_dialog(LIMIT, "Enter")?;
    s.keep_call("PostToolUse", 1, "PostToolUse-question")
}

fn background() -> Result<()> {
    let mut s = plain()?;
    let input = json!({"command": UNTIL_GO, "description": "wait for go", "run_in_background": true});
    s.tui.prompt(&format!("[[tool Bash {input}]] [[say it runs]]"))?;
    let stop = s.recorder.wait_nth(LIMIT, "Stop", 1)?.payload;
    s.normal.task(stop["background_tasks"][0]["id"].as_str().context("a background task has an id")?);
    s.keep_call("PostToolUse", 1, "PostToolUse-background")?;
    s.keep("Stop-background", &stop)?;
    s.keep_state("shell", "session-shell")?;
    std::fs::write(s.folder.join("go"), "")?;
    s.keep_call("UserPromptSubmit", 2, "UserPromptSubmit-background")
}

/// A session whose first prompt leaves a hook that wakes it with a text when something is written to the
/// fifo `wake`.
fn wakeable() -> Result<Scene> {
    Scene::start(|recorder, hooks| {
        let folder = recorder.folder();
        let wait = format!(
            "cat >/dev/null; cd {}; [ -p wake ] || mkfifo wake; read -r text <wake; echo \"$text\" >&2; exit 2",
            folder.display()
        );
        let entry = json!({"hooks": [
            {"type": "command", "command": wait, "asyncRewake": true, "timeout": 2_000_000}]});
        if let Some(entries) = hooks["UserPromptSubmit"].as_array_mut() {
            entries.push(entry);
        }
    })
}

fn wake(s: &Scene, text: &str) -> Result<()> {
    std::fs::write(s.recorder.folder().join("wake"), format!("{text}\n")).context("waking")
}

fn woken_idle() -> Result<()> {
    let mut s = wakeable()?;
    s.tui.prompt("[[say first]]")?;
    s.stopped(1)?;
    wake(&s, "TEXT-OF-WAKE")?;
    s.keep_call("UserPromptSubmit", 2, "UserPromptSubmit-woken")?;
    s.recorder.wait_nth(LIMIT, "Stop", 2)?;
    s.keep_transcript("TEXT-OF-WAKE", "user", "transcript-woken-idle")
}

fn woken_busy() -> Result<()> {
    let mut s = wakeable()?;
    s.tui.prompt(&format!("[[sh {UNTIL_GO}]] [[say first]]"))?;
    s.recorder.wait_nth(LIMIT, "PreToolUse", 1)?;
    wake(&s, "TEXT-OF-WAKE")?;
    s.keep_transcript("TEXT-OF-WAKE", "queue-operation", "transcript-woken-busy-held")?;
    std::fs::write(s.folder.join("go"), "")?;
    s.keep_call("UserPromptSubmit", 2, "UserPromptSubmit-woken-busy")?;
    s.stopped(1)?;
    s.keep_transcript("TEXT-OF-WAKE", "queued_command", "transcript-woken-busy")
}

fn typed_busy() -> Result<()> {
    let mut s = plain()?;
    s.tui.prompt(&format!("[[sh {UNTIL_GO}]] [[say first]]"))?;
    s.recorder.wait_nth(LIMIT, "PreToolUse", 1)?;
    s.tui.prompt("TEXT-TYPED")?;
    s.keep_call("UserPromptSubmit", 2, "UserPromptSubmit-queued")?;
    s.keep_transcript("TEXT-TYPED", "queue-operation", "transcript-typed-busy-held")?;
    std::fs::write(s.folder.join("go"), "")?;
    s.stopped(1)?;
    s.keep_transcript("TEXT-TYPED", "queued_command", "transcript-typed-busy")
}

fn subagent() -> Result<()> {
    let mut s = plain()?;
    let input = json!({"description": "look", "subagent_type": "general-purpose",
        "prompt": "inner ((sh echo sub)) ((say sub-done))"});
    s.tui.prompt(&format!("[[tool Agent {input}]] [[say first]]"))?;
    s.keep_call("SubagentStart", 1, "SubagentStart")?;
    let inner = |calls: &[minder_tests::claude::recorder::Call], event: &str| {
        let of_agent = |p: &Value| p.get("agent_id").is_some();
        calls.iter().find(|c| c.event == event && of_agent(&c.payload)).map(|c| c.payload.clone())
    };
    for event in ["PreToolUse", "PostToolUse"] {
        let payload = s.recorder.wait(LIMIT, |calls| inner(calls, event))?;
        s.keep(&format!("{event}-subagent"), &payload)?;
    }
    s.keep_call("SubagentStop", 1, "SubagentStop")
}

fn failure() -> Result<()> {
    let mut s = plain()?;
    s.tui.prompt("[[err 529]]")?;
    s.keep_call("StopFailure", 1, "StopFailure")
}

fn interrupt() -> Result<()> {
    let mut s = plain()?;
    s.tui.prompt(&format!("[[sh {UNTIL_GO}]] [[say first]]"))?;
    s.recorder.wait_nth(LIMIT, "PreToolUse", 1)?;
    s.tui.wait_status(LIMIT, "busy")?;
    s.tui.pane().wait_text(LIMIT, "esc to interrupt")?;
    s.tui.pane().key("Escape")?;
    s.tui.wait_status(LIMIT, "idle")?;
    s.keep_transcript("interrupted by user", "user", "transcript-interrupted")
}

fn renewed() -> Result<()> {
    let mut s = plain()?;
    s.tui.prompt("[[say first]]")?;
    s.stopped(1)?;
    s.tui.prompt("/compact [[say a short summary]]")?;
    s.keep_call("PreCompact", 1, "PreCompact")?;
    s.keep_call("SessionStart", 2, "SessionStart-compact")?;
    s.keep_call("PostCompact", 1, "PostCompact")?;
    s.tui.wait_status(LIMIT, "idle")?;
    s.tui.prompt("/clear")?;
    s.keep_call("SessionEnd", 1, "SessionEnd-clear")?;
    s.keep_call("SessionStart", 3, "SessionStart-clear")?;
    let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(s.claude.settings())?)?;
    settings["theme"] = "light".into();
    s.claude.write_settings(&settings)?;
    s.keep_call("ConfigChange", 1, "ConfigChange")
}
