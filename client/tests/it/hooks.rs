//! Install, install, uninstall over a collection of settings files as people have them.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use minder_client::commands::hooks::Action;
use serde_json::Value;

use crate::grown::{grown, meaning};
use crate::place::Place;

const MARK: &str = "# minder-hook";

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut files: Vec<PathBuf> =
        fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|file| file.file_stem().map(ToOwned::to_owned));
    let name = |file: &Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    files.into_iter().map(|file| (name(&file), fs_err::read(&file).unwrap())).collect()
}

#[test]
fn there_are_thirty_samples_and_more() {
    assert!(samples("settings").len() >= 30);
}

#[test]
fn install_install_uninstall_gives_the_bytes_of_the_start() {
    for (name, start) in samples("settings") {
        let place = Place::with_settings(&start);
        let start_text = std::str::from_utf8(&start).unwrap();

        let installed = place.hooks(Action::Install);
        assert_eq!(installed.code(), 0, "{name}: {installed:?}");
        assert!(installed.out.ends_with("settings.json: installed\n"), "{name}: {}", installed.out);
        let after = String::from_utf8(place.bytes()).unwrap();
        assert_eq!(after.matches(MARK).count() - start_text.matches(MARK).count(), 15, "{name}");
        assert!(grown(start_text, &after), "{name}: {after}");
        if serde_json::from_slice::<Value>(&start).is_ok() {
            serde_json::from_str::<Value>(&after).expect(&name);
        }
        if start_text.contains("\r\n") && !start_text.replace("\r\n", "").contains('\n') {
            assert!(!after.replace("\r\n", "").contains('\n'), "{name}: every line end is CRLF");
        }
        assert_eq!(place.hooks(Action::Status).code(), 1, "the program is not there");

        let tree = place.tree();
        let again = place.hooks(Action::Install);
        assert!(again.out.ends_with("already installed\n"), "{name}: {}", again.out);
        assert_eq!(place.tree(), tree, "{name}");

        assert_eq!(place.hooks(Action::Uninstall).code(), 0, "{name}");
        assert_eq!(std::str::from_utf8(&place.bytes()), Ok(start_text), "{name}");
        assert!(!place.surroundings.minder_home.join("hooks").exists(), "{name}: no receipt is left");
        assert!(place.hooks(Action::Uninstall).out.ends_with("nothing of minder's in it\n"), "{name}");
    }
}

/// All of it in one file, behind a link, with a mode of its own.
#[test]
fn h6_a_file_with_everything_is_given_back_to_the_byte() {
    let start = "// mine\r\n{\r\n  \"theme\": \"dark\", /* late */\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      \
        { \"hooks\": [{ \"type\": \"command\", \"command\": \"say 'done' | tee /tmp/x\" }] }\r\n    ],\r\n    \
        // before SessionStart, and so it stays\r\n    \"PreToolUse\": [{ \"hooks\": [], \"matcher\": \"Bash\" }],\r\n    \
        \"SessionStart\": [{ \"matcher\": \"\", \"hooks\": [{ \"command\": \"date\", \"type\": \"command\" }] }]\r\n  },\r\n  \
        \"env\": { \"A\": \"1\" }\r\n}\r\n";
    let place = Place::with_settings(b"{}");
    let behind = place.home().join("dotfiles/claude settings.json");
    fs_err::create_dir_all(behind.parent().unwrap()).unwrap();
    fs_err::write(&behind, start).unwrap();
    fs_err::set_permissions(&behind, Permissions::from_mode(0o640)).unwrap();
    fs_err::remove_file(place.settings()).unwrap();
    symlink("../dotfiles/claude settings.json", place.settings()).unwrap();
    let kept = || {
        assert!(fs_err::symlink_metadata(place.settings()).unwrap().is_symlink());
        assert_eq!(fs_err::metadata(&behind).unwrap().permissions().mode() & 0o777, 0o640);
    };
    for said in ["installed", "already installed"] {
        let ran = place.hooks(Action::Install);
        assert!(ran.out.ends_with(&format!(": {said}\n")), "{ran:?}");
        let after = fs_err::read_to_string(&behind).unwrap();
        assert_eq!(after.matches(MARK).count(), 15, "one set: {after}");
        assert!(grown(start, &after), "all else is untouched: {after}");
        assert!(!after.replace("\r\n", "").contains('\n'), "every line end is CRLF: {after}");
        kept();
        assert_eq!(fs_err::read_dir(behind.parent().unwrap()).unwrap().count(), 1);
    }
    assert_eq!(place.hooks(Action::Uninstall).code(), 0);
    assert_eq!(fs_err::read_to_string(&behind).unwrap(), start);
    kept();
}

