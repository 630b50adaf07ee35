//! What is typed, how it is submitted, and what becomes of what is not whole.

use minder_proto::event::Receipt;
use minder_proto::record::Channel;

use super::stage::{ENTER, PASTE, Stage, named};

#[test]
fn d5_an_enter_behind_the_text_that_is_eaten_is_pressed_again() {
    for (span, enters) in [("30ms", 1), ("450ms", 2)] {
        let stage = Stage::new(&format!("early-enter dropped {span}"));
        let id = stage.send("hello");
        stage.arrives(id);
        assert_eq!((stage.count(PASTE), stage.count(ENTER)), (1, enters), "{span}");
        assert_eq!(stage.submitted(), [id.short()]);
    }
    let stage = Stage::new("early-enter newline 450ms");
    let id = stage.send("hello");
    stage.arrives(id);
    assert_eq!(stage.count(PASTE), 1);
}

/// Short texts stand in the typed line, whole; of all others it says how to read them, and there they are whole.
#[test]
fn d6_the_whole_text_reaches_its_reader() {
    let stage = Stage::new("");
    let wide = "\u{4f60}\u{597d}\u{1f389}";
    let lines = format!("{}\n", "\u{597d}\u{1f389}x".repeat(11)).repeat(60);
    let mut bodies: Vec<String> =
        ["x", "-rf /", "/clear", "!ls", "@a", "#b", " blank", "`$(x)` 'y' \"z\"", wide]
            .map(str::to_owned)
            .into();
    bodies.extend([511, 512, 513].map(|n| "x".repeat(n)));
    bodies.extend([lines, format!("{}{wide}\n", "y".repeat(65_520)), "a\u{1b}[201~\r!ls\r".to_owned()]);
    for body in &bodies {
        let id = stage.send(body);
        stage.arrives(id);
        let text = stage.actor.submitted().pop().unwrap();
        assert_eq!(named(&text), id.short());
        if text.contains(" Text: ") {
            assert!(text.ends_with(&format!(" Text: {body}")), "{text:?}");
            assert!(body.chars().count() < 600);
        } else {
            let list = stage.scene.minder(&["--as", "worker", "inbox", "list", "--json"]).ok();
            let read: serde_json::Value = serde_json::from_str(&list).unwrap();
            assert_eq!(read["messages"][0]["body"], body.as_str(), "{read}");
            stage.scene.minder(&["--as", "worker", "inbox", "ack", &id.short()]).ok();
        }
    }
    assert_eq!(stage.submitted().len(), bodies.len());
    let nothing = ["command", "shell", "answered"].map(|what| stage.actor.noted(what).len());
    assert_eq!(nothing, [0, 0, 0]);
    // Between its brackets no paste has a byte that acts.
    assert_eq!(stage.count("\\x1b[201~"), bodies.len());
    let over = stage.scene.minder_with(&["send", "worker", "-"], &"x".repeat(1024 * 1024));
    assert_eq!(over.code, 65, "{over:?}");
}

#[test]
fn d6_a_text_that_lost_a_part_is_never_submitted() {
    for lost in ["lose head 3", "lose tail 2"] {
        let stage = Stage::new(lost);
        let id = stage.send("hello");
        stage.held(id, "differs");
        assert_eq!((stage.count(PASTE), stage.count(ENTER)), (1, 0));
        stage.held(id, "draft");
        assert_eq!((stage.count(PASTE), stage.count(ENTER)), (1, 0));
        stage.say(&["lose head 0", "lose tail 0", "draft"]);
        stage.arrives(id);
        assert_eq!(stage.submitted(), [id.short()]);
    }
}

#[test]
fn d7_what_is_on_the_screen_is_not_submitted() {
    let obstacles = [
        ("collapse 0 10\ndeaf-enter 3", "", 3),
        ("vi on", "vi off", 3),
        ("when text panel", "composer", 0),
        ("deaf-enter 3", "", 3),
    ];
    std::thread::scope(|scope| {
        for (obstacle, gone, enters) in obstacles {
            scope.spawn(move || stands_in_the_way(obstacle, gone, enters));
        }
    });
}

