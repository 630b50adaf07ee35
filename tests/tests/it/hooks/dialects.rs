//! Every other harness in its own words: what a turn of it makes of its session, what its hooks print, how a message
//! gets in and what is evidence for it.

use minder_proto::event::Receipt;
use minder_proto::state::State;
use minder_tests::fake::Answer;
use serde_json::{Value, json};

use super::bench::is_silent;
use super::rig::{ALL, CODEX, CURSOR, GEMINI, Harness, OPENCODE, PI, Rig};
use crate::scene::LIMIT;

/// What a hook brought to the model, and whether it keeps a turn going.
fn brought(answer: &Answer) -> (String, bool) {
    if answer.code == Some(2) {
        return (answer.stderr.clone(), true);
    }
    let out: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match text(&out["followup_message"]) {
        Some(more) => (more, true),
        None => (text(&out["hookSpecificOutput"]["additionalContext"]).unwrap_or_default(), false),
    }
}

#[test]
fn a_turn_of_every_harness_is_told_and_ends_in_news() {
    for harness in ALL {
        let name = harness.name;
        let Harness { start, prompt, tool, stop, end, .. } = harness;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        for event in [prompt, prompt, tool, stop, stop] {
            rig.quietly(event);
        }
        let path = rig.scene.path(id);
        assert_eq!(path[0], (State::Working, "do it".to_owned()), "{name}");
        let note = if name == "cursor" { "" } else { "done" };
        assert_eq!(path[1..], [(State::Idle, note.to_owned())], "{name}");
        assert!(rig.scene.moves(id)[1].1.turn_end, "{name}");
        rig.quietly(end);
        rig.quietly(start);
        let record = rig.scene.record(id);
        let channel = if name == "codex" { "codex" } else { "hook" };
        assert_eq!((record.harness.as_deref(), record.channel.as_str()), (Some(name), channel));
        assert_eq!(record.process.map(|p| p.pid), i32::try_from(rig.host.pid()).ok(), "{name}");
        assert_eq!(rig.scene.records().len(), 1, "{name}");
        assert_eq!(rig.states(id).len(), 2, "{name}");
    }
}

#[test]
fn a_dialog_and_an_interrupt_are_told_by_those_who_tell_them() {
    for (harness, dialog, answered) in [
        (CODEX, "PermissionRequest", "PostToolUse"),
        (OPENCODE, "PermissionRequest", "PermissionReplied"),
        (PI, "PermissionRequest", "PermissionReplied"),
        (GEMINI, "Notification", "AfterTool"),
    ] {
        let name = harness.name;
        let (prompt, stop) = (harness.prompt, harness.stop);
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        rig.quietly(prompt);
        rig.quietly(dialog);
        let asks = rig.scene.path(id).pop().unwrap();
        assert_eq!(asks.0, State::Asking, "{name}");
        assert!(asks.1.starts_with("permission: "), "{name}: {asks:?}");
        let sent = rig.send(id, "not into the dialog");
        assert_eq!(rig.scene.wait_receipt(id, sent, Receipt::Held).reason.as_deref(), Some("dialog"));
        // The call that it was about: of Codex its purpose is not said again.
        let mut over = rig.payload(answered);
        if name == "codex" {
            over["tool_input"] = json!({"command": "touch x1"});
        }
        rig.tell(&over);
        assert_eq!(rig.states(id), [State::Working, State::Asking, State::Working], "{name}");
        if name == "gemini" {
            continue;
        }
        rig.quietly("Interrupt");
        let (_, over) = rig.scene.moves(id).pop().unwrap();
        assert_eq!((over.to, over.note.as_deref(), over.turn_end), (State::Idle, Some("interrupted"), false));
        // What comes late of that turn is no news.
        for event in ["Interrupt", stop] {
            rig.quietly(event);
        }
        assert_eq!(rig.states(id).len(), 4, "{name}");
    }
}

