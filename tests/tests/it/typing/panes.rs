//! What a pane may be, beside what it shows: in copy mode, synchronised with others, another program's, gone.

use minder_proto::event::Receipt;

use super::stage::{PASTE, Stage};

#[test]
fn nothing_is_typed_in_copy_mode_or_into_panes_that_share_their_keys() {
    let stage = Stage::new("");
    let pane = stage.actor.pane();
    pane.tmux("copy-mode", &[], b"").unwrap();
    let id = stage.send("hello");
    stage.held(id, "copy-mode");
    pane.tmux("set-option", &["-p", "synchronize-panes", "on"], b"").unwrap();
    pane.tmux("send-keys", &["-X", "cancel"], b"").unwrap();
    stage.held(id, "unknown");
    assert_eq!(stage.actor.input(), "");
    pane.tmux("set-option", &["-p", "synchronize-panes", "off"], b"").unwrap();
    stage.arrives(id);
    assert_eq!(stage.submitted(), [id.short()]);
}

#[test]
fn nothing_is_typed_into_another_programs_pane_or_one_that_is_gone() {
    let stage = Stage::new("");
    let other = stage.tmux.session("other", stage.scene.isolated.root(), &[], &["cat".into()]).unwrap();
    let seat = |pane: &str| format!("{}:{pane}", stage.tmux.socket().display());
    stage.scene.minder(&["set", "worker", "--channel", "tmux", "--pane", &seat(other.id())]).ok();
    let id = stage.send("hello");
    stage.held(id, "wrong-process");
    stage.scene.minder(&["set", "worker", "--channel", "tmux", "--pane", &seat("%999")]).ok();
    stage.held(id, "offline");
    stage.scene.minder(&["set", "worker", "--channel", "tmux", "--pane", "/nowhere/socket:%1"]).ok();
    stage.held(id, "offline");
    assert_eq!(other.screen().unwrap().trim(), "");
    assert_eq!(stage.actor.input(), "");
    stage.scene.minder(&["set", "worker", "--channel", "tmux"]).ok();
    stage.arrives(id);
    assert_eq!(stage.count(PASTE), 1);
    // Its process is stopped: another has the terminal.
    let seen = stage.scene.minder(&["attach", "worker", "--json"]).ok();
    assert!(seen.contains(stage.actor.pane().id()), "{seen}");
}

/// A person goes over to another conversation in the same program: what is for the first is not typed into the second.
#[test]
fn nothing_is_typed_into_another_conversation_of_the_same_program() {
    let stage = Stage::new("");
    let here = stage.scene.record(stage.id).process.unwrap();
    stage.say(&["resume another"]);
    let is_other = |r: &minder_proto::record::SessionRecord| r.bindings.iter().any(|b| b.id == "another");
    let records = || stage.scene.records();
    let other = stage.scene.wait(stage.id, "the other", || records().into_iter().find(is_other));
    assert!(other.process.is_some_and(|process| process.is(&here)));
    let id = stage.send("hello");
    stage.held(id, "wrong-process");
    // Also for a session of which no conversation is known.
    let pane = format!("{}:{}", stage.tmux.socket().display(), stage.actor.pane().id());
    stage.scene.minder(&["new", "--label", "blank", "--harness", "claude"]).ok();
    stage.scene.minder(&["set", "blank", "--channel", "tmux", "--pane", &pane]).ok();
    let blank = stage.scene.session("blank");
    let sent = stage.scene.minder(&["send", "blank", "hello"]).ok();
    let second = stage.scene.sent(blank, &sent);
    let held = || stage.scene.receipts(blank, second).pop().filter(|r| r.r == Receipt::Held)?.reason;
    assert_eq!(stage.scene.wait(blank, "held", held), "wrong-process");
    assert_eq!(stage.actor.input(), "");
}

#[test]
fn a_session_whose_screens_nobody_knows_cannot_be_typed_to() {
    let stage = Stage::new("");
    stage.scene.minder(&["new", "--label", "pi", "--harness", "pi"]).ok();
    let refused = stage.scene.minder(&["set", "pi", "--channel", "tmux", "--pane", "/s:%1"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("knows the screens of claude"), "{refused:?}");
    stage.scene.minder(&["new", "--label", "c", "--harness", "claude"]).ok();
    let refused = stage.scene.minder(&["set", "c", "--channel", "tmux"]);
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("no pane is known"), "{refused:?}");
    let nowhere = stage.scene.minder(&["attach", "c"]);
    assert_eq!(nowhere.code, 3, "{nowhere:?}");
    assert!(nowhere.stderr.contains("no process of it is known"), "{nowhere:?}");
}