/// So many Enters or more change nothing; the receipt says so, and all goes on when the obstacle is gone.
fn stands_in_the_way(obstacle: &str, gone: &str, enters: usize) {
    let stage = Stage::new(obstacle);
    let waits = stage.scene.minder(&["send", "worker", "--wait", "one"]);
    assert_eq!((waits.code, waits.stdout.as_str()), (3, ""), "{obstacle}: {waits:?}");
    let first = stage.scene.sent(stage.id, &waits.stderr);
    let road = stage.scene.road(stage.id, first);
    assert!(road.contains("handed, held(not-submitted)") && !road.contains("seen"), "{obstacle}: {road}");
    assert_eq!(stage.count(PASTE), 1, "{obstacle}");
    assert!(stage.count(ENTER) >= enters, "{obstacle}");
    let sent = [first, stage.send("two"), stage.send("three")];
    if !gone.is_empty() {
        stage.say(&[gone]);
    }
    stage.arrives(sent[2]);
    assert_eq!(stage.submitted(), sent.map(|id| id.short()), "{obstacle}");
    assert_eq!(stage.count(PASTE), 3, "{obstacle}: the text never again");
}

#[test]
fn d8_a_harness_that_is_not_ready_gets_it_later_and_as_text() {
    let stage = Stage::new("not-ready swallows 4s");
    let id = stage.send("/x");
    stage.held(id, "not-ready");
    stage.arrives(id);
    assert_eq!((stage.submitted(), stage.actor.noted("command").len()), (vec![id.short()], 0));
}

#[test]
fn d9_a_reader_without_paste_mode_gets_one_line() {
    for paste in ["paste on", "paste off"] {
        let stage = Stage::new(paste);
        let sent = ["one\ntwo\nthree", &"y".repeat(6_000), "short"].map(|body| stage.send(body));
        stage.arrives(sent[2]);
        assert_eq!(stage.submitted(), sent.map(|id| id.short()));
        assert!(stage.actor.submitted().iter().all(|text| !text.contains('\n') && !text.contains("200~")));
    }
    // The kernel would cut the long one, and says nothing.
    let stage = Stage::new("line-mode on");
    for body in [&"y".repeat(6_000), "hello"] {
        let id = stage.send(body);
        stage.held(id, "unknown");
    }
    assert_eq!((stage.actor.input().as_str(), stage.submitted().len()), ("", 0));
}

#[test]
fn one_at_a_time_in_a_pane_whatever_the_sessions() {
    let stage = Stage::new("");
    let Channel::Tmux { socket, pane } = stage.scene.record(stage.id).channel else { panic!() };
    let seat = format!("{socket}:{pane}");
    // Nobody else's conversation is known to be in it.
    stage.scene.minder(&["close", "worker"]).ok();
    let ids: Vec<_> = (0..3)
        .map(|n| {
            let label = format!("other-{n}");
            let new = ["new", "--label", &label, "--harness", "claude", "--channel", "tmux", "--pane", &seat];
            stage.scene.minder(&new).ok();
            let id = stage.scene.session(&label);
            let sent = stage.scene.minder(&["send", &label, "hello"]).ok();
            (id, stage.scene.sent(id, &sent))
        })
        .collect();
    for (session, id) in &ids {
        stage.scene.wait_receipt(*session, *id, Receipt::Handed);
    }
    stage.actor.wait_noted("submitted", 3).unwrap();
    let mut names = stage.submitted();
    let mut expected: Vec<String> = ids.iter().map(|(_, id)| id.short()).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!((stage.count(PASTE), stage.count(ENTER)), (3, 3));
}

/// A text that no Enter of ours submitted, and a person's did. The prompt's hook says so, or the transcript.
#[test]
fn what_a_person_submits_is_not_typed_again() {
    for hooks in [&["SessionStart"][..], &["SessionStart", "UserPromptSubmit", "Stop"]] {
        let stage = Stage::with("vi on", |event| hooks.contains(&event));
        let id = stage.send("once");
        stage.held(id, "not-submitted");
        stage.say(&["vi off"]);
        stage.actor.pane().key("Enter").unwrap();
        stage.actor.wait_noted("submitted", 1).unwrap();
        stage.hurry();
        stage.arrives(id);
        // What comes before its turn is over the hooks give.
        stage.scene.wait_record(stage.id, "the end of its turn", |record| record.turn.is_none());
        let second = stage.send("then this");
        stage.arrives(second);
        assert_eq!(stage.submitted(), [id, second].map(|id| id.short()));
        assert_eq!(stage.count(PASTE), 2, "{}", stage.scene.history(stage.id));
    }
}
