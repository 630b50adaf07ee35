//! The rig with the real program: that what it promises to a test holds.

use std::time::Duration;

use serde_json::Value;

use super::Claude;
use crate::isolate::Isolated;
use crate::model::{Model, Outcome};
use crate::tmux::Tmux;
use crate::{files, process};

const LIMIT: Duration = Duration::from_secs(60);

/// Where nothing may be skipped, this variable is set, and a skip is a failure.
#[test]
fn nothing_is_skipped_where_that_is_forbidden() {
    assert!(cfg!(claude) || std::env::var_os("REQUIRE_HARNESSES").is_none(), "run tests/setup.sh first");
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn a_headless_run_uses_a_tool_and_answers() {
    let model = Model::start().unwrap();
    let isolated = Isolated::new().unwrap();
    let claude = Claude::new(&isolated, &model).unwrap();
    let folder = claude.project("p").unwrap();
    let args = ["--output-format", "json", "--allowedTools", "Bash"];
    let mut command = claude.print(&folder, "[[sh echo from-$((40+2))]] [[say all done]]", &args);
    let out = process::run(&mut command, b"", LIMIT).unwrap();
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(result["result"], "all done", "{result}");
    model.wait_for_text(LIMIT, "from-42").unwrap();
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn an_interactive_session_takes_prompts_asks_and_is_interrupted() {
    let model = Model::start().unwrap();
    let isolated = Isolated::new().unwrap();
    let claude = Claude::new(&isolated, &model).unwrap();
    let folder = claude.project("p").unwrap();
    let tmux = Tmux::start(&isolated).unwrap();
    let tui = claude.tui(&tmux, "one", &folder, &[]).unwrap();

    tui.prompt("[[gate go]] [[say first answer]]").unwrap();
    let request = model.wait_for_text(LIMIT, "[[gate go]]").unwrap();
    assert_eq!(request.session.unwrap(), tui.session_id().unwrap());
    tui.wait_status(LIMIT, "busy").unwrap();
    model.open("go");
    tui.pane().wait_text(LIMIT, "● first answer").unwrap();
    tui.wait_status(LIMIT, "idle").unwrap();
    let answered = |line: &Value| line["message"]["content"][0]["text"] == "first answer";
    let transcript = tui.transcript().unwrap();
    files::wait_for_lines(&transcript, LIMIT, |lines| lines.iter().any(answered).then_some(())).unwrap();

    tui.prompt("[[sh touch made]] [[say second]]").unwrap();
    tui.wait_status(LIMIT, "waiting").unwrap();
    tui.pane().key("Escape").unwrap();
    tui.wait_status(LIMIT, "idle").unwrap();
    assert!(!folder.join("made").exists());

    tui.prompt("third [[hang]]").unwrap();
    model.wait_for_text(LIMIT, "third").unwrap();
    tui.pane().key("Escape").unwrap();
    let dropped = |all: &[crate::model::Request]| (all.last()?.outcome == Outcome::Dropped).then_some(());
    model.wait_for(LIMIT, dropped).unwrap();

    let harness = process::Process::open(tui.process().pid()).unwrap().unwrap();
    let root = isolated.root().to_owned();
    drop((tui, tmux, claude, isolated));
    assert!(harness.wait(Duration::ZERO));
    assert!(!root.exists());
}

#[test]
fn the_recorded_fixtures_are_whole_and_free_of_where_they_were_made() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/claude").join(super::version());
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("/mt-") && !text.contains("claude-0"), "{}", path.display());
        let records: Vec<Value> = if path.extension().unwrap() == "jsonl" {
            files::json_lines(&path)
        } else {
            vec![serde_json::from_str(&text).unwrap()]
        };
        assert!(!records.is_empty() && records.iter().all(Value::is_object), "{}", path.display());
        if let Some(event) = records[0].get("hook_event_name") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert_eq!(name.split('-').next().unwrap(), event.as_str().unwrap());
        }
        count += 1;
    }
    assert!(count > 30, "{count}");
}
