//! The packs of the harnesses beside Claude Code: install, install, uninstall in the files of each, and what `status`
//! knows of hooks that are there and do not run.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use minder_client::commands::hooks::{Action, Options};
use minder_client::hooks::pack::Body;
use minder_client::hooks::{Scope, pack};

use crate::place::{PROGRAM, Place, Ran, options, script};

/// The paths in a place, but for the store: its folder stays.
fn paths(place: &Place) -> Vec<PathBuf> {
    place.tree().into_keys().filter(|path| *path != place.surroundings.minder_home).collect()
}

fn of(harness: &str, action: Action) -> Options {
    Options { harness: harness.to_owned(), ..options(action) }
}

fn hooks(place: &Place, harness: &str, action: Action) -> Ran {
    place.hooks_with(PROGRAM, &of(harness, action))
}

/// Files as people have them, for the harnesses that have a file of hooks.
fn samples(harness: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packs").join(harness);
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn install_install_uninstall_leaves_the_files_of_every_harness_as_they_were() {
    let groups = pack::ALL.iter().filter(|pack| !matches!(pack.body, Body::Script(..)));
    for harness in groups.map(|pack| pack.name).filter(|name| *name != "claude") {
        for sample in samples(harness) {
            let start = fs_err::read(&sample).unwrap();
            let name = sample.display();
            let place = Place::new();
            let file = place.file(harness, Scope::User);
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(&file, &start).unwrap();
            fs_err::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
            let before = paths(&place);
            for said in ["installed", "already installed"] {
                let ran = hooks(&place, harness, Action::Install);
                assert!(ran.out.ends_with(&format!(": {said}\n")), "{name}: {ran:?}");
            }
            let after = fs_err::read_to_string(&file).unwrap();
            assert!(after.contains(&format!("hook {harness} ")), "{name}: {after}");
            // Another version at another place comes in its stead, and the start is not forgotten.
            place.hooks_with("/new/it's/minder", &of(harness, Action::Install));
            assert!(!fs_err::read_to_string(&file).unwrap().contains(PROGRAM), "{name}");
            assert_eq!(hooks(&place, harness, Action::Uninstall).code(), 0, "{name}");
            assert_eq!(fs_err::read(&file).unwrap(), start, "{name}");
            assert_eq!(fs_err::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "{name}");
            assert_eq!(paths(&place), before, "{name}");
        }
    }
}

#[test]
fn no_file_and_a_link_are_no_file_and_a_link_again_for_every_harness() {
    for pack in pack::ALL {
        for scope in [Scope::User, Scope::Project] {
            let with = |action| Options { scope: Some(scope), ..of(pack.name, action) };
            let place = Place::new();
            let file = place.file(pack.name, scope);
            let before = paths(&place);
            assert_eq!(place.hooks_with(PROGRAM, &with(Action::Install)).code(), 0);
            assert!(file.exists(), "{} {scope:?}", pack.name);
            assert_eq!(place.hooks_with(PROGRAM, &with(Action::Uninstall)).code(), 0);
            assert_eq!(paths(&place), before, "{} {scope:?}", pack.name);

            let behind = place.home().join("behind");
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            symlink(&behind, &file).unwrap();
            assert_eq!(place.hooks_with(PROGRAM, &with(Action::Install)).code(), 0);
            assert!(behind.exists() && fs_err::symlink_metadata(&file).unwrap().is_symlink());
            assert_eq!(place.hooks_with(PROGRAM, &with(Action::Uninstall)).code(), 0);
            assert!(!behind.exists() && fs_err::symlink_metadata(&file).unwrap().is_symlink());
        }
    }
}

#[test]
fn h7_a_folder_of_the_harnesss_own_is_used_whatever_its_name() {
    for pack in pack::ALL {
        let Some((variable, below)) = pack.user.variable else { continue };
        let mut place = Place::new();
        let folder = place.home().join("it's a \"folder\" $HOME");
        place.surroundings.variables.insert(variable, folder.clone());
        assert_eq!(hooks(&place, pack.name, Action::Install).code(), 0);
        assert!(folder.join(below).exists(), "{}", pack.name);
        assert!(!place.home().join(pack.user.home).exists(), "{}", pack.name);
    }
}

#[test]
fn h9_what_is_there_and_dead_is_said() {
    let place = Place::new();
    let program = place.home().join("minder");
    script(&program, "");
    let program = program.to_str().unwrap();
    let status = || place.hooks_with(program, &of("codex", Action::Status));
    let file = place.file("codex", Scope::User);
    let config = file.with_file_name("config.toml");
    fs_err::create_dir(file.parent().unwrap()).unwrap();
    // A program that is told of ended turns knows no approvals: that is no installation.
    fs_err::write(&config, "notify = [\"minder\", \"notify\"]\n").unwrap();
    let alone = format!(
        "codex user  {}: absent\n    `notify` in {} tells of ended turns alone, of no question and no permission\n",
        file.display(),
        config.display()
    );
    assert_eq!((status().code(), status().out), (1, alone));

    let installed = place.hooks_with(program, &of("codex", Action::Install));
    assert!(installed.err.contains("Hooks need review"), "{installed:?}");
    assert!(
        installed.err.contains("    [sandbox_workspace_write]\n    writable_roots = [\""),
        "{installed:?}"
    );
    assert_eq!(status().code(), 1);
    assert!(
        status().out.contains("not reviewed yet, so not run: SessionStart, SessionEnd, "),
        "{}",
        status().out
    );

    let events = [
        "session_start",
        "session_end",
        "user_prompt_submit",
        "post_tool_use",
        "permission_request",
        "stop",
        "interrupt",
        "pre_compact",
        "post_compact",
    ];
    let review = |event: &str| {
        format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:0\"\n", file.display())
    };
    fs_err::write(&config, events.map(review).concat()).unwrap();
    assert_eq!(status().code(), 0, "{}", status().out);

    // One word too many, and Codex loads nothing of the file.
    let text = fs_err::read_to_string(&file).unwrap();
    fs_err::write(&file, text.replacen('{', "{\"version\": 1,", 1)).unwrap();
    assert_eq!(status().code(), 1);
    assert!(status().out.contains("`version` is no name that it may have"), "{}", status().out);
    fs_err::write(&file, format!("// mine\n{text}")).unwrap();
    assert!(status().out.contains("Codex loads nothing of it"), "{}", status().out);
}

