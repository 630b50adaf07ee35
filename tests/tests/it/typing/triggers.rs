//! However many reasons there are to type a message, it is typed once; and what came in another way is not typed at all.

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
        stage.scene.minder(&["set", "worker", "--title", &format!("title {n}")]).ok();
    }
    stage.arrives(first);
    stage.arrives(second);
    assert_eq!((stage.count(PASTE), stage.submitted()), (2, vec![first.short(), second.short()]));
    assert_eq!(stage.count(ENTER), 3, "the one that was eaten, and one for each");
    for id in [first, second] {
        assert_eq!(stage.scene.road(stage.id, id).matches("handed").count(), 1);
    }
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
