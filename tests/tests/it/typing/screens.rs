//! What stands in the way, and that nothing is pressed there.

use std::time::Duration;

use minder_proto::id::MessageId;
use minder_proto::state::State;
use minder_tests::isolate::Isolated;
use minder_tests::tmux::Tmux;

use super::stage::{ENTER, PASTE, Stage};
use crate::scene::LIMIT;

#[test]
fn d1_a_dialog_is_open_and_no_byte_reaches_it() {
    for status in ["status on", "status off"] {
        let stage = Stage::new(&format!("{status}\ndialog 2 Which way? | release | left | right | none"));
        let bodies = ["release", "1", "y", "2\n", "\n"];
        let sent: Vec<_> = bodies.iter().map(|body| stage.send(body)).collect();
        for id in &sent {
            stage.held(*id, "dialog");
        }
        let asked = stage.scene.minder(&["send", "worker", "--wait", "and?"]);
        assert_eq!((asked.code, asked.stdout.as_str()), (3, ""), "{asked:?}");
        assert_eq!((stage.actor.input().as_str(), stage.actor.noted("answered").len()), ("", 0));
        stage.say(&["composer"]);
        let last = stage.scene.sent(stage.id, &asked.stderr);
        stage.arrives(last);
        let names: Vec<String> = sent.iter().chain([&last]).map(MessageId::short).collect();
        assert_eq!(stage.submitted(), names, "each once, in order");
        assert!(stage.actor.noted("answered").is_empty() && stage.actor.noted("command").is_empty());
    }
}

#[test]
fn d1_who_watches_is_told_that_input_is_needed() {
    let stage = Stage::with("turn held", |_| true);
    stage.scene.minder(&["new", "--label", "watcher"]).ok();
    let watcher = stage.scene.session("watcher");
    stage.scene.minder(&["--as", "watcher", "watch", "worker"]).ok();
    let first = stage.send("begin");
    stage.arrives(first);
    stage.say(&[
        "dialog 1 Do you want to proceed? | Yes | No",
        r#"hook PermissionRequest {"tool_name":"Bash","tool_input":{"command":"rm x"}}"#,
    ]);
    let told = || {
        let notices = stage.scene.notices(watcher, stage.id);
        notices.into_iter().find(|m| m.about.as_ref().and_then(|about| about.to) == Some(State::Asking))
    };
    stage.scene.wait(watcher, "the notice", told);
    let second = stage.send("1");
    stage.held(second, "dialog");
    assert_eq!((stage.count(PASTE), stage.actor.noted("answered").len()), (1, 0));
}

#[test]
fn d2_a_dialog_comes_between_the_text_and_its_enter() {
    for status in ["status on", "status off"] {
        let stage = Stage::new(&format!("{status}\nwhen text dialog 1 Delete everything? | Yes | No"));
        let id = stage.send("go on");
        stage.held(id, "not-submitted");
        assert_eq!((stage.count(PASTE), stage.count(ENTER), stage.actor.noted("answered").len()), (1, 0, 0));
        // One dialog gives way to another.
        stage.say(&["dialog 1 And this? | Yes | No"]);
        stage.held(id, "dialog");
        assert_eq!((stage.count(PASTE), stage.count(ENTER)), (1, 0));
        stage.say(&["composer"]);
        stage.arrives(id);
        assert_eq!((stage.submitted(), stage.count(PASTE)), (vec![id.short()], 1));
        assert!(stage.actor.noted("answered").is_empty());
    }
}

#[test]
fn d3_a_trust_screen_is_no_reader_and_work_is_no_receipt() {
    for default in ["yes", "no"] {
        let stage = Stage::new(&format!("trust {default}\nturn 0 by itself"));
        let id = stage.send("hello");
        stage.held(id, "dialog");
        stage.say(&["start something"]);
        stage.actor.wait_noted("turn-ends", 1).unwrap();
        assert_eq!(stage.scene.road(stage.id, id), "queued, held(dialog)");
        assert_eq!(stage.actor.input(), "");
        stage.say(&["composer"]);
        stage.arrives(id);
        assert_eq!(stage.submitted(), [id.short()]);
    }
}

#[test]
fn d4_somebody_is_typing() {
    let stage = Stage::new("draft dele");
    let id = stage.send("hello");
    stage.held(id, "draft");
    assert_eq!(stage.actor.input(), "");
    stage.say(&["draft"]);
    stage.arrives(id);
    assert_eq!(stage.submitted(), [id.short()]);
    assert_eq!(stage.scene.road(stage.id, id).matches("handed").count(), 1);
}

