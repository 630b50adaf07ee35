//! A tmux server, and programs under the names of harnesses that do what a harness does at its start: they call their hooks,
//! wait to be woken, and answer.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use minder_proto::id::SessionId;
use minder_tests::process;
use minder_tests::tmux::Tmux;

use crate::scene::{LIMIT, Ran, Scene};

/// What a harness does: its conversation is the one it is told to go on with, else one of its own. It waits at a gate if there
/// is one, tells of its start, and for each message that wakes it has a turn.
const CLAUDE: &str = r#"#!/bin/sh
root=$(dirname "$0")/..
id=c-$$
[ "$1" = --resume ] && id=$2
[ -e "$root/$id.jsonl" ] || [ "$1" != --resume ] || { echo "No conversation found with session ID: $id"; exit 1; }
printf '%s\n' "$*" >> "$root/calls"
env > "$root/env"
[ -e "$root/gate" ] && read x < "$root/gate"
export CLAUDE_PID=$$
tell() {
  event=$1; shift
  jq -nc --arg id "$id" --arg event "$event" --arg t "$root/$id.jsonl" --arg cwd "$PWD" "$@" \
    '{session_id: $id, hook_event_name: $event, transcript_path: $t, cwd: $cwd, source: "startup"} + $ARGS.named'
}
tell SessionStart | minder hook claude >/dev/null
turn=0
while :; do
  tell SessionStart | minder hook claude --wait 2>"$root/text.$$"
  [ $? = 2 ] || exec sleep 1000
  text=$(cat "$root/text.$$")
  turn=$((turn + 1))
  printf '%s\n' "$text" >> "$root/woken"
  tell UserPromptSubmit --arg prompt "$text" --arg prompt_id "$id/$turn" | minder hook claude >/dev/null
  jq -nc --arg text "$text" '{type: "user", message: {role: "user", content: $text}}' >> "$root/$id.jsonl"
  tell Stop --arg prompt_id "$id/$turn" --arg last_assistant_message "answer $turn" | minder hook claude >/dev/null
done
"#;

/// A stage.
pub struct Stage {
    pub scene: Scene,
    pub tmux: Tmux,
}

impl Stage {
    pub fn new() -> Self {
        let scene = Scene::new();
        let tmux = Tmux::start(&Arc::clone(&scene.isolated)).unwrap();
        let stage = Self { scene, tmux };
        stage.program("claude", CLAUDE);
        stage
    }

    /// Where programs leave what they saw.
    pub fn folder(&self) -> PathBuf {
        self.scene.isolated.project("launched").unwrap()
    }

    /// Puts a program before all others.
    pub fn program(&self, name: &str, text: &str) {
        let bin = self.folder().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join(name), text).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs `minder` where these programs are found, with more in its environment.
    pub fn minder_with(&self, variables: &[&str], words: &[&str], input: &str) -> Ran {
        let environment = self.scene.isolated.environment();
        let path =
            environment.iter().find(|(name, _)| name == "PATH").unwrap().1.to_str().unwrap().to_owned();
        let mut command = Command::new("/usr/bin/env");
        command.arg(format!("PATH={}:{path}", self.folder().join("bin").display()));
        command.args(variables).arg(self.scene.isolated.program("minder").unwrap()).args(words);
        self.scene.orphan(&command, input, LIMIT)
    }

    /// Launches in the server.
    pub fn launch(&self, label: &str, words: &[&str]) -> Ran {
        let socket = self.tmux.socket().to_str().unwrap();
        let all = [&["launch", "--label", label, "--tmux", socket], words].concat();
        self.minder_with(&[], &all, "")
    }

    /// Launches; it must have been started.
    pub fn launched(&self, label: &str, words: &[&str]) -> SessionId {
        self.launch(label, words).ok().trim().parse().unwrap()
    }

    /// The windows of the server, by name.
    pub fn windows(&self) -> Vec<String> {
        let mut command = self.scene.isolated.command("tmux");
        command.arg("-S").arg(self.tmux.socket()).args(["list-panes", "-a", "-F", "#{window_name}"]);
        let out = process::run(&mut command, b"", LIMIT).unwrap();
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// What the server answers.
    pub fn tmux_says(&self, words: &[&str]) -> String {
        let mut command = self.scene.isolated.command("tmux");
        command.arg("-S").arg(self.tmux.socket()).args(words);
        String::from_utf8(process::run(&mut command, b"", LIMIT).unwrap().stdout).unwrap()
    }

    /// What a program was given, by name.
    pub fn env_of_program(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.folder().join("env")).unwrap();
        text.lines().filter_map(|l| l.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    }

    /// The calls of `claude` so far, a line of arguments each.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The process of a session, held.
    pub fn process(&self, id: SessionId) -> process::Process {
        let pid = self.scene.record(id).process.expect("it was started").pid;
        process::Process::open(u32::try_from(pid).unwrap()).unwrap().expect("it runs")
    }

    /// A gate before which `claude` waits; it is opened by what is given.
    pub fn gate(&self) -> impl FnOnce() + use<> {
        let path = self.folder().join("gate");
        let made = process::run(Command::new("mkfifo").arg(OsString::from(&path)), b"", LIMIT).unwrap();
        assert!(made.status.success());
        move || std::fs::write(path, "go\n").unwrap()
    }
}