#[test]
fn a_file_of_minders_own_is_replaced_by_a_newer_one_and_never_a_file_of_somebody_else() {
    for pack in pack::ALL.iter().filter(|pack| matches!(pack.body, Body::Script(..))) {
        let place = Place::new();
        let file = place.file(pack.name, Scope::User);
        hooks(&place, pack.name, Action::Install);
        let text = fs_err::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("const PROGRAM = \"{PROGRAM}\"\n")), "{text}");
        let older = format!("{text}// of an older version\n").replace(PROGRAM, "/old/minder");
        fs_err::write(&file, older).unwrap();
        let status = hooks(&place, pack.name, Action::Status);
        assert!(status.out.contains(": outdated\n    runs: /old/minder\n"), "{}", status.out);
        assert!(hooks(&place, pack.name, Action::Diff).out.contains("-// of an older version\n"));
        assert_eq!(hooks(&place, pack.name, Action::Install).code(), 0);
        assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
        fs_err::remove_file(&file).unwrap();

        fs_err::write(&file, "export default () => {}\n").unwrap();
        let tree = place.tree();
        for action in [Action::Install, Action::Diff, Action::Status] {
            let ran = hooks(&place, pack.name, action);
            assert_eq!(ran.code(), 65, "{action:?} {ran:?}");
            assert!(ran.code.unwrap_err().to_string().ends_with("is somebody else's; nothing was written"));
        }
        assert!(hooks(&place, pack.name, Action::Uninstall).out.ends_with("nothing of minder's in it\n"));
        assert_eq!(place.tree(), tree, "{}", pack.name);
    }
}

#[test]
fn what_stands_in_the_files_of_gemini_and_cursor() {
    let place = Place::new();
    hooks(&place, "gemini", Action::Install);
    let text = fs_err::read_to_string(place.file("gemini", Scope::User)).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let command = format!("[ -x '{PROGRAM}' ] && exec '{PROGRAM}' hook gemini || exit 0 # minder-hook");
    let group = serde_json::json!([{"hooks": [{"name": "minder", "type": "command", "command": command, "timeout": 10_000}]}]);
    assert_eq!(settings["hooks"]["AfterAgent"], group);
    assert!(settings["hooks"].get("BeforeModel").is_none());

    hooks(&place, "cursor", Action::Install);
    let text = fs_err::read_to_string(place.file("cursor", Scope::User)).unwrap();
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(settings["version"], 1);
    let command = command.replace("gemini", "cursor");
    assert_eq!(settings["hooks"]["stop"], serde_json::json!([{"command": command}]));
    assert_eq!(settings["hooks"].as_object().unwrap().len(), 6);
}
