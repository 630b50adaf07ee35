//! What a probe comes to: of each hook and each channel whether it works, and why not. Pure over what was seen.

use minder_proto::text::one_line;
use serde::Serialize;

use super::act::Seen;
use crate::hooks::Pack;
use crate::hooks::pack::Body;

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Works {
    /// It was seen to.
    Yes,
    /// It was seen not to.
    No,
    /// This turn could not show it.
    NotTried,
}

impl Works {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "works",
            Self::No => "no",
            Self::NotTried => "not tried",
        }
    }
}

/// One hook, or one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `hook` or `channel`.
    pub kind: &'static str,
    /// The event, or the channel.
    pub name: String,
    /// Whether.
    pub works: Works,
    /// What there is to say of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// What is known of the hooks before anything is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// None of them is there.
    pub absent: bool,
    /// Events at which none of ours stands.
    pub missing: Vec<String>,
    /// Events whose hooks the harness has not shown its user yet.
    pub unreviewed: Vec<String>,
    /// What else keeps them from running: the first of it.
    pub hindrance: Option<String>,
}

/// When a hook runs.
enum When {
    /// In every turn without a terminal.
    Always,
    /// Where a tool was used.
    Tool,
    /// Not in such a turn.
    Else(&'static str),
}

/// Events that a plugin of minder's own tells.
const TOLD: [&str; 11] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PostToolUse",
    "PermissionRequest",
    "PermissionReplied",
    "Stop",
    "StopFailure",
    "Interrupt",
    "PreCompact",
    "PostCompact",
];

fn when(harness: &str, event: &str) -> When {
    match (harness, event) {
        // Of those whose plugin tells it, it was not seen without a terminal.
        ("opencode" | "pi", "SessionEnd") => When::Else("only where a conversation is closed"),
        (_, "PostToolUse" | "AfterTool" | "postToolUse") => When::Tool,
        (_, "PostToolUseFailure") => When::Else("only where a tool fails"),
        (_, "PermissionRequest" | "PermissionReplied") => When::Else("only at a dialog, in a terminal"),
        (_, "Notification") => When::Else("only where it waits for you, in a terminal"),
        (_, "StopFailure") => When::Else("only where the model fails"),
        (_, "Interrupt") => When::Else("only where a turn is broken off"),
        (_, "PreCompact" | "PostCompact" | "preCompact") => When::Else("only at a compaction"),
        _ => When::Always,
    }
}

/// Every row, hooks first. Without `seen` nothing was run.
pub fn rows(pack: &Pack, known: &Known, seen: Option<&Seen>) -> Vec<Row> {
    let events: Vec<&str> = match &pack.body {
        Body::Groups(events) | Body::Commands(events) => events.iter().map(|event| event.name).collect(),
        Body::Script(..) => TOLD.to_vec(),
    };
    let mut rows: Vec<Row> = events.iter().map(|event| hook(pack, event, known, seen)).collect();
    if let Body::Groups(events) = &pack.body
        && events.iter().any(|event| event.waiter)
    {
        rows.push(row("channel", "waiter", Works::NotTried, "only in a terminal"));
    }
    for channel in pack.works.channels {
        rows.push(channel_row(channel, seen));
    }
    rows
}

fn row(kind: &'static str, name: &str, works: Works, why: &str) -> Row {
    Row { kind, name: name.to_owned(), works, why: one_line(why) }
}

fn hook(pack: &Pack, event: &str, known: &Known, seen: Option<&Seen>) -> Row {
    let says = |works, why: &str| row("hook", event, works, why);
    let calls: Vec<_> =
        seen.map(|seen| &seen.calls).into_iter().flatten().filter(|c| c.event == event).collect();
    if !calls.is_empty() {
        let why =
            if calls.iter().any(|c| c.answered) { "" } else { "it ran; the daemon was late, and has it" };
        return says(Works::Yes, why);
    }
    if known.absent {
        return says(Works::No, "not installed");
    }
    if known.missing.iter().any(|missing| missing == event) {
        return says(Works::No, "not in the file");
    }
    if let Some(why) = &known.hindrance {
        return says(Works::No, why);
    }
    if known.unreviewed.iter().any(|unreviewed| unreviewed == event) {
        return says(Works::No, &format!("you have not reviewed it in {}", pack.title));
    }
    let Some(seen) = seen else { return says(Works::NotTried, "nothing was run") };
    // A turn that came to nothing shows nothing of what would have come later.
    let failed = seen.turn.as_ref().is_none_or(|turn| turn.code != 0);
    match when(pack.name, event) {
        When::Else(why) => says(Works::NotTried, why),
        When::Tool if !seen.ran_tool => says(Works::NotTried, "the model used no tool"),
        When::Always | When::Tool if failed && !seen.calls.is_empty() => {
            says(Works::NotTried, "the turn failed before that")
        }
        When::Always | When::Tool => says(Works::No, "it did not run"),
    }
}

