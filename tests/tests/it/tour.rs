//! `minder tour`: it shows what it says, also where an agent runs it; what does not hold is named; nothing of it is left.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use minder_tests::isolate::Isolated;
use minder_tests::process::{self, Process};
use rustix::process::Signal;
use serde_json::Value;

/// What the tour promises to stay under.
const LIMIT: Duration = Duration::from_secs(60);

/// The tour as an agent's shell runs it: under a harness, with the variables of a session in a terminal.
fn tour(isolated: &Isolated, option: &str) -> Command {
    let program = isolated.program("minder").unwrap();
    isolated.program("minderd").unwrap();
    let mut shell = isolated.command("/bin/sh");
    let script = format!("'{}' tour {option}; exit $?", program.display());
    shell.arg0("claude").args(["-c", &script]);
    shell.envs([
        ("CLAUDE_CODE_SESSION_ID", "0b7e"),
        ("CODEX_THREAD_ID", "1c2d"),
        ("MINDER_TOKEN", "t"),
        ("MINDER_SOCKET", "/nowhere/socket"),
        ("MINDER_CONFIG", "/nowhere/config.toml"),
        ("MINDER_NO_AUTOSTART", "1"),
        ("TMUX", "/nowhere/tmux,1,0"),
        ("TMUX_PANE", "%1"),
    ]);
    shell
}

/// Folders of tours.
fn folders(isolated: &Isolated) -> Vec<PathBuf> {
    std::fs::read_dir(isolated.tmp()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn daemons(folder: &Path) -> Vec<u32> {
    let ours = |p: &Process| {
        p.exe().is_some_and(|exe| exe.file_name().is_some_and(|name| name == "minderd"))
            && p.holds_file_below(folder)
    };
    process::find(ours).iter().map(Process::pid).collect()
}

fn assert_nothing_is_left(isolated: &Isolated) {
    assert_eq!(folders(isolated), Vec::<PathBuf>::new());
    assert_eq!(daemons(isolated.root()), Vec::<u32>::new());
    assert!(!isolated.minder_home().exists(), "the caller's own store was touched");
}

#[test]
fn every_step_of_the_tour_does_what_it_says() {
    let isolated = Isolated::new().unwrap();
    let out = process::run(&mut tour(&isolated, ""), b"", LIMIT).unwrap();
    let (text, error) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!((out.status.code(), error.as_str()), (Some(0), ""), "{text}");
    let steps =
        text.lines().filter(|line| line.split_once("/8  ").is_some_and(|(n, _)| n.len() == 1)).count();
    assert_eq!(steps, 8, "{text}");
    assert!(
        text.contains("8 of 8 steps did what they say. The daemon is stopped, the store removed.\n"),
        "{text}"
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert!(!line.contains('\x1b'), "{line}");
    }
    assert_nothing_is_left(&isolated);
}

#[test]
fn the_tour_for_programs_is_an_object_a_step() {
    let isolated = Isolated::new().unwrap();
    let out = process::run(&mut tour(&isolated, "--json"), b"", LIMIT).unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = steps.iter().map(|s| s["step"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    let refused = &steps[4]["ran"][0];
    assert_eq!(refused["exit"], 3, "{refused}");
    assert!(refused["command"].as_str().unwrap().starts_with("CLAUDE_CODE_SESSION_ID=unknown minder send"));
    assert_nothing_is_left(&isolated);
}

#[test]
fn a_step_that_does_not_hold_is_named_and_the_folder_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let isolated = Isolated::new().unwrap();
    let broken = isolated.root().join("broken");
    std::fs::write(&broken, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o700)).unwrap();
    for option in ["", "--json"] {
        let out = process::run(tour(&isolated, option).env("MINDER_DAEMON", &broken), b"", LIMIT).unwrap();
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), error.lines().count()), (Some(70), 1), "{error}");
        let said = "step 1/8: expected `minder new --label lead` to exit 0, found exit 69: ";
        assert!(error.contains(said), "{error}");
        let kept = match option {
            "" => error.rsplit_once(": the folder is kept: ").unwrap().1.trim_end().to_owned(),
            _ => {
                let error: Value = serde_json::from_str(&error).unwrap();
                assert_eq!(error["exit"], 70, "{error}");
                error["kept"].as_str().unwrap().to_owned()
            }
        };
        assert_eq!(folders(&isolated), [PathBuf::from(&kept)]);
        assert!(Path::new(&kept).join("home").is_dir());
        std::fs::remove_dir_all(kept).unwrap();
    }
}

#[test]
fn a_tour_that_is_interrupted_leaves_nothing() {
    let isolated = Isolated::new().unwrap();
    for (signal, exit) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::KILL, 0)] {
        let mut command = isolated.command(isolated.program("minder").unwrap());
        let child = command.arg("tour").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("$ minder new")), "no step was begun");
        assert!(process.signal(signal));
        // The output ends when the process of the steps has ended too.
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(!rest.iter().any(|line| line.contains("8 of 8")), "{rest:#?}");
        let status = child.wait().unwrap();
        assert_eq!(status.code().unwrap_or_default(), exit, "{signal:?}");
        assert_nothing_is_left(&isolated);
    }
}

/// One store for a reader who has seen enough.
#[test]
fn a_tour_that_nobody_reads_any_more_ends_and_leaves_nothing() {
    let isolated: Arc<Isolated> = Isolated::new().unwrap();
    let mut command = isolated.command("/bin/sh");
    let program = isolated.program("minder").unwrap();
    command.args(["-c", &format!("{{ '{}' tour; echo $? >code; }} | head -n 3", program.display())]);
    let out = process::run(&mut command, b"", LIMIT).unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(std::fs::read_to_string(isolated.home().join("code")).unwrap(), "0\n");
    assert_nothing_is_left(&isolated);
}
