//! A start that the daemon dies in, and one at whose door somebody else stands.

use std::io::Read;
use std::os::unix::net::UnixStream;

use minder_proto::state::State;
use minder_tests::files;

use super::stage::Stage;
use crate::scene::LIMIT;
use crate::world::Launched;

#[test]
fn i6_a_daemon_that_dies_in_a_start_leaves_no_window_and_no_second_process() {
    for point in minder_proto::trial::LAUNCH_POINTS {
        let stage = Stage::new();
        stage.tmux_says(&["set-hook", "-g", "session-closed", "wait-for -S closed"]);
        let mut command = stage.scene.isolated.minderd().unwrap();
        command.env(minder_proto::trial::KILL_POINT, format!("{point}:1"));
        let daemon = Launched::new(command, &stage.scene.home).settle().unwrap();
        // Its caller asks the next daemon, by the same key.
        let ran = stage.launch("api", &["--harness", "claude"]);
        assert!(daemon.process.wait(LIMIT), "{point} was not reached");
        let api = stage.scene.session("api");
        stage.scene.wait_record(api, point, |r| r.launch.as_ref().is_some_and(|l| !l.pending));
        let (state, record) = (stage.scene.record(api).state, stage.scene.records().len());
        assert_eq!(record, 1, "{point}");
        let (windows, calls) = if point == "launch.told" {
            assert_eq!((ran.code, state), (0, State::Idle), "{point}: {ran:?}");
            (vec!["api".to_owned()], 1)
        } else {
            assert_eq!(state, State::Error, "{point}: {ran:?}");
            (Vec::new(), 0)
        };
        if point == "launch.process" {
            stage.tmux_says(&["wait-for", "closed"]);
        }
        assert_eq!(stage.windows(), windows, "{point}");
        assert_eq!(stage.calls().len(), calls, "{point}");
    }
}

/// A tmux that makes no window before somebody has written to a gate.
const SLOW: &str = r#"#!/bin/sh
for word; do
  [ "$word" = new-window ] && read x < "$(dirname "$0")/../window"
done
PATH=${PATH#*:} exec tmux "$@"
"#;

#[test]
fn who_is_not_of_the_new_window_is_not_told_what_to_become() {
    let stage = Stage::new();
    stage.program("tmux", SLOW);
    let gate = stage.folder().join("window");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    stage.scene.minder(&["daemon", "start"]).ok();
    let run = stage.scene.home.run();
    let stranger = std::thread::spawn(move || {
        let door = files::wait_for(&run, LIMIT, || {
            let mut names = std::fs::read_dir(&run).ok()?.flatten().map(|entry| entry.path());
            names.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("start-"))
        });
        let mut door = UnixStream::connect(door.unwrap()).unwrap();
        door.set_read_timeout(Some(LIMIT)).unwrap();
        std::fs::write(gate, "go\n").unwrap();
        let mut told = Vec::new();
        door.read_to_end(&mut told).map(|_| told)
    });
    let api = stage.launched("api", &["--harness", "claude"]);
    assert_eq!(stranger.join().unwrap().unwrap(), b"");
    stage.scene.wait_move(api, 0, State::Idle);
    assert_eq!(stage.windows(), ["api"]);
}
