//! `hooks install|uninstall|status|diff` as a whole: files behind links, folders that were not there, the
//! command texts in a real shell.

use std::path::Path;
use std::process::{Command, Output};

use minder_client::commands::hooks::{Action, Options};
use minder_client::hooks::Scope;
use serde_json::Value;

use crate::place::{PROGRAM, Place, options, script};

#[test]
fn no_file_and_no_folder_are_no_file_and_no_folder_again() {
    for scope in [Scope::User, Scope::Project] {
        let place = Place::new();
        let file = place.file("claude", scope);
        let with = |action| Options { scope: Some(scope), ..options(action) };
        assert_eq!(place.hooks_with(PROGRAM, &with(Action::Install)).code(), 0);
        assert!(
            serde_json::from_slice::<Value>(&fs_err::read(&file).unwrap()).unwrap()["hooks"]["Stop"]
                .is_array()
        );
        assert_eq!(place.hooks_with("/other/minder", &with(Action::Install)).code(), 0);
        assert_eq!(place.hooks_with(PROGRAM, &with(Action::Uninstall)).code(), 0);
        assert!(!file.parent().unwrap().exists(), "{scope:?}");
        assert!(!place.surroundings.minder_home.join("hooks").exists());
    }
}

#[test]
fn a_folder_that_others_use_meanwhile_stays() {
    let place = Place::new();
    place.hooks(Action::Install);
    fs_err::write(place.home().join(".claude/history.jsonl"), "").unwrap();
    place.hooks(Action::Uninstall);
    assert!(!place.settings().exists());
    assert!(place.home().join(".claude/history.jsonl").exists());
}

#[test]
fn a_file_that_the_harness_wrote_anew_is_not_removed_and_loses_only_ours() {
    let place = Place::new();
    place.hooks(Action::Install);
    // As Claude Code does when a person sets something: parsed, changed, written anew.
    let mut settings: Value = serde_json::from_slice(&place.bytes()).unwrap();
    settings["model"] = "opus".into();
    fs_err::write(place.settings(), serde_json::to_string_pretty(&settings).unwrap()).unwrap();
    assert!(place.hooks(Action::Install).out.ends_with("already installed\n"));
    assert_eq!(place.hooks(Action::Uninstall).code(), 0);
    let left: Value = serde_json::from_slice(&place.bytes()).unwrap();
    assert_eq!(left, serde_json::json!({ "model": "opus" }));
}

#[test]
fn dry_run_and_diff_show_everything_and_write_nothing() {
    let place = Place::with_settings(b"{\n  \"model\": \"opus\"\n}\n");
    let tree = place.tree();
    let dry = place.hooks_with(PROGRAM, &Options { dry_run: true, ..options(Action::Install) });
    assert_eq!(dry.code(), 0);
    let head = format!("--- {0}\n+++ {0}\n@@ -1,3 +1,", place.settings().display());
    assert!(dry.out.starts_with(&head), "{}", dry.out);
    assert!(dry.out.contains("-  \"model\": \"opus\"\n+  \"model\": \"opus\",\n+  \"hooks\": {\n"));
    let diff = place.hooks(Action::Diff);
    assert_eq!((diff.code(), &diff.out), (1, &dry.out));
    assert_eq!(place.tree(), tree);

    place.hooks(Action::Install);
    let tree = place.tree();
    let diff = place.hooks(Action::Diff);
    assert_eq!((diff.code(), diff.out.as_str()), (0, ""));
    let dry = place.hooks_with(PROGRAM, &Options { dry_run: true, ..options(Action::Uninstall) });
    assert!(dry.out.contains("-  \"hooks\": {\n"));
    assert_eq!(place.tree(), tree);
}

#[test]
fn on_a_terminal_a_file_cannot_act() {
    let place = Place::with_settings("{\n  \"a\u{9b}2J\": 1 // \u{202e}\u{7}\r\n}\n".as_bytes());
    let shown = place.hooks_with(PROGRAM, &Options { terminal: true, ..options(Action::Diff) }).out;
    assert!(shown.contains("\"a\\x9b2J\": 1, // \\u{202e}\\x07\n"), "{shown}");
    let piped = place.hooks(Action::Diff).out;
    assert!(piped.contains("\u{9b}2J"));
}

