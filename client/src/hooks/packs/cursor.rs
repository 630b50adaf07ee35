//! The pack for Cursor, from its documentation alone: its agent could not be had where the others were tried, so that
//! nothing here was ever seen to run.

use super::super::pack::{Body, Event, Pack, Program, Reader, UserPlace, Works};

const fn event(name: &'static str) -> Event {
    Event { name, matcher: None, timeout: 0, waiter: false }
}

/// The events, in the order in which they are written.
const EVENTS: &[Event] = &[
    event("sessionStart"),
    event("sessionEnd"),
    event("beforeSubmitPrompt"),
    event("postToolUse"),
    event("preCompact"),
    event("stop"),
];

/// The pack.
pub static PACK: Pack = Pack {
    name: "cursor",
    title: "Cursor",
    program: Program {
        name: "cursor-agent",
        below_home: &[".local/bin/cursor-agent"],
        below_settings: &[],
        oldest: None,
    },
    user: UserPlace { variable: None, home: ".cursor/hooks.json" },
    project: ".cursor/hooks.json",
    body: Body::Commands(EVENTS),
    hook_name: None,
    reader: Reader { comments: false, trailing_commas: false, root_keys: &[], switch: None, reviews: None },
    sandbox: None,
    lists_sessions: false,
    then: "start `cursor-agent` anew where it runs. Nothing of this was tried with Cursor itself",
    works: Works { tried: &[], idle: "?", busy: "?", dialog: "?", channels: &["hook", "headless"] },
};
