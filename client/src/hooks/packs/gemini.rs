//! The pack for Gemini: Claude Code's form with events of its own names, and times in milliseconds. It keeps comments
//! in its settings, as people do. None of the events that carry a whole conversation is among them, nor `PreCompress`: 0.61.0
//! was seen to tell it before each call of its model, and never that a compaction is over.

use super::super::pack::{Body, Event, Pack, Program, Reader, UserPlace, Works};

const fn event(name: &'static str, matcher: Option<&'static str>, timeout: u64) -> Event {
    Event { name, matcher, timeout, waiter: false }
}

/// The events, in the order in which they are written. No hook wakes Gemini, so there is no waiter.
const EVENTS: &[Event] = &[
    event("SessionStart", None, 10_000),
    event("SessionEnd", None, 5_000),
    event("BeforeAgent", None, 10_000),
    event("AfterAgent", None, 10_000),
    event("AfterTool", Some("*"), 10_000),
    event("Notification", None, 10_000),
];

/// The pack.
pub static PACK: Pack = Pack {
    name: "gemini",
    title: "Gemini",
    program: Program { name: "gemini", below_home: &[], below_settings: &[], oldest: None },
    user: UserPlace {
        variable: Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
        home: ".gemini/settings.json",
    },
    project: ".gemini/settings.json",
    body: Body::Groups(EVENTS),
    hook_name: Some("minder"),
    reader: Reader {
        comments: true,
        trailing_commas: false,
        root_keys: &[],
        switch: Some((&["hooksConfig", "enabled"], false)),
        reviews: None,
    },
    sandbox: None,
    lists_sessions: false,
    then: "start `gemini` anew where it runs: it reads its settings at its start",
    works: Works {
        tried: &["0.61.0"],
        idle: "waits",
        busy: "turn end",
        dialog: "after",
        channels: &["hook", "headless"],
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_a_whole_conversation_is_not_asked_for() {
        for event in EVENTS {
            assert!(!event.name.contains("Model") && event.name != "BeforeToolSelection" && !event.waiter);
            assert!(event.timeout >= 5_000, "milliseconds");
        }
    }
}
