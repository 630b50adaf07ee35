//! I4: who calls is told by the kernel first, with real processes under a real daemon.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use minder_proto::event::Author;
use minder_proto::state::State;
use serde_json::{Value, json};

use crate::stored::{self, Wanted};
use crate::surroundings::{Surroundings, within};

/// A shell that goes by the name of a harness, and does what it is told.
struct Harness {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Harness {
    fn new(folder: &Path) -> Self {
        let mut child = Command::new(program(folder))
            .arg("-s")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, output }
    }

    /// Runs a command whose output is one line of JSON.
    fn tell(&mut self, command: &str) -> Value {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{command}; echo").unwrap();
        let mut output = self.output.take().unwrap();
        let (line, output) = within(move || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            (line, output)
        });
        self.output = Some(output);
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in {line:?}; this test needs curl"))
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell under the name `claude`.
fn program(folder: &Path) -> PathBuf {
    let program = folder.join("claude");
    if !program.exists() {
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    }
    program
}

#[test]
fn i4_a_harness_in_a_harness_speaks_for_neither_and_each_thread_for_itself() {
    let around = Surroundings::new();
    let folder = around.path("bin");
    std::fs::create_dir(&folder).unwrap();
    let (mut alone, mut shared) = (Harness::new(&folder), Harness::new(&folder));
    let wanted = |label, conversation, harness: &Harness| Wanted {
        label,
        conversation: Some(conversation),
        process: Some(stored::process(harness.child.id())),
        state: State::Idle,
        by: Author::Hook,
    };
    stored::put(
        &around.home(),
        &[wanted("alone", "a", &alone), wanted("one", "x", &shared), wanted("two", "y", &shared)],
    );
    let _daemon = around.started();
    let socket = around.socket();

    let call = |conversation: Option<&str>| {
        let vars = conversation.map_or(json!({}), |id| json!({"CLAUDE_CODE_SESSION_ID": id}));
        let params = json!({"caller": {"vars": vars}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": params});
        format!(
            "curl -s -m 20 --unix-socket {} -H 'content-type: application/json' -d '{request}' http://minder/",
            socket.display()
        )
    };
    let said = |answer: &Value| {
        let label = answer["result"]["record"]["label"].as_str();
        label.or(answer["error"]["data"]["kind"].as_str()).unwrap_or_default().to_owned()
    };
    for (conversation, expected) in
        [(Some("a"), "alone"), (None, "alone"), (Some("x"), "refused"), (Some("new"), "refused")]
    {
        assert_eq!(said(&alone.tell(&call(conversation))), expected, "{conversation:?}");
    }
    for (conversation, expected) in
        [(Some("x"), "one"), (Some("y"), "two"), (None, "refused"), (Some("a"), "refused")]
    {
        assert_eq!(said(&shared.tell(&call(conversation))), expected, "{conversation:?}");
    }
    // With all that it inherits, the one within is nobody: its own process is bound to nothing.
    let inner = program(&folder);
    for conversation in [Some("a"), None, Some("new")] {
        let within = call(conversation).replace('\'', "'\\''");
        let answer = alone.tell(&format!("{} -c '{within}; true'", inner.display()));
        assert_eq!(said(&answer), "refused", "{conversation:?}: {answer}");
    }
}
