//! The pack for Claude Code.

use super::super::pack::{Body, Event, Pack, Program, Reader, UserPlace, Works};

/// What a hook may take, in seconds. It answers in milliseconds; this is for a machine that swaps.
const TIMEOUT: u64 = 10;

/// Claude waits for the hooks of `SessionEnd` before it ends, and so does whoever typed `/exit`.
const END_TIMEOUT: u64 = 5;

/// The events, in the order in which they are written. None of a sub-agent's: those never touch a session.
const EVENTS: &[Event] = &[
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

/// The pack.
pub static PACK: Pack = Pack {
    name: "claude",
    title: "Claude Code",
    program: Program {
        name: "claude",
        below_home: &[".local/bin/claude"],
        below_settings: &["local/claude"],
        // An older one may know no `asyncRewake`: a waiter would be an ordinary hook for it, and hold every turn.
        oldest: Some([2, 1, 197]),
    },
    user: UserPlace { variable: Some(("CLAUDE_CONFIG_DIR", "settings.json")), home: ".claude/settings.json" },
    project: ".claude/settings.json",
    body: Body::Groups(EVENTS),
    hook_name: None,
    reader: Reader {
        // Seen with 2.1.332; its start screen and `-p` say the same.
        comments: false,
        trailing_commas: false,
        root_keys: &[],
        switch: Some((&["disableAllHooks"], true)),
        reviews: None,
    },
    sandbox: None,
    lists_sessions: true,
    then: "start `claude` in any terminal; sessions that run speak from their next prompt",
    works: Works {
        tried: &["2.1.197", "2.1.332"],
        idle: "wakes",
        busy: "next tool",
        dialog: "after",
        channels: &["hook", "headless", "tmux"],
    },
};

#[cfg(test)]
mod tests {
    use super::super::super::json_text::Style;
    use super::*;

    #[test]
    fn an_event_with_a_waiter_has_two_commands_in_one_group() {
        let groups = PACK.groups("/opt/minder");
        let (name, group) = &groups[0];
        assert_eq!(*name, "SessionStart");
        let expected = r#"{"hooks": [{"type": "command", "command": "[ -x '/opt/minder' ] && exec '/opt/minder' hook claude || exit 0 # minder-hook", "timeout": 10}, {"type": "command", "command": "[ -x '/opt/minder' ] && exec '/opt/minder' hook claude --wait || exit 0 # minder-hook", "timeout": 2000000, "asyncRewake": true}]}"#;
        assert_eq!(group.render(&Style::plain(), "", true), expected);
    }

    #[test]
    fn the_page_names_the_oldest_version() {
        let [major, minor, patch] = PACK.program.oldest.unwrap();
        let page = include_str!("../../../../docs/harnesses.md");
        assert!(page.contains(&format!("Claude Code {major}.{minor}.{patch} or newer")));
    }

    #[test]
    fn waiters_are_armed_where_a_session_may_go_idle_or_become_another() {
        let armed: Vec<_> = EVENTS.iter().filter(|event| event.waiter).map(|event| event.name).collect();
        assert_eq!(armed, ["SessionStart", "UserPromptSubmit", "Stop", "StopFailure"]);
        assert!(EVENTS.iter().all(|event| !event.name.starts_with("Subagent")));
    }
}
