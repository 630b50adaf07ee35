//! `harness probe`: hooks that are there and dead come out, with the one that is wrong and why; what works is said to; and
//! nothing of the turn is left.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use minder_tests::claude::Claude;
use minder_tests::codex::Codex;
use minder_tests::isolate::Isolated;
use minder_tests::model::Model;
use serde_json::Value;

use crate::scene::{LIMIT, Ran, Scene};

/// A probe as a person's shell runs it, with these variables on top.
fn probe(scene: &Scene, words: &[&str], environment: Vec<(OsString, OsString)>) -> Ran {
    let mut command = Command::new("/usr/bin/env");
    for (mut name, value) in environment {
        name.push("=");
        name.push(value);
        command.arg(name);
    }
    command.arg(scene.isolated.program("minder").unwrap()).args(["harness", "probe"]).args(words);
    scene.orphan(&command, "", LIMIT + Duration::from_secs(30))
}

/// A `fake` under a harness's name, first on the path, and what it does.
fn fake(isolated: &Isolated, name: &str, script: &str) -> Vec<(OsString, OsString)> {
    let folder = isolated.root().join("named");
    std::fs::create_dir_all(&folder).unwrap();
    symlink(isolated.program("fake").unwrap(), folder.join(name)).unwrap();
    let record = folder.join("record");
    std::fs::write(folder.join(format!("{name}.script")), format!("record {}\n{script}", record.display()))
        .unwrap();
    let mut path = folder.into_os_string();
    for (_, value) in isolated.environment().into_iter().filter(|(name, _)| name == "PATH") {
        path.push(":");
        path.push(value);
    }
    vec![("PATH".into(), path)]
}

/// Whether each works, and why not, by kind and name.
fn row(report: &Value, kind: &str, name: &str) -> (String, String) {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == kind && row["name"] == name);
    let row = row.unwrap_or_else(|| panic!("{kind} {name}: {report:#}"));
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    (text("works"), text("why"))
}

fn assert_nothing_is_left(scene: &Scene) {
    let left: Vec<_> =
        std::fs::read_dir(scene.isolated.tmp()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("minder-probe")), "{left:?}");
    assert!(!scene.home.sessions().exists(), "the user's own store was used");
}

/// A turn of Codex as its hooks and its output have it.
const TURN: &str = r#"version codex-cli 0.171.0
dialect codex
conversation 0199c2d4-90c3-7f0e-8a17-c2b67be21c09
read stdin
hook SessionStart {"source":"startup"}
hook UserPromptSubmit {"prompt":"x"}
hook Stop {"last_assistant_message":"done"}
hook SessionEnd {"reason":"other"}
print {"type":"thread.started","thread_id":"0199c2d4-90c3-7f0e-8a17-c2b67be21c09"}
print {"type":"turn.started"}
print {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}}
print {"type":"turn.completed","usage":{}}
exit 0
"#;

#[test]
fn h9_a_hooks_file_with_one_wrong_name_says_which() {
    let scene = Scene::new();
    let environment = fake(&scene.isolated, "codex", TURN);
    scene.minder(&["hooks", "install", "codex"]).ok();
    let file = scene.isolated.home().join(".codex/hooks.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"Stop\""));
    std::fs::write(&file, text.replace("\"Stop\"", "\"Stopp\"")).unwrap();
    let ran = probe(&scene, &["codex", "--yes", "--json"], environment);
    assert_eq!(ran.code, 1, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(row(&report, "hook", "Stop"), ("no".into(), "not in the file".into()), "{report:#}");
    for event in ["SessionStart", "UserPromptSubmit", "SessionEnd"] {
        assert_eq!(row(&report, "hook", event).0, "yes", "{event}: {report:#}");
    }
    assert_eq!(row(&report, "channel", "headless").0, "yes", "{report:#}");
    assert!(report["remarks"].to_string().contains("`Stopp`"), "{report:#}");
    assert_nothing_is_left(&scene);
}

#[test]
fn h9_a_notify_alone_is_named_and_nothing_is_spent() {
    let scene = Scene::new();
    let environment = fake(&scene.isolated, "codex", TURN);
    let folder = scene.isolated.home().join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "notify = [\"minder\", \"hook\", \"codex\"]\n").unwrap();
    let ran = probe(&scene, &["codex", "--yes"], environment);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.stdout.contains("`notify` in") && ran.stdout.contains("tells of ended turns alone"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("nothing was run, and nothing spent"), "{ran:?}");
    let record = std::fs::read_to_string(scene.isolated.root().join("named/record")).unwrap_or_default();
    assert!(!record.contains("stdin"), "a turn was run: {record}");
    assert_nothing_is_left(&scene);
}

#[test]
fn a_probe_spends_nothing_that_nobody_allowed() {
    let scene = Scene::new();
    let environment = fake(&scene.isolated, "codex", TURN);
    scene.minder(&["hooks", "install", "codex"]).ok();
    let ran = probe(&scene, &["codex"], environment);
    assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{ran:?}");
    assert!(ran.stderr.contains("costs one turn") && ran.stderr.contains("--yes"), "{ran:?}");
    assert_nothing_is_left(&scene);
}

#[test]
#[cfg_attr(not(claude), ignore = "needs Claude Code: run tests/setup.sh")]
fn the_real_claude_runs_its_hooks_and_is_given_a_message() {
    let scene = Scene::new();
    let model = Model::start().unwrap();
    let claude = Claude::new(&scene.isolated, &model).unwrap();
    scene.minder(&["hooks", "install", "claude"]).ok();
    // What makes the scripted model do what a real one would do with the prompt.
    std::fs::write(claude.config_dir().join("CLAUDE.md"), "Notes: [[sh touch ran]] [[say done]]\n").unwrap();
    let mut environment: Vec<(OsString, OsString)> =
        claude.environment().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut path = claude.program().parent().unwrap().as_os_str().to_owned();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    environment.push(("PATH".into(), path));
    let ran = probe(&scene, &["claude", "--yes", "--json"], environment);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"] {
        assert_eq!(row(&report, "hook", event).0, "yes", "{event}: {report:#}");
    }
    assert_eq!(row(&report, "hook", "PermissionRequest").0, "not-tried");
    for channel in ["hook", "headless"] {
        assert_eq!(row(&report, "channel", channel).0, "yes", "{channel}: {report:#}");
    }
    assert_eq!(ran.code, 0, "{ran:?}");
    let projects = std::fs::read_dir(claude.config_dir().join("projects")).into_iter().flatten().count();
    assert_eq!(projects, 0, "its conversation was left");
    assert_nothing_is_left(&scene);
}

#[test]
#[cfg_attr(not(codex), ignore = "needs Codex: run tests/setup.sh")]
fn h9_hooks_that_the_real_codex_was_not_shown_are_named() {
    let scene = Scene::new();
    let model = Model::start().unwrap();
    let codex = Codex::new(&scene.isolated, &model, &[]).unwrap();
    scene.minder(&["hooks", "install", "codex"]).ok();
    let ran = probe(&scene, &["codex", "--yes", "--json"], codex.environment().collect());
    assert_eq!(ran.code, 1, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let (works, why) = row(&report, "hook", event);
        assert!(works == "no" && why.contains("not reviewed"), "{event}: {report:#}");
    }
    assert_eq!(row(&report, "channel", "headless").0, "yes", "{report:#}");
    assert_nothing_is_left(&scene);
}