/// Compares with the file of this version and event; `UPDATE_EXPECT=1` writes it anew.
fn golden(rig: &Rig, name: &str, answer: &Answer, known: &[(&str, String)]) {
    let normal =
        |text: &str| known.iter().fold(text.to_owned(), |t, (word, id)| t.replace(id.as_str(), word));
    let shown =
        json!({"exit": answer.code, "stdout": normal(&answer.stdout), "stderr": normal(&answer.stderr)});
    let file = rig.folder().join(format!("answer-{name}.json"));
    expect_test::expect_file![file].assert_eq(&format!("{shown:#}\n"));
}

#[test]
fn h4_every_harness_is_answered_in_its_own_form() {
    for harness in ALL {
        let Harness { start, prompt, tool, stop, end, name, .. } = harness;
        let mut rig = Rig::new(harness, "hooks.brief = \"always\"");
        let begun = rig.tell(&rig.payload(start));
        let id = rig.scene.session("p");
        let session = id.short();
        golden(&rig, start, &begun, &[("SESSION", session.clone())]);
        for (turn, event) in [prompt, tool, stop].into_iter().enumerate() {
            let turn = format!("turn-{turn}");
            if event != prompt {
                rig.tell(&rig.of_turn(prompt, &turn));
            }
            let sent = rig.send(id, "two \"lines\"\nand a \\ tab\t§");
            let answer = rig.tell(&rig.of_turn(event, &turn));
            golden(&rig, event, &answer, &[("MESSAGE", sent.short()), ("SESSION", session.clone())]);
            let is_given = rig.scene.receipts(id, sent).iter().any(|line| line.r == Receipt::Handed);
            assert_eq!(is_given, !is_silent(&answer), "{name} {event}: what is handed is printed");
            rig.scene.minder(&["drop", &sent.short()]);
            rig.tell(&rig.of_turn(stop, &turn));
        }
        let after = rig.tell(&rig.payload(end));
        assert!(is_silent(&after), "{name}: {after:?}");
    }
}

#[test]
fn h1_no_harness_is_kept_going_twice_for_one_message() {
    for harness in ALL {
        let Harness { prompt, stop, name, .. } = harness;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        rig.quietly(prompt);
        rig.send(id, "a text");
        let mut kept = rig.payload(stop);
        kept[if name == "cursor" { "loop_count" } else { "stop_hook_active" }] = json!(true);
        if name == "cursor" {
            kept["loop_count"] = json!(1);
        }
        for _ in 0..20 {
            let answer = rig.tell(&kept);
            assert!(is_silent(&answer), "{name}: {answer:?}");
        }
        let mut blocks = 0;
        for turn in 2..12 {
            let turn = format!("turn-{turn}");
            let shown = rig.of_turn(prompt, &turn);
            blocks += usize::from(!is_silent(&rig.tell(&shown)));
            let (text, more) = brought(&rig.tell(&rig.of_turn(stop, &turn)));
            assert_eq!(text.contains("a text"), more, "{name}: {text}");
            blocks += usize::from(more);
        }
        assert_eq!(blocks, 1, "{name}");
    }
}

#[test]
fn what_codex_wrote_of_its_model_is_evidence_and_nothing_wakes_it() {
    let mut rig = Rig::new(CODEX, "");
    let id = rig.begin();
    // Idle: nothing can wake it, and a waiter is not kept for it.
    let idle = rig.send(id, "while idle");
    assert_eq!(rig.scene.wait_receipt(id, idle, Receipt::Held).reason.as_deref(), Some("no-wake-path"));
    assert!(is_silent(&rig.wait("SessionStart").wait(LIMIT).unwrap()));
    let answer = rig.tell(&rig.payload("UserPromptSubmit"));
    assert!(brought(&answer).0.contains("while idle"), "{answer:?}");
    let line = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        let payload = json!({"type": kind, "role": role, "content": content});
        let line = json!({"type": "response_item", "payload": payload});
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).create(true).open(rig.transcript()).unwrap();
        writeln!(file, "{line}").unwrap();
    };
    // That a tool printed it, or that the model speaks of it, is none.
    line("", "function_call_output", &answer.stdout);
    line("assistant", "message", &answer.stdout);
    line("developer", "message", &brought(&answer).0);
    rig.scene.wait_receipt(id, idle, Receipt::Seen);
    assert_eq!(rig.scene.road(id, idle), "queued, held(no-wake-path), handed, seen");
    assert!(is_silent(&{
        let again = rig.payload("PostToolUse");
        rig.tell(&again)
    }));
    // Its own limit is one of bytes.
    let long = "ä".repeat(6_000);
    rig.send(id, &long);
    let (text, _) = brought(&rig.tell(&rig.payload("PostToolUse")));
    assert!(text.len() < 9_000 && text.contains("these are the first 2000 of 6000 characters"), "{text}");
}

