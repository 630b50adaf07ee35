//! K7: bodies are bytes, and no shell's business.

use serde_json::{Value, json};

use crate::world::World;
use crate::world::daemon::Reply;

pub fn sent() -> Value {
    json!({"id": "0199c2d4-90c3-7f0e-8a17-c2b67be21c09", "to": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700",
        "seq": 3, "receipt": "queued"})
}

#[test]
fn k7_bodies_are_bytes() {
    let world = World::new();
    let daemon = world.daemon(|_, _| Reply::With(sent()));
    let file = world.root().join("body");
    let long = "é".repeat(128 * 1024);
    for body in [
        "`touch x` $(touch x) ! ' \" \\ \t$HOME\n\n\n  no final newline",
        "\n",
        "ends with two\n\n",
        "\r\n\u{1b}]52;c;x\u{7}\u{2028}\u{202e} 日本 🙂 \u{7f}",
        "- looks like an option",
        "--wait",
        &long,
    ] {
        std::fs::write(&file, body).unwrap();
        let file = file.to_str().unwrap();
        for words in [
            &["send", "api", "-"][..],
            &["send", "api", "--stdin"],
            &["send", "api", "--body-file", file],
            &["send", "api", "--body-file", "-"],
            &["send", "--reply-to", "7be21c09", "-"],
            &["session", "send", "--body-file", file, "api"],
        ] {
            let input = if words.contains(&file) { "" } else { body };
            assert_eq!(world.run_with(words, input.as_bytes()).ok(), "7be21c09 queued\n", "{words:?}");
            let asked = daemon.next();
            assert_eq!(asked.method, "message.send");
            assert!(asked.params["body"] == *body, "{words:?}: {:?}", asked.params["body"]);
        }
    }
    world.run(&["send", "api", "short words"]).ok();
    assert_eq!(daemon.next().params["body"], "short words");
    assert!(!world.root().join("home/x").exists(), "nothing was executed");
}

#[test]
fn k7_every_example_takes_text_from_a_stream_or_a_file() {
    // A text of several lines is never shown inside an argument.
    let reference = include_str!("../../../docs/cli.md");
    let agent = minder_client::commands::help::AGENT;
    for line in reference.lines().chain(agent.lines()) {
        let Some(at) = line.find("minder send ") else { continue };
        let rest = &line[at..];
        let good = rest.contains(" - ") || rest.contains("--body-file") || rest.contains("[OPTIONS]");
        // The one short literal of the contract.
        assert!(good || rest.contains("minder send @operator \""), "{line}");
    }
}

#[test]
fn a_note_is_a_text_too_without_the_newline_of_a_here_document() {
    let world = World::new();
    let daemon = world.daemon(|_, _| {
        Reply::With(json!({"session": "5f1c2d4a-90c3-4f0e-8a17-c2b6d1e4f700", "from": "asking",
            "to": "working", "seq": 7}))
    });
    let note = |words: &[&str], input: &str| {
        assert_eq!(world.run_with(words, input.as_bytes()).ok(), "asking → working\n");
        daemon.next().params["note"].clone()
    };
    assert_eq!(note(&["state", "working", "--note", "-"], "two\nlines `x`\n"), "two\nlines `x`");
    assert_eq!(note(&["state", "working", "--stdin"], "x\n"), "x");
    assert_eq!(note(&["state", "working", "--note", "$(x)"], ""), "$(x)");
    assert_eq!(note(&["state", "working", "--note", "-"], "\n"), Value::Null);
    assert_eq!(note(&["state", "working"], ""), Value::Null);
}
