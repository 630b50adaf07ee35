//! The files of turns as a test writes them: the logs of seats, and the folders of those that have no line yet.

use minder_proto::id::TurnId;
use minder_proto::layout::Home;
use minder_proto::stamp::Stamp;
use serde_json::{Value, json};

/// A line of the log, whole.
const LINE: &str = r#"{"v": 2, "ts": "2026-11-30T12:00:00.000Z", "seat": "api", "adapter": "codex", "path": "supervised",
    "eventType": null, "turnStart": "2026-11-30T11:59:00.000Z", "turnEnd": "2026-11-30T12:00:00.000Z",
    "durationMs": 60000, "outcome": "delivered", "ok": true, "failure": null, "failureSource": null,
    "failureClass": null, "stalled": false, "cancelled": false, "killed": false, "exitCode": 0, "signal": null,
    "exitObserved": true, "childLeftRunning": false, "attempts": 1, "stallMs": 900000, "cancelGraceMs": 15000,
    "timeoutMs": 2760000, "turn": "", "session": null, "pid": 4711, "firstOutputMs": 800,
    "longestSilenceMs": 12000, "suspendedMs": 0, "outputBytes": 5120, "events": 40, "toolCalls": 6,
    "killedProcesses": 0, "leftBehind": 0, "survivors": 0, "adopted": 0, "cpuMs": 2400, "maxRssKb": 122880,
    "inputTokens": 1200, "outputTokens": 900, "cacheReadTokens": 52000, "cacheWriteTokens": 3100,
    "costUsd": 0.0412, "late": false}"#;

/// The id of the turn with this number.
pub fn id(n: u16) -> TurnId {
    format!("0199c2d4-90c3-7f0e-8a17-c2b67be2{n:04x}").parse().unwrap()
}

/// Appends the line of a turn, with `change` laid over it, to a file of the log.
pub fn log(home: &Home, file: &str, n: u16, change: &Value) {
    let mut line: Value = serde_json::from_str(LINE).unwrap();
    line["turn"] = json!(id(n));
    for (key, value) in change.as_object().unwrap() {
        line[key] = value.clone();
    }
    append(home, file, &format!("{line}\n"));
}

/// Appends text to a file of the log.
pub fn append(home: &Home, file: &str, text: &str) {
    fs_err::create_dir_all(home.turns()).unwrap();
    let path = home.turns().join(file);
    let before = fs_err::read_to_string(&path).unwrap_or_default();
    fs_err::write(path, before + text).unwrap();
}

/// The answer of a daemon to a turn that is settled, with `change` laid over `settled`.
pub fn answer(turn: &Value, change: &Value) -> Value {
    let mut settled = json!({"killed": false, "late": false, "duration_ms": 5, "exit_code": 0});
    for (key, value) in change.as_object().unwrap() {
        settled[key] = value.clone();
    }
    json!({"turn": turn, "seat": "s", "adapter": "command", "asked": Stamp::now(), "policy": policy(),
        "settled": settled})
}

/// The windows of a turn.
pub fn policy() -> Value {
    json!({"budget_ms": 2_700_000, "stall_ms": 0, "stall_in_tool_ms": 0, "grace_ms": 15_000,
        "backstop_ms": 60_000, "exit_wait_ms": 3_000, "output_max": 8_388_608})
}
