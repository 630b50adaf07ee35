//! What hooks print, to the byte: a harness ignores an answer with a wrong key without a word.

use minder_tests::claude;
use minder_tests::fake::Answer;
use serde_json::{Value, json};

use super::bench::{Bench, is_silent};

/// Compares with the file of this version and event; `UPDATE_EXPECT=1` writes it anew.
fn golden(name: &str, answer: &Answer, known: &[(&str, String)]) {
    let normal =
        |text: &str| known.iter().fold(text.to_owned(), |t, (word, id)| t.replace(id.as_str(), word));
    let shown =
        json!({"exit": answer.code, "stdout": normal(&answer.stdout), "stderr": normal(&answer.stderr)});
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/claude").join(claude::version());
    let file = file.join(format!("answer-{name}.json"));
    expect_test::expect_file![file].assert_eq(&format!("{shown:#}\n"));
    // What is no text for the model is one JSON object.
    if !answer.stdout.is_empty() {
        let object: Value = serde_json::from_str(&answer.stdout).unwrap();
        let event = name.split('-').next().unwrap();
        assert_eq!(object["hookSpecificOutput"]["hookEventName"], event);
    }
}

#[test]
fn h4_bytes_as_the_harness_wants_them() {
    let mut bench = Bench::new("hooks.brief = \"always\"");
    let start = bench.tell(&bench.payload("SessionStart"));
    let id = bench.scene.session("p");
    let session = id.short();
    golden("SessionStart", &start, &[("SESSION", session.clone())]);
    let mut turn = 0;
    for event in ["UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"] {
        turn += 1;
        let turn = format!("turn-{turn}");
        bench.tell(&bench.of_turn("UserPromptSubmit", &turn));
        // A prompt of the next turn, which brings something.
        let of = if event == "UserPromptSubmit" { "turn-0" } else { &turn };
        let sent = bench.send(id, &["two \"lines\"\nand a \\ tab\t§"]);
        let answer = bench.tell(&bench.of_turn(event, of));
        golden(event, &answer, &[("MESSAGE", sent.short()), ("SESSION", session.clone())]);
    }
    // The others never say anything, whatever waits.
    bench.tell(&bench.of_turn("UserPromptSubmit", "turn-9"));
    bench.send(id, &["not here"]);
    for event in
        ["PermissionRequest", "Notification", "PreCompact", "PostCompact", "StopFailure", "SessionEnd"]
    {
        let answer = bench.tell(&bench.of_turn(event, "turn-9"));
        assert!(is_silent(&answer), "{event}: {answer:?}");
    }
}
