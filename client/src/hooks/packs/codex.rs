//! The pack for Codex: Claude Code's form in a file of its own. Codex reads that file strictly, and runs nothing of it
//! that its user has not reviewed; both were seen with 0.171.0.

use super::super::pack::{Body, Event, Pack, Program, Reader, UserPlace, Works};

/// What a hook may take, in seconds.
const TIMEOUT: u64 = 10;

/// The most that Codex gives a hook of `SessionEnd`; more is a warning at each start.
const END_TIMEOUT: u64 = 3;

const fn event(name: &'static str, matcher: Option<&'static str>) -> Event {
    Event { name, matcher, timeout: TIMEOUT, waiter: false }
}

/// The events, in the order in which they are written. No hook wakes Codex, so there is no waiter.
const EVENTS: &[Event] = &[
    event("SessionStart", None),
    Event { name: "SessionEnd", matcher: None, timeout: END_TIMEOUT, waiter: false },
    event("UserPromptSubmit", None),
    event("PostToolUse", Some("*")),
    event("PermissionRequest", Some("*")),
    event("Stop", None),
    event("Interrupt", None),
    event("PreCompact", None),
    event("PostCompact", None),
];

/// The pack.
pub static PACK: Pack = Pack {
    name: "codex",
    title: "Codex",
    program: Program { name: "codex", below_home: &[], below_settings: &[], oldest: None },
    user: UserPlace { variable: Some(("CODEX_HOME", "hooks.json")), home: ".codex/hooks.json" },
    project: ".codex/hooks.json",
    body: Body::Groups(EVENTS),
    hook_name: None,
    reader: Reader {
        comments: false,
        trailing_commas: false,
        root_keys: &["description", "hooks"],
        switch: None,
        reviews: Some("config.toml"),
    },
    sandbox: Some("config.toml"),
    lists_sessions: false,
    then: "start `codex` and answer \"Hooks need review\": before that it runs none of them",
    works: Works {
        tried: &["0.171.0"],
        idle: "wakes",
        busy: "next tool",
        dialog: "after",
        channels: &["hook", "codex", "headless", "tmux"],
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_waits_in_codex() {
        assert!(EVENTS.iter().all(|event| !event.waiter));
        let groups = PACK.groups("/m");
        let text = groups[0].1.render(&super::super::super::json_text::Style::plain(), "", true);
        assert_eq!(
            text,
            r#"{"hooks": [{"type": "command", "command": "[ -x '/m' ] && exec '/m' hook codex || exit 0 # minder-hook", "timeout": 10}]}"#
        );
    }
}