#[test]
fn status_tells_what_is_so() {
    let place = Place::with_settings(b"{}\n");
    let program = place.home().join("minder");
    let name = program.to_str().unwrap();
    let status = || place.hooks_with(name, &options(Action::Status));
    let shown = place.settings().display().to_string();
    assert_eq!((status().code(), status().out), (1, format!("claude user  {shown}: absent\n")));

    place.hooks_with(name, &options(Action::Install));
    assert!(status().out.contains("not there (the hooks do nothing)"), "{}", status().out);
    script(&program, "");
    let line = format!("claude user  {shown}: installed\n    runs: {name}\n");
    assert_eq!((status().code(), status().out), (0, line));

    let text = String::from_utf8(place.bytes()).unwrap();
    fs_err::write(place.settings(), text.replacen('{', "{\"disableAllHooks\": true,", 1)).unwrap();
    assert_eq!(status().code(), 1);
    assert!(status().out.contains("`disableAllHooks` is true"));

    fs_err::write(place.settings(), format!("// mine\n{text}")).unwrap();
    assert_eq!(status().code(), 1);
    assert!(status().out.contains("Claude Code loads nothing of it"));
    let again = place.hooks_with(name, &options(Action::Install));
    assert!(again.err.ends_with("loads nothing of it\n") && again.code() == 0, "{again:?}");

    fs_err::write(place.settings(), text.replace("\"Stop\"", "\"SubagentStop\"")).unwrap();
    let said = status().out;
    assert!(said.contains("missing: Stop\n") && said.contains("one too many: SubagentStop\n"), "{said}");
    assert!(said.contains("minder hooks install claude --scope user"), "{said}");
    let json = place.hooks_with(name, &Options { json: true, ..options(Action::Status) }).json();
    assert_eq!(json["scopes"][0]["standing"]["missing"], serde_json::json!(["Stop"]));
    assert_eq!((&json["well"], &json["scopes"][0]["state"]), (&false.into(), &"outdated".into()));
}

#[test]
fn status_without_a_scope_looks_at_both() {
    let place = Place::new();
    script(Path::new(&place.home().join("minder")), "");
    let program = place.home().join("minder").to_str().unwrap().to_owned();
    let project = Options { scope: Some(Scope::Project), ..options(Action::Install) };
    place.hooks_with(&program, &project);
    let status = place.hooks_with(&program, &options(Action::Status));
    assert_eq!(status.code(), 0, "{status:?}");
    assert!(status.out.contains("claude user") && status.out.contains("claude project"), "{}", status.out);
    let user = place.hooks_with(&program, &Options { scope: Some(Scope::User), ..options(Action::Status) });
    assert_eq!(user.code(), 1);
}

#[test]
fn a_receipt_that_cannot_be_read_is_said_and_the_work_goes_on() {
    let place = Place::with_settings(b"{}");
    place.hooks(Action::Install);
    assert!(!place.surroundings.minder_home.exists(), "an empty object needs none");
    let place = Place::with_settings(b"{\n}");
    place.hooks(Action::Install);
    let receipt =
        fs_err::read_dir(place.surroundings.minder_home.join("hooks")).unwrap().next().unwrap().unwrap();
    fs_err::write(receipt.path(), "{").unwrap();
    let ran = place.hooks(Action::Uninstall);
    assert_eq!(ran.code(), 0);
    assert!(ran.err.starts_with("minder: ") && ran.err.ends_with("going on without it\n"), "{}", ran.err);
    assert_eq!(place.bytes(), b"{}");
}

#[test]
fn other_harnesses_are_refused_by_name() {
    let place = Place::new();
    let tree = place.tree();
    for (harness, words) in [("grok", "not built yet"), ("clod", "no harness is called clod")] {
        for action in [Action::Install, Action::Uninstall, Action::Status, Action::Diff] {
            let ran = place.hooks_with(PROGRAM, &Options { harness: harness.to_owned(), ..options(action) });
            assert_eq!((ran.code(), ran.out.as_str()), (64, ""));
            assert!(ran.code.unwrap_err().to_string().contains(words));
        }
    }
    assert_eq!(place.tree(), tree);
}

#[test]
fn json_is_one_object() {
    let place = Place::new();
    let json = |action, dry_run| {
        place.hooks_with(PROGRAM, &Options { json: true, dry_run, ..options(action) }).json()
    };
    let would = json(Action::Install, true);
    assert_eq!((&would["result"], &would["dry_run"]), (&"would be installed".into(), &true.into()));
    assert!(would["diff"].as_str().unwrap().starts_with("--- /dev/null\n"));
    let done = json(Action::Install, false);
    assert_eq!(
        (&done["result"], &done["scope"], &done["diff"]),
        (&"installed".into(), &"user".into(), &Value::Null)
    );
    assert_eq!(json(Action::Uninstall, false)["result"], "taken out");
}

