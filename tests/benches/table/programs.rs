//! What a whole process costs: hooks and commands, beside `/bin/true`.

use std::process::Stdio;

use crate::fleet::Fleet;
use crate::measure::{self, Log, ratio};
use crate::table::Table;

pub fn rows(table: &mut Table) {
    let fleet = Fleet::new(2);
    let input = fleet.isolated.tmp().join("hook.json");
    let payload = r#"{"session_id":"5b2c9a52-0c3e-4c43-a1b1-6b8f0f0e2d11","hook_event_name":"PostToolUse","cwd":"/","tool_name":"Read","tool_input":{},"tool_response":{}}"#;
    std::fs::write(&input, payload).unwrap();
    let truth = || measure::run(&mut fleet.isolated.command("/bin/true"), &[0]);

    let hook = || {
        let mut command = fleet.isolated.minder().unwrap();
        command.args(["hook", "claude"]).env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
        command.stdin(std::fs::File::open(&input).unwrap());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success());
    };
    let figure = ratio(300, truth, hook);
    table.at_most("a hook without a commit, whole process", figure, "×", 2.5, "`/bin/true`");

    let mut log = Log::new(&fleet.isolated.root().join("floor"));
    let floor = || {
        truth();
        log.append();
    };
    let mut round = 0;
    let state = || {
        round += 1;
        let (state, note) = if round % 2 == 0 { ("working", "a") } else { ("review", "b") };
        measure::run(&mut fleet.minder(&["--as", "s0", "state", state, "--note", note]), &[0]);
    };
    let figure = ratio(200, floor, state);
    table.at_most(
        "`minder state`, durable, whole process",
        figure,
        "×",
        2.5,
        "`/bin/true` and one append with fdatasync",
    );

    let list = || measure::run(&mut fleet.minder(&["ls"]), &[0]);
    let figure = ratio(200, truth, list);
    table.at_most("`minder ls`, files only, 2 sessions", figure, "×", 5.0, "`/bin/true`");
}