#[test]
fn a_prompt_with_its_id_shows_that_a_message_was_read() {
    for harness in [OPENCODE, PI, GEMINI, CURSOR] {
        let Harness { prompt, stop, name, .. } = harness;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        rig.quietly(prompt);
        let sent = rig.send(id, "one more thing");
        let (text, more) = brought(&rig.tell(&rig.payload(stop)));
        assert!(more, "{name}");
        let mut taken = rig.payload(prompt);
        taken["prompt"] = text.into();
        rig.tell(&taken);
        rig.scene.wait_receipt(id, sent, Receipt::Seen);
        assert_eq!(rig.states(id), [State::Working], "{name}: it joined the turn");
        rig.quietly(stop);
        rig.scene.wait_receipt(id, sent, Receipt::Answered);
    }
}

#[test]
fn a_plugin_that_waits_beside_an_idle_conversation_wakes_it() {
    for harness in [OPENCODE, PI] {
        let name = harness.name;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        let waiter = rig.wait("SessionStart");
        rig.quietly("UserPromptSubmit");
        rig.quietly("Stop");
        assert!(waiter.runs(), "{name}");
        let sent = rig.send(id, "wake up");
        let woken = waiter.wait(LIMIT).unwrap();
        assert!(woken.code == Some(2) && woken.stderr.contains("wake up"), "{name}: {woken:?}");
        let mut taken = rig.payload("UserPromptSubmit");
        taken["prompt"] = woken.stderr.clone().into();
        rig.tell(&taken);
        rig.scene.wait_receipt(id, sent, Receipt::Seen);
        let (_, working) = rig.scene.moves(id).pop().unwrap();
        assert_eq!((working.to, working.cause), (State::Working, Some(sent)), "{name}");
        // At work it comes with the next tool call.
        let busy = rig.send(id, "by the way");
        let (text, more) = brought(&rig.tell(&rig.payload("PostToolUse")));
        assert!(more && text.contains("by the way"), "{name}: {text}");
        taken["prompt"] = text.into();
        rig.tell(&taken);
        rig.scene.wait_receipt(id, busy, Receipt::Seen);
    }
}

/// Where the events of a turn do not carry its id, the end of a call may come after that of its turn.
#[test]
fn a_call_that_ends_after_its_turn_begins_none_and_a_prompt_ends_a_dialog() {
    for (harness, dialog) in
        [(OPENCODE, "PermissionRequest"), (PI, "PermissionRequest"), (GEMINI, "Notification")]
    {
        let Harness { prompt, tool, stop, name, .. } = harness;
        let mut rig = Rig::new(harness, "");
        let id = rig.begin();
        for event in [prompt, dialog, prompt] {
            rig.quietly(event);
        }
        let record = rig.scene.record(id);
        assert_eq!(rig.states(id), [State::Working, State::Asking, State::Working], "{name}");
        assert_eq!(record.turn.and_then(|turn| turn.dialog), None, "{name}");
        for event in [stop, tool, tool] {
            rig.quietly(event);
        }
        assert_eq!(rig.states(id)[3..], [State::Idle], "{name}");
        assert_eq!(rig.scene.record(id).turn, None, "{name}");
    }
}

#[test]
fn a_conversation_that_is_deleted_in_its_turn_is_not_at_work() {
    let mut rig = Rig::new(OPENCODE, "");
    let id = rig.begin();
    rig.quietly("UserPromptSubmit");
    let mut over = rig.payload("SessionEnd");
    over["reason"] = "deleted".into();
    rig.tell(&over);
    let (_, idle) = rig.scene.moves(id).pop().unwrap();
    assert_eq!((idle.to, idle.note.as_deref()), (State::Idle, Some("the conversation ended: deleted")));
}
