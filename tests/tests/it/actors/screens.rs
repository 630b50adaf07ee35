//! What an actor shows and what it makes of keys.

use std::time::Duration;

use super::Play;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_screen_is_drawn_in_every_look() {
    let play = Play::new("look plain");
    let actor = &play.actor;
    let shows = |steps: &[&str], texts: &[&str]| {
        for step in steps {
            actor.say(step).unwrap();
        }
        for text in texts {
            actor.pane().wait_text(LIMIT, text).unwrap();
        }
    };
    let dialog = "dialog 2 Do you want to proceed? | Yes | Yes, always | No";
    shows(&["look claude"], &["Claude Code v2.1.332", "\u{276f}\u{a0}", "? for shortcuts"]);
    shows(&["draft dele"], &["\u{276f}\u{a0}dele"]);
    shows(&[dialog], &["Do you want to proceed?", "   1. Yes", " \u{276f} 2. Yes, always", "Esc to cancel"]);
    shows(&["question 1 Which? | Left | Right"], &["\u{276f} 1. Left", "Enter to select"]);
    shows(&["trust yes"], &[" \u{276f} Yes, I trust this folder", "   No, exit"]);
    shows(&["trust no"], &[" \u{276f} No, exit", "Enter to confirm"]);
    shows(&["panel"], &["Select model"]);
    shows(&["limit"], &["hit your session limit"]);
    shows(&["unknown"], &["[ Continue ]"]);
    shows(&["composer", "draft", "busy on"], &["Spelunking", "esc to interrupt"]);
    shows(&["quotes"], &["Accessing workspace:", "-- NORMAL --"]);
    shows(&["vi on"], &["-- NORMAL --"]);
    shows(&["vi off", "busy off", "look codex"], &["\u{203a} Ask Codex to do anything"]);
    shows(&["draft dele"], &["\u{203a} dele"]);
    shows(&[dialog], &["  1. Yes (y)", "\u{203a} 2. Yes, always (p)", "  3. No (esc)"]);
    shows(&["trust yes"], &["\u{203a} 1. Trust and continue"]);
    shows(&["composer", "draft", "busy on"], &["Working (", "esc to interrupt"]);
    shows(&["busy off", "look plain", "draft dele"], &["> dele"]);
    shows(&[dialog], &["* 2) Yes, always"]);
    shows(&["window a\\tb\\x1f{c}"], &[]);
    let names: Vec<_> =
        actor.noted("screen").iter().map(|s| s["shows"].as_str().unwrap().to_owned()).collect();
    let all = "dialog question trust trust panel limit unknown composer dialog trust composer dialog";
    assert_eq!(names.join(" "), all);
}

#[test]
fn a_paste_and_an_enter_are_a_submission() {
    let play = Play::new("look claude\nturn held");
    let actor = &play.actor;
    actor.pane().paste("one\ntwo").unwrap();
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}one\n  two").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("turn-begins", 1).unwrap();
    assert_eq!(actor.submitted(), ["one\ntwo"]);
    assert_eq!(actor.input(), "\\x1b[200~one\\ntwo\\x1b[201~\\x0d");
    // A long one is shown as a word, and is whole all the same.
    let long = "a line \u{4f60}\u{1f600}\n".repeat(40);
    actor.pane().paste(&long).unwrap();
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}[Pasted text #1 +41 lines]").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.pane().wait_text(LIMIT, "Press up to edit queued messages").unwrap();
    assert_eq!(actor.submitted()[1], long);
    assert_eq!(actor.noted("submitted")[1]["busy"], true);
}

/// Whoever reads without marks has each line as a submission of its own; with the kernel's lines long ones are cut.
#[test]
fn readers_without_paste_mode_have_other_habits() {
    let play = Play::new("look plain\npaste off");
    let actor = &play.actor;
    actor.pane().tmux("send-keys", &["-l", "one\rtwo\r"], b"").unwrap();
    actor.wait_noted("submitted", 2).unwrap();
    assert_eq!(actor.submitted(), ["one", "two"]);
    actor.pane().paste("x").unwrap();
    actor.pane().wait_text(LIMIT, "> x").unwrap();
    assert!(!actor.input().contains("200~"), "the terminal was told of no marks");

    let play = Play::new("line-mode on");
    let actor = &play.actor;
    actor.pane().type_text(&"y".repeat(6000)).unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("submitted", 1).unwrap();
    assert_eq!(actor.submitted(), ["y".repeat(4095)]);
}