#[test]
fn most_files_need_no_receipt() {
    let kept = samples("settings").into_iter().filter(|(_, start)| {
        let place = Place::with_settings(start);
        place.hooks(Action::Install);
        place.surroundings.minder_home.exists()
    });
    let names: Vec<_> = kept.map(|(name, _)| name).collect();
    let expected = [
        "blank-file",
        "byte-order-mark-only",
        "comma-first",
        "comment-before-comma",
        "comment-only",
        "comment-only-crlf",
        "comments-in-empty-lists",
        "empty-file",
        "empty-object-blank",
        "empty-object-over-lines",
        "hooks-empty",
        "hooks-empty-over-lines",
        "lists-empty",
        "mixed-line-ends",
        "one-line-loose",
    ];
    assert_eq!(names, expected);
}

#[test]
fn without_its_receipt_nothing_foreign_is_lost_either() {
    for (name, start) in samples("settings") {
        let place = Place::with_settings(&start);
        place.hooks(Action::Install);
        let _ = fs_err::remove_dir_all(&place.surroundings.minder_home);
        place.hooks(Action::Uninstall);
        let left = String::from_utf8(place.bytes()).unwrap();
        let start_text = std::str::from_utf8(&start).unwrap();
        assert!(!left.contains("/opt/minder"), "{name}: {left}");
        assert_eq!(meaning(&left), meaning(start_text), "{name}");
        let comments = |text: &str| (text.matches("//").count(), text.matches("/*").count());
        assert_eq!(comments(&left), comments(start_text), "{name}: {left}");
        assert_eq!(place.hooks(Action::Install).code(), 0, "{name}");
    }
}

#[test]
fn an_older_version_at_another_path_is_brought_up_to_date_and_the_start_is_not_forgotten() {
    for (name, start) in samples("settings") {
        let place = Place::with_settings(&start);
        let install = crate::place::options(Action::Install);
        place.hooks_with("/old/it's/minder", &install);
        let outdated = place.hooks(Action::Status);
        assert!(outdated.out.contains("outdated") && outdated.code() == 1, "{name}: {}", outdated.out);
        assert_eq!(place.hooks_with("/new/minder", &install).code(), 0);
        let after = String::from_utf8(place.bytes()).unwrap();
        assert!(!after.contains("/old/"), "{name}");
        assert_eq!(after.matches("[ -x '/new/minder' ]").count(), 15, "{name}");
        place.hooks(Action::Uninstall);
        assert_eq!(place.bytes(), start, "{name}: {}", String::from_utf8_lossy(&place.bytes()));
    }
}

#[test]
fn what_is_no_settings_file_is_refused_with_its_place_and_left_alone() {
    let places = [
        ("a-list", Some((1, 1))),
        ("a-word", Some((1, 1))),
        ("bad-escape", Some((2, 14))),
        ("control-character", Some((2, 10))),
        ("cut-short", Some((4, 1))),
        ("event-an-object", Some((3, 13))),
        ("hooks-a-list", Some((2, 12))),
        ("hooks-null", Some((2, 12))),
        ("merge-conflict", Some((2, 1))),
        ("no-comma", Some((3, 3))),
        ("not-utf-8", None),
        ("nul", Some((1, 9))),
        ("open-comment", Some((2, 10))),
        ("single-quotes", Some((2, 3))),
        ("two-values", Some((2, 1))),
        ("utf-16", None),
        ("yaml", Some((1, 1))),
    ];
    let samples = samples("settings-broken");
    assert_eq!(samples.len(), places.len());
    for ((name, start), (expected, at)) in samples.into_iter().zip(places) {
        assert_eq!(name, expected);
        let place = Place::with_settings(&start);
        let tree = place.tree();
        let mut actions = vec![Action::Install, Action::Diff, Action::Status];
        if !["a-list", "a-word", "hooks-a-list", "hooks-null", "event-an-object"].contains(&expected) {
            actions.push(Action::Uninstall);
        }
        for action in actions {
            let ran = place.hooks(action);
            assert_eq!((ran.code(), ran.out.as_str()), (65, ""), "{name} {action:?}");
            let said = ran.code.unwrap_err().to_string();
            assert!(said.ends_with("nothing was written"), "{name}: {said}");
            if let Some((line, column)) = at {
                let place = format!("{}:{line}:{column}: ", place.settings().display());
                assert!(said.starts_with(&place), "{name}: {said}");
            }
        }
        assert_eq!(place.tree(), tree, "{name}");
    }
}