#[test]
fn what_cannot_be_written_is_an_error_and_changes_nothing() {
    let place = Place::with_settings(b"{}");
    // A file where the receipts' folder would have to be: not even root can make that.
    let place_with_file = Place::with_settings(b"{\n}");
    fs_err::write(&place_with_file.surroundings.minder_home, "").unwrap();
    let tree = place_with_file.tree();
    let ran = place_with_file.hooks(Action::Install);
    assert_eq!(ran.code(), 74, "{ran:?}");
    assert_eq!(place_with_file.tree(), tree);
    assert_eq!(place.hooks(Action::Install).code(), 0);
}

/// All commands of a settings file, with the event at which they stand.
fn commands(settings: &[u8]) -> Vec<(String, String)> {
    let settings: Value = serde_json::from_slice(settings).unwrap();
    let mut all = Vec::new();
    for (event, groups) in settings["hooks"].as_object().unwrap() {
        for group in groups.as_array().unwrap() {
            for hook in group["hooks"].as_array().unwrap() {
                all.push((event.clone(), hook["command"].as_str().unwrap().to_owned()));
            }
        }
    }
    all
}

fn in_shell(shell: &str, command: &str) -> Output {
    Command::new(shell).arg("-c").arg(command).env_clear().output().unwrap()
}

#[test]
fn h7_the_command_works_wherever_minder_is_and_is_silent_where_it_is_not() {
    let shells: Vec<_> = ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh"]
        .into_iter()
        .filter(|shell| Path::new(shell).exists())
        .collect();
    for odd in [
        "plain",
        "a blank",
        "it's",
        "$HOME",
        "`id`",
        "\"q\"",
        "back\\slash",
        "semi;colon",
        "-x",
        "new\nline",
        "*?[a]",
        "#ä !",
        "' '",
    ] {
        let mut place = Place::new();
        let folder = place.home().join(odd);
        fs_err::create_dir(&folder).unwrap();
        place.surroundings.variables.insert("CLAUDE_CONFIG_DIR", place.home().join(format!("{odd} conf")));
        let program = folder.join("minder");
        // Says with what it was called and whether the shell is still there.
        script(&program, "echo \"$*\"; echo $PPID; cat >&2; exit 2");
        assert_eq!(place.hooks_with(program.to_str().unwrap(), &options(Action::Install)).code(), 0);
        assert!(place.home().join(format!("{odd} conf/settings.json")).exists());
        assert!(!place.home().join(".claude").exists());

        let all = commands(&place.bytes());
        assert_eq!(all.len(), 15);
        for (_, command) in &all {
            let shell = shells[0];
            let ran = in_shell(shell, command);
            let wait = if command.contains("--wait") { " --wait" } else { "" };
            let expected = format!("hook claude{wait}\n{}\n", std::process::id());
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected, "{command}");
            assert_eq!(ran.status.code(), Some(2), "{command}");
        }
        for shell in &shells {
            assert_eq!(in_shell(shell, &all[0].1).status.code(), Some(2), "{shell} {}", all[0].1);
        }
        fs_err::remove_file(&program).unwrap();
        for shell in &shells {
            let ran = in_shell(shell, &all[0].1);
            assert_eq!((ran.status.code(), ran.stdout.len(), ran.stderr.len()), (Some(0), 0, 0), "{shell}");
        }
    }
}

#[test]
fn waiters_have_a_long_time_and_the_rest_a_short_one() {
    let place = Place::new();
    place.hooks(Action::Install);
    let settings: Value = serde_json::from_slice(&place.bytes()).unwrap();
    let mut waiters = Vec::new();
    for (event, groups) in settings["hooks"].as_object().unwrap() {
        assert_eq!(groups.as_array().unwrap().len(), 1);
        let group = &groups[0];
        assert_eq!(
            group.get("matcher").is_some(),
            event.contains("Tool") || event.contains("Permission"),
            "{event}"
        );
        for hook in group["hooks"].as_array().unwrap() {
            let waits = hook["command"].as_str().unwrap().contains(" hook claude --wait ");
            assert_eq!(hook.get("asyncRewake").is_some(), waits);
            assert_eq!(hook["timeout"].as_u64().unwrap() > 10, waits);
            if waits {
                assert_eq!(hook["timeout"], 2_000_000);
                waiters.push(event.as_str());
            }
        }
    }
    waiters.sort_unstable();
    assert_eq!(waiters, ["SessionStart", "Stop", "StopFailure", "UserPromptSubmit"]);
}