#[test]
fn an_enter_is_lost_where_the_habits_say_so() {
    let play = Play::new("look claude\ndeaf-enter 2");
    let actor = &play.actor;
    let enter = |lost: &str, many: usize| {
        actor.pane().key("Enter").unwrap();
        let enters = actor.wait_noted("enter", many).unwrap();
        assert_eq!(enters[many - 1]["lost"], lost);
    };
    actor.pane().type_text("hello").unwrap();
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}hello").unwrap();
    enter("ignored", 1);
    enter("ignored", 2);
    actor.say("vi on").unwrap();
    enter("vi", 3);
    actor.say("vi off").unwrap();
    actor.say("early-enter dropped 60s").unwrap();
    enter("early", 4);
    actor.say("early-enter newline 60s").unwrap();
    enter("newline", 5);
    actor.say("early-enter newline 0").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("submitted", 1).unwrap();
    assert_eq!(actor.submitted(), ["hello\n"]);
}

#[test]
fn text_is_lost_where_the_habits_say_so() {
    let play = Play::new("look claude\nlose head 3");
    let actor = &play.actor;
    actor.pane().paste("0123456789").unwrap();
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}3456789").unwrap();
    actor.say("draft").unwrap();
    actor.say("lose head 0").unwrap();
    actor.say("lose tail 4").unwrap();
    actor.pane().paste("0123456789").unwrap();
    actor.wait(|line| line["what"] == "frame" && line["composer"] == "012345").unwrap();
    actor.say("panel").unwrap();
    actor.pane().paste("into the void").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("swallowed", 2).unwrap();
    actor.say("composer").unwrap();
    actor.say("not-ready swallows 60s").unwrap();
    actor.pane().type_text("early").unwrap();
    actor.wait(|line| line["what"] == "swallowed" && line["by"] == "not-ready").unwrap();
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}012345").unwrap();
    actor.say("not-ready text 60s").unwrap();
    actor.say("draft /clear").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("submitted", 1).unwrap();
    assert_eq!((actor.submitted(), actor.noted("command").len()), (vec!["/clear".to_owned()], 0));
}

#[test]
fn a_dialog_takes_what_a_dialog_takes() {
    let play = Play::new("look claude\nwhen text dialog 1 First? | Yes | No");
    let actor = &play.actor;
    actor.pane().paste("a message").unwrap();
    actor.pane().wait_text(LIMIT, "First?").unwrap();
    // It came when the text was in: the Enter behind it answers.
    actor.pane().key("Enter").unwrap();
    let answered = actor.wait_noted("answered", 1).unwrap();
    assert_eq!((&answered[0]["dialog"], &answered[0]["option"]), (&"First?".into(), &1.into()));
    actor.pane().wait_text(LIMIT, "\u{276f}\u{a0}a message").unwrap();
    actor.say("dialog 2 Second? | Yes | No").unwrap();
    actor.pane().paste("lost").unwrap();
    actor.pane().type_text("y").unwrap();
    actor.wait_noted("swallowed", 2).unwrap();
    actor.pane().type_text("1").unwrap();
    assert_eq!(actor.wait_noted("answered", 2).unwrap()[1]["option"], 1);
    actor.say("look codex").unwrap();
    actor.say("dialog 3 Third? | Yes | Always | No").unwrap();
    actor.say("deaf-dialog 60s").unwrap();
    actor.pane().key("Enter").unwrap();
    actor.wait_noted("swallowed", 3).unwrap();
    actor.say("deaf-dialog 0").unwrap();
    actor.pane().type_text("yes").unwrap();
    let answered = actor.wait_noted("answered", 3).unwrap();
    assert_eq!((&answered[2]["dialog"], &answered[2]["option"]), (&"Third?".into(), &1.into()));
    assert!(actor.submitted().is_empty());
}
