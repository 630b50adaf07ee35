//! `store path` and `store check` as programs: the place that is meant, and the daemon's program whose answer is
//! passed on.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn minder(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minder"));
    command.env_clear().current_dir(dir).arg("store").args(args);
    command.env("HOME", dir).env("PATH", "/usr/bin:/bin").env("MINDER_HOME", dir.join("store"));
    command.env("MINDER_DAEMON", dir.join("checker")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A program in the place of the daemon's, moved there so that nobody has it open for writing when it is run.
fn checker(dir: &Path, script: &str) {
    let new = dir.join("new");
    std::fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::rename(new, dir.join("checker")).unwrap();
}

#[test]
fn the_path_is_printed_whether_the_store_is_there_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let output = minder(dir.path(), &["path"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), format!("{}\n", store.display())));
    let output = minder(dir.path(), &["path", "--json"]);
    assert_eq!(text(&output.stdout), format!("{{\"path\":\"{}\",\"exists\":false}}\n", store.display()));
    assert!(!store.exists());
}

#[test]
fn what_the_checking_program_says_is_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    checker(&real, "printf '%s|' \"$@\"; echo trouble >&2; exit 65");
    for (args, asked) in [
        (&["check"][..], format!("--check|{}/store|", real.display())),
        (&["check", "--json"], format!("--check|{}/store|--json|", real.display())),
        (&["check", "a copy"], format!("--check|{}/a copy|", real.display())),
        (&["check", "--", "-x"], format!("--check|{}/-x|", real.display())),
        (&["check", "/else", "--json"], "--check|/else|--json|".to_owned()),
        (&["repair"], format!("--repair|{}/store|", real.display())),
        (&["repair", "/else", "--json"], "--repair|/else|--json|".to_owned()),
    ] {
        let output = minder(&real, args);
        assert_eq!(output.status.code(), Some(65));
        assert_eq!((text(&output.stdout), text(&output.stderr)), (asked, "trouble\n".to_owned()));
    }
}

#[test]
fn without_the_program_there_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let output = minder(dir.path(), &["check", "--json"]);
    assert_eq!(output.status.code(), Some(69));
    assert_eq!(text(&output.stdout), "");
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["exit"], 69);
    assert!(error["error"].as_str().unwrap().contains("checker"), "{error}");
}
