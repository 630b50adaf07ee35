//! However many reasons there are to type a message, it is typed once; and what came in another way is not typed at all.

use minder_tests::files;

use super::stage::{ENTER, PASTE, Stage};

#[test]
fn c3_of_many_triggers_in_one_hand_over_one_types() {
    // Its first Enter is eaten, and its transcript is late: the hand-over takes its time.
    let stage = Stage::new("deaf-enter 1\nlate-record 1s");
    let first = stage.send("only once");
    stage.actor.wait(|line| line["what"] == "input" && line.to_string().contains("200~")).unwrap();
    let second = stage.send("behind it");
    for n in 0..20 {
        // Each has it looked at anew, with no pause before that.
        if n % 2 == 0 {
            stage.scene.minder(&["set", "worker", "--title", &format!("title {n}")]).ok();
        } else {
            stage.scene.minder(&["retry", &first.short()]);
        }
    }
    stage.arrives(first);
    stage.arrives(second);
    assert_eq!((stage.count(PASTE), stage.submitted()), (2, vec![first.short(), second.short()]));
    assert_eq!(stage.count(ENTER), 3, "the one that was eaten, and one for each");
    for id in [first, second] {
        assert_eq!(stage.scene.road(stage.id, id).matches("handed").count(), 1);
    }
}

/// What was typed and is not seen yet is typed once, though somebody asks for it again and the daemon is another.
#[test]
fn c3_of_a_retry_and_a_restart_after_it_was_typed_neither_types() {
    let stage = Stage::new("late-record 3s");
    let id = stage.send("only once");
    stage.actor.wait_noted("submitted", 1).unwrap();
    let retry = || stage.scene.minder(&["retry", &id.short()]).ok();
    let again = retry();
    assert_eq!(again, format!("{} handed\n", id.short()), "it may be seen yet");
    let daemon = stage.scene.isolated.daemon().unwrap();
    assert!(daemon.signal(rustix::process::Signal::KILL) && daemon.wait(crate::scene::LIMIT));
    assert_eq!(retry(), again, "nor does the next daemon type it");
    stage.arrives(id);
    assert_eq!((stage.count(PASTE), stage.count(ENTER), stage.submitted()), (1, 1, vec![id.short()]));
    assert_eq!(stage.scene.road(stage.id, id), "queued, handed, seen");
    assert_eq!(stage.scene.minder(&["retry", &id.short()]).code, 2, "it waits no more");
}

/// What its transcript shows is seen at the latest when somebody asks for it again.
#[test]
fn c3_a_retry_looks_for_the_evidence_first() {
    let stage = Stage::configured("status off", "[delivery]\nevidence_timeout = \"1h\"\n");
    let id = stage.send("only once");
    stage.actor.wait_noted("submitted", 1).unwrap();
    let file = stage.scene.record(stage.id).bindings[0].transcript.clone().unwrap();
    let there = |text: &str| text.contains(&id.short()).then_some(());
    files::wait_for_text(std::path::Path::new(&file), crate::scene::LIMIT, there).unwrap();
    let again = stage.scene.minder(&["retry", &id.short()]);
    // Another look may have come first.
    assert!(again.code == 2 || again.stdout == format!("{} seen\n", id.short()), "{again:?}");
    assert_eq!((stage.count(PASTE), stage.scene.road(stage.id, id).as_str()), (1, "queued, handed, seen"));
}

#[test]
fn c5_what_a_hook_has_brought_is_not_typed() {
    let stage = Stage::with("turn held\nhooks twice PostToolUse", |_| true);
    let first = stage.send("begin");
    stage.arrives(first);
    stage.actor.wait_noted("turn-begins", 1).unwrap();
    let second = stage.send("by one way only");
    let tool = r#"tool Bash {"command":"ls"}"#;
    stage.say(&[tool, tool]);
    stage.arrives(second);
    stage.say(&["answer done"]);
    stage.actor.wait_noted("turn-ends", 1).unwrap();
    // What comes after it is typed; of the one before nothing more.
    let third = stage.send("and the end");
    stage.arrives(third);
    stage.actor.wait_noted("turn-begins", 2).unwrap();
    stage.say(&[tool, "answer done"]);
    assert_eq!(stage.submitted(), [first.short(), third.short()]);
    let hooks =
        stage.actor.noted("hook").iter().filter(|line| line.to_string().contains(&second.short())).count();
    assert!(hooks <= 1, "shown once: {hooks}");
}