fn channel_row(channel: &str, seen: Option<&Seen>) -> Row {
    let says = |works, why: &str| row("channel", channel, works, why);
    let Some(seen) = seen else { return says(Works::NotTried, "nothing was run") };
    match channel {
        "hook" => match (seen.message.as_deref(), &seen.unsent) {
            (Some("seen" | "answered"), _) => says(Works::Yes, "a message was given to the model"),
            (Some("handed"), _) => {
                says(Works::No, "a message was handed, and nothing shows that it was read")
            }
            (Some(receipt), _) => says(Works::No, &format!("a message was not taken: {receipt}")),
            (None, Some(why)) => says(Works::No, why),
            (None, None) => says(Works::No, "no hook spoke for the conversation"),
        },
        "headless" => match &seen.turn {
            Some(turn) if turn.code == 0 => says(Works::Yes, "the turn ended with an answer"),
            Some(turn) => {
                says(Works::No, if turn.said.is_empty() { "the turn failed" } else { turn.said.as_str() })
            }
            None => says(Works::No, "no turn was run"),
        },
        "codex" => says(Works::NotTried, "only with its own server"),
        _ => says(Works::NotTried, "only in a terminal"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::act::Turn;
    use super::*;
    use crate::commands::hook::trace::Call;
    use crate::hooks::pack;

    fn seen(events: &[&str], code: i32, message: Option<&str>) -> Seen {
        let call = |event: &&str| Call {
            harness: "claude".into(),
            event: (*event).to_owned(),
            conversation: "c".into(),
            transcript: None,
            answered: true,
        };
        let said = if code == 0 { "" } else { "turn failed: auth" };
        Seen {
            calls: events.iter().map(call).collect(),
            ran_tool: true,
            turn: Some(Turn { code, said: said.into() }),
            message: message.map(str::to_owned),
            ..Seen::default()
        }
    }

    fn check(harness: &str, known: &Known, seen: Option<&Seen>, expected: Expect) {
        let rows = rows(pack::of(harness).unwrap(), known, seen);
        let line =
            |r: &Row| format!("{} {}: {} {}\n", r.kind, r.name, r.works.word(), r.why).replace(" \n", "\n");
        expected.assert_eq(&rows.iter().map(line).collect::<String>());
    }

    const TURN: [&str; 5] = ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"];

    #[test]
    fn what_ran_works_and_what_could_not_run_was_not_tried() {
        check(
            "claude",
            &Known::default(),
            Some(&seen(&TURN, 0, Some("seen"))),
            expect![[r#"
                hook SessionStart: works
                hook SessionEnd: works
                hook UserPromptSubmit: works
                hook PostToolUse: works
                hook PostToolUseFailure: not tried only where a tool fails
                hook PermissionRequest: not tried only at a dialog, in a terminal
                hook Notification: not tried only where it waits for you, in a terminal
                hook Stop: works
                hook StopFailure: not tried only where the model fails
                hook PreCompact: not tried only at a compaction
                hook PostCompact: not tried only at a compaction
                channel waiter: not tried only in a terminal
                channel hook: works a message was given to the model
                channel headless: works the turn ended with an answer
                channel tmux: not tried only in a terminal
            "#]],
        );
    }

    #[test]
    fn h9_each_reason_is_named() {
        let of = |known: &Known, seen: &Seen, event: &str| {
            let rows = rows(pack::of("codex").unwrap(), known, Some(seen));
            let row = rows.into_iter().find(|r| r.name == event).unwrap();
            (row.works, row.why)
        };
        let none = seen(&[], 0, None);
        let known = Known { missing: vec!["Stop".into()], ..Known::default() };
        assert_eq!(of(&known, &none, "Stop"), (Works::No, "not in the file".into()));
        assert_eq!(of(&known, &none, "UserPromptSubmit"), (Works::No, "it did not run".into()));
        assert_eq!(of(&known, &none, "hook"), (Works::No, "no hook spoke for the conversation".into()));
        let known = Known { unreviewed: vec!["Stop".into()], ..Known::default() };
        assert_eq!(of(&known, &none, "Stop"), (Works::No, "you have not reviewed it in Codex".into()));
        let known = Known { absent: true, ..Known::default() };
        assert_eq!(of(&known, &none, "Interrupt"), (Works::No, "not installed".into()));
        // What a login that is dead breaks off says nothing of the hooks behind it.
        let failed = Seen { ran_tool: false, ..seen(&["SessionStart"], 1, Some("queued")) };
        assert_eq!(
            of(&Known::default(), &failed, "Stop"),
            (Works::NotTried, "the turn failed before that".into())
        );
        assert_eq!(of(&Known::default(), &failed, "headless"), (Works::No, "turn failed: auth".into()));
        assert_eq!(
            of(&Known::default(), &failed, "hook"),
            (Works::No, "a message was not taken: queued".into())
        );
    }
}
