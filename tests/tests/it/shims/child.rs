//! What a harness is given: its environment, descriptors, group, limits; and who else may run a turn.

use std::io::Write;
use std::os::unix::net::UnixStream;

use minder_proto::turn::folder::{LOCK, RESULT, SPEC};
use minder_tests::isolate::Isolated;
use minder_tests::shim::{Shim, fake};

use super::LIMIT;

#[test]
fn f12_a_harness_has_its_own_and_nothing_of_the_shims() {
    let isolated = Isolated::new().unwrap();
    let mut spec = fake(&isolated, "read stdin\nshow\nexit 0").unwrap();
    let limits = &mut spec.limits;
    (limits.nice, limits.oom_score_adj, limits.files) = (Some(5), Some(321), Some(700));
    limits.rlimits = [("core".to_owned(), 0), ("fsize".to_owned(), 123_456_789)].into();
    let mut shim = Shim::start(&isolated, spec, None).unwrap();
    let found = shim.result(LIMIT).unwrap();
    assert_eq!(found.exit_code, Some(0));
    assert_eq!(shim.wait_record(LIMIT, "read").unwrap()["bytes"], 0);
    let shown = shim.wait_record(LIMIT, "shown").unwrap();
    let descriptors = shown["descriptors"].as_object().unwrap();
    assert_eq!(descriptors.keys().collect::<Vec<_>>(), ["0", "1", "2"], "{descriptors:?}");
    assert_eq!(descriptors["0"], "/dev/null");
    assert_eq!((&shown["dir"], &shown["umask"]), (&shim.spec().dir.as_str().into(), &"0077".into()));
    let pid = found.pid.unwrap();
    assert_eq!((&shown["pid"], &shown["group"]), (&pid.into(), &pid.into()));
    assert_eq!(shown["session"], shim.process().pid());
    assert_eq!((&shown["nice"], &shown["oom_score_adj"]), (&5.into(), &"321".into()));
    let limits = shown["limits"].as_str().unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!((limit("Max file size"), limit("Max core file size")), ("123456789".into(), "0".into()));
    assert_eq!(limit("Max open files"), "700");
    // Beyond what the shim itself was started with there are the turn's own variables, and no other.
    let environment = shown["environment"].as_object().unwrap();
    let ours: Vec<_> = environment.keys().filter(|name| name.starts_with("MINDER_")).collect();
    assert_eq!(ours, ["MINDER_HOME", "MINDER_TURN", "MINDER_TURN_DEADLINE"]);
}

#[test]
fn only_who_holds_the_lock_runs_the_turn_and_only_once() {
    let isolated = Isolated::new().unwrap();
    let control = isolated.root().join("c");
    let script = format!("control {}\nnote up\nwait on\nexit 0", control.display());
    let mut shim = Shim::start(&isolated, fake(&isolated, &script).unwrap(), None).unwrap();
    shim.wait_record(LIMIT, "note").unwrap();
    let lock = std::fs::File::open(shim.folder().join(LOCK)).unwrap();
    assert!(lock.try_lock().is_err());
    // A second one in the same folder waits, and then finds that all is done.
    let mut second = isolated.command(isolated.program("minderd").unwrap());
    let mut second = second.arg("shim").current_dir(shim.folder()).spawn().unwrap();
    UnixStream::connect(control).unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(shim.result(LIMIT).unwrap().attempts, 1);
    assert!(second.wait().unwrap().success());
    let started = minder_tests::files::json_lines(&shim.record());
    assert_eq!(started.iter().filter(|line| line["what"] == "started").count(), 1);
    assert!(lock.try_lock().is_ok());
    let mode = |name| {
        use std::os::unix::fs::PermissionsExt;
        shim.folder().join(name).metadata().unwrap().permissions().mode() & 0o777
    };
    assert_eq!([mode(LOCK), mode(RESULT), mode("stdout"), mode("stderr"), mode("progress")], [0o600; 5]);
}

#[test]
fn a_folder_without_a_spec_is_no_turn() {
    let isolated = Isolated::new().unwrap();
    let folder = isolated.project("empty").unwrap();
    let run = |text: Option<&str>| {
        if let Some(text) = text {
            std::fs::write(folder.join(SPEC), text).unwrap();
        }
        let mut command = isolated.command(isolated.program("minderd").unwrap());
        let code = command.arg("shim").current_dir(&folder).status().unwrap().code();
        assert!(!folder.join(RESULT).exists());
        code
    };
    assert_eq!(run(None), Some(74));
    assert_eq!(run(Some("{}")), Some(65));
}