/// A person at the keys, in a terminal of their own: nothing is typed for some seconds after a key, however empty the
/// prompt is.
#[test]
fn d4_a_key_of_a_person_is_waited_out() {
    let stage = Stage::new("");
    let own = Isolated::new().unwrap();
    let terminal = Tmux::start(&own).unwrap();
    let socket = stage.tmux.socket().to_str().unwrap().to_owned();
    let attach = ["env", "-u", "TMUX", "tmux", "-S", &socket, "attach-session", "-t", "claude"];
    let person = terminal.session("person", own.root(), &[], &attach.map(Into::into)).unwrap();
    person.wait_text(LIMIT, "Claude Code").unwrap();
    // Ten times a key, a second apart, that leaves the prompt empty.
    let keys = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10; do tmux -S {} send-keys -t {} x BSpace; sleep 1; done; cat",
        terminal.socket().display(),
        person.id()
    );
    let hand = terminal.session("hand", own.root(), &[], &["sh", "-c", &keys].map(Into::into)).unwrap();
    stage.actor.wait_noted("input", 1).unwrap();
    let id = stage.send("hello");
    stage.held(id, "draft");
    stage.arrives(id);
    let input = stage.actor.noted("input");
    let is_paste = |line: &serde_json::Value| line["bytes"].as_str().unwrap().contains("200~");
    let at = |line: &serde_json::Value| line["at_ms"].as_u64().unwrap();
    let paste = input.iter().position(is_paste).unwrap();
    let typed: String = input[..paste].iter().filter_map(|line| line["bytes"].as_str()).collect();
    assert_eq!(typed.matches('x').count(), 10 + typed.matches("\\x").count(), "held until the last: {typed}");
    let waited = Duration::from_millis(at(&input[paste]) - at(&input[paste - 1]));
    assert!(waited >= Duration::from_secs(5), "{waited:?}");
    assert_eq!(stage.submitted(), [id.short()]);
    drop(hand);
}

/// Nothing tells that it is idle again: no hook, no file, no key. It is looked at again all the same.
#[test]
fn c2_a_screen_that_was_busy_is_looked_at_again() {
    let stage = Stage::new("status off\nbusy on");
    let id = stage.send("hello");
    stage.held(id, "busy");
    let frames = stage.actor.noted("frame").len();
    stage.say(&["busy off"]);
    stage.arrives(id);
    assert!(stage.actor.noted("frame").len() > frames);
    assert_eq!((stage.submitted(), stage.count(PASTE)), (vec![id.short()], 1));
    assert_eq!(stage.scene.road(stage.id, id), "queued, held(busy), handed, seen");
}

#[test]
fn d10_words_on_a_screen_are_no_state() {
    let stage = Stage::new("quotes\nspinner \u{2620}\u{2603}\nwindow a\\tb\\x1f{c}\nunknown");
    let before = stage.scene.moves(stage.id).len();
    let id = stage.send("hello");
    stage.held(id, "unknown");
    let waits = stage.scene.minder(&["send", "worker", "--wait", "--timeout", "1s", "and?"]);
    assert_eq!((waits.code, waits.stdout.as_str()), (1, ""), "{waits:?}");
    assert_eq!(stage.actor.input(), "");
    // A spinner that nobody knows, with the word beside it that says that a turn runs.
    stage.say(&["composer", "quotes", "busy on"]);
    stage.held(id, "busy");
    assert_eq!(stage.actor.input(), "");
    assert_eq!(stage.scene.moves(stage.id).len(), before, "{}", stage.scene.history(stage.id));
    // All those words in the conversation are no obstacle where the prompt is empty.
    stage.say(&["busy off"]);
    stage.arrives(id);
    assert!(stage.actor.noted("answered").is_empty());
}

#[test]
fn d10_no_other_screen_is_typed_into() {
    let stage = Stage::new("status off\npanel");
    let id = stage.send("hello");
    stage.held(id, "dialog");
    stage.say(&["limit"]);
    stage.held(id, "usage-limit");
    stage.say(&["look plain", "composer"]);
    stage.held(id, "unknown");
    stage.say(&["look codex"]);
    stage.held(id, "unknown");
    assert_eq!(stage.actor.input(), "");
    stage.say(&["look claude"]);
    stage.arrives(id);
}
