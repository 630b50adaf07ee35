//! The hook pack for Claude Code, as data: which events are told, with which matcher, within which time, and
//! at which of them a waiter is armed.

use super::command::{self, Form};
use super::json_text::Piece;

/// The word after `minder hook`.
pub const HARNESS: &str = "claude";

/// The oldest version that was seen to run these hooks. An older one may know no `asyncRewake`: a waiter would
/// be an ordinary hook for it, and hold every turn.
pub const OLDEST_SEEN: [u64; 3] = [2, 1, 197];

/// Whether a version is older than any that was seen; one that cannot be read is not.
pub fn is_too_old(version: &str) -> bool {
    let numbers: Vec<u64> = version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect();
    !numbers.is_empty() && numbers.as_slice() < OLDEST_SEEN.as_slice()
}

/// One event of the pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// As Claude Code spells it.
    pub name: &'static str,
    /// For events about a tool: every tool.
    pub matcher: Option<&'static str>,
    /// Seconds after which Claude gives the hook up. The client itself gives up long before.
    pub timeout: u64,
    /// Whether a waiter is armed at it, by a second, `asyncRewake` command.
    pub waiter: bool,
}

/// Longer than any session: without a timeout of its own Claude ends a waiter after ten minutes.
pub const WAITER_TIMEOUT: u64 = 2_000_000;

/// What a hook may take. It answers in milliseconds; this is for a machine that swaps.
const TIMEOUT: u64 = 10;

/// Claude waits for the hooks of `SessionEnd` before it ends, and so does whoever typed `/exit`.
const END_TIMEOUT: u64 = 5;

/// The events, in the order in which they are written. None of a sub-agent's: those never touch a session.
pub const EVENTS: &[Event] = &[
    Event { name: "SessionStart", matcher: None, timeout: TIMEOUT, waiter: true },
    Event { name: "SessionEnd", matcher: None, timeout: END_TIMEOUT, waiter: false },
    Event { name: "UserPromptSubmit", matcher: None, timeout: TIMEOUT, waiter: true },
    Event { name: "PostToolUse", matcher: Some("*"), timeout: TIMEOUT, waiter: false },
    Event { name: "PostToolUseFailure", matcher: Some("*"), timeout: TIMEOUT, waiter: false },
    Event { name: "PermissionRequest", matcher: Some("*"), timeout: TIMEOUT, waiter: false },
    Event { name: "Notification", matcher: None, timeout: TIMEOUT, waiter: false },
    Event { name: "Stop", matcher: None, timeout: TIMEOUT, waiter: true },
    Event { name: "StopFailure", matcher: None, timeout: TIMEOUT, waiter: true },
    Event { name: "PreCompact", matcher: None, timeout: TIMEOUT, waiter: false },
    Event { name: "PostCompact", matcher: None, timeout: TIMEOUT, waiter: false },
];

/// The pack for a program at this path: per event the group that belongs into its list.
pub fn pack(program: &str) -> Vec<(&'static str, Piece)> {
    EVENTS.iter().map(|event| (event.name, group(event, program))).collect()
}

fn group(event: &Event, program: &str) -> Piece {
    let mut hooks = vec![hook(program, Form::Event, event.timeout)];
    if event.waiter {
        hooks.push(hook(program, Form::Wait, WAITER_TIMEOUT));
    }
    let mut members = Vec::new();
    if let Some(matcher) = event.matcher {
        members.push(("matcher", Piece::String(matcher.to_owned())));
    }
    members.push(("hooks", Piece::Array(hooks)));
    Piece::Object(members)
}

fn hook(program: &str, form: Form, timeout: u64) -> Piece {
    let mut members = vec![
        ("type", Piece::String("command".to_owned())),
        ("command", Piece::String(command::text(program, HARNESS, form))),
        ("timeout", Piece::Number(timeout)),
    ];
    if form == Form::Wait {
        members.push(("asyncRewake", Piece::Bool(true)));
    }
    Piece::Object(members)
}

#[cfg(test)]
mod tests {
    use super::super::json_text::Style;
    use super::*;

    #[test]
    fn an_event_with_a_waiter_has_two_commands_in_one_group() {
        let pack = pack("/opt/minder");
        let (name, group) = &pack[0];
        assert_eq!(*name, "SessionStart");
        let expected = r#"{"hooks": [{"type": "command", "command": "[ -x '/opt/minder' ] && exec '/opt/minder' hook claude || exit 0 # minder-hook", "timeout": 10}, {"type": "command", "command": "[ -x '/opt/minder' ] && exec '/opt/minder' hook claude --wait || exit 0 # minder-hook", "timeout": 2000000, "asyncRewake": true}]}"#;
        assert_eq!(group.render(&Style::plain(), "", true), expected);
    }

    #[test]
    fn the_page_names_the_oldest_version() {
        let [major, minor, patch] = OLDEST_SEEN;
        let page = include_str!("../../../docs/harnesses.md");
        assert!(page.contains(&format!("Claude Code {major}.{minor}.{patch} or newer")));
    }

    #[test]
    fn versions_are_compared_by_number() {
        for old in ["2.1.196", "2.1.99", "2.0.900", "1.9.0", "2.1", "0.2.1-beta"] {
            assert!(is_too_old(old), "{old}");
        }
        for fits in ["2.1.197", "2.1.332", "2.10.0", "3.0.0-rc.1", "10.0.0", "unknown", ""] {
            assert!(!is_too_old(fits), "{fits}");
        }
    }

    #[test]
    fn waiters_are_armed_where_a_session_may_go_idle_or_become_another() {
        let armed: Vec<_> = EVENTS.iter().filter(|event| event.waiter).map(|event| event.name).collect();
        assert_eq!(armed, ["SessionStart", "UserPromptSubmit", "Stop", "StopFailure"]);
        assert!(EVENTS.iter().all(|event| !event.name.starts_with("Subagent")));
    }
}
